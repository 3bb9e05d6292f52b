"""A recording is read whole, and one that cannot be relied on is refused before anything runs."""

import json

import pytest

from looptape.replay.player import tape_runs
from looptape.tracer import tape
from looptape.tracer.errors import LooptapeError
from played import ROOT, Turn, records, request, results, said, then, user, write


def loop() -> list[Turn]:
    body, answer = request(user("go"), system="s"), said("", ("t1", "look", {"q": 1}))
    return [Turn(body, answer, {"t1": ({"n": 1}, 12, 13)}), Turn(then(body, answer, results(("t1", "1"))), said("end"))]


def refusal(source) -> LooptapeError:
    with pytest.raises(LooptapeError) as caught:
        tape_runs.read(source)
    assert caught.value.exit_code == 3
    assert caught.value.slug == "recording-unusable"
    assert caught.value.cure
    return caught.value


def test_a_tape_is_read_with_its_requests_answers_and_results(tmp_path):
    found = tape_runs.read(write(tmp_path / "a.tape.jsonl", records(loop())))
    (run,) = found.runs
    first, second = run.turns
    assert [json.loads(found.texts[h]) for h in second.hashes] == loop()[1].body["messages"]
    assert json.loads(first.attempts[0].response) == loop()[0].response
    (call,) = first.calls
    assert (call.name, call.arguments, call.value, call.measured) == ("look", {"q": 1}, {"n": 1}, True)
    assert found.roots == (run,)
    assert not found.notes


def test_an_absent_recording_is_refused_with_its_path(tmp_path):  # rpl-04
    assert "gone.jsonl" in str(refusal(tmp_path / "gone.jsonl"))


def test_an_empty_recording_is_refused(tmp_path):  # rpl-04
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert "empty" in str(refusal(tmp_path / "empty.jsonl"))


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9], ids=["early", "middle", "late"])
def test_a_truncated_recording_is_refused_with_the_line(tmp_path, part):  # rpl-04
    file = write(tmp_path / "cut.jsonl", records(loop()))
    file.write_bytes(file.read_bytes()[: int(len(file.read_bytes()) * part)])
    assert "line " in str(refusal(file))


def test_a_newer_version_is_refused(tmp_path):  # rpl-04
    file = tmp_path / "new.jsonl"
    file.write_bytes(b"".join(map(tape.line, [{**tape.header(), "version": 99}, *records(loop())])))
    assert "version 99" in str(refusal(file))


def test_a_recording_without_content_is_refused():
    held = [{**r, "text": None, "length": 3} if r["kind"] == "blob" else r for r in records(loop())]
    for record in held:
        if record["kind"] == "blob":
            del record["text"]
    assert "without content" in str(refusal(held))


def test_a_recording_without_an_answer_is_refused():
    assert "no answered model call" in str(refusal(records([Turn(request(user("go")), None)])))


def test_a_lost_text_is_refused():
    lost = next(r for r in records(loop()) if r["kind"] == "blob")
    kept = [r for r in records(loop()) if r != lost]
    assert "is not there" in str(refusal(kept))


def test_a_run_that_was_killed_is_read_as_far_as_it_came_and_says_so():
    turns = loop()
    turns[1].response = None
    found = tape_runs.read(records(turns, ended=False))
    assert [t.answered for t in found.turns()] == [True, False]
    assert ROOT in found.notes[0]


def test_the_answer_of_a_failed_attempt_is_found_in_the_end_that_it_had():
    records_ = records([Turn(request(user("go")), said("ok"), attempts=[{"status": 529}, {"status": 200}])])
    end = next(r for r in records_ if r["kind"] == "turn_end")
    refused = tape.blob('{"error": 1}')
    at = records_.index(end)
    records_[at:at] = [
        refused,
        {**end, "attempts": end["attempts"][:1], "response": refused["hash"], "status": "error"},
    ]
    first, second = tape_runs.read(records_).runs[0].turns[0].attempts
    assert (first.status, first.body, first.response) == (529, '{"error": 1}', None)
    assert second.body is None
    assert "ok" in second.response
