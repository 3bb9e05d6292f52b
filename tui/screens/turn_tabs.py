"""The other tabs of a turn: request, response, calls, usage, wire. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tracer.model import BUCKETS, Turn
from ..format import clock, count, counted, duration, money, percent, size
from ..source import TurnView, WireView
from ..widgets.cells import Span
from ..widgets.document import Block, Body, Document, Head
from ..widgets.json_text import compact, pretty, pretty_text
from .content import blocks, json_block
from .turn_text import call_blocks, phase

_BLANK = Head(())


def request(view: TurnView, *, raw: bool = False) -> Document:
    """What the model really saw: system, tools, parameters, messages; what is new is marked."""
    seen = view.request
    if seen is None:
        return (
            Head(
                (("The request of this turn is not known. ", "text"), (view.request_trouble or "", "dim")),
            ),
        )
    out: list[Block] = []
    if seen.system:
        out += [phase("SYSTEM", size(len(compact(seen.system)))), *blocks(seen.system, raw=raw), _BLANK]
    if seen.tools:
        out += [*_tools(seen.tools, raw), _BLANK]
    if seen.params:
        out += [phase("PARAMS"), json_block(dict(seen.params), raw=raw), _BLANK]
    total = len(seen.messages)
    fresh = total - seen.kept
    out.append(
        phase("MESSAGES", str(total), f"1-{seen.kept} as in the turn before" if seen.kept else None, f"{fresh} new")
    )
    for number, message in enumerate(seen.messages, 1):
        out += _message(number, message, number > seen.kept, raw)
    return tuple(out)


def _tools(tools: Any, raw: bool) -> list[Block]:
    if raw or not isinstance(tools, Sequence) or isinstance(tools, str):
        return [phase("TOOLS"), json_block(tools, raw=raw)]
    out: list[Block] = [phase("TOOLS", str(len(tools)))]
    for tool in tools:
        inner = (
            tool.get("function") if isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping) else tool
        )
        if not isinstance(inner, Mapping):
            out.append(json_block(tool))
            continue
        name = str(inner.get("name") or inner.get("type") or "?")
        out.append(Head(((name, "strong"), (f"  {_first_line(inner.get('description'))}", "dim")), 2))
        schema = inner.get("input_schema") or inner.get("parameters")
        if schema:
            out.append(Body(pretty(schema), "dim", 4, "json"))
    return out


def _message(number: int, message: Any, new: bool, raw: bool) -> list[Block]:
    role = str(message.get("role") or message.get("type") or "?") if isinstance(message, Mapping) else "?"
    mark: tuple[Span, ...] = (
        ("+ ", "accent_strong") if new else ("  ", "dim"),
        (f"[{number}] ", "dim"),
        (role, "strong"),
    )
    head = Head((*mark, ("  new in this turn", "accent") if new else ("", "dim")))
    body = message.get("content", message) if isinstance(message, Mapping) and not raw else message
    extra: list[Block] = []
    if isinstance(message, Mapping) and not raw and message.get("tool_calls"):
        extra.append(json_block(message["tool_calls"], indent=6))
    return [head, *blocks(body, indent=6, role="text" if new else "dim", raw=raw), *extra]


def response(view: TurnView, *, raw: bool = False) -> Document:
    """The answer as the provider gave it, block by block; raw as JSON."""
    turn = view.turn
    body = turn.response
    if body is None:
        why = turn.error or ("the answer is still coming" if turn.status == "open" else "no response was recorded")
        return (
            Head(
                (("No response: ", "text"), (why, "bad" if turn.error else "dim")),
            ),
        )
    facts = [turn.model, f"stop {turn.stop_reason}" if turn.stop_reason else None, turn.response_id]
    head = phase("RESPONSE", *facts)
    content = body.get("content") if isinstance(body, Mapping) else None
    if raw or not isinstance(content, list):
        return (head, json_block(body, raw=raw))
    rest = {k: v for k, v in body.items() if k not in ("content", "usage") and v is not None}
    return (head, *blocks(content), _BLANK, phase("THE REST"), json_block(rest))


def calls(view: TurnView, *, raw: bool = False) -> Document:
    """Every call with all there is to know."""
    turn = view.turn
    if not turn.tool_calls:
        return (Head((("No tool calls in this turn.", "dim"),)),)
    out: list[Block] = []
    for number, call in enumerate(turn.tool_calls, 1):
        facts = f"{call.state} · side effect {call.side_effect}"
        out.append(phase(f"CALL {number}", f"{call.id or 'without id'}", facts))
        if call.started_at is not None:
            out.append(Head(((f"{clock(call.started_at)}", "dim"),), 2))
        if call.result_length is not None:
            out.append(Head(((f"result {counted(call.result_length, 'character')} before any cut", "dim"),), 2))
        out += [*call_blocks(call, raw=raw), _BLANK]
    return tuple(out)


def usage(view: TurnView, *, raw: bool = False) -> Document:
    """Tokens by bucket that add up, the price, the times, the identity of the turn."""
    turn = view.turn
    use = turn.usage
    if raw:
        return (phase("USAGE", "as the provider sent it"), json_block(use.raw, raw=False))
    out: list[Block] = [phase("TOKENS", use.origin, "lower bounds: the answer was cut" if use.partial else None)]
    for name in BUCKETS:
        value = getattr(use, name)
        if name == "output":
            out.append(_fact("= read", count(use.context), "what the model read"))
            out.append(_fact("output", count(value), "what it wrote"))
        else:
            note = "inside output" if name == "reasoning" else percent(value, use.context) if value else ""
            out.append(_fact(_BUCKET_NAMES[name], count(value), note))
    out.append(_BLANK)
    out += [phase("COST"), _fact("this turn", money(turn.cost_usd), turn.model or ""), _BLANK, *_times(turn), _BLANK]
    out += [phase("IDENTITY")]
    for label, value in _identity(turn):
        if value:
            out.append(Head(((f"{label:<16}", "dim"), (value, "text")), 2))
    return tuple(out)


_BUCKET_NAMES = {
    "input": "input, uncached",
    "cache_read": "cache read",
    "cache_write_5m": "cache write 5 m",
    "cache_write_1h": "cache write 1 h",
    "output": "output",
    "reasoning": "reasoning",
}


def _fact(label: str, value: str, note: str = "") -> Head:
    return Head(((f"{label:<16}", "dim"), (f"{value:>12}", "text"), (f"  {note}", "faint")), 2)


def _times(turn: Turn) -> list[Block]:
    out: list[Block] = [phase("TIMES", clock(turn.started_at))]
    for label, value in (
        ("generate", turn.generate_ms),
        ("parse", turn.parse_ms),
        ("execute", turn.execute_ms),
        ("resume", turn.resume_ms),
    ):
        out.append(_fact(label, duration(value)))
    return out


def _identity(turn: Turn) -> list[tuple[str, str | None]]:
    return [
        ("provider", f"{turn.provider or '-'} · {turn.api or '-'}{' · streamed' if turn.stream else ''}"),
        ("model asked for", turn.request_model),
        ("model", turn.model),
        ("called from", turn.caller),
        ("step", turn.step),
        ("agent", turn.agent),
        ("response id", turn.response_id),
        ("request id", turn.request_id),
        ("trace id", turn.trace_id),
        ("span id", turn.span_id),
        ("history", None if turn.mode == "full" else turn.mode),
        ("flags", ", ".join(turn.flags)),
    ]


def wire(view: WireView, *, raw: bool = False) -> Document:
    """What went over the wire: the request body, the response body or the chunks of the stream."""
    out: list[Block] = []
    if view.trouble:
        out += [Head((("✗ ", "bad_strong"), (view.trouble, "text"))), _BLANK]
    out += _wire_part("REQUEST", view.request, raw)
    out.append(_BLANK)
    if view.chunks:
        total = sum(len(text) for _, text in view.chunks)
        out.append(phase("STREAM", counted(len(view.chunks), "chunk"), size(total)))
        if raw:
            out.append(Body("".join(text for _, text in view.chunks), "text", 2))
        else:
            for offset, text in view.chunks:
                out += [Head(((f"{offset / 1e6:8.3f} s", "dim"),), 2), Body(text.rstrip("\n"), "text", 4)]
        out.append(_BLANK)
    if view.response is not None or not view.chunks:
        out += _wire_part("RESPONSE", view.response, raw)
    return tuple(out)


def _wire_part(name: str, text: str | None, raw: bool) -> list[Block]:
    if text is None:
        return [phase(name, "not recorded")]
    shown, syntax = (text, "") if raw else pretty_text(text)
    return [phase(name, size(len(text))), Body(shown, "text", 2, syntax)]


def _first_line(text: Any) -> str:
    return text.strip().split("\n", 1)[0] if isinstance(text, str) else ""
