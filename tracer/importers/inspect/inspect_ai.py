"""Inspect logs, .json and .eval: every sample a run, read event by event."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import IO, Any

from ... import tape
from ...errors import LooptapeError
from .. import reading
from ..context import Context, Source
from ..document import glimpse
from ..json_stream import Broken, Member, Rule, members
from ..report import Notes
from . import inspect_sample
from .inspect_archive import Archive, Damaged, said
from .inspect_log import NEWEST, Log, log_of
from .inspect_parts import MAX_PART_BYTES, SAMPLE, Parts

FORMAT = "inspect"
TITLE = "Inspect log, .json and .eval"

_HEAD: dict[str, Rule] = {"version": None, "status": None, "eval": None}
_ZIP = b"PK\x03\x04"
_SAMPLE = re.compile(r"samples/(?!.*/).+_epoch_\d+\.json")
_SIGNS = frozenset({"task", "task_id", "run_id", "created"})
_MEMBERS = ("_journal/start.json", "header.json", "summaries.json", "reductions.json")


def recognise(head: bytes) -> bool:
    """True for a zip whose first member is one of a log's, and for a JSON document with an ``eval`` as logs have it."""
    if head.startswith(_ZIP):
        return _is_member(head)
    found = glimpse(head) if b'"eval"' in head else None
    if not isinstance(found, dict) or "version" not in found:
        return False
    spec = found.get("eval")
    return isinstance(spec, dict) and len(_SIGNS & set(spec)) >= 3


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The runs of all samples.

    Raises:
        LooptapeError: The file cannot be used at all, or needs a package that is not here.
    """
    samples = 0
    with source.open() as stream:
        packed = stream.read(4) == _ZIP
    found = _packed(source, notes) if packed else _plain(source, notes)
    log = Log()
    for log, sample in found:
        if sample is None:
            continue
        samples += 1
        notes.counts["objects"] += 1
        notes.counts["samples"] += 1
        yield from inspect_sample.records(log, sample, notes)
    if not samples:
        notes.warn(f"no samples in it that can be read (the eval's status is {log.status or 'not told'}): no runs")
    elif log.status not in ("success", None):
        notes.warn(f"the eval did not end well (status {log.status}): samples may be missing")


def _plain(source: Source, notes: Notes) -> Iterator[tuple[Log, Parts | None]]:
    """Log and sample for every sample of a .json; the log alone first."""
    log = _checked(_plain_head(source, notes), source, notes)
    yield log, None
    with source.open() as stream:
        yield from ((log, parts) for parts in _samples(stream, {"samples": {"*": SAMPLE}}, "", notes))


def _plain_head(source: Source, notes: Notes) -> dict[str, Any]:
    """The members before the samples, or, where ``eval`` comes after those, of the whole document."""
    found: dict[str, Any] = {}
    with source.open() as stream:
        try:
            for member in members(stream, {**_HEAD, "samples": {"*": {}}}, MAX_PART_BYTES):
                if member.path == ("samples",) and "eval" in found:
                    break
                if member.kind == "value" and member.raw is not None:
                    found[str(member.path[0])] = reading.clean(member.raw, notes)
        except ValueError:
            pass  # the samples are read from the same bytes, and then the trouble is noted with its line
    return found


def _packed(source: Source, notes: Notes) -> Iterator[tuple[Log, Parts | None]]:
    with source.open() as stream:
        archive = Archive(stream, source.label, notes)
        head = _member(archive, "header.json", notes)
        if not head:  # the eval has not ended, or was killed
            head = {"status": "started", **_member(archive, "_journal/start.json", notes)}
        log = _checked(head, source, notes)
        yield log, None
        for name in archive.names():
            if not _SAMPLE.fullmatch(name):
                if name.startswith("samples/"):
                    notes.strange("member of samples/")
                continue
            with archive.opened(name) as opened:
                if opened is not None:
                    yield from ((log, p) for p in _samples(opened[1], SAMPLE, said(name), notes, opened[0]))


def _samples(stream: IO[bytes], rule: Rule, what: str, notes: Notes, number: int | None = None) -> Iterator[Parts]:
    """The samples of a document, or the one of the member ``number`` of an archive; what goes wrong is noted."""
    try:
        yield from _taken(members(stream, rule, MAX_PART_BYTES), what, notes)
    except Broken as error:
        notes.skip(number or error.line, f"{what}: {error}" if number else f"{error}; what follows is not read")
    except Damaged as error:
        notes.skip(number or 1, f"{what} {error}")


def _taken(found: Iterable[Member], what: str, notes: Notes) -> Iterator[Parts]:
    """Each sample as soon as it is whole, closed when the next one is asked for. ``what``: an archive's member."""
    depth = 0 if what else 2
    parts: Parts | None = None
    try:
        for member in (m for m in found if len(m.path) >= depth):
            inside = member.path[depth:]
            name = what or f"sample {member.path[1]}"
            if member.kind == "value":
                if parts is not None and inside:
                    parts.take(member, inside)
                else:
                    notes.skip(member.line, f"{name} {_no_object(member.raw)}")
            elif member.kind == "begin" and not inside:
                parts = Parts(name, notes)
            elif parts is not None and not inside and not what:
                yield parts
                parts.close()
                parts = None
        if parts is not None:  # of an archive: only now its checksum is known to be right
            yield parts
    finally:
        if parts is not None:
            parts.close()


def _no_object(raw: bytes | None) -> str:
    try:
        reading.decode(raw or b"")
    except ValueError as error:
        return f"is {error}"
    return "is not a JSON object"


def _member(archive: Archive, name: str, notes: Notes) -> dict[str, Any]:
    """What a member of the archive says of the eval; empty when it says nothing."""
    found: dict[str, Any] = {}
    with archive.opened(name) as opened:
        if opened is None:
            return found
        try:
            for member in members(opened[1], _HEAD, MAX_PART_BYTES):
                if member.kind == "value" and member.raw is not None:
                    found[str(member.path[0])] = reading.clean(member.raw, notes)
        except Damaged as error:
            notes.skip(opened[0], f"{said(name)} {error}")
        except ValueError as error:
            notes.skip(opened[0], f"{said(name)} is {error}")
    return found


def _checked(head: dict[str, Any], source: Source, notes: Notes) -> Log:
    log = log_of(head)
    if not log.eval:
        raise LooptapeError(
            "no-eval",
            f"{source.label}: line 1: the log does not say which eval it is of (no `eval` in it)",
            "Nothing of it was imported; check that it is a whole Inspect log",
        )
    notes.counts["objects"] += 1
    if log.version is not None and log.version > NEWEST:
        notes.warn(f"log version {log.version} is newer than the newest known one ({NEWEST}): parts may be missing")
    return log


def _is_member(head: bytes) -> bool:
    if len(head) < 30:
        return False
    (length,) = struct.unpack_from("<H", head, 26)
    name = head[30 : 30 + length].decode("utf-8", "replace")
    return name in _MEMBERS or _SAMPLE.fullmatch(name) is not None
