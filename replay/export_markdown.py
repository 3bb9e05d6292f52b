"""A run as markdown, for an issue or a review: every recorded text stands in a fence it cannot leave."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from ..tracer.model import Run, ToolCall, Turn
from .message_parts import plain_text
from .recording import Recording

Clean = Callable[[str], str]


def markdown(recording: Recording, clean: Clean = lambda text: text) -> str:
    """The run as one markdown text.

    Args:
        clean: Applied to every recorded text (control codes must not reach whoever prints the file).
    """
    rows = [*_head(recording.run, clean)]
    for turn in recording.turns:
        rows += _turn(recording, turn, clean)
    return "\n".join(rows).rstrip("\n") + "\n"


def _head(run: Run, clean: Clean) -> Iterator[str]:
    yield f"# {word(run.name or run.title or run.id, clean)}"
    yield ""
    state = run.status + (f" ({run.reason})" if run.reason else "")
    cost = "unpriced" if run.cost_usd is None else f"${run.cost_usd:,.4f}"
    facts = {
        "run": run.id,
        "status": state,
        "model": ", ".join(run.models),
        "started": _time(run.started_at),
        "turns": str(run.turns),
        "tool calls": str(run.tool_calls),
        "errors": str(run.errors),
        "cost": cost + (" (list price)" if run.list_price else ""),
        "source": run.source,
    }
    for name, value in facts.items():
        if value:
            yield f"- {name}: {word(value, clean)}"
    for warning in run.warnings:
        yield f"- warning: {word(warning, clean)}"
    yield ""


def _turn(recording: Recording, turn: Turn, clean: Clean) -> Iterator[str]:
    facts = [turn.model, turn.stop_reason, None if turn.status == "ok" else turn.status]
    usage = turn.usage
    if usage.context is not None or usage.output is not None:
        facts.append(f"in {usage.context or 0:,}, out {usage.output or 0:,} tokens")
    if turn.cost_usd is not None:
        facts.append(f"${turn.cost_usd:.4f}")
    yield f"## Turn {turn.number}"
    yield ""
    yield word(" · ".join(f for f in facts if f), clean)
    yield ""
    for event in recording.events_at(turn.number):
        yield from fenced(
            f"event: {word(event.kind, clean)}", json.dumps(dict(event.detail), ensure_ascii=False), clean
        )
    for incoming in recording.incoming.get(turn.number, ()):
        yield from fenced(word(incoming.role, clean), incoming.part.text, clean)
    if turn.thinking:
        yield from fenced("thinking", turn.thinking, clean)
    if turn.text:
        yield from fenced("assistant", turn.text, clean)
    for call in turn.tool_calls:
        yield from _call(call, clean)
    if turn.error:
        yield from fenced(f"error: {word(turn.error_type or '', clean)}", turn.error, clean)


def _call(call: ToolCall, clean: Clean) -> Iterator[str]:
    arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2) if call.valid else call.arguments_raw
    note = "" if call.valid else " (invalid arguments)"
    yield from fenced(f"call: {word(call.name, clean)}{note}", arguments, clean)
    if call.result is not None:
        yield from fenced("result: error" if call.is_error else "result", plain_text(call.result), clean)
    elif call.state in ("no_result", "cancelled", "incomplete"):
        yield f"**result**: none ({call.state.replace('_', ' ')})"
        yield ""


def fenced(title: str, text: str, clean: Clean) -> Iterator[str]:
    """A text under its title, fenced by more backticks than it holds."""
    text = clean(text).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    yield f"**{title}**"
    yield ""
    yield f"{fence}text"
    yield text
    yield fence
    yield ""


def word(text: str, clean: Clean) -> str:
    """A short text inside a line: one line, with everything that markdown or HTML would act on escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~])", r"\\\1", " ".join(clean(text).split()))


def _time(at: int | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at // 1_000_000, UTC).isoformat()
