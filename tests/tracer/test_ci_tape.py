"""The form of a tape that is kept beside tests: what it moves into its header, and that everything is found again there."""

import json

import pytest

from fakellm import FakeLLM
from looptape.replay.player import tape_runs
from looptape.tracer import ci_tape, tape
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, memory_store, open_store
from looptape.tracer.store.export import records_of
from modes import MODES, history, script
from recorded import recording

EVERY = Filter(limit=0, include_empty=True)
VOLATILE = ("trace_id", "span_id", "caller", "url", "session", "project", "git_commit", "request_id", "first_chunk_at")


def recorded(path, mode, sdk="anthropic"):
    """Every run of a mode recorded from the fake server, whose ids are random, as exported records."""
    with recording(path) as home, FakeLLM(script(mode)) as server:
        history(mode, sdk, server.url)
        home.end()
    with open_store(home.path) as store:
        root = next(r for r in store.runs(EVERY) if r.parent is None)
        return list(records_of(store, root.id))


def lines(records, name="sample"):
    return [tape.line(record) for record in ci_tape.settled(records, name)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sdk", ["anthropic", "openai"])
def test_an_unchanged_run_recorded_again_changes_the_first_line_only(tmp_path, mode, sdk):
    first, second = (lines(recorded(tmp_path / str(n), mode, sdk)) for n in (1, 2))
    assert first[1:] == second[1:]
    assert first[0] != second[0]
    body = b"".join(first[1:]).decode()
    for name in VOLATILE:
        assert f'"{name}":' not in body
    assert '"at":' not in body


@pytest.mark.parametrize("mode", ["streamed", "parallel", "sub-agents", "retries"])
def test_a_reader_has_the_times_and_the_order_of_the_original(tmp_path, mode):
    original = recorded(tmp_path, mode)
    made = [record for _, record in tape.read_lines(lines(original))]
    before, after = tape_runs.read(original), tape_runs.read(made)

    def times(runs):
        turns = [(t.number, t.started_at, t.ended_at, [a.wait_ms for a in t.attempts]) for t in runs.turns()]
        return turns, [(c.name, c.started_at, c.ended_at) for c in runs.calls()]

    assert times(before) == times(after)
    assert [r.project for r in before.runs] == [r.project for r in after.runs]


def test_the_importer_gives_the_original_runs_back(tmp_path):
    original = recorded(tmp_path, "sub-agents")
    file = tmp_path / "x.tape.jsonl"
    file.write_bytes(b"".join(lines(original)))
    store = memory_store()
    report = import_path(store, file)[0]
    ids = {r["run"] for r in original if r["kind"] == "run_start"}
    assert set(report.runs) == ids
    again = list(records_of(store, next(r.id for r in store.runs(EVERY) if r.parent is None)))
    starts = [[r for r in records if r["kind"] == "turn_start"] for records in (original, again)]
    assert [{k: s[k] for k in ("run", "turn", "at", "caller", "span_id")} for s in starts[0]] == [
        {k: s[k] for k in ("run", "turn", "at", "caller", "span_id")} for s in starts[1]
    ]
    assert lines(again) == lines(original)


def test_run_ids_are_those_of_the_name_and_no_two_names_share_one(tmp_path):
    original = recorded(tmp_path, "sub-agents")

    def ids(name):
        return [json.loads(r)["run"] for r in lines(original, name) if json.loads(r)["kind"] == "run_start"]

    assert ids("one") == ids("one")
    assert not set(ids("one")) & set(ids("two"))
    assert len(set(ids("one"))) == 3  # two sub-agents and who started them


def test_a_tape_edited_by_hand_so_that_its_header_no_longer_fits_is_read_without_times(tmp_path):
    made = lines(recorded(tmp_path, "plain"))
    end = next(i for i, line in enumerate(made) if b'"kind":"run_end"' in line)
    runs = tape_runs.read(record for _, record in tape.read_lines(made[:end]))
    assert [t.started_at for t in runs.turns()] == [None] * 4
    assert [len(t.calls) for t in runs.turns()] == [1, 1, 1, 0]


def chunk(seq, *texts):
    return {
        "kind": "chunk",
        "run": "a" * 16,
        "turn": 1,
        "attempt": 1,
        "seq": seq,
        "parts": [[seq * 9, t] for t in texts],
    }


@pytest.mark.parametrize(
    "pieces",
    [
        [chunk(0, 'data: {"a": ": x"}\n', '\ndata: {"b"'), chunk(1, ": 2}\n\n")],
        [
            chunk(0, 'data: {"a": ": x"}\n\nevent: ping\ndata: {"type": "ping"}\n\n'),
            chunk(1, ': still here\n\ndata: {"b": 2}\n\n'),
        ],
    ],
    ids=["cut-anywhere", "pings-and-comments"],
)
def test_the_pieces_of_a_stream_are_its_events_however_the_network_cut_them(pieces):
    start = {"kind": "run_start", "run": "a" * 16, "at": 1}
    turn = {"kind": "turn_start", "run": "a" * 16, "turn": 1, "at": 2, "append": []}
    made = [r for r in ci_tape.settled([start, turn, *pieces], "x") if r["kind"] == "chunk"]
    assert [r["parts"] for r in made] == [[[0, 'data: {"a": ": x"}\n\n'], [0, 'data: {"b": 2}\n\n']]]


def test_ids_of_the_provider_become_numbers_wherever_they_stand_and_nothing_else_does():
    answer = {
        "id": "msg_01AbCdEfGhIjKl",
        "content": [{"type": "tool_use", "id": "toolu_01ZyXwVuTsRq", "name": "f", "input": {}}],
    }
    text, said = (
        json.dumps(answer),
        json.dumps({"role": "user", "content": 'see "toolu_01ZyXwVuTsRq" and msg_01AbCdEfGhIjKl'}),
    )
    blobs = [tape.blob(text), tape.blob(said)]
    turn = {"kind": "turn_start", "run": "r", "turn": 1, "at": 1, "append": [blobs[1]["hash"]]}
    end = {
        "kind": "turn_end",
        "run": "r",
        "turn": 1,
        "at": 2,
        "response": blobs[0]["hash"],
        "response_id": "msg_01AbCdEfGhIjKl",
    }
    end |= {"calls": [{"id": "toolu_01ZyXwVuTsRq", "name": "f"}]}
    call = {"kind": "call_start", "run": "r", "turn": 1, "call": "toolu_01ZyXwVuTsRq", "at": 3}
    made = list(ci_tape.settled([{"kind": "run_start", "run": "r", "at": 1}, *blobs, turn, end, call], "x"))
    texts = {r["text"] for r in made if r["kind"] == "blob"}
    assert texts == {text.replace("msg_01AbCdEfGhIjKl", "msg_0001").replace("toolu_01ZyXwVuTsRq", "toolu_0001"), said}
    assert all(r["hash"] == tape.blob(r["text"])["hash"] for r in made if r["kind"] == "blob")
    assert [r["call"] for r in made if r["kind"] == "call_start"] == ["toolu_0001"]
    ended = next(r for r in made if r["kind"] == "turn_end")
    assert (ended["response_id"], ended["calls"][0]["id"]) == ("msg_0001", "toolu_0001")
