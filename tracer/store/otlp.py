"""OpenTelemetry spans and log records into their raw rows: each once, whatever is sent twice or comes late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..canonical import digest
from ..otlp import SIGNALS, items, plain
from ..tape import Record
from .rows import Bad, Connection, Row, append, select, whole
from .text import dumps, encode

_GENAI = (
    "gen_ai", '"llm.', "openinference", "traceloop", "claude_code", "codex", "anthropic", "openai", "logfire",
    "langsmith", "smolagents",
)  # fmt: skip
_CONVERSATION = ("gen_ai.conversation.id", "session.id", "conversation.id")
_NANO = ("startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano")
Key = tuple[str, str, str]


class RawSpans:
    """The raw rows of one slice of records."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.recorded: set[tuple[str, str]] = set()
        self._frames: dict[str, str] = {}
        self._seen: dict[tuple[str, str], Row] = {}

    def take(self, record: Record, writer: str | None) -> None:
        """An otlp record. Raises Bad when it is none."""
        signal = record.get("signal")
        if signal not in SIGNALS:
            raise Bad(f"signal {signal!r} is none of {', '.join(SIGNALS)}")
        at = whole(record.get("at"), "at")
        state = "open" if record.get("open") is True else None
        frame = None
        for above, scope, item in items(str(signal), record.get("body")):
            if frame is None or frame.above is not above or frame.scope is not scope:
                frame = _Frame(above, scope)
            self._one(str(signal), frame, dict(item), state, at, writer)

    def cover(self, trace: Any, span: Any) -> None:
        """A model call's span that our own transport has recorded."""
        if isinstance(trace, str) and isinstance(span, str):
            self.recorded.add((trace, span))

    def write(self, con: Connection) -> None:
        """Into their tables; what has ended is never made open again."""
        if self.recorded:
            _append_new(con, "otlp_recorded", [{"trace": t, "span": s} for t, s in sorted(self.recorded)])
            con.execute(
                "update base.otlp_traces set dirty = true where genai and trace in (select unnest(?::varchar[]))",
                [[t for t, _ in self.recorded]],
            )
        if not self.rows:
            return
        traces = [encode(t) for t in {key[1] for key in self.rows}]
        known = select(
            con,
            "select signal, trace, span, state from base.otlp_spans where trace in (select unnest(?::varchar[]))",
            [traces],
        )
        there = {(r["signal"], r["trace"], r["span"]): r["state"] for r in known}
        new = {k: r for k, r in self.rows.items() if not (k in there and there[k] is None and r["state"])}
        _forget(con, [k for k in new if k in there])
        frames = _frames(con, self._frames)
        append(con, "otlp_spans", ({**r, "frame": frames[r["frame"]]} for r in new.values()))
        _merge_traces(con, self._seen, traces)

    def _one(self, signal: str, frame: _Frame, item: Row, state: str | None, at: int | None, writer: Any) -> None:
        named = _attributes(item)
        conversation = next((str(named[k]) for k in _CONVERSATION if named.get(k)), None)
        origin, text = frame.origin, dumps(item)
        trace, span = _name(item.get("traceId")), _name(item.get("spanId"))
        if not trace.strip("0"):
            trace = f"none:{conversation or origin}"
        key = (signal, trace, span if signal == "traces" and span else digest(text))
        if key in self.rows and self.rows[key]["state"] is None and state:
            return
        self._frames[frame.key] = frame.text
        begun, last = _times(item)
        self.rows[key] = {
            "trace": trace, "span": key[2], "signal": signal, "origin": origin, "frame": frame.key,
            "started_at": begun, "state": state, "conversation": conversation, "journal": writer, "item_json": text,
        }  # fmt: skip
        row = self._seen.setdefault(
            (trace, origin),
            {"trace": trace, "origin": origin, "first_at": begun, "last_at": last, "seen_at": at, "genai": False},
        )
        row["first_at"] = min(filter(None, (row["first_at"], begun)), default=None)
        row["last_at"] = max(filter(None, (row["last_at"], last)), default=None)
        row["seen_at"] = max(filter(None, (row["seen_at"], at)), default=None)
        row["genai"] = row["genai"] or frame.genai or _is_genai(text)


class _Frame:
    """What spans of one piece of a request have in common, worked out once.

    Attributes:
        origin: Hash of the resource.
        text, key: Both as JSON, and the hash of that.
        genai: True when it names an instrumentation of models.
    """

    def __init__(self, above: Mapping[str, Any], scope: Mapping[str, Any]) -> None:
        self.above, self.scope = above, scope
        self.origin = digest(dumps(above))
        self.text = dumps([above, scope])
        self.key = digest(self.text)
        self.genai = _is_genai(self.text)


def _is_genai(text: str) -> bool:
    return any(word in text for word in _GENAI)


def marks_of(con: Connection, runs: Iterable[str]) -> None:
    """Traces whose calls our transport turns out to have recorded too (same response): to be looked at again."""
    con.execute(
        "update base.otlp_traces set dirty = true where trace in (select t.trace from base.otlp_run_traces as t "
        "join base.turns as o on o.run = t.run join base.turns as l on l.response_id = o.response_id "
        "where not o.inherited and l.run in (select unnest(?::varchar[])) "
        "and l.run not in (select run from base.otlp_runs))",
        [[encode(r) for r in runs]],
    )


def cut_off(con: Connection, writers: Iterable[str]) -> None:
    """The writers of these are gone: spans that they left open will never end."""
    named = [[encode(w) for w in writers]]
    mine = "state = 'open' and journal in (select unnest(?::varchar[]))"
    con.execute(
        f"update base.otlp_traces set dirty = true where trace in (select trace from base.otlp_spans where {mine})",  # noqa: S608
        named,
    )
    con.execute(f"update base.otlp_spans set state = 'cut' where {mine}", named)  # noqa: S608


def waiting(con: Connection, now: int) -> bool:
    """True when runs have to be put together (again)."""
    found = select(
        con,
        "select exists(select 1 from base.otlp_traces where dirty and genai) "
        "or exists(select 1 from base.otlp_runs where settle_at <= ?) as due",
        [now],
    )
    return bool(found[0]["due"])


def _merge_traces(con: Connection, seen: dict[tuple[str, str], Row], traces: list[str]) -> None:
    known = select(con, "select * from base.otlp_traces where trace in (select unnest(?::varchar[]))", [traces])
    con.execute("delete from base.otlp_traces where trace in (select unnest(?::varchar[]))", [traces])
    merged: dict[tuple[str, str], Row] = {(r["trace"], r["origin"]): r for r in known}
    for key, row in seen.items():
        old = merged.get(key, {})
        merged[key] = {
            **row,
            "first_at": min(filter(None, (old.get("first_at"), row["first_at"])), default=None),
            "last_at": max(filter(None, (old.get("last_at"), row["last_at"])), default=None),
            "seen_at": max(filter(None, (old.get("seen_at"), row["seen_at"])), default=None),
            "genai": bool(old.get("genai") or row["genai"]),
            "dirty": True,
        }
    append(con, "otlp_traces", merged.values())


def _frames(con: Connection, wanted: dict[str, str]) -> dict[str, int]:
    rows = select(
        con, "select id, hash from base.otlp_frames where hash in (select unnest(?::varchar[]))", [list(wanted)]
    )
    known: dict[str, int] = {r["hash"]: r["id"] for r in rows}
    following = 1 + select(con, "select coalesce(max(id), 0) as last from base.otlp_frames")[0]["last"]
    new = [h for h in wanted if h not in known]
    known.update({h: following + i for i, h in enumerate(new)})
    append(con, "otlp_frames", ({"id": known[h], "hash": h, "frame_json": wanted[h]} for h in new))
    return known


def _forget(con: Connection, keys: list[Key]) -> None:
    if keys:
        con.execute(
            "delete from base.otlp_spans as t using (select unnest($1::varchar[]) as signal, unnest($2::varchar[]) as trace, "
            "unnest($3::varchar[]) as span) as k where t.signal = k.signal and t.trace = k.trace and t.span = k.span",
            [[encode(k[i]) for k in keys] for i in range(3)],
        )


def _append_new(con: Connection, table: str, rows: list[Row]) -> None:
    known = {
        (r["trace"], r["span"])
        for r in select(
            con,
            f"select trace, span from base.{table} where trace in (select unnest(?::varchar[]))",  # noqa: S608
            [[r["trace"] for r in rows]],
        )
    }
    append(con, table, (r for r in rows if (r["trace"], r["span"]) not in known))


def _attributes(item: Row) -> Row:
    given = item.get("attributes")
    if not isinstance(given, list):
        return {}
    return {a["key"]: plain(a.get("value")) for a in given if isinstance(a, dict) and isinstance(a.get("key"), str)}


def _name(given: Any) -> str:
    return given.lower() if isinstance(given, str) else ""


def _times(item: Row) -> tuple[int | None, int | None]:
    """Begin and end in µs; the begin for both where there is no end."""
    begun = next((t for t in map(_micros, map(item.get, _NANO)) if t), None)
    return begun, _micros(item.get("endTimeUnixNano")) or begun


def _micros(nano: Any) -> int | None:
    try:
        found = int(nano) // 1000
    except (TypeError, ValueError):
        return None
    return found if 0 < found < 2**62 else None
