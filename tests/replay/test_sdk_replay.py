"""Seven modes over the real SDKs, recorded and replayed: the same history, no request at the socket, no tool body.

Broken on purpose, each stops at the right turn and path.
"""

import contextlib
import copy
import functools
import json
import tempfile
from pathlib import Path

import pytest

import looptape
import modes
from fakellm import FakeLLM
from looptape.replay.player.stops import ReplayMismatch
from looptape.replay.verdict import Counts
from looptape.tracer import process
from looptape.tracer.store import open_store
from looptape.tracer.store.export import records_of
from looptape.tracer.tape import line
from recorded import recording

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
WAYS = [pytest.param(sdk, mode, id=f"{sdk}-{mode.replace(' ', '-')}") for sdk in modes.SDKS for mode in modes.MODES]


class Counting(FakeLLM):
    """Counts connections at its socket."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.connections, get_request = 0, self.httpd.get_request

        def counted():
            self.connections += 1
            return get_request()

        self.httpd.get_request = counted


@contextlib.contextmanager
def off(monkeypatch):
    monkeypatch.setenv("LOOPTAPE", "off")
    former = process.replace(None)
    try:
        yield
    finally:
        process.replace(former)
        monkeypatch.delenv("LOOPTAPE")


def ran_once(mode, sdk, **more):
    """The history of one run against a fresh server, the connections it took, and the tool bodies that ran."""
    pytest.importorskip(sdk)
    modes.ran.clear()
    with Counting(modes.script(mode), ids="counter") as server:
        history = modes.history(mode, sdk, server.url, **more)
        return history, server.connections, len(modes.ran)


@functools.cache
def _taped(mode, sdk):
    with tempfile.TemporaryDirectory(prefix="looptape-modes-") as folder, recording(Path(folder)) as home:
        history, connections, bodies = ran_once(mode, sdk)
        assert connections > 0
        root = next(r for r in home.runs() if r.name == "modes")
        with open_store(home.path) as store:
            return list(records_of(store, root.id)), history, bodies


def taped(mode, sdk):
    """The mode, recorded once: the records of its run with its children, its history, and the tool bodies that ran."""
    return copy.deepcopy(_taped(mode, sdk))


def written(records, file):
    file.write_bytes(b"".join(line(r) for r in records))
    return file


def replayed(mode, sdk, file, folder, **more):
    """Replays; the tape object, and what `ran_once` gives (None where it stopped)."""
    with looptape.replaying(file, into=folder / "new", **more) as tape:
        found = ran_once(mode, sdk)
    return tape, found


@pytest.mark.parametrize(("sdk", "mode"), WAYS)
def test_a_replay_is_the_same_run_without_server_and_tools(tmp_path, monkeypatch, sdk, mode):
    with off(monkeypatch):
        bare, _, bodies = ran_once(mode, sdk)
    records, history, _ = taped(mode, sdk)
    assert history == bare
    tape, (again, connections, ran) = replayed(mode, sdk, written(records, tmp_path / "t.tape.jsonl"), tmp_path)
    assert (again, connections, ran) == (bare, 0, 0)
    verdict = tape.verdict
    assert verdict.ok, verdict.lines()
    assert (verdict.served.tools, verdict.network_requests, verdict.live) == (bodies, 0, Counts())
    assert verdict.served == verdict.recorded
    assert verdict.normalised == ()


@pytest.mark.parametrize(("sdk", "mode"), WAYS)
def test_every_repeat_has_the_same_digest(tmp_path, sdk, mode):
    file = written(taped(mode, sdk)[0], tmp_path / "t.tape.jsonl")
    digests = {replayed(mode, sdk, file, tmp_path / str(n))[0].verdict.digest for n in range(3)}
    assert len(digests) == 1


def stopped(mode, sdk, file, folder, **more):
    """The mismatch that a replay ends with."""
    with pytest.raises(ReplayMismatch) as caught, looptape.replaying(file, into=folder / "new") as tape:
        ran_once(mode, sdk, **more)
    assert not tape.verdict.ok
    assert tape.verdict.diverged is not None
    assert modes.ran == []
    return caught.value


@pytest.mark.parametrize(("sdk", "mode"), WAYS)
def test_an_edited_prompt_stops_at_the_first_turn(tmp_path, sdk, mode):
    file = written(taped(mode, sdk)[0], tmp_path / "t.tape.jsonl")
    miss = stopped(mode, sdk, file, tmp_path, prompt="What is the profit?")
    number = 0 if sdk == "anthropic" else 1
    assert (miss.turn, miss.path) == (1, f"$.messages[{number}].content")
    assert "revenue" in miss.recorded
    assert "profit" in miss.got


@pytest.mark.parametrize(("sdk", "mode"), WAYS)
def test_a_swapped_result_stops_where_it_comes_back(tmp_path, sdk, mode):
    records, _, _ = taped(mode, sdk)
    first = next(r["run"] for r in records if r["kind"] == "turn_start")
    turns = sorted({r["turn"] for r in records if r["kind"] == "call_end" and r["run"] == first})
    for kind in ("call_end", "call_seen"):
        one, other = (
            next(r for r in records if r["kind"] == kind and r["run"] == first and r["turn"] == t) for t in turns[:2]
        )
        for field in ("result", "returned", "message", "path", "digest", "length"):
            one[field], other[field] = other.get(field), one.get(field)
        for record in (one, other):
            for field in [f for f, value in record.items() if value is None and f in ("result", "returned")]:
                del record[field]
    miss = stopped(mode, sdk, written(records, tmp_path / "t.tape.jsonl"), tmp_path)
    assert miss.turn == turns[0] + 1
    path = "$.messages[2].content[0].content" if sdk == "anthropic" else "$.messages[3].content"
    assert miss.path == path


@pytest.mark.parametrize(("sdk", "mode"), WAYS)
def test_a_dropped_answer_stops_at_its_turn(tmp_path, sdk, mode):
    records, _, _ = taped(mode, sdk)
    first = next(r["run"] for r in records if r["kind"] == "turn_start")
    left = [r for r in records if not (r["kind"] in ("turn_end", "chunk") and r["run"] == first and r["turn"] == 2)]
    assert len(left) < len(records)
    miss = stopped(mode, sdk, written(left, tmp_path / "t.tape.jsonl"), tmp_path)
    assert miss.turn == 2


@pytest.mark.parametrize(("sdk", "mode"), WAYS)
def test_a_dropped_result_stops_at_its_call(tmp_path, sdk, mode):
    records, _, _ = taped(mode, sdk)
    first = next(r["run"] for r in records if r["kind"] == "turn_start")
    mine = {r["call"] for r in records if r["kind"] == "call_end" and r["run"] == first and r["turn"] == 2}
    left = [r for r in records if not (r["kind"] in ("call_end", "call_seen") and r["call"] in mine)]
    miss = stopped(mode, sdk, written(left, tmp_path / "t.tape.jsonl"), tmp_path)
    assert miss.turn == 2
    assert any(name in str(miss) for name in modes.NAMES)
    json.dumps(miss.path)
