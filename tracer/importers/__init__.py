"""Foreign recordings into tape records, and from there into the store: one transaction a file.

An importer is a module with FORMAT, TITLE, `recognise(head)` and `records(source, notes, context)`,
and an entry in IMPORTERS, or in another distribution an entry point (plugins.py). It yields what a live recording would have written and notes what it cannot know.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

from .. import tape as tapes
from ..errors import LooptapeError, UsageError
from . import otlp, plugins, tape
from .calls.grouping import together
from .claude import claude_bodies, claude_code
from .codex import codex
from .context import Context, Source
from .files import sources
from .inspect import inspect_ai
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


def import_path(store: Store, path: str | Path, *, format: str | None = None, strict: bool = False) -> list[FileReport]:
    """Imports a file, every known file of a folder, or standard input (``-``).

    Args:
        store: Where the records go; one transaction a file.
        path: File, folder or ``-``.
        format: Name of the format; None recognises it by content.
        strict: Lines that cannot be read and unknown kinds refuse their file.

    Raises:
        UsageError: The path or the format does not exist (exit 2).
        LooptapeError: The one file cannot be used (exit 3). In a folder such a file is reported with
            ``error`` and ``cure``, one of no known format with ``format`` None and a warning, and the
            others are still imported.
    """
    chosen = by_format(format) if format else None
    whole_folder = str(path) != "-" and Path(path).is_dir()
    context = _context(store)
    reports = []
    found = sources(path)
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
        records = summary.follow(importer.records(source, notes, context))
        numbered = _Numbered(_checked(records, source, notes, strict=strict), notes)
        kept = store.ingest(numbered, accept=lambda told: _bad(told.bad, numbered, source, notes, strict=strict))
        if isinstance(importer, plugins.Plugin):  # one that failed may have been asked before it
            for trouble in plugins.troubles():
                notes.warn(trouble)
        for run, turn in kept.differs.items():
            notes.warn(f"run {run} is here already and differs at turn {turn}: kept what was there")
    except OSError as error:
        raise LooptapeError(
            "unreadable-file", f"{source.label}: {error.strerror or error}", "Check that it can be read"
        ) from None
    return replace(notes.report(source.label, importer.FORMAT), **summary.facts())


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
    if not notes.counts["objects"]:
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


def _context(store: Store) -> Context:
    """What the store knows already; asked before the first transaction begins."""
    ended = store.sql("select id, epoch_us(ended_at) from runs where ended_at is not null")
    calls = store.sql("select id, run, turn from tool_calls where name in ('Task', 'Agent')")
    query = "select run, number, flags from turns where array_to_string(flags, ' ') like '%parent % not received%'"
    orphans: dict[str, list[tuple[str, int, list[str]]]] = {}
    for run, turn, flags in store.sql(query)[2]:
        for missing in (f.split()[1] for f in flags if f.endswith(" not received") and f.startswith("parent ")):
            orphans.setdefault(missing, []).append((run, int(turn), list(flags)))
    return Context(
        ended={run: int(at) for run, at in ended[2]},
        calls={call: (run, int(turn)) for call, run, turn in calls[2]},
        orphans=orphans,
    )


__all__ = ["IMPORTERS", "FileReport", "Importer", "by_format", "import_path", "recognise"]
