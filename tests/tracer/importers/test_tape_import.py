"""Native tapes and copied journals: everything comes in, what was cut off is interrupted."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from imported import read
from looptape.tracer import tape as tapes
from looptape.tracer.canonical import digest
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import tape
from looptape.tracer.importers.reading import objects
from looptape.tracer.importers.report import Notes
from looptape.tracer.journal import Journal

RUN = "00112233445566aa"


def _text(*records: dict[str, object]) -> bytes:
    return b"".join(tapes.line(r) for r in (tapes.header(writer="looptape 0.1.0", journal="x"), *records))


def _turn(number: int, message: str) -> list[dict[str, object]]:
    word = tapes.blob(message)
    return [word, {"kind": "turn_start", "run": RUN, "turn": number, "at": number, "keep": 0, "append": [word["hash"]]}]


def test_a_whole_run_comes_in_as_it_stands() -> None:
    records = [
        {"kind": "run_start", "run": RUN, "at": 1},
        *_turn(1, '{"role":"user","content":"go"}'),
        {"kind": "turn_end", "run": RUN, "turn": 1, "at": 2, "status": "ok", "calls": [{"id": "c", "name": "x"}]},
        {"kind": "run_end", "run": RUN, "at": 3, "status": "completed", "reason": "end_turn"},
    ]
    data = _text(*records)

    got = read(tape, data)

    assert tape.recognise(data)
    assert got.records == records
    assert (got.notes.turns, got.notes.tool_calls, list(got.notes.runs)) == (1, 1, [RUN])


def test_a_run_that_no_living_writer_will_end_is_interrupted() -> None:
    got = read(tape, _text({"kind": "run_start", "run": RUN, "at": 1}, *_turn(1, "{}"), *_turn(2, "{}")))

    assert got.end() == ("interrupted", "the process ended without a word (killed?) at turn 2")


def test_a_journal_that_is_written_right_now_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(_text({"kind": "run_start", "run": RUN, "at": 1}, *_turn(1, "{}")))
    with path.open("ab") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert read(tape, path).of("run_end") == []
    assert read(tape, path).end()[0] == "interrupted"


def test_a_run_whose_writer_ends_it_while_the_journal_is_read_is_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.write([{"kind": "run_start", "run": RUN, "at": 1}, *_turn(1, "{}")])

    def ended(lines: Iterable[Any], notes: Notes) -> Iterator[Any]:
        yield from objects(lines, notes)
        journal.write([{"kind": "run_end", "run": RUN, "at": 3, "status": "completed", "reason": "end_turn"}])
        journal.close()

    monkeypatch.setattr(tape, "objects", ended)
    path = journal.path
    assert read(tape, path).of("run_end") == []
    monkeypatch.undo()
    assert read(tape, path).end() == ("completed", "end_turn")


def test_a_newer_tape_is_refused_in_one_line() -> None:
    data = tapes.line({"kind": "header", "format": "looptape", "version": tapes.VERSION + 1})

    with pytest.raises(
        LooptapeError, match=r"line 1: tape version 2 was written by a newer looptape.*Upgrade"
    ) as caught:
        read(tape, data)

    assert caught.value.exit_code == 3


def test_a_secret_in_a_foreign_tape_is_removed_and_the_text_is_still_found() -> None:
    secret = "sk-ant-" + "b2" * 20
    got = read(
        tape, _text({"kind": "run_start", "run": RUN, "at": 1}, *_turn(1, f'{{"role":"user","content":"{secret}"}}'))
    )

    assert secret not in str(got.records)
    assert got.request(1) == [{"role": "user", "content": "[redacted:anthropic-key]"}]
    assert all(digest(text) == name for name, text in got.blobs.items())


def test_records_that_lack_what_they_need_are_skipped_and_unknown_kinds_counted() -> None:
    got = read(
        tape,
        _text(
            {"kind": "run_start", "at": 1},
            {"kind": "turn_start", "run": RUN, "turn": 0},
            {"kind": "call_end", "run": RUN, "turn": 1},
            {"kind": "blob", "text": "x"},
            {"kind": "hologram", "run": RUN},
            {"kind": "run_start", "run": RUN, "at": 1},
        ),
    )

    assert [(s["line"], s["reason"]) for s in got.notes.skipped] == [
        (2, "a run_start record without a run"),
        (3, "a turn_start record without a turn"),
        (4, "a call_end record without a call"),
        (5, "a blob record without hash or text"),
    ]
    assert dict(got.notes.unknown) == {"record hologram": 1}
