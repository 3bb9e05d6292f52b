"""Importing paths into the store: files, folders, standard input; again and longer; what cannot be used."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_session import SessionLines, call, tokens
from looptape.tracer import tape as tapes
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.importers import import_path, reading
from looptape.tracer.store import Filter, Store, memory_store
from looptape.tracer.store.export import records_of


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


def _session(name: str = "00000000-0000-4000-8000-00000000aaaa", turns: int = 2) -> SessionLines:
    lines = SessionLines(name)
    for number in range(1, turns + 1):
        lines.user(["start", "more", "continue in the fork", "again"][number - 1])
        lines.answer(f"msg_{number}", f"answer {number}", usage=tokens(10 * number, 11 * number))
    return lines


def _state(store: Store) -> object:
    runs = store.runs(Filter(limit=0, include_empty=True))
    return runs, [store.turns(r.id) for r in runs], [store.events(r.id) for r in runs]


def test_a_session_is_in_the_store_whole(store: Store, tmp_path: Path) -> None:
    lines = SessionLines()
    lines.user("list the files")
    lines.answer("m1", "I look", call("t1", command="ls"), usage=tokens(2, 50, 100))
    lines.result("t1", "a.txt", toolUseResult={"stdout": "a.txt", "stderr": ""})
    lines.answer("m2", "One file.", stop="end_turn", usage=tokens(3, 20, 150))

    (report,) = import_path(store, lines.write(tmp_path / "whatever.txt"))

    (run,) = store.runs()
    assert report.format == "claude-code"
    assert report.runs == (run.id,)
    assert (report.turns, report.tool_calls) == (run.turns, run.tool_calls) == (2, 1)
    assert (run.status, run.reason, run.title) == ("completed", "end_turn", "list the files")
    assert (run.usage.input, run.usage.output, run.usage.cache_read) == (5, 70, 250)
    first, _ = store.turns(run.id)
    assert first.user_turn
    assert first.generate_ms == 2000
    assert (first.tool_calls[0].result, first.tool_calls[0].state) == ("a.txt", "done")
    returned = store.sql("select returned->>'stdout' from tool_calls")[2]
    assert returned == [("a.txt",)], "what the tool gave its client is kept beside it"
    assert (first.tool_calls[0].timing, first.tool_calls[0].ms) == ("inferred", 2000)
    assert [m["role"] for m in store.request(run.id, 2).messages] == ["user", "assistant", "user"]


def test_responses_that_several_files_hold_are_counted_once(store: Store, tmp_path: Path) -> None:  # imp-04
    other = "00000000-0000-4000-8000-00000000bbbb"
    _session().write(tmp_path / "s1.jsonl")
    _session(other, 3).write(tmp_path / "s2.jsonl")

    import_path(store, tmp_path)
    before = _state(store)
    import_path(store, tmp_path)

    assert _state(store) == before
    runs = {r.session: r for r in store.runs()}
    assert sum(r.usage.input or 0 for r in runs.values()) == 60
    assert sum(r.usage.output or 0 for r in runs.values()) == 66
    assert runs[other].turns == 3
    assert [t.inherited for t in store.turns(runs[other].id)] == [True, True, False]
    first = next(r for s, r in runs.items() if s != other)
    assert [t.inherited for t in store.turns(first.id)] == [False, False]


def test_a_longer_copy_adds_what_is_new_and_a_shorter_one_takes_nothing_away(store: Store, tmp_path: Path) -> None:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", "look", call("t1"))
    short = lines.write(tmp_path / "short.jsonl")
    lines.answer("m1", call("t2"), usage=tokens(1, 40))
    lines.result("t1")
    lines.result("t2")
    lines.raw('{"type":"summary","summary":"Look twice","leafUuid":"leaf"}')
    lines.answer("m2", "done", stop="end_turn", uuid="leaf")
    long = lines.write(tmp_path / "long.jsonl")

    import_path(store, short)
    (run,) = store.runs()
    assert (run.status, run.turns) == ("interrupted", 1)
    assert store.turns(run.id)[0].tool_calls[0].state == "no_result"

    import_path(store, long)
    after = _state(store)
    (run,) = store.runs()
    assert (run.status, run.turns, run.tool_calls, run.usage.output) == ("completed", 2, 2, 41)
    assert run.title == "Look twice"
    assert [c.state for c in store.turns(run.id)[0].tool_calls] == ["done", "done"]

    import_path(store, short)
    assert _state(store) == after


def test_a_run_killed_while_a_tool_ran_shows_no_result(store: Store, tmp_path: Path) -> None:  # imp-14
    lines = SessionLines()
    lines.user("fix")
    lines.answer("msg_1", "ok", call("z1", command="sleep 999"), stop="tool_use", usage=tokens(5, 5))

    import_path(store, lines.write(tmp_path / "killed.jsonl"))

    (run,) = store.runs()
    assert run.status == "interrupted"
    (turn,) = store.turns(run.id)
    assert (turn.tool_calls[0].state, turn.tool_calls[0].result) == ("no_result", None)


def test_files_without_turns_are_listed_only_when_asked_for(store: Store, tmp_path: Path) -> None:  # imp-18
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "meta-only.jsonl").write_text(
        '{"type":"summary","summary":"t","leafUuid":"x"}\n{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n'
    )
    lines = SessionLines()
    lines.user("<command-name>/clear</command-name>")
    lines.write(tmp_path / "user-only.jsonl")

    reports = {Path(r.path).name: r for r in import_path(store, tmp_path)}

    assert reports["empty.jsonl"].format == "empty"
    assert reports["empty.jsonl"].warnings == ("the file is empty (0 bytes)",)
    assert store.runs() == []
    runs = store.runs(Filter(include_empty=True))
    assert {r.title for r in runs} == {"t", "/clear"}
    assert all((r.turns, r.cost_usd or 0) == (0, 0) for r in runs)


def test_a_good_file_beside_a_bad_one_is_still_imported(store: Store, tmp_path: Path) -> None:
    _session().write(tmp_path / "good.jsonl")
    (tmp_path / "bad.jsonl").write_text("this is a poem\n")
    (tmp_path / "newer.jsonl").write_bytes(tapes.line({"kind": "header", "format": "looptape", "version": 99}))

    reports = {Path(r.path).name: r for r in import_path(store, tmp_path)}

    assert store.count(Filter()) == 1
    assert reports["good.jsonl"].error is None
    assert (reports["bad.jsonl"].format, reports["bad.jsonl"].error) == (None, None)
    assert reports["bad.jsonl"].warnings == ("passed over: no format that looptape knows",)
    assert "newer looptape" in (reports["newer.jsonl"].error or "")
    assert reports["newer.jsonl"].cure


def test_skipped_lines_are_reported_and_with_strict_refuse_the_file(store: Store, tmp_path: Path) -> None:  # imp-05
    lines = _session()
    lines.lines.insert(2, '{"type": "user",')
    path = lines.write(tmp_path / "session.jsonl")

    with pytest.raises(LooptapeError, match=r"session\.jsonl: line 3: not JSON .*Without --strict") as caught:
        import_path(store, path, strict=True)

    assert caught.value.exit_code == 3
    assert store.count(Filter(include_empty=True)) == 0, "nothing of a refused file is kept"
    (report,) = import_path(store, path)
    assert report.turns == 2
    assert report.as_json()["skipped"][0]["line"] == 3


def test_unknown_kinds_are_counted_and_with_strict_refuse_the_file(store: Store, tmp_path: Path) -> None:
    lines = _session()
    lines.add("telepathy")
    path = lines.write(tmp_path / "session.jsonl")

    (report,) = import_path(store, path)
    assert report.unknown == {"telepathy": 1}
    with pytest.raises(LooptapeError, match=r"telepathy \(1\)"):
        import_path(store, path, strict=True)


def test_a_path_that_does_not_exist_names_the_nearest(store: Store, tmp_path: Path) -> None:
    _session().write(tmp_path / "session.jsonl")

    with pytest.raises(UsageError, match=r"sesion\.jsonl: No such file.*Nearest: .*session\.jsonl") as caught:
        import_path(store, tmp_path / "sesion.jsonl")

    assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match=r"Known: tape, .*claude-code"):
        import_path(store, tmp_path / "session.jsonl", format="codx")


def test_a_forced_format_on_the_wrong_file_says_which_line(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("\nroses are red\n")

    with pytest.raises(LooptapeError, match=r"poem\.txt: line 1: no format") as caught:
        import_path(store, path)
    assert caught.value.exit_code == 3
    with pytest.raises(LooptapeError, match=r"poem\.txt: line 2: not JSON"):
        import_path(store, path, format="claude-code")


def test_a_first_line_that_nobody_reads_does_not_hide_the_rest(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 1 << 17)
    lines = SessionLines()
    lines.user("x" * 300_000)
    lines.answer("m1", "answer")

    (report,) = import_path(store, lines.write(tmp_path / "session.jsonl"))

    assert (report.format, report.turns) == ("claude-code", 1)


def test_a_document_is_known_however_long_its_first_text(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps([{"role": "user", "content": "x" * 300_000}, {"role": "assistant", "content": "y"}]))

    (report,) = import_path(store, path)

    assert (report.format, report.turns) == ("messages", 1)


def test_text_that_is_no_utf8_at_all_is_called_so(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(_session().text(), encoding="utf-16")

    with pytest.raises(LooptapeError, match=r"session\.jsonl: this is UTF-16.*looptape reads UTF-8\. .*iconv"):
        import_path(store, path)


def test_standard_input_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(io.BytesIO(_session().text().encode()))
    monkeypatch.setattr(sys, "stdin", text)

    (report,) = import_path(store, "-")

    assert (report.path, report.turns) == ("-", 2)


def test_a_folder_links_sub_agents_to_their_calls_also_when_they_come_later(store: Store, tmp_path: Path) -> None:
    parent, child = SessionLines(), SessionLines()
    parent.user("search")
    parent.answer("m1", call("t1", "Task", prompt="look"))
    parent.result("t1", "found it", toolUseResult={"agentId": "a9"})
    parent.answer("m2", "there")
    child.user("look", isSidechain=True, agentId="a9")
    child.answer("c1", "found it", isSidechain=True, agentId="a9")
    parent.write(tmp_path / f"{parent.session}.jsonl")
    place = tmp_path / parent.session / "subagents"
    child.write(place / "agent-a9.jsonl")

    import_path(store, tmp_path)

    one = next(r for r in store.runs() if r.parent is None)
    two = next(r for r in store.runs() if r.parent is not None)
    assert (one.turns, two.turns) == (2, 1)
    assert store.turns(one.id)[0].tool_calls[0].child_run == two.id

    (place / "agent-a9.meta.json").write_text('{"toolUseId": "t1"}')
    with memory_store() as other:
        import_path(other, tmp_path / f"{parent.session}.jsonl")
        import_path(other, place)
        assert other.turns(one.id)[0].tool_calls[0].child_run == two.id


def test_an_imported_session_survives_the_way_through_a_tape(store: Store, tmp_path: Path) -> None:
    lines = SessionLines(version="2.1.17")
    lines.user("list the files")
    lines.answer("m1", "I look", call("t1", command="ls"), call("t2"))
    lines.result("t1", "a.txt", toolUseResult={"stdout": "a.txt", "stderr": ""})
    lines.add("system", subtype="compact_boundary", compactMetadata={"preTokens": 7})
    lines.user("summary", isCompactSummary=True)
    lines.answer("m2", "One file.")
    import_path(store, lines.write(tmp_path / "session.jsonl"))
    (run,) = store.runs()
    path = tmp_path / "run.tape"
    path.write_bytes(b"".join(map(tapes.line, records_of(store, run.id))))

    with memory_store() as other:
        (report,) = import_path(other, path)
        assert report.format == "tape"
        assert _state(other) == _state(store)
        assert other.sql("select returned from tool_calls") == store.sql("select returned from tool_calls")


def test_the_pieces_of_a_copied_journal_are_one_recording(store: Store, tmp_path: Path) -> None:
    word = tapes.blob('{"role":"user","content":"go"}')
    run = {"run": "00112233445566aa"}
    start = {"kind": "turn_start", **run, "turn": 1, "at": 2, "keep": 0, "append": [word["hash"]]}
    more = {"kind": "turn_start", **run, "turn": 2, "at": 4, "keep": 1, "base": 1, "append": [word["hash"]]}
    head, name = tapes.header(writer="looptape 0.1.0"), "0" * 31 + "a"
    pieces = {
        f"{name}.jsonl": [head, {"kind": "run_start", **run, "at": 1, "source": "sdk"}, word, start],
        f"{name}.1.jsonl": [head, {"kind": "turn_end", **run, "turn": 1, "at": 3, "status": "ok", "calls": []}],
        f"{name}.10.jsonl": [head, more],
    }
    for file, records in pieces.items():
        (tmp_path / file).write_bytes(b"".join(map(tapes.line, records)))

    (report,) = import_path(store, tmp_path)

    (found,) = store.runs()
    assert (report.format, report.turns) == ("tape", 2)
    assert (found.status, found.reason) == ("interrupted", "the process ended without a word (killed?) at turn 2")
    assert [t.status for t in store.turns(found.id)] == ["ok", "interrupted"]
    assert len(store.request(found.id, 2).messages) == 2
