"""Foreign recordings into tape records, and from there into the store: one transaction a file.

An importer is a module with FORMAT, TITLE, `recognise(head)` and `records(source, notes, context)`,
and an entry in IMPORTERS, or in another distribution an entry point (plugins.py). It yields what a live recording would have written and notes what it cannot know.
"""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

from .. import tape as tapes
from ..errors import LooptapeError, UsageError
from . import otlp, plugins, tape
from .calls.grouping import MAX_TOGETHER, as_one, together
from .claude import claude_bodies, claude_code
from .codex import codex
from .context import Context, Source
from .files import sources
from .inspect import inspect_ai
from .known import context_of
from .platforms import langfuse, langsmith
from .report import FileReport, Notes
from .summary import Summary
from .trajectories import atif, gemini_cli, mini_swe_agent, opencode, openhands, swe_agent, tau_bench, who_and_when
from .wire import raw_messages, vcr


class Importer(Protocol):
    """What a module of this folder offers for its format."""

    FORMAT: str
    TITLE: str

    def recognise(self, head: bytes) -> bool:
        """True when a file that begins with these bytes is of this format. Never raises."""

    def records(self, source: Source, notes: Notes, context: Context) -> Iterator[tapes.Record]:
        """The records of a file; what cannot be read goes into the notes."""


class Store(Protocol):
    """What an import needs of the store."""

    def ingest(self, records: Iterable[tapes.Record], *, accept: Callable[[Any], None]) -> Any:
        """Takes all records or none; ``accept`` sees its report first and may raise."""

    def sql(self, query: str) -> Any:
        """Columns, types and rows of a query over the documented views."""

    def rows(self, text: str, values: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Rows of a query over the store's own tables."""

    def put_together(self) -> list[str]:
        """Makes runs of the spans that came in; lines for people."""


IMPORTERS: tuple[Importer, ...] = cast(
    "tuple[Importer, ...]",
    (
        tape,
        atif,
        claude_code,
        codex,
        gemini_cli,
        opencode,
        inspect_ai,
        mini_swe_agent,
        swe_agent,
        tau_bench,
        who_and_when,
        openhands,
        otlp,
        langfuse,
        langsmith,
        claude_bodies,
        vcr,
        raw_messages,
    ),
)


def recognise(head: bytes, path: str | Path) -> Importer:
    """The importer of a file that begins with these bytes, by content.

    Raises:
        LooptapeError: No format fits (``unknown-format``); ``path`` is named in it.
    """
    for importer in IMPORTERS:
        if importer.recognise(head):
            return importer
    foreign = plugins.recognised(head)
    if foreign is not None:
        return foreign
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        what = f"{path}: this is UTF-16 (or UTF-32); looptape reads UTF-8"
        raise LooptapeError("unknown-format", what, "Change it with: iconv -f UTF-16 -t UTF-8 FILE > NEW")
    known = ", ".join(f"{i.FORMAT} ({i.TITLE})" for i in IMPORTERS)
    raise LooptapeError(
        "unknown-format",
        f"{path}: line 1: no format that looptape knows",
        "; ".join([f"Known: {known}", "--format NAME reads it as one", *plugins.troubles()]),
    )


def by_format(name: str) -> Importer:
    """The importer with this name.

    Raises:
        UsageError: There is none; the known names are given.
    """
    for importer in IMPORTERS:
        if name == importer.FORMAT:
            return importer
    foreign = plugins.named(name)
    if foreign is not None:
        return foreign
    what = "; ".join([f"no format is called {name}", *plugins.troubles()])
    raise UsageError("unknown-format", what, f"Known: {', '.join([*(i.FORMAT for i in IMPORTERS), *plugins.names()])}")


def named_together(paths: Sequence[str | Path], format: str | None = None) -> list[str | Path | Source]:
    """The paths in their order, with the OTLP files among them as one: traces and logs of a run are often files of their own."""
    chosen = by_format(format) if format else None
    mine = []
    for path in map(Path, paths):
        source = Source(str(path), (path,))
        if str(path) != "-" and path.is_file() and _is_otlp(source, chosen):
            mine.append(path)
    if len(mine) < 2 or sum(f.stat().st_size for f in mine) > MAX_TOGETHER:
        return list(paths)
    others = [p for p in paths if Path(p) not in mine]
    at = next(i for i, p in enumerate(paths) if Path(p) in mine)
    return [*others[:at], as_one(list(dict.fromkeys(mine))), *others[at:]]


def import_path(
    store: Store,
    path: str | Path | Source,
    *,
    format: str | None = None,
    strict: bool = False,
    context: Context | None = None,
) -> list[FileReport]:
    """Imports a file, every known file of a folder, or standard input (``-``).

    Args:
        store: Where the records go; one transaction a file.
        path: File, folder or ``-``; or files that `named_together` put together.
        format: Name of the format; None recognises it by content.
        strict: Lines that cannot be read and unknown kinds refuse their file.
        context: `context_of` the store, when many paths are imported one after the other.

    Raises:
        UsageError: The path or the format does not exist (exit 2).
        LooptapeError: The one file cannot be used (exit 3). In a folder such a file is reported with
            ``error`` and ``cure``, one of no known format with ``format`` None and a warning, and the
            others are still imported.
    """
    chosen = by_format(format) if format else None
    whole_folder = not isinstance(path, Source) and str(path) != "-" and Path(path).is_dir()
    context = context or context_of(store)
    reports = []
    found = iter([path]) if isinstance(path, Source) else sources(path)
    for source in together(found, lambda s: _is_otlp(s, chosen)) if whole_folder else found:
        try:
            reports.append(_import_one(store, source, chosen, context, strict=strict))
        except LooptapeError as error:
            if not whole_folder:
                raise
            if error.slug == "unknown-format":  # folders hold other things too; that is no failure
                failed = () if any(r.format is None for r in reports) else plugins.troubles()
                over = ("passed over: no format that looptape knows", *failed)
                reports.append(FileReport(source.label, None, warnings=over))
            else:
                reports.append(FileReport(source.label, None, error=error.what, cure=error.cure))
    return reports


def _is_otlp(source: Source, chosen: Importer | None) -> bool:
    """True for a file whose spans and log records may belong to those of the files beside it."""
    try:
        head = source.head() if chosen is None or chosen.FORMAT == otlp.FORMAT else b""
        return bool(head) and (chosen or recognise(head, source.label)).FORMAT == otlp.FORMAT
    except (OSError, LooptapeError):  # said when it is imported
        return False


def _import_one(store: Store, source: Source, chosen: Importer | None, context: Context, *, strict: bool) -> FileReport:
    try:
        head = source.head()
        if not head:
            return FileReport(source.label, "empty", warnings=("the file is empty (0 bytes)",))
        importer = chosen or recognise(head, source.label)
        notes, summary = Notes(), Summary()
        records = _halves(summary.follow(importer.records(source, notes, context)), notes)
        numbered = _Numbered(_checked(records, source, notes, strict=strict), notes)
        kept = store.ingest(numbered, accept=lambda told: _bad(told.bad, numbered, source, notes, strict=strict))
        if isinstance(importer, plugins.Plugin):  # one that failed may have been asked before it
            for trouble in plugins.troubles():
                notes.warn(trouble)
        if source.growth is not None and (kept.differs or kept.bad):
            source.growth.forget()
        if notes.traces is not None:
            _put_together(store, notes)
        for run, turn in kept.differs.items():
            notes.warn(f"run {run} is here already and differs at turn {turn}: kept what was there")
    except OSError as error:
        raise LooptapeError(
            "unreadable-file", f"{source.label}: {error.strerror or error}", "Check that it can be read"
        ) from None
    return replace(notes.report(source.label, importer.FORMAT), **summary.facts())


def _halves(records: Iterator[tapes.Record], notes: Notes) -> Iterator[tapes.Record]:
    """The records; of a file whose spans the store puts together only those, the runs are for its report."""
    for record in records:
        if notes.traces is None or record["kind"] == "otlp":
            yield record


def _put_together(store: Store, notes: Notes) -> None:
    """What the file tells joins what others told of the same traces; the notes name the runs of it all."""
    for text in store.put_together():
        notes.warn(text)
    query = (
        "select distinct t.run from base.otlp_run_traces as t join base.runs as r on r.id = t.run "
        "where t.trace in (select unnest(?::varchar[])) order by t.run"
    )
    found = store.rows(query, [sorted(notes.traces or ())])
    if found:
        notes.runs = {row["run"]: None for row in found}
    else:
        notes.runs = {}
        notes.warn("what it tells is here already, from files that told more")


class _Numbered:
    """Records, and of each the line of the file that was being read when it came."""

    def __init__(self, records: Iterator[tapes.Record], notes: Notes) -> None:
        self._records = records
        self._notes = notes
        self.lines = array("Q")

    def __iter__(self) -> Iterator[tapes.Record]:
        for record in self._records:
            self.lines.append(self._notes.line)
            yield record


def _bad(bad: list[tuple[int, str]], numbered: _Numbered, source: Source, notes: Notes, *, strict: bool) -> None:
    """Notes what the store could not take; raises when that refuses the file."""
    for position, reason in bad:
        line = numbered.lines[position - 1]
        if line:
            notes.skip(line, reason)
        else:
            notes.warn(f"something of this file could not be stored: {reason}")
    if strict and bad:
        line, reason = numbered.lines[bad[0][0] - 1], bad[0][1]
        where = f"line {line}: " if line else ""
        raise LooptapeError(
            "skipped-lines", f"{source.label}: {where}{reason}", "Without --strict the others are imported"
        )


def _checked(records: Iterator[tapes.Record], source: Source, notes: Notes, *, strict: bool) -> Iterator[tapes.Record]:
    """The records; raises at the end, so that nothing is kept, when the file is of no use."""
    yield from records
    first = notes.skipped[0] if notes.skipped else {"line": 1, "reason": "no object"}
    if not notes.counts["objects"] and not (source.growth and source.growth.later):
        what = f"{source.label}: line {first['line']}: {first['reason']}"
        raise LooptapeError(
            "nothing-readable", f"{what}; no line of the file could be read", "Check that it is the right file"
        )
    if strict and notes.skipped:
        lines = ", ".join(str(s["line"]) for s in notes.skipped[:20])
        what = f"{source.label}: line {first['line']}: {first['reason']} (lines that cannot be read: {lines})"
        raise LooptapeError("skipped-lines", what, "Without --strict the other lines are imported")
    if strict and notes.unknown:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(notes.unknown.items()))
        raise LooptapeError(
            "unknown-kinds", f"{source.label}: unknown kinds: {kinds}", "Without --strict they are counted"
        )


__all__ = [
    "IMPORTERS",
    "FileReport",
    "Importer",
    "by_format",
    "context_of",
    "import_path",
    "named_together",
    "recognise",
]
