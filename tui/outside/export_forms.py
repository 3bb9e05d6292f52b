"""What `looptape export --to` can write: one entry a format in FORMS, in the order shown to people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...replay.recording import Recording
    from ...replay.reference import Found

Texts = Callable[["Found"], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Form:
    """A format.

    Attributes:
        ending: Of the files that ``--all`` writes.
        texts: The file's text, piece by piece, of a run or some of its turns. None: rows, see `export_rows`.
        whole: A run goes in whole or not at all (no RUN:N-M).
        family: Sub-agents stand in the file of the run that started them, so ``--all`` gives them none of their own.
    """

    ending: str
    texts: Texts | None
    whole: bool = False
    family: bool = False


def _tape(one: Found) -> Iterator[str]:
    from ...tracer.store.export import records_of
    from ...tracer.tape import line

    for record in records_of(one.store, one.run.id):
        yield line(record).decode("ascii")


def _ci_tape(one: Found) -> Iterator[str]:
    from ...tracer.ci_tape import settled
    from ...tracer.store.export import records_of
    from ...tracer.tape import line

    for record in settled(records_of(one.store, one.run.id), one.run.name or one.run.title or "run"):
        yield line(record).decode("ascii")


def _markdown(one: Found) -> Iterator[str]:
    from ...replay.export_markdown import markdown

    yield markdown(_recording(one), _cleaned)


def _html(one: Found) -> Iterator[str]:
    from ...replay.export_html import html

    recording = _recording(one)
    asked = next((t.number for t in recording.turns if t.message_count is not None), None)
    request = None if asked is None else one.store.request(one.run.id, asked)
    yield from html(recording, _cleaned, request)


def _messages(one: Found) -> Iterator[str]:
    from ...replay.export_messages import request_body

    yield _json_text(request_body(one.store, one.run, one.last))


def _otlp(one: Found) -> Iterator[str]:
    from ...tracer.otlp_out import export_requests

    for request in export_requests(one.store, one.run, one.first, one.last):
        yield _json_line(request)


def _atif(one: Found) -> Iterator[str]:
    from ...replay.export_atif import gather, text, trajectory

    yield text(trajectory(gather(one.store, one.run, one.first, one.last)))


FORMS = {
    "tape": Form(".tape.jsonl", _tape, whole=True, family=True),
    "ci-tape": Form(".tape.jsonl", _ci_tape, whole=True, family=True),
    "markdown": Form(".md", _markdown),
    "html": Form(".html", _html),
    "messages": Form(".json", _messages),
    "otlp": Form(".otlp.jsonl", _otlp, family=True),
    "atif": Form(".atif.json", _atif, family=True),
    "parquet": Form(".parquet", None),
    "csv": Form(".csv", None),
}


def write(path: Path, form: str, one: Found) -> None:
    """Writes a run, or some of its turns, whole or not at all; a ci-tape gets its transcript beside it.

    Raises:
        LooptapeError: The file cannot be written, or the run has no such form.
    """
    from .export_files import write_bytes, write_texts

    made = FORMS[form]
    if form == "otlp" and path.suffix == ".pb":
        from .export_protobuf import protobuf

        write_bytes(path, protobuf(one))
    elif made.texts is not None:
        write_texts(path, made.texts(one))
    if form == "ci-tape":
        from ...replay.ci.transcript import renew

        renew(path)


def _recording(one: Found) -> Recording:
    from ...replay.recording import load

    return load(one.store, one.run, one.first, one.last)


def _cleaned(text: str) -> str:
    from ..safe_text import clean

    return clean(text, multiline=True)


def _json_text(value: object) -> str:
    import json

    return json.dumps(value, indent=2) + "\n"


def _json_line(value: object) -> str:
    import json

    return json.dumps(value, separators=(",", ":")) + "\n"
