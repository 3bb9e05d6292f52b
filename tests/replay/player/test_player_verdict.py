"""The verdict adds up over processes, survives a kill and has the contract's shape."""

import json

from looptape.replay.player import events
from looptape.replay.player.settings import ReplaySettings
from looptape.replay.verdict import judge
from played import Program, Turn, records, request, said, user


def two() -> list:
    return [
        *records([Turn(request(user("a")), said("A"))]),
        *records([Turn(request(user("b")), said("B"))], run="b" * 16),
    ]


def test_events_of_two_processes_make_one_verdict(tmp_path):
    for name, word in (("1.jsonl", "a"), ("2.jsonl", "b")):
        program = Program(two(), events.Events(tmp_path / name))
        program.ask(request(user(word)))
        assert not program.verdict().ok
    verdict = judge(program.recorded, ReplaySettings(), events.read(tmp_path))
    assert verdict.ok
    assert verdict.served.model == 2


def test_a_torn_line_of_a_killed_process_costs_only_itself(tmp_path):
    told = events.Events(tmp_path / "1.jsonl")
    told.add("note", text="one")
    with open(tmp_path / "1.jsonl", "ab") as file:
        file.write(b'{"event": "no')
    assert [e["text"] for e in events.read(tmp_path)] == ["one"]


def test_no_file_is_made_before_there_is_an_event(tmp_path):
    events.Events(tmp_path / "1.jsonl")
    assert not list(tmp_path.iterdir())


def test_the_json_has_the_shape_of_the_contract():
    program = Program(two())
    program.ask(request(user("a")))
    found = json.loads(json.dumps(program.verdict().as_json()))
    counts = {"model": 2, "tools": 0}
    assert found["recorded"] == counts
    for name in ("served", "unconsumed", "live"):
        assert set(found[name]) == {"model", "tools"}
    assert {"ok", "bypassed", "network_requests", "normalised", "diverged"} <= set(found)
    assert found["diverged"] is None


def test_a_connection_that_was_made_spoils_a_closed_replay_and_a_refused_one_is_told():
    program = Program(two())
    for word in "ab":
        program.ask(request(user(word)))
    program.events.add("network", address="api.example:443", blocked=True)
    verdict = program.verdict()
    assert (verdict.ok, verdict.network_requests) == (True, 0)
    assert any("api.example:443" in note for note in verdict.notes)
    program.events.add("network", address="api.example:443", blocked=False)
    assert (program.verdict().ok, program.verdict().network_requests) == (False, 1)


def test_the_lines_say_it_in_short():
    program = Program(two())
    program.ask(request(user("a")))
    lines = program.verdict().lines()
    assert (
        lines[0]
        == "replay failed: 1 of 2 model calls and 0 of 0 tool calls served from the recording, 0 network requests"
    )
    assert "not asked for: 1 model call, 0 tool calls" in lines
