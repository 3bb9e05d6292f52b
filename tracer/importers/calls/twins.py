"""One model call that several instrumentations told of, as one: the inner one wins, content comes from the richest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .likeness import answer_atoms, atoms
from .model_call import ModelCall, usage_of
from .span_tree import SpanTree

SLACK = 50_000  # µs that clocks and callbacks may differ by
MOST = 200  # calls at the same time that are compared


def merged(calls: Iterable[ModelCall], tree: SpanTree) -> list[ModelCall]:
    """The calls in order of their beginning, each once; a wrapper is a note of the one it wraps."""
    ordered = sorted(calls, key=lambda c: (c.started_at or 0, -(c.ended_at or 0)))
    kept: list[ModelCall] = []
    seen: dict[str, int] = {}  # key of a call -> where it is kept
    wrapped: dict[str, int] = {}  # key of a call around one that came before it
    running: list[int] = []
    for call in ordered:
        begin = (call.started_at or 0) - SLACK
        running = [i for i in running[-MOST:] if (kept[i].ended_at or 0) >= begin]
        around = tree.place(call).call
        index = seen.get(around.key) if around is not None else None
        if index is None:
            index = wrapped.get(call.key)
        if index is None:
            index = next((i for i in reversed(running) if _same(kept[i], call)), None)
        if index is None:
            index = len(kept)
            kept.append(call)
            running.append(index)
        else:
            kept[index] = _one(kept[index], call, tree)
        seen[call.key] = index
        if around is not None:
            wrapped.setdefault(around.key, index)
    return kept


def _same(left: ModelCall, right: ModelCall) -> bool:
    if left.scope == right.scope or not _overlap(left, right):
        return False
    if left.response_id and left.response_id == right.response_id:
        return True
    if not (_same_model(left, right) and _same_words(left, right)):
        return False
    return _same_usage(left, right) or _both_failed(left, right)


def _above(outer: ModelCall, inner: ModelCall, tree: SpanTree) -> bool:
    """True when ``outer`` wraps ``inner`` with neither agent nor tool between."""
    above = tree.place(inner).call
    while above is not None:
        if above.key == outer.key or (above.span_id, above.trace_id) == (outer.span_id, outer.trace_id):
            return True
        above = tree.place(above).call
    return False


def _overlap(left: ModelCall, right: ModelCall) -> bool:
    """One of the two lies within the other, give or take."""
    if None in (left.started_at, left.ended_at, right.started_at, right.ended_at):
        return False
    a, b, c, d = left.started_at or 0, left.ended_at or 0, right.started_at or 0, right.ended_at or 0
    return (a - SLACK <= c and d <= b + SLACK) or (c - SLACK <= a and b <= d + SLACK)


def _same_model(left: ModelCall, right: ModelCall) -> bool:
    one, other = ({c.model, c.response_model} - {None} for c in (left, right))
    return not one or not other or bool(one & other)


def _same_usage(left: ModelCall, right: ModelCall) -> bool:
    one, other = usage_of(left), usage_of(right)
    if one.context is None and one.output is None:
        return False
    return one.context == other.context and one.output == other.output


def _both_failed(left: ModelCall, right: ModelCall) -> bool:
    """A call that failed has no usage; then the request must not differ."""
    if left.status == "ok" or right.status == "ok":
        return False
    one, other = ([a for m in c.messages for a in atoms(m)] for c in (left, right))
    return not one or not other or one == other


def _same_words(left: ModelCall, right: ModelCall) -> bool:
    """False only where both kept the answer and it differs."""
    one, other = answer_atoms(left.api, left.response), answer_atoms(right.api, right.response)
    return one is None or other is None or one == other


def _one(left: ModelCall, right: ModelCall, tree: SpanTree) -> ModelCall:
    """The two as one call."""
    inner, outer = (right, left) if _inner(right, left, tree) else (left, right)
    content = max((inner, outer), key=_richness)
    other = outer if content is inner else inner
    flags = [*inner.flags, *(f for f in outer.flags if f not in inner.flags)]
    if content.content and other is not content:  # what the poorer one lacked is here
        flags = [f for f in flags if f in content.flags or not f.startswith("content_")]
    usage = usage_of(inner)
    seat = outer if _seated(tree, outer) and not _seated(tree, inner) else inner
    return replace(
        inner,
        api=content.api,
        messages=content.messages,
        system=_first(content.system, other.system),
        tools=_first(content.tools, other.tools),
        params=_first(content.params, other.params),
        response=content.response if content.response is not None else None,
        lossless=content.lossless,
        mode=content.mode,
        previous=content.previous or other.previous,
        usage=usage if usage.origin != "missing" else usage_of(outer),
        provider=inner.provider or outer.provider,
        model=inner.model or outer.model,
        response_model=inner.response_model or outer.response_model,
        response_id=inner.response_id or outer.response_id,
        request_id=inner.request_id or outer.request_id,
        stop_reason=inner.stop_reason or outer.stop_reason,
        stream=inner.stream or outer.stream,
        first_chunk_at=_first(inner.first_chunk_at, outer.first_chunk_at),
        error=inner.error or (outer.error if inner.status != "ok" else None),
        error_type=inner.error_type or (outer.error_type if inner.status != "ok" else None),
        attempts=inner.attempts or outer.attempts,
        trace_id=seat.trace_id,
        span_id=seat.span_id,
        parent_span_id=seat.parent_span_id,
        conversation=inner.conversation or outer.conversation,
        agent=inner.agent or outer.agent,
        step=inner.step or outer.step,
        reported_cost_usd=_first(inner.reported_cost_usd, outer.reported_cost_usd),
        flags=tuple(flags),
        notes=(*inner.notes, *outer.notes, ("wrapper", _note(outer, inner))),
    )


def _seated(tree: SpanTree, call: ModelCall) -> bool:
    """True where something is known to stand around the call; SDKs that trace themselves may be in a trace of their own."""
    place = tree.place(call)
    return place.home is not None or bool(place.steps)


def _inner(one: ModelCall, other: ModelCall, tree: SpanTree) -> bool:
    """True when ``one`` is nearer to the wire than ``other``."""
    if _above(other, one, tree):
        return True
    if _above(one, other, tree):
        return False
    return _length(one) <= _length(other)


def _length(call: ModelCall) -> int:
    return (call.ended_at or 0) - (call.started_at or 0)


def _richness(call: ModelCall) -> tuple[int, bool, int]:
    answered = call.response is not None or call.status != "ok"
    return bool(call.messages) * 2 + answered, call.lossless, -len(call.flags)


def _first(one: Any, other: Any) -> Any:
    return one if one is not None else other


def _note(call: ModelCall, inner: ModelCall) -> Mapping[str, Any]:
    usage = usage_of(call)
    told = {"span_name": call.name, "scope": call.scope, "trace_id": call.trace_id, "span_id": call.span_id}
    counts = {"input_total": usage.context, "output": usage.output, "cache_read": usage.cache_read}
    told["inner_span_id"] = inner.span_id
    told["inner_scope"] = inner.scope
    return {k: v for k, v in {**told, **counts}.items() if v is not None}
