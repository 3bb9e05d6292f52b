"""A stored run as OTLP: `ExportTraceServiceRequest`s in JSON, ids as recorded; `invoke_agent` > turn > chat, tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from . import spans
from .model import Event, Run, ToolCall, Turn

if TYPE_CHECKING:
    from .store import Store

Json = dict[str, Any]
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a span stands."""

    trace: str
    span: str


@dataclass(slots=True)
class _Trail:
    """What holds for a whole export: ids that are taken."""

    used: set[str] = field(default_factory=set)

    def take(self, recorded: str | None, *names: object) -> str:
        """The recorded span id, or one that follows from these names where there is none (or it is taken)."""
        known = recorded is not None and _is_hex(recorded, 16) and recorded not in self.used
        taken = recorded if known and recorded is not None else _made(8, *names)
        self.used.add(taken)
        return taken


def export_requests(store: Store, run: Run, first: int | None = None, last: int | None = None) -> Iterator[Json]:
    """One export request for the run's own span, then one a turn; sub-agents follow the turn that started them.

    Trace and span ids are those that were recorded; where there are none they follow from run id and turn number, so
    that the same run gives the same ids. A turn that was recorded in another trace than its run is linked to it.

    Args:
        first, last: Only these turns (and the sub-agents that they started).
    """
    yield from _run(store, run, None, _Trail(), first, last)


def _run(
    store: Store, run: Run, above: _Place | None, trail: _Trail, first: int | None = None, last: int | None = None
) -> Iterator[Json]:
    turns = store.turns(run.id, first, last)
    here = _run_place(store, run, turns, above, trail)
    yield _request(run, [_run_span(run, turns, here, above)])
    events: dict[int | None, list[Event]] = {}
    for event in store.events(run.id):
        events.setdefault(event.turn, []).append(event)
    children = _children(store, run.id)
    for turn in turns:
        at = _turn_place(run, turn, here, trail)
        made, places = _turn_spans(store, turn, here, at, events.get(turn.number, []), trail)
        yield _request(run, made)
        for child in children.pop((turn.number), []):
            yield from _run(store, store.run(child[0]), places.get(child[1] or "", at), trail)
    if first is None:
        for child in (c for left in children.values() for c in left):  # sub-agents of no known turn
            yield from _run(store, store.run(child[0]), here, trail)


def _children(store: Store, run: str) -> dict[int | None, list[tuple[str, str | None]]]:
    """Sub-agents by the turn that started them: id and call."""
    query = (
        "select id, parent_turn, parent_call from base.runs "
        "where parent_run = ? and parent_kind = 'sub-agent' and id <> parent_run order by started_at, id"
    )
    found: dict[int | None, list[tuple[str, str | None]]] = {}
    for row in store.rows(query, [run]):
        found.setdefault(row["parent_turn"], []).append((row["id"], row["parent_call"]))
    return found


def _run_place(store: Store, run: Run, turns: list[Turn], above: _Place | None, trail: _Trail) -> _Place:
    """The run's own ids: the span that all its turns name as their parent, where a named run made one."""
    trace = next((t.trace_id for t in turns if t.trace_id and _is_hex(t.trace_id, 32)), None)
    parents = {r["parent_span_id"] for r in store.rows("select parent_span_id from base.turns where run = ?", [run.id])}
    own = parents.pop() if len(parents) == 1 and (run.name or run.agent) else None
    if above is not None and own == above.span:
        own = None
    return _Place(trace or (above.trace if above else _made(16, run.id)), trail.take(own, run.id))


def _turn_place(run: Run, turn: Turn, here: _Place, trail: _Trail) -> _Place:
    trace = turn.trace_id if turn.trace_id and _is_hex(turn.trace_id, 32) else here.trace
    return _Place(trace, trail.take(turn.span_id, run.id, turn.number))


def _run_span(run: Run, turns: list[Turn], at: _Place, above: _Place | None) -> Json:
    name = run.agent or run.name
    ends = [m for t in turns for m in (t.started_at, t.ended_at, *(c.ended_at for c in t.tool_calls)) if m]
    begins = [t.started_at for t in turns if t.started_at]
    start = run.started_at or min(begins, default=None)
    made = _span(
        f"invoke_agent {name}" if name else "invoke_agent",
        _INTERNAL,
        at,
        above,
        (start, run.ended_at or max(ends, default=None)),
        spans.run_attributes(run),
    )
    if run.status == "failed":
        made["status"] = _failed(run.reason)
    return made


def _turn_spans(
    store: Store, turn: Turn, above: _Place, at: _Place, events: list[Event], trail: _Trail
) -> tuple[list[Json], dict[str, _Place]]:
    """Spans of a turn, its chat and its tools; where each call stands."""
    from .store.requests import answer_messages

    ends = [m for m in (turn.ended_at, *(c.ended_at for c in turn.tool_calls)) if m]
    own = _span(
        f"turn {turn.number}",
        _INTERNAL,
        at,
        above,
        (turn.started_at, max(ends, default=None)),
        spans.turn_attributes(turn),
    )
    own["events"] = [_event(e, turn.started_at) for e in events]
    request = store.request(turn.run, turn.number) if turn.message_count is not None else None
    chat = _span(
        f"chat {turn.request_model or turn.model}" if turn.request_model or turn.model else "chat",
        _CLIENT,
        _Place(at.trace, trail.take(None, turn.run, turn.number, "chat")),
        at,
        (turn.started_at, turn.ended_at),
        spans.chat_attributes(turn, request, answer_messages(turn.api, turn.response)),
    )
    if turn.status == "error" or turn.error:
        own["status"] = chat["status"] = _failed(turn.error or turn.error_type)
    made, places = [own, chat], dict[str, _Place]()
    for position, call in enumerate(turn.tool_calls, 1):
        if _was_run(call):
            place = _Place(at.trace, trail.take(None, turn.run, turn.number, "call", position))
            places.setdefault(call.id, place)
            made.append(_call_span(turn, call, place, at))
    return made, places


def _was_run(call: ToolCall) -> bool:
    """True for calls that somebody here executed; the others stand in the answer alone."""
    if call.origin == "provider":
        return False
    return call.result is not None or call.state in ("done", "running") or call.child_run is not None


def _call_span(turn: Turn, call: ToolCall, at: _Place, above: _Place) -> Json:
    attributes = spans.call_attributes(turn.run, turn.number, call)
    times = (call.started_at, call.ended_at)
    if call.started_at is None and call.ended_at is None and turn.ended_at:
        # a backend needs a place on its time line; the attribute says that nobody knows
        times, attributes = (turn.ended_at, turn.ended_at), {**attributes, "looptape.call.timing": "unknown"}
    made = _span(f"execute_tool {call.name}", _INTERNAL, at, above, times, attributes)
    if call.is_error:
        made["status"] = _failed(call.error_class or "tool_error")
    return made


def _span(
    name: str, kind: int, at: _Place, above: _Place | None, times: tuple[int | None, int | None], given: Json
) -> Json:
    start, end = times
    start = end if start is None else start
    end = start if end is None or (start is not None and end < start) else end
    made: Json = {"traceId": at.trace, "spanId": at.span, "name": _text(name), "kind": kind}
    if above is not None and above.trace == at.trace:
        made["parentSpanId"] = above.span
    elif above is not None:
        made["links"] = [{"traceId": above.trace, "spanId": above.span}]
    # 0 is OTLP's word for a time that is not known
    made["startTimeUnixNano"], made["endTimeUnixNano"] = str((start or 0) * 1000), str((end or 0) * 1000)
    made["attributes"] = _attributes(given)
    made["status"] = {}
    return made


def _event(event: Event, fallback: int | None) -> Json:
    at = event.at if event.at is not None else fallback
    detail = {f"looptape.{k}": v if isinstance(v, (str, int, float)) else str(v) for k, v in event.detail.items()}
    return {"timeUnixNano": str((at or 0) * 1000), "name": _text(event.kind), "attributes": _attributes(detail)}


def _request(run: Run, made: list[Json]) -> Json:
    from .version import __version__

    resource = {"attributes": _attributes({"service.name": run.agent or run.name or spans.SCOPE})}
    scope = {"name": spans.SCOPE, "version": __version__}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": made}]}]}


def _failed(message: str | None) -> Json:
    return {"code": _ERROR, "message": _text(message)} if message else {"code": _ERROR}


def _attributes(given: Mapping[str, Any]) -> list[Json]:
    return [{"key": _text(k), "value": _value(v)} for k, v in given.items() if v is not None]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    if isinstance(value, float) and value - value == 0:
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(v) for v in value]}}
    return {"stringValue": _text(str(value))}


def _text(text: str) -> str:
    """Lone surrogates have no UTF-8: they become escapes, which inside a JSON attribute mean what they meant."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _made(size: int, *names: object) -> str:
    return blake2b("\x1f".join(map(str, names)).encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _is_hex(text: str | None, digits: int) -> bool:
    return text is not None and len(text) == digits and set(text) <= set("0123456789abcdef") and set(text) != {"0"}
