"""Records into the store: in slices, inside a transaction that the caller holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..tape import Record
from .apply import apply
from .batch import Batch
from .contradictions import Contradictions
from .derive import finish, settle
from .quiet_gc import fewer_collections
from .rows import Bad, Connection, Row, append
from .text import dumps

SLICE_RECORDS = 20_000
SLICE_CHARS = 24_000_000


@dataclass(slots=True)
class IngestReport:
    """What came in.

    Attributes:
        runs: Ids of the runs that the records spoke of, in their order.
        bad: Position (from 1) of a record that could not be understood, and why.
        unknown: Kinds that this version does not know, with their counts.
        differs: Runs that were here already and say something else, with the first turn at which they do.
    """

    records: int = 0
    runs: list[str] = field(default_factory=list)
    turns: int = 0
    tool_calls: int = 0
    bad: list[tuple[int, str]] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)
    differs: dict[str, int] = field(default_factory=dict)
    turn_keys: set[tuple[str, int]] = field(default_factory=set, repr=False)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no record: the reason and what stood there."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: its number from 1, the file, and the writer when it comes from a journal."""

    number: int
    source: str = ""
    writer: str | None = None


Located = tuple[Place, Record | Unreadable]


def ingest(
    con: Connection,
    records: Iterable[Located],
    *,
    source: str | None = None,
    report: IngestReport | None = None,
    kept: Contradictions | None = None,
) -> IngestReport:
    """Applies records with their places; what cannot be applied goes to `bad_record`, the rest goes on.

    ``kept``: finds what contradicts complete turns that are here; that is left aside (a file's records, not a journal's).
    """
    with fewer_collections():
        return _ingested(con, records, source, report or IngestReport(), kept)


def _ingested(
    con: Connection,
    records: Iterable[Located],
    source: str | None,
    report: IngestReport,
    kept: Contradictions | None,
) -> IngestReport:
    keys: set[tuple[str, int]] = set()
    calls: set[tuple[str, int, int]] = set()
    runs: dict[str, None] = {}
    for part in _slices(records):
        batch = Batch(con, source=source)
        batch.load([r for _, r in part if isinstance(r, dict)])
        if kept is not None:
            kept.look(batch, [r for _, r in part])
            part = [(p, r) for p, r in part if not (isinstance(r, dict) and kept.keeps(r))]
        bad = [row for place, record in part if (row := _one(batch, place, record, report))]
        finish(batch)
        batch.write()
        append(con, "bad_record", bad)
        runs.update(dict.fromkeys(batch.spoken))
        keys |= {k for k in batch.touched if k in batch.turns}
        calls |= {(*k, r["position"]) for k in batch.touched for r in batch.calls.get(k, ())}
    settle(con, runs)
    report.differs = kept.differs if kept is not None else {}
    report.runs = list(dict.fromkeys([*report.runs, *runs]))
    report.turn_keys |= keys
    report.turns = len(report.turn_keys)
    report.tool_calls += len(calls)
    return report


def _one(batch: Batch, place: Place, record: Record | Unreadable, report: IngestReport) -> Row | None:
    """Applies one record; a row for `bad_record` when that cannot be."""
    batch.journal = place.writer
    report.records += 1
    if isinstance(record, dict):
        try:
            if not apply(batch, record):
                kind = str(record.get("kind"))
                report.unknown[kind] = report.unknown.get(kind, 0) + 1
            return None
        except Bad as error:
            reason = str(error)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
        what = str(record.get("kind"))
        reason = f"{what}: {reason}"
    else:
        reason = record.reason
    report.bad.append((place.number, reason))
    return {"source": place.source, "position": place.number, "reason": reason, "text": _excerpt(record)}


def _excerpt(record: Record | Unreadable) -> str | None:
    if isinstance(record, Unreadable):
        return record.text
    try:
        return dumps(record)
    except (TypeError, ValueError, RecursionError):
        return None


def _slices(records: Iterable[Located]) -> Iterator[list[Located]]:
    part: list[Located] = []
    chars = 0
    for located in records:
        part.append(located)
        record = located[1]
        if isinstance(record, dict):
            chars += len(record["text"]) if isinstance(record.get("text"), str) else 200
        if len(part) >= SLICE_RECORDS or chars >= SLICE_CHARS:
            yield part
            part, chars = [], 0
    if part:
        yield part
