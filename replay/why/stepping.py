"""One turn beside its usual one: their difference in steps, each step one cause, which add up exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal, localcontext

from ...tracer import pricing
from ...tracer.model import Turn, Usage
from .account import DOLLARS, Entry
from .breaks import Break

PLACES = Decimal("0.000000000001")
_DUST = Decimal("0.000001")  # less than this between two turns of one model is rounding, no other price
Amount = Callable[[Usage], "Decimal | None"]


def steps(mine: Entry, usual: Entry, unit: str, mine_break: Break | None, usual_break: Break | None) -> Iterator[tuple[str, Decimal]]:  # fmt: skip
    """Causes with amounts that sum to ``mine.amount - usual.amount``.

    From the turn as it was: at the usual turn's price; its cache held; with the usual context; with the usual output;
    and the usual turn's own cache break given back.
    """
    at_usual = rate_of(usual, unit)
    ours, theirs = mine.turn.usage, usual.turn.usage
    ours_held, theirs_held = held(ours, mine_break), held(theirs, usual_break)
    between = replace(theirs_held, output=ours.output)
    amounts = [at_usual(u) for u in (ours, ours_held, between, theirs_held, theirs)]
    if any(a is None for a in amounts):
        yield from _unpriced(mine, usual)
        return
    now, kept, context, output, whole = (a for a in amounts if a is not None)
    model = mine.amount - now
    same = mine.turn.model == usual.turn.model and abs(model) < _DUST
    yield "unexplained" if same else "dearer_model", model
    yield "cache_breaks", (now - kept) - (whole - output)
    yield "larger_context", kept - context
    yield "longer_outputs", context - output
    yield "unexplained", whole - usual.amount


def own_steps(mine: Entry, unit: str, mine_break: Break | None) -> Iterator[tuple[str, Decimal]]:
    """The same of a turn alone: what its cache break cost, what it read, what it wrote; they sum to its amount."""
    price = rate_of(mine, unit)
    usage = held(mine.turn.usage, mine_break)
    kept, read = price(usage), price(replace(usage, output=0, reasoning=None))
    if kept is None or read is None:
        yield "unexplained", mine.amount
        return
    yield "cache_breaks", mine.amount - kept
    yield "larger_context", read
    yield "longer_outputs", kept - read


def rate_of(entry: Entry, unit: str) -> Amount:
    """What any usage would cost at an entry's price: its list price, times what it really cost against the list."""
    if unit != DOLLARS:
        return lambda usage: Decimal((usage.context or 0) + (usage.output or 0))
    turn = entry.turn
    listed = listed_price(turn, turn.usage)
    if not listed:
        free = listed is not None and not entry.amount
        return lambda usage: listed_price(turn, usage) if free else None

    def scaled(usage: Usage) -> Decimal | None:
        price = listed_price(turn, usage)
        if price is None:
            return None
        with localcontext() as exact:
            exact.prec = 60
            return (price * entry.amount / listed).quantize(PLACES)

    return scaled


def listed_price(turn: Turn, usage: Usage) -> Decimal | None:
    """What the price list says that a usage costs for a turn's model at its time."""
    if usage.input is None and usage.output is None:
        return None
    return pricing.turn_price(turn, usage).usd


def held(usage: Usage, broken: Break | None) -> Usage:
    """The usage had the cache held: lost tokens are read from it, rather than written or read at the full price."""
    if broken is None:
        return usage
    left = broken.tokens
    given: dict[str, int | None] = {}
    for bucket in ("cache_write_5m", "cache_write_1h", "input"):
        count = getattr(usage, bucket) or 0
        taken = min(left, count)
        left -= taken
        if taken:
            given[bucket] = count - taken
    moved = broken.tokens - left
    return replace(usage, cache_read=(usage.cache_read or 0) + moved, **given) if moved else usage  # type: ignore[arg-type]


def _unpriced(mine: Entry, usual: Entry) -> Iterator[tuple[str, Decimal]]:
    """Where a step has no price: another model is the cause if there is another, else nobody knows."""
    other = mine.turn.model != usual.turn.model
    yield "dearer_model" if other else "unexplained", mine.amount - usual.amount
