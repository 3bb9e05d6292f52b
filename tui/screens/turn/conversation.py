"""A turn as text: RESUME what came in, GENERATE, PARSE, EXECUTE. Pure; the words are ours, the data is cleaned when drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....replay.message_parts import role
from ....tracer.model import ToolCall, Turn
from ....tracer.providers import by_api
from ...data.views import TurnView
from ...format import counted, duration, money, short_tokens
from ...widgets.blocks import Block, Body, Document, Fold, Head
from ...widgets.cells import Span
from . import messages
from .content import amount, arguments, blocks, message_blocks, text_of

BRIEF = 14
"""Lines of a text beside the turn list; Enter shows all."""

_BLANK = Head(())


def conversation(view: TurnView, *, brief: bool = False, raw: bool = False) -> Document:
    """The four phases of a turn. ``brief``: at most ``BRIEF`` lines of each text and nothing to fold; else what came
    earlier follows, folded."""
    most = BRIEF if brief else 0
    turn = view.turn
    parts: list[list[Block]] = [
        _resume(view, most, raw),
        _generate(turn, most, raw),
        _parse(turn),
        _execute(turn, most, raw),
        [] if brief else _earlier(view, raw),
    ]
    out: list[Block] = []
    for part in parts:
        if part:
            out += part if not out else [_BLANK, *part]
    return tuple(out)


def phase(name: str, *facts: str | Span | None) -> Head:
    """The heading of a phase with its facts."""
    spans: list[Span] = [(f"{name:<10}", "accent_strong")]
    for fact in facts:
        if not fact:
            continue
        if len(spans) > 1:
            spans.append((" · ", "faint"))
        spans.append((fact, "dim") if isinstance(fact, str) else fact)
    return Head(tuple(spans), hang=10)


# RESUME


def _resume(view: TurnView, most: int, raw: bool) -> list[Block]:
    turn = view.turn
    fresh, first = _new_messages(view), _kept(view) + 1
    results = [r for message in fresh for r in by_api(turn.api).results(message)]
    words = [(n, m) for n, m in enumerate(fresh, first) if not _echo(m) and not by_api(turn.api).results(m)]
    said = []
    if results:
        said.append(f"{counted(len(results), 'result')} came in")
    if words:
        said.append("a prompt came in" if turn.user_turn or turn.number == 1 else counted(len(words), "message"))
    took = duration(view.before.resume_ms) if view.before is not None and view.before.resume_ms else None
    facts: list[str | Span | None] = [*said, took]
    if view.request_trouble:
        facts.append((f"request not known: {view.request_trouble}", "dim"))
    elif not said:
        facts.append("nothing new came in" if view.request is not None else "request not recorded")
    if turn.inherited:
        facts.append("inherited from the parent run")
    if "compaction" in turn.flags:
        facts.append(("▤ compaction: the history was replaced", "strong"))
    out: list[Block] = [phase("RESUME", *facts)]
    calls = {c.id: c for c in view.before.tool_calls} if view.before else {}
    for seen in results:
        out += _came_in(seen.call, seen.content, seen.is_error, calls.get(seen.call), most, raw)
    for number, message in words:
        out += _said(number, message, most, raw)
    return out


def _kept(view: TurnView) -> int:
    """How many messages the turn before had too."""
    request = view.request
    if request is None:
        return 0
    return max(0, (view.turn.message_count or 0) - len(request.messages)) if view.fresh else request.kept


def _new_messages(view: TurnView) -> tuple[Any, ...]:
    request = view.request
    return () if request is None else request.messages[request.kept :]


def _echo(message: Any) -> bool:
    """True for what the model itself had said, sent back by the client."""
    if not isinstance(message, Mapping):
        return False
    return message.get("role") in ("assistant", "model") or message.get("type") in ("function_call", "reasoning")


def _came_in(call_id: str, content: Any, is_error: bool, call: ToolCall | None, most: int, raw: bool) -> list[Block]:
    spans: list[Span] = [("↳ ", "dim"), (call.name if call else call_id, "strong")]
    if is_error:
        spans.append(("  ✗ error", "bad_strong"))
        if call and call.error_class:
            spans.append((f" · {call.error_class}", "dim"))
    if not text_of(content).strip():
        return [Head((*spans, ("  empty", "dim")), 2)]
    inner = blocks(content, indent=4 if most else 6, role="text", most=most, raw=raw)
    if most:
        return [Head(tuple(spans), 2), *inner]
    what = f"result of {call.name if call else call_id}"
    return [Fold(f"came.{call_id}", tuple(spans), tuple(inner), indent=2, value=content, what=what)]


def _said(number: int, message: Any, most: int, raw: bool) -> list[Block]:
    who = role(message)
    inner = message_blocks(message, indent=4 if most else 6, most=most, raw=raw)
    head: tuple[Span, ...] = (("› ", "dim"), (who, "strong"))
    if most:
        return [Head(head, 2), *inner]
    what = f"message {number}"
    return [Fold(f"message.{number}", head, tuple(inner), indent=2, value=_value(message), what=what)]


def _value(message: Any) -> Any:
    """What is copied of a message: its words where it has no more than words."""
    content = message.get("content") if isinstance(message, Mapping) else message
    return content if isinstance(content, str) else message


# EARLIER


def _earlier(view: TurnView, raw: bool) -> list[Block]:
    """The messages that the turn before had too, and what the model's own part of the new ones was, folded."""
    request, kept = view.request, _kept(view)
    if request is None or not kept:
        return []
    if view.fresh:
        return [phase("EARLIER", "reading …")]
    folds = tuple(messages.message(n, m, "same", indent=2, raw=raw) for n, m in enumerate(request.messages[:kept], 1))
    head: tuple[Span, ...] = (("EARLIER   ", "accent_strong"), (counted(kept, "message"), "dim"))
    head = (*head, (" · as in the turn before", "dim") if view.turn.number > 1 else ("", "dim"))
    return [Fold("conversation.earlier", head, folds, False, lasting=True)]


# GENERATE


def _generate(turn: Turn, most: int, raw: bool) -> list[Block]:
    usage = turn.usage
    facts: list[str | Span | None] = [duration(turn.generate_ms) if turn.generate_ms is not None else None]
    if turn.stream and turn.first_chunk_at is not None and turn.started_at is not None:
        facts.append(f"first token {duration((turn.first_chunk_at - turn.started_at) / 1000)}")
    facts.append(f"stop {turn.stop_reason}" if turn.stop_reason else None)
    out: list[Block] = [phase("GENERATE", *facts)]
    model = turn.model or turn.request_model
    if usage.origin == "missing":
        out.append(Head(((f"{model or 'model not known'} · tokens not known", "dim"),), 2))
    else:
        read = (f"{model} · " if model else "") + f"{short_tokens(usage.context)} in"
        cached = f" ({short_tokens(usage.cache_read)} from cache)" if usage.cache_read else ""
        wrote = f" · {short_tokens(usage.output)} out" + (" (cut)" if usage.partial else "")
        out.append(Head(((f"{read}{cached}{wrote} · {money(turn.cost_usd)}", "dim"),), 2))
    out += _attempts(turn)
    if turn.status == "open":
        out.append(Head((("● the answer is still coming", "accent"),), 2))
    elif turn.status != "ok":
        kind = f" ({turn.error_type})" if turn.error_type else ""
        out.append(Head(((f"✗ {turn.status}{kind}", "bad_strong"),), 2))
        if turn.error:
            out.append(Body(turn.error, "bad", 4, "", most))
    return out + _words(turn, most, raw)


def _words(turn: Turn, most: int, raw: bool) -> list[Block]:
    """What the model thought and said."""
    out: list[Block] = []
    if turn.thinking and most:
        out += [Head((("thinking", "faint"),), 2), Body(turn.thinking, "dim", 4, "", most // 2)]
    elif turn.thinking:
        inner = (Body(turn.thinking, "dim", 6),)
        out.append(
            Fold(
                "thinking", (("thinking", "dim"),), inner, indent=2, lasting=True, value=turn.thinking, what="thinking"
            )
        )
    if turn.text and most:
        out += blocks(turn.text, indent=2, most=most, raw=raw)
    elif turn.text:
        inner_text = tuple(blocks(turn.text, indent=6, raw=raw))
        out.append(Fold("text", (("text", "dim"),), inner_text, indent=2, value=turn.text, what="text"))
    return out


def _attempts(turn: Turn) -> list[Block]:
    if len(turn.attempts) < 2:
        return []
    out: list[Block] = []
    for number, attempt in enumerate(turn.attempts, 1):
        fine = attempt.error is None and (attempt.status or 200) < 400
        spans: list[Span] = [(f"attempt {number}  ", "dim"), (str(attempt.status or "-"), "dim" if fine else "bad")]
        if attempt.error:
            spans.append((f" {attempt.error}", "bad"))
        if attempt.wait_ms:
            spans.append((f"  after a wait of {duration(attempt.wait_ms)}", "dim"))
        out.append(Head(tuple(spans), 2))
    return out


# PARSE and EXECUTE


def _parse(turn: Turn) -> list[Block]:
    calls = [c for c in turn.tool_calls if c.origin != "provider"]
    if not turn.tool_calls:
        return [] if turn.status in ("open", "error") else [phase("PARSE", "no calls")]
    broken = [c for c in turn.tool_calls if not c.valid]
    facts: list[str | Span | None] = [counted(len(turn.tool_calls), "call")]
    if len(calls) < len(turn.tool_calls):
        facts.append(f"{len(turn.tool_calls) - len(calls)} run by the provider")
    facts.append((f"✗ {len(broken)} with broken arguments", "bad_strong") if broken else "arguments are valid JSON")
    return [phase("PARSE", *facts)]


def _execute(turn: Turn, most: int, raw: bool) -> list[Block]:
    if not turn.tool_calls:
        return []
    out: list[Block] = [phase("EXECUTE", duration(turn.execute_ms) if turn.execute_ms is not None else None)]
    for number, call in enumerate(turn.tool_calls, 1):
        if most:
            out += call_blocks(call, most=most, raw=raw)
            continue
        inner = call_blocks(call, raw=raw, indent=4)[1:]
        value = call.result if call.result is not None else call.arguments_raw
        what = f"{'result' if call.result is not None else 'arguments'} of {call.name}"
        out.append(Fold(f"call.{number}", call_head(call), tuple(inner), indent=2, value=value, what=what))
    return out


def call_blocks(call: ToolCall, *, most: int = 0, raw: bool = False, indent: int = 2) -> list[Block]:
    """A call with its arguments and its result."""
    inside = indent + 2
    out: list[Block] = [Head(call_head(call), indent)]
    out.append(arguments(call.arguments_raw, indent=inside, most=most, raw=raw))
    if not call.valid:
        out.append(Head((("✗ ", "bad_strong"), (call.invalid_reason or "broken arguments", "bad")), inside))
    if call.result is None:
        if call.state != "done":
            out.append(Head((("→ ", "dim"), (no_result(call), "dim")), inside))
        return out
    bad = call.is_error is True
    text = text_of(call.result)
    if not text.strip():
        return [
            *out,
            Head(
                (
                    ("→ ", "bad_strong" if bad else "accent"),
                    ("empty result", "dim"),
                    ("  ✗" if bad else "", "bad_strong"),
                ),
                inside,
            ),
        ]
    if "\n" not in text and len(text) < 400 and not raw:
        mark: tuple[Span, ...] = (("→ ", "bad_strong" if bad else "accent"), (text, "bad" if bad else "text"))
        return [*out, Head((*mark, ("  ✗", "bad_strong")) if bad else mark, inside)]
    out.append(
        Head((("→ ", "accent"), (amount(text), "dim"), *((("  ✗ error", "bad_strong"),) if bad else ())), inside)
    )
    out += blocks(call.result, indent=inside + 2, role="bad" if bad else "text", most=most, raw=raw)
    return out


def call_head(call: ToolCall) -> tuple[Span, ...]:
    """Name, time and where the result is from."""
    facts = [duration(call.ms) if call.ms is not None else "", "time inferred" if call.timing == "inferred" else ""]
    facts.append("run by the provider" if call.origin == "provider" else "" if call.origin == "live" else call.origin)
    if call.error_class:
        facts.append(call.error_class)
    if call.child_run:
        facts.append(f"↳ sub-agent {call.child_run}")
    said = " · ".join(f for f in facts if f)
    return ((call.name, "strong"), (f"  {said}", "dim"))


def no_result(call: ToolCall) -> str:
    """Why a call has no result."""
    return {
        "requested": "not answered yet",
        "running": "still running",
        "cancelled": "cancelled",
        "no_result": "no result: the process was gone before it came",
        "incomplete": "the call itself was cut off",
    }.get(call.state, "no result")
