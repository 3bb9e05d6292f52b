"""Where the prefix that a provider had cached broke, by what, and what reading it again cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.model import Turn, Usage
from ...tracer.store.text import loads
from ...tracer.store.windows import Sent, Step
from ..alike import cached_key, substance
from .answers import Break
from .pieces import tool_name

Price = Callable[[Turn, Usage], Decimal | None]

LEAST, SHARE = 64, 0.01  # tokens, and share of the cached ones, below which a smaller read is rounding
SHORT_LIFE, LONG_LIFE = 300.0, 3600.0  # seconds that a cached prefix lives unread
_PARAMS = ("tool_choice", "thinking", "reasoning", "response_format", "output_config")


def broken(before: tuple[Step, Turn], now: tuple[Step, Turn], price: Price) -> Break | None:
    """How this turn could not go on with what was cached for the turn before; None when it could."""
    (earlier, last), (step, turn) = before, now
    changed = _first_change(earlier, last, step, turn)
    lost = _lost(last, turn)
    if changed is None and not lost:
        return None
    idle = None
    if turn.started_at is not None and last.ended_at is not None:
        idle = max(0.0, (turn.started_at - last.ended_at) / 1e6)
    if changed is None:
        life = LONG_LIFE if last.usage.cache_write_1h else SHORT_LIFE
        expired = idle is not None and idle >= life
        changed = Break(step.number, "expired", "") if expired else Break(step.number, "unknown", "")
    return replace(changed, tokens=lost, usd=_cost(turn, lost, price), idle_s=idle)


def _first_change(earlier: Step, last: Turn, step: Step, turn: Turn) -> Break | None:
    """What changed first, in the order in which providers cache: model, tools, system, then the messages."""
    number = step.number
    models = [t.model or t.request_model for t in (last, turn)]
    if models[0] != models[1]:
        return Break(number, "model", f"{models[0]} to {models[1]}")
    if earlier.tools != step.tools and cached_key(earlier.tools) != cached_key(step.tools):
        return Break(number, "tools", _tools(loads(earlier.tools), loads(step.tools)))
    if earlier.system != step.system and cached_key(earlier.system) != cached_key(step.system):
        return Break(number, "system", "system")
    message = _message(step)
    if message is None and earlier.params != step.params:
        return _param(number, loads(earlier.params), loads(step.params))
    return message


def _message(step: Step) -> Break | None:
    """The first message that is not what it was; one that is gone from the end counts, one that was added does not."""
    for place, old in enumerate(step.dropped):
        number = step.kept + place + 1
        if place >= len(step.added):
            return Break(step.number, "message", f"messages[{number}] is gone", number)
        new = step.added[place]
        if cached_key(old.text, old.hash) != cached_key(new.text, new.hash):
            part = _part(old, new)
            where = f"messages[{number}]" + (f" part {part}" if part else "")
            return Break(step.number, "message", where, number, part)
    return None


def _part(old: Sent, new: Sent) -> int | None:
    left, right = (_parts(loads(s.text)) for s in (old, new))
    for number, (a, b) in enumerate(zip(left, right, strict=False), 1):
        if canonical(substance(a, ids=True)) != canonical(substance(b, ids=True)):
            return number
    return min(len(left), len(right)) + 1 if left and right and len(left) != len(right) else None


def _parts(message: Any) -> Sequence[Any]:
    content = message.get("content", message.get("parts")) if isinstance(message, dict) else None
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return content if isinstance(content, list) else ()


def _tools(old: Any, new: Any) -> str:
    """The first tool that is new, gone, moved or said differently."""
    before, after = (v if isinstance(v, list) else [] for v in (old, new))
    for number in range(max(len(before), len(after))):
        left = before[number] if number < len(before) else None
        right = after[number] if number < len(after) else None
        if canonical(substance(left, ids=True)) != canonical(substance(right, ids=True)):
            names = [tool_name(t) for t in (left, right)]
            return f"tools[{number + 1}] {names[1] or names[0] or ''}".rstrip()
    return "tools"


def _param(number: int, old: Any, new: Any) -> Break | None:
    before, after = (v if isinstance(v, Mapping) else {} for v in (old, new))
    name = next((n for n in _PARAMS if canonical(before.get(n)) != canonical(after.get(n))), None)
    return Break(number, "params", name) if name else None


def _lost(last: Turn, turn: Turn) -> int | None:
    """Tokens that the cache held after the turn before and that this turn did not read from it; None: not told."""
    if last.usage.cache_read is None and last.usage.cache_write_5m is None and last.usage.cache_write_1h is None:
        return None
    if turn.usage.cache_read is None and turn.usage.input is None:
        return None
    held = (last.usage.cache_read or 0) + (last.usage.cache_write_5m or 0) + (last.usage.cache_write_1h or 0)
    lost = held - (turn.usage.cache_read or 0)
    return lost if lost >= max(LEAST, SHARE * held) else 0


def _cost(turn: Turn, lost: int | None, price: Price) -> float | None:
    """Dollars beyond what the turn would have cost with these tokens read from the cache."""
    if not lost:
        return 0.0 if lost == 0 else None
    left, better = lost, dict[str, Any](cache_read=turn.usage.cache_read or 0)
    for bucket in ("cache_write_5m", "cache_write_1h", "input"):
        moved = min(left, getattr(turn.usage, bucket) or 0)
        if moved:
            better[bucket] = getattr(turn.usage, bucket) - moved
            better["cache_read"] += moved
            left -= moved
    paid, instead = price(turn, turn.usage), price(turn, replace(turn.usage, **better))
    return None if paid is None or instead is None else float(paid - instead)
