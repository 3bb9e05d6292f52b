"""`looptape context`: one screen that sums to the recorded total, and its JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import conversation_tape as talk
from commandline import looptape
from looptape.tracer.store import open_store

RUN, BARE, EMPTY = "c" * 16, "d" * 16, "e" * 16


def turns() -> list[talk.Said]:
    steps = [
        ([talk.call("read", f"t{n}", path=f"file_{n}.py")], [talk.result(f"t{n}", f"def part_{n}(): pass\n" * 40 * n)])
        for n in range(1, 30)
    ]
    found = talk.grown([*steps, ([talk.text("done")], [])], tools=[{"name": "read", "input_schema": {}}])
    held = 0
    for number, turn in enumerate(found, 1):
        turn.usage = {"input": 5, "cache_read": held, "cache_write_5m": 300 * number, "output": 20}
        held += 300 * number
    for turn in found[20:]:
        turn.system = "Another\x1b[2J one."
    found[20].usage = {"input": 5, "cache_read": 0, "cache_write_5m": 300 * 21 * 11, "output": 20}
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    bare = turns()[:3]
    for turn in bare:
        turn.usage = None
    with open_store(folder) as store:
        store.ingest(talk.records(turns(), RUN))
        store.ingest(talk.records(bare, BARE))
        store.ingest([{"kind": "run_start", "run": EMPTY, "at": talk.START, "source": "sdk"}])
    return folder


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)


def test_one_screen_says_what_fills_the_window_and_where_the_cache_broke() -> None:
    ran = looptape("context", f"{RUN}:25")
    assert ran.code == 0
    assert len(ran.out.splitlines()) <= 40
    assert "context of turn 25" in ran.out
    assert re.search(r"results of read +[\d,]+ +\d+ % +24 ", ran.out)
    assert re.search(r"turn 21: the prefix broke at system; 63,000 tokens read again, \$0\.22 more", ran.out)
    assert "judged by words" in ran.out
    assert "\x1b" not in ran.out


def test_a_run_alone_means_its_last_turn() -> None:
    assert looptape("context", RUN, "--json").json["turn"] == 30


def test_the_json_sums_to_the_recorded_total() -> None:
    found = looptape("context", f"{RUN}:25", "--json").json
    assert (found["version"], found["run"], found["turn"], found["how"]) == (1, RUN, 25, "recorded")
    assert sum(o["tokens"] for o in found["origins"]) == found["tokens"] == found["growth"][-1]["tokens"]
    assert [g["turn"] for g in found["growth"]] == list(range(1, 26))
    assert [(b["turn"], b["cause"], b["tokens"]) for b in found["cache"]["breaks"]] == [(21, "system", 63000)]
    assert set(found["stale"][0]) == {"call", "tool", "turn", "tokens", "last_used", "superseded_by", "carried"}


def test_estimates_are_called_estimates() -> None:
    ran = looptape("context", BARE)
    assert "tokens estimated" in ran.out
    assert "no usage was recorded" in ran.out


@pytest.mark.parametrize(
    ("reference", "says"),
    [(f"{RUN}:2-4", "looks at one turn"), (f"{RUN}:99", "no turn 99"), (EMPTY, "has no turns")],
    ids=["range", "beyond", "empty"],
)
def test_what_cannot_be_asked_ends_with_2_and_one_line(reference: str, says: str) -> None:
    ran = looptape("context", reference)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert says in ran.err
