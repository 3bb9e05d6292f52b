"""What fills the window at a turn: by origin, how it grew, what is stale, repeated, removed, and where the cache broke."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from ...tracer.errors import UsageError
from ...tracer.model import Turn, Usage
from . import cache as caching
from .answers import Break, Cache, Context, Growth, Removed, Repeat, Share, Stale
from .pieces import Entry
from .stale import stale
from .sweep import Sweep, by_key, total_of

if TYPE_CHECKING:
    from ...tracer.store import Store

__all__ = ["Break", "Cache", "Context", "Growth", "Removed", "Repeat", "Share", "Stale", "context"]

REPEATED = 60
"""Characters from which a text that stands in the window twice counts as repeated."""


def context(store: Store, run: str, number: int) -> Context:
    """What fills the window of a turn, in one pass over the run up to it.

    Raises:
        UsageError: The run has no such turn (``no-such-turn``).
    """
    from ...tracer.store.quiet_gc import fewer_collections

    with fewer_collections():
        return _context(store, run, number)


def _context(store: Store, run: str, number: int) -> Context:
    from ...tracer.pricing import context_window

    turns = store.said(run)
    by_number = {t.number: t for t in turns}
    if number not in by_number:
        raise UsageError("no-such-turn", f"run {run} has no turn {number}", f"It has {len(turns)} turns")
    sweep, breaks, before = Sweep(turns), [], None
    for step in store.steps(run, number):
        sweep.go(step)
        turn = by_number.get(step.number)
        if before is not None and turn is not None and (found := caching.broken(before, (step, turn), _price)):
            breaks.append(found)
        before = (step, turn) if turn is not None else before
    turn = by_number[number]
    tokens, how = total_of(turn, sweep.ledger)
    shares = _shares(sweep, tokens, how)
    pieces = sweep.pieces()
    for piece in pieces:
        piece.tokens *= tokens / sweep.ledger.total if sweep.ledger.total else 0.0
    prompt = [p for p in pieces if p.origin in ("system", "tools", "user")]
    return Context(
        run,
        number,
        turn.model or turn.request_model,
        tokens,
        how,
        context_window(turn.provider, turn.model or turn.request_model),
        round(sweep.ledger.rate, 3),
        shares,
        tuple(sweep.growth),
        tuple(stale(sweep.entries, prompt, turns, number)),
        tuple(_repeats(sweep.entries)),
        tuple(sweep.removed),
        _cache(turn, [by_number[n] for n in sorted(by_number) if n <= number]),
        tuple(breaks),
        len(sweep.entries),
        turn.message_count is not None,
        tuple(round(sum(p.tokens for p in entry.pieces)) for entry in sweep.entries),
    )


def _shares(sweep: Sweep, tokens: int, how: str) -> tuple[Share, ...]:
    from .ledger import apportion
    from .pieces import ORIGINS

    counts = by_key(sweep.pieces())
    scaled = how != "estimated" and abs(sweep.ledger.total - tokens) > 0.5
    shares = [
        Share(key[0], key[1], count, sweep.ledger.how(key, scaled=scaled), counts.get(key, 0))
        for key, count in apportion(sweep.ledger.sums, tokens).items()
    ]
    if tokens and not any(s.tokens for s in shares):  # usage without content: nobody knows what was read
        return (Share("unrecorded", None, tokens, "apportioned" if shares else how, 0), *shares)
    return tuple(sorted(shares, key=lambda s: (-s.tokens, ORIGINS.index(s.origin), s.tool or "")))


def _repeats(entries: list[Entry]) -> list[Repeat]:
    """Texts that stand in the window more than once, by what all copies but one weigh."""
    seen: dict[str, list[tuple[int, str, str | None, float]]] = {}
    for place, entry in enumerate(entries, 1):
        for piece in entry.pieces:
            if len(piece.text) >= REPEATED:
                seen.setdefault(piece.text, []).append((place, piece.origin, piece.tool, piece.tokens))
    found = []
    for text, copies in seen.items():
        if len(copies) > 1:
            wasted = sum(c[3] for c in copies) * (len(copies) - 1) / len(copies)
            places = tuple(dict.fromkeys(c[0] for c in copies))
            found.append(Repeat(copies[0][1], copies[0][2], text, len(copies), round(wasted), places))
    return sorted(found, key=lambda r: -r.tokens)


def _cache(turn: Turn, until: list[Turn]) -> Cache:
    usage = turn.usage
    writes = [w for w in (usage.cache_write_5m, usage.cache_write_1h) if w is not None]
    read = sum(t.usage.cache_read or 0 for t in until)
    whole = sum(t.usage.context or 0 for t in until)
    return Cache(usage.cache_read, sum(writes) if writes else None, usage.input, read, whole)


def _price(turn: Turn, usage: Usage) -> Decimal | None:
    from ...tracer.pricing import turn_price

    return turn_price(turn, usage).usd
