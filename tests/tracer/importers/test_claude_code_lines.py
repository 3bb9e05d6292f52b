"""Broken, glued, cut and empty Claude Code files: what can be read is imported, the rest is named."""

from __future__ import annotations

from claude_session import SessionLines, call
from imported import read
from looptape.tracer.importers.claude import claude_code


def test_lines_that_cannot_be_read_are_named_and_the_rest_is_imported() -> None:  # imp-05
    lines = SessionLines()
    lines.user("a")
    lines.answer("msg_1", "b")
    lines.raw('{"type": "user", "uuid": "u000003", "parentUuid": "u000002",')
    lines.raw("")
    lines.raw("[1,2]")
    lines.raw('"str"')
    lines.user("c")
    lines.answer("msg_2", "d")
    lines.raw('{"type": "assistant", "uuid": "u000004",')

    got = read(claude_code, lines.text(newline=False))

    assert len(got.turns()) == 2
    skipped = {s["line"]: s["reason"] for s in got.notes.skipped}
    assert list(skipped) == [3, 5, 6, 9]
    assert skipped[3].startswith("not JSON")
    assert skipped[5] == "not a JSON object (a list)"
    assert skipped[6] == "not a JSON object (a string)"
    assert skipped[9].startswith("incomplete tail")


def test_a_cut_last_line_is_read_again_once_it_is_whole() -> None:
    lines = SessionLines()
    lines.user("a")
    lines.answer("msg_1", "b")
    lines.user("c")
    whole = lines.text()
    first = read(claude_code, whole[:-20])
    second = read(claude_code, whole)

    assert [s["line"] for s in first.notes.skipped] == [3]
    assert second.notes.skipped == []
    assert second.end() == ("interrupted", "the last prompt has no answer")
    assert first.main == second.main


def test_two_objects_in_one_line_are_both_read() -> None:
    lines = SessionLines()
    lines.user("a")
    lines.answer("m1", call("t1"))
    lines.result("t1")
    lines.answer("m2", "b")
    first, second, third, fourth = lines.lines
    got = read(claude_code, "\n".join([first, second + third, fourth + '{"type":']) + "\n")

    assert len(got.turns()) == 2
    assert got.notes.counts["lines_of_two_objects"] == 1
    assert got.notes.skipped[0]["reason"].startswith("what follows the object is not JSON")


def test_a_late_line_of_an_answer_joins_its_turn() -> None:
    lines = SessionLines()
    lines.user("a")
    lines.answer("m1", "first")
    lines.answer("m2", "second")
    lines.answer("m1", "first, continued")
    lines.answer("m3", "third")

    got = read(claude_code, lines.text())

    assert len(got.turns()) == 3
    assert [b["text"] for b in got.response(1)["content"]] == ["first", "first, continued"]


def test_a_file_with_a_command_only_has_a_title_and_no_turns() -> None:  # imp-18
    lines = SessionLines()
    lines.user("<command-name>/clear</command-name>")

    got = read(claude_code, lines.text())

    assert got.notes.turns == 0
    assert got.of("run_update")[-1]["title"] == "/clear"
    assert got.end() == ("unknown", "no model call in the file")


def test_a_file_with_nothing_but_metadata_is_a_run_without_turns() -> None:  # imp-18
    text = '{"type":"summary","summary":"t","leafUuid":"x"}\n{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n'

    got = read(claude_code, text)

    assert got.notes.turns == 0
    assert got.of("run_update")[-1]["title"] == "t"
    assert claude_code.recognise(text.encode())


def test_lines_of_odd_shapes_are_counted_not_fatal() -> None:
    lines = SessionLines()
    lines.user("a")
    lines.add("assistant", message=None)
    lines.add("assistant", message={"id": 7, "content": []})
    lines.add("user", message={"role": "user", "content": 5})
    lines.raw('{"type": ["user"]}')
    lines.raw('{"message": {}}')
    lines.answer("m1", {"no": "type"}, "b", 7, usage={"input_tokens": -5, "output_tokens": 10**30})
    lines.add("progress", data="?")
    lines.add("assistant", message={"id": "m2", "content": "plain text", "model": None, "usage": "?"})

    got = read(claude_code, lines.text())

    assert len(got.turns()) == 2
    assert got.turns()[1]["usage"]["input"] is None
    assert got.turns()[2]["usage"]["origin"] == "missing"
    assert got.notes.unknown["line without a type"] == 2
    assert got.notes.unknown["block without a type"] == 2
