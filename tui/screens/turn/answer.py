"""The tabs of what the model answered (blocks as given) and of the tools it called. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....tracer.model import ToolCall
from ...data.views import TurnView
from ...format import clock, counted, duration, size
from ...told.media import octets_of
from ...widgets.blocks import Block, Body, Document, Fold, Head
from ...widgets.cells import Span, Spans
from .content import amount, arguments, blocks, json_block, message_blocks, text_of
from .conversation import call_head, no_result, phase
from .marks import shortened
from .reading import Want

_BLANK = Head(())


def response(view: TurnView, _extras: Mapping[str, Any], want: Want) -> Document:
    """The answer as the provider gave it, block by block; raw as JSON."""
    turn = view.turn
    body = turn.response
    if body is None:
        why = turn.error or ("the answer is still coming" if turn.status == "open" else "no response was recorded")
        return (Head((("No response: ", "text"), (why, "bad" if turn.error else "dim"))), *_words_only(view))
    facts = [turn.model, f"stop {turn.stop_reason}" if turn.stop_reason else None, turn.response_id]
    if want.raw:
        return (phase("RESPONSE", *facts), json_block(body, raw=True))
    given, rest = _given(body)
    out: list[Block] = [phase("RESPONSE", counted(len(given), "block"), *facts)]
    for number, block in enumerate(given, 1):
        out.append(_one(number, block))
    if rest:
        out += [
            _BLANK,
            Fold("response.rest", (("the rest", "dim"),), (json_block(rest, indent=4),), False, lasting=True),
        ]
    return tuple(out)


def _words_only(view: TurnView) -> Iterator[Block]:
    """What is known of an answer that was not kept whole."""
    for name, text in (("thinking", view.turn.thinking), ("text", view.turn.text)):
        if text:
            yield Fold(f"answer.{name}", ((name, "strong"),), (Body(text, "text", 4),), value=text, what=name)


def _given(body: Any) -> tuple[list[Any], dict[str, Any]]:
    """The blocks of a response of any dialect, and what it holds beside them (without the usage, which has a tab)."""
    if not isinstance(body, Mapping):
        return [body], {}
    for key in ("content", "output", "choices", "candidates"):
        found = body.get(key)
        if isinstance(found, list):
            return list(found), {
                k: v for k, v in body.items() if k not in (key, "usage", "usageMetadata") and v is not None
            }
    return [], {k: v for k, v in body.items() if k != "usage" and v is not None}


def _one(number: int, block: Any) -> Fold:
    inner = block.get("message", block.get("content", block)) if _is_choice(block) else block
    kind = (
        "choice" if inner is not block else str(block.get("type") or "part") if isinstance(block, Mapping) else "value"
    )
    reason = (block.get("finish_reason") or block.get("finishReason")) if inner is not block else None
    head: list[Span] = [(f"[{number}] ", "dim"), (kind, "strong"), (f"  {size(octets_of(block))}", "faint")]
    head += [(f"  finish {reason}", "dim")] if isinstance(reason, str) else []
    value: Any = inner
    if isinstance(inner, Mapping) and isinstance(inner.get("text"), str):
        value = inner["text"]
    made = message_blocks(inner, indent=4) if isinstance(inner, Mapping) else blocks(inner, indent=4)
    return Fold(f"block.{number}", tuple(head), tuple(made), value=value, what=f"block {number}, {kind}")


def _is_choice(block: Any) -> bool:
    return isinstance(block, Mapping) and (
        isinstance(block.get("message"), Mapping) or ("index" in block and isinstance(block.get("content"), Mapping))
    )


def calls(view: TurnView, _extras: Mapping[str, Any], want: Want) -> Document:
    """Every call with all there is to know."""
    if not view.turn.tool_calls:
        return (Head((("No tool calls in this turn.", "dim"),)),)
    out: list[Block] = []
    for number, call in enumerate(view.turn.tool_calls, 1):
        out += [_call(number, call, raw=want.raw), _BLANK]
    return tuple(out[:-1])


def _call(number: int, call: ToolCall, *, raw: bool) -> Fold:
    bad = call.is_error is True
    head = ((f"{number} ", "dim"), *call_head(call), *((("  ✗ error", "bad_strong"),) if bad else ()))
    inner: list[Block] = [Head(((f"{label:<12}", "dim"), *value), 4, 12) for label, value in _facts(call)]
    asked = (arguments(call.arguments_raw, indent=6, raw=raw),)
    inner.append(
        Fold(f"call.{number}.arguments", (("arguments", "accent"),), asked, indent=2, value=call.arguments_raw,
             what=f"arguments of {call.name}")
    )  # fmt: skip
    inner.append(_result(number, call, raw=raw))
    value = call.result if call.result is not None else call.arguments_raw
    what = f"result of {call.name}" if call.result is not None else f"arguments of {call.name}"
    return Fold(f"call.{number}", head, tuple(inner), value=value, what=what)


def _facts(call: ToolCall) -> Iterator[tuple[str, Spans]]:
    """Labels and values; what is not known has no line."""
    yield "id", ((call.id or "none", "text"),)
    yield (
        "state",
        ((call.state.replace("_", " "), "text"), (f"  {no_result(call)}" if call.state != "done" else "", "dim")),
    )
    if call.started_at is not None:
        took = f"{duration(call.ms)} {call.timing or ''}".strip()
        yield "time", ((took, "text"), (f"  from {clock(call.started_at)}", "dim"))
    yield "result from", (({"live": "the tool", "provider": "the provider"}.get(call.origin, call.origin), "text"),)
    yield "side effect", ((call.side_effect, "text"), (f"  loop key {call.loop_key}" if call.loop_key else "", "dim"))
    if not call.valid:
        yield "arguments", (("✗ ", "bad_strong"), (call.invalid_reason or "no JSON object", "bad"))
    if call.is_error:
        kinds = " · ".join(k for k in (call.error_class, call.error_type) if k)
        yield "error", (("✗ ", "bad_strong"), (kinds or "not classed", "bad"))
    if call.child_run:
        yield "sub-agent", ((f"↳ {call.child_run}", "accent"),)


def _result(number: int, call: ToolCall, *, raw: bool) -> Block:
    bad = call.is_error is True
    role = "bad" if bad else "text"
    label: Span = ("result", "bad_strong" if bad else "accent")
    if call.result is None:
        return Fold(f"call.{number}.result", (label, (f"  {no_result(call)}", "dim")), (), indent=2)
    text = text_of(call.result)
    said = f"  {amount(text)}" if text.strip() else "  empty"
    cut: Span = (f"  truncated: the tool gave {call.result_length:,}" if shortened(call) else "", "bad")
    made = tuple(blocks(call.result, indent=6, role=role, raw=raw))
    return Fold(
        f"call.{number}.result",
        (label, (said, "dim"), cut),
        made,
        indent=2,
        value=call.result,
        what=f"result of {call.name}",
    )
