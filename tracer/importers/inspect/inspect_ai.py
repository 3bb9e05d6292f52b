"""Inspect logs, .json and .eval: every sample a run, one sample in memory at a time."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...errors import LooptapeError
from .. import reading
from ..context import Context, Source
from ..document import glimpse
from ..json_stream import Broken, members
from ..report import Notes
from . import inspect_sample
from .inspect_archive import MAX_MEMBER_BYTES, Archive
from .inspect_log import NEWEST, Log, log_of

FORMAT = "inspect"
TITLE = "Inspect log, .json and .eval"

_HEAD = ("version", "status", "eval")
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


def _plain(source: Source, notes: Notes) -> Iterator[tuple[Log, dict[str, Any] | None]]:
    """Log and sample for every sample of a .json; the log alone first."""
    log = _checked(_plain_head(source, notes), source, notes)
    yield log, None
    with source.open() as stream:
        try:
            for member in members(stream, ("samples",), MAX_MEMBER_BYTES):
                if member.key != "samples":
                    continue
                if member.raw is None:
                    notes.skip(member.line, f"sample {member.item} is longer than {MAX_MEMBER_BYTES >> 20} MB")
                elif (sample := _sample(member.raw, member.line, f"sample {member.item}", notes)) is not None:
                    yield log, sample
        except Broken as error:
            notes.skip(error.line, f"{error}; what follows is not read")


def _plain_head(source: Source, notes: Notes) -> dict[str, Any]:
    """The members before the samples, or, where ``eval`` comes after those, of the whole document."""
    found: dict[str, Any] = {}
    with source.open() as stream:
        try:
            for member in members(stream, ("samples",), MAX_MEMBER_BYTES):
                if member.key == "samples" and "eval" in found:
                    break
                if member.key in _HEAD and member.raw is not None:
                    found[member.key] = reading.clean(member.raw, notes)
        except ValueError:
            pass  # the samples are read from the same bytes, and then the trouble is noted with its line
    return found


def _packed(source: Source, notes: Notes) -> Iterator[tuple[Log, dict[str, Any] | None]]:
    with source.open() as stream:
        archive = Archive(stream, source.label, notes)
        names = archive.names()
        head = _member(archive, "header.json", names, notes) or {}
        if not head:  # the eval has not ended, or was killed
            head = {"status": "started", **(_member(archive, "_journal/start.json", names, notes) or {})}
        log = _checked(head, source, notes)
        yield log, None
        for number, name in enumerate(names, 1):
            if not _SAMPLE.fullmatch(name):
                if name.startswith("samples/"):
                    notes.strange("member of samples/")
                continue
            raw = archive.read(name)
            sample = None if raw is None else _sample(raw, number, f"member {name[:100]!r}", notes)
            if sample is not None:
                yield log, sample


def _member(archive: Archive, name: str, names: list[str], notes: Notes) -> dict[str, Any] | None:
    raw = archive.read(name)
    return None if raw is None else _sample(raw, names.index(name) + 1, f"member {name!r}", notes)


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


def _sample(raw: bytes, line: int, what: str, notes: Notes) -> dict[str, Any] | None:
    try:
        sample = reading.clean(raw, notes)
    except ValueError as error:
        notes.skip(line, f"{what} is {error}")
        return None
    if not isinstance(sample, dict):
        notes.skip(line, f"{what} is not a JSON object")
        return None
    return sample


def _is_member(head: bytes) -> bool:
    if len(head) < 30:
        return False
    (length,) = struct.unpack_from("<H", head, 26)
    name = head[30 : 30 + length].decode("utf-8", "replace")
    return name in _MEMBERS or _SAMPLE.fullmatch(name) is not None
