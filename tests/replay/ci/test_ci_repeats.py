"""A tape that is kept beside tests, replayed again and again, gives the same report byte by byte."""

import json
import os
import random

import pytest

import looptape
from fakellm import FakeLLM
from looptape.replay.player import order
from looptape.tracer import ci_tape, tape
from looptape.tracer.store import Filter, open_store
from looptape.tracer.store.export import records_of
from modes import history, script
from recorded import recording


def kept(folder, mode):
    """The tape of a mode, recorded from the fake server."""
    with recording(folder) as home, FakeLLM(script(mode)) as server:
        history(mode, "anthropic", server.url)
        home.end()
    with open_store(home.path) as store:
        roots = [r for r in store.runs(Filter(limit=0, include_empty=True)) if r.parent is None]
        records = [record for root in roots for record in records_of(store, root.id)]
    file = folder / "x.tape.jsonl"
    file.write_bytes(b"".join(map(tape.line, ci_tape.settled(records, "x"))))
    return file


def report(file, mode, into, prompt="What is the revenue?"):
    """What a replay says, as JSON and for people."""
    try:
        with looptape.replaying(file, into=into) as replayed:
            history(mode, "anthropic", lambda name: f"http://127.0.0.1:1/{name}", prompt)
    except looptape.LooptapeStop:
        pass
    return json.dumps(replayed.verdict.as_json()), str(replayed.verdict)


@pytest.mark.parametrize("mode", ["sub-agents"])
def test_twenty_replays_say_the_same_also_in_another_folder_and_time_zone(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(order, "PATIENCE", 60.0)  # no pause of a busy machine is taken for a call that never comes
    file = kept(tmp_path, mode)
    said = set()
    for number in range(20):
        folder = tmp_path / str(number % 2)
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("TZ", random.choice(["UTC", "Asia/Kathmandu"]))
        said.add(report(file, mode, folder / "home"))
    assert len(said) == 1
    assert json.loads(said.pop()[0])["ok"]
    assert os.getcwd() == str(tmp_path / "1")


def test_a_miss_is_told_in_the_same_bytes_by_a_tape_that_was_recorded_again(tmp_path):
    said = {report(kept(tmp_path / str(n), "plain"), "plain", tmp_path / "home", "What is the cost?") for n in (1, 2)}
    assert len(said) == 1
    assert "What is the cost?" in said.pop()[1]
