"""Runs out of raw OpenTelemetry spans, put together again whenever something came: late children, next turns, ends.

What a run may be made of: its traces, all traces of one conversation, and traces that the same resource made
shortly before or after (a bare loop gives a trace per turn). The importer of OTLP does the thinking; here its
runs replace those made before, calls that our own transport recorded are left out, and spans that have
not ended keep their turn open.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import clock
from ..canonical import digest
from ..interrupts import is_interruption
from ..otlp import plain, request
from ..tape import Record
from .ingest import IngestReport, Place, ingest
from .otlp import waiting
from .quiet_gc import fewer_collections
from .rows import Connection, Row, append, select
from .text import encode

WINDOW = 15 * 60 * 1_000_000  # µs between two turns of one loop that nothing else links
QUIET = 10 * 60 * 1_000_000  # µs without a word after which an unfinished run is no longer called running
ROUND = 20_000  # traces at a time
_CHATS = ("chat", "text_completion", "generate_content")
_TABLES = (
    ("runs", "id"), ("turns", "run"), ("calls", "run"), ("attempts", "run"), ("spans", "run"), ("chunks", "run"),
    ("events", "run"), ("derived", "run"), ("otlp_runs", "run"), ("otlp_run_traces", "run"),
)  # fmt: skip
_dumps = json.JSONEncoder(separators=(",", ":"), default=str).encode
_AMONG = "in (select unnest(?::varchar[]))"
Key = tuple[str, str]


@dataclass(slots=True)
class _Run:
    """A run as the importer tells it."""

    records: list[Record] = field(default_factory=list)
    settle_at: int | None = None

    def of(self, kind: str) -> list[Record]:
        return [r for r in self.records if r["kind"] == kind]

    @property
    def digest(self) -> str:
        """A hash of what it says; blobs are named by their hashes."""
        return digest(_dumps([r for r in self.records if r["kind"] != "blob"]))

    @property
    def traces(self) -> set[str]:
        return {r["trace_id"] for r in self.of("turn_start") if r.get("trace_id")}


@dataclass(slots=True)
class _Spans:
    """The raw spans of a round.

    Attributes:
        recorded: Spans of calls that our transport recorded, made by others.
        turns: Our own spans of recorded turns; an application may export them too.
        open, cut: Spans without an end whose writer lives, or is gone.
        seen: When something of a trace last came.
    """

    rows: list[Row]
    recorded: set[Key]
    turns: set[Key]
    seen: dict[str, int]
    open: set[Key] = field(default_factory=set)
    cut: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        for row in self.rows:
            if row["state"]:
                (self.open if row["state"] == "open" else self.cut).add((row["trace"], row["span"]))


def reassemble(con: Connection) -> list[str]:
    """Puts together what is due, a transaction a round; returns lines for people."""
    messages: list[str] = []
    now = clock.now()
    if not waiting(con, now):
        return messages
    con.execute(
        "update base.otlp_traces set dirty = true where trace in (select t.trace from base.otlp_run_traces as t "
        "join base.otlp_runs as r using (run) where r.settle_at <= ?)",
        [now],
    )
    con.execute("update base.otlp_runs set settle_at = null where settle_at <= ?", [now])
    while due := _due(con):
        traces = _related(con, due)
        con.begin()
        try:
            with fewer_collections():
                _round(con, traces, now)
            _clean(con, [*traces, *due])
            con.commit()
        except Exception as error:  # odd spans must not keep everybody from the store; they stay where they are
            con.rollback()
            if is_interruption(error):
                raise KeyboardInterrupt from None
            if _passing(error):
                messages.append(f"spans that came in wait for the next command ({str(error).splitlines()[0][:200]})")
                return messages
            _clean(con, due)
            messages.append(f"spans that came in could not be put together ({type(error).__name__}: {error}); kept")
    return messages


def _passing(error: Exception) -> bool:
    """True for what is not the spans' fault: memory, disk."""
    import duckdb

    return isinstance(error, (duckdb.OperationalError, MemoryError, OSError))


def _round(con: Connection, traces: list[str], now: int) -> None:
    spans = _load(con, traces)
    runs = _assembled(spans)
    before = {
        r["run"]: r["digest"]
        for r in select(
            con,
            "select distinct r.run, r.digest from base.otlp_runs as r "  # noqa: S608
            f"join base.otlp_run_traces as t using (run) where t.trace {_AMONG}",
            [[encode(t) for t in traces]],
        )
    }
    _drop_recorded(con, runs, spans, set(before))
    for run in runs.values():
        _end(run, spans, now)
    digests = {name: run.digest for name, run in runs.items()}
    changed = [name for name in runs if digests[name] != before.get(name)]
    _forget(con, [*changed, *(name for name in before if name not in runs)])
    told = [record for name in changed for record in runs[name].records]
    if changed:
        ingest(con, ((Place(i), r) for i, r in enumerate(told, 1)), source="otlp", report=IngestReport())
    append(con, "otlp_runs", ({"run": n, "digest": digests[n], "settle_at": runs[n].settle_at} for n in changed))
    append(con, "otlp_run_traces", ({"run": n, "trace": t} for n in changed for t in runs[n].traces or traces))


def _assembled(spans: _Spans) -> dict[str, _Run]:
    from ..importers.otlp.otlp_live import assembled  # only where spans came in: importers cost a moment

    runs: dict[str, _Run] = {}
    blobs: list[Record] = []  # each stands before its first use
    for record in assembled(_requests(spans)):
        if record["kind"] == "blob":
            blobs.append(record)
        elif isinstance(record.get("run"), str):
            runs.setdefault(record["run"], _Run()).records += [*blobs, record]
            blobs.clear()
    return runs


def _requests(spans: _Spans) -> Iterator[dict[str, Any]]:
    """Export requests as they might have come, without the calls that are known already."""
    groups: dict[tuple[str, str], list[Any]] = {}
    without = _wrappers(spans)
    for row in spans.rows:
        if (row["trace"], row["span"]) not in without:
            groups.setdefault((row["signal"], row["frame_json"]), []).append(json.loads(row["item_json"]))
    for (signal, frame), items in groups.items():
        above, scope = json.loads(frame)
        yield request(signal, above, scope, items)


def _wrappers(spans: _Spans) -> set[Key]:
    """Recorded calls, and calls around them: other instrumentations of the same one."""
    found = spans.recorded | spans.turns
    if not found:
        return found
    items = {(r["trace"], r["span"]): json.loads(r["item_json"]) for r in spans.rows if r["signal"] == "traces"}
    found |= {k for k, item in items.items() if (k[0], item.get("parentSpanId")) in spans.turns and _is_chat(item)}
    for key in spans.recorded:
        above = key
        while (item := items.get(above)) and (parent := str(item.get("parentSpanId") or "").lower()):
            above = (key[0], parent)
            if above in found or above not in items:
                break
            if _is_chat(items[above]):
                found.add(above)
    return found


def _is_chat(item: Row) -> bool:
    named = {a.get("key"): plain(a.get("value")) for a in item.get("attributes") or () if isinstance(a, dict)}
    return (
        named.get("gen_ai.operation.name") in _CHATS
        or named.get("openinference.span.kind") == "LLM"
        or named.get("llm.request.type") == "chat"
    )


def _drop_recorded(con: Connection, runs: dict[str, _Run], spans: _Spans, before: set[str]) -> None:
    """Runs of which our transport (or another source) has every call; single such calls become inherited."""
    ids = {i for run in runs.values() for r in run.of("turn_end") for i in _ids(r)}
    known = _known(con, ids, {*runs, *before}) if ids else {}
    hidden = {trace for trace, _ in spans.recorded | spans.turns}
    for name, run in list(runs.items()):
        starts = {r["turn"]: r for r in run.of("turn_start")}
        ends = {r["turn"]: r for r in run.of("turn_end")}
        twice = {
            n
            for n, r in ends.items()
            if any(_same_time(starts.get(n), r, k) for i in _ids(r) for k in known.get(i, ()))
        }
        told = {n for n, r in ends.items() if n in twice or r.get("response") or r.get("response_id") or r.get("model")}
        if (starts and twice == set(starts)) or (not told and run.traces & hidden) or (not starts and hidden):
            del runs[name]
        for number in twice:
            starts[number]["inherited"] = True


def _ids(record: Record) -> list[str]:
    return [i for name in ("response_id", "request_id") if isinstance(i := record.get(name), str) and i]


def _known(con: Connection, ids: set[str], own: set[str]) -> dict[str, list[Row]]:
    rows = select(
        con,
        "select run, started_at, ended_at, response_id, request_id from base.turns where not inherited and "  # noqa: S608
        f"(response_id {_AMONG} or request_id {_AMONG}) and run not in (select run from base.otlp_runs)",
        [[encode(i) for i in ids]] * 2,
    )
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["run"] not in own:
            for name in ("response_id", "request_id"):
                found.setdefault(row[name], []).append(row)
    return found


def _same_time(start: Record | None, end: Record, known: Row) -> bool:
    """Do they overlap? A fake model may give every run the same ids."""
    begun, ended = (start or {}).get("at"), end.get("at")
    if not (begun and ended and known["started_at"] and known["ended_at"]):
        return True
    return bool(begun <= known["ended_at"] and known["started_at"] <= ended)


def _end(run: _Run, spans: _Spans, now: int) -> None:
    """Turns whose span has not ended stay open; a run is over when its spans are, or its writer is gone."""
    unended = spans.open | spans.cut
    numbers = {r["turn"] for r in run.of("turn_start") if (r.get("trace_id"), r.get("span_id")) in unended}
    run.records = [r for r in run.records if not (r["kind"] == "turn_end" and r["turn"] in numbers)]
    ends = run.of("run_end")
    interrupted = not ends or ends[-1].get("status") in ("interrupted", "unknown")
    if run.traces & {trace for trace, _ in spans.open}:
        run.records = [r for r in run.records if r["kind"] != "run_end"]
    elif numbers or (interrupted and run.traces & {trace for trace, _ in spans.cut}):
        last = max((r["turn"] for r in run.of("turn_start")), default=None)
        where = f" at turn {last}" if last else " before its first turn"
        at = max((r["at"] for r in run.records if isinstance(r.get("at"), int)), default=None)
        run.records = [r for r in run.records if r["kind"] != "run_end"]
        reason = f"the process ended without a word (killed?){where}"
        name = next(r["run"] for r in run.records if "run" in r)
        run.records.append({"kind": "run_end", "run": name, "at": at, "status": "interrupted", "reason": reason})
    elif interrupted:
        quiet = max((spans.seen.get(t, 0) for t in run.traces), default=0) + QUIET
        if quiet > now:
            run.records = [r for r in run.records if r["kind"] != "run_end"]
            run.settle_at = quiet


def _due(con: Connection) -> list[str]:
    rows = select(
        con,
        "select trace from base.otlp_traces where dirty and genai group by trace order by min(first_at), trace limit ?",
        [ROUND],
    )
    return [r["trace"] for r in rows]


def _related(con: Connection, due: list[str]) -> list[str]:
    """These traces and all that may share a run with them."""
    found = set(due)
    coded = [encode(t) for t in due]
    near = select(
        con,
        "with d as (select origin, min(first_at) as low, max(last_at) as high from base.otlp_traces "  # noqa: S608
        f"where trace {_AMONG} group by origin) select distinct t.trace from base.otlp_traces as t join d using (origin) "
        f"where t.genai and t.last_at >= d.low - {WINDOW} and t.first_at <= d.high + {WINDOW} limit {ROUND}",
        [coded],
    )
    found |= {r["trace"] for r in near}
    talks = select(
        con,
        "select distinct trace from base.otlp_spans where conversation in "  # noqa: S608
        f"(select conversation from base.otlp_spans where trace {_AMONG} and conversation is not null)",
        [[encode(t) for t in found]],
    )
    found |= {r["trace"] for r in talks}
    while True:  # a run is put together from all of its traces or not at all
        more = select(
            con,
            "select distinct b.trace from base.otlp_run_traces as a join base.otlp_run_traces as b using (run) "  # noqa: S608
            f"where a.trace {_AMONG} and b.trace not {_AMONG}",
            [[encode(t) for t in found]] * 2,
        )
        if not more:
            return sorted(found)
        found |= {r["trace"] for r in more}


def _load(con: Connection, traces: list[str]) -> _Spans:
    coded = [[encode(t) for t in traces]]
    rows = select(
        con,
        "select s.trace, s.span, s.signal, s.state, s.item_json, f.frame_json from base.otlp_spans as s "  # noqa: S608
        f"join base.otlp_frames as f on f.id = s.frame where s.trace {_AMONG} order by s.started_at, s.trace, s.span",
        coded,
    )
    covered = select(con, f"select trace, span from base.otlp_recorded where trace {_AMONG}", coded)  # noqa: S608
    turns = select(
        con,
        "select t.trace_id, t.span_id from base.turns as t join base.runs as r on r.id = t.run "  # noqa: S608
        f"where r.source <> 'otlp' and t.span_id is not null and t.trace_id {_AMONG}",
        coded,
    )
    ages = f"select trace, max(seen_at) as at from base.otlp_traces where trace {_AMONG} group by trace"  # noqa: S608
    return _Spans(
        rows,
        {(r["trace"], r["span"]) for r in covered},
        {(r["trace_id"], r["span_id"]) for r in turns},
        {r["trace"]: r["at"] or 0 for r in select(con, ages, coded)},
    )


def _forget(con: Connection, runs: Iterable[str]) -> None:
    names = [encode(r) for r in runs]
    if names:
        for table, column in _TABLES:
            con.execute(f"delete from base.{table} where {column} {_AMONG}", [names])  # noqa: S608


def _clean(con: Connection, traces: list[str]) -> None:
    con.execute(f"update base.otlp_traces set dirty = false where trace {_AMONG}", [[encode(t) for t in traces]])  # noqa: S608
