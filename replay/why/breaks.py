"""Where the provider's cache did not hold, as `replay.context` finds it, and what a run lacks that cached nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ...tracer.model import Run, Turn
from ..context import cache

if TYPE_CHECKING:
    from ...tracer.store import Store

LEAST = 1024
"""Tokens below which nothing is said of a run that cached nothing: the smallest prefix that providers cache."""


@dataclass(frozen=True, slots=True)
class Break:
    """A cache that did not hold at a turn.

    Attributes:
        tokens: Tokens that the turn before had left in the cache and that this one paid in full, or to write, again.
        message: Number of the first message of the request that changed, None when it was no message.
        what: What changed, in a few words.
    """

    tokens: int
    message: int | None = None
    what: str = ""


def cache_breaks(store: Store, run: Run, turns: Sequence[Turn]) -> dict[int, Break]:
    """The breaks of a run that lost tokens, by turn number."""
    by_number = {t.number: t for t in turns}
    found, before = {}, None
    for step in store.steps(run.id, max(by_number, default=0)):
        turn = by_number.get(step.number)
        if before is not None and turn is not None:
            broken = cache.broken(before, (step, turn), lambda turn, usage: None)
            if broken is not None and (lost := min(broken.tokens or 0, _in_full(turn))):
                found[turn.number] = Break(lost, broken.message, _words(broken.cause, broken.place, broken.idle_s))
        before = (step, turn) if turn is not None else before
    return found


def uncached(turns: Sequence[Turn]) -> dict[int, Break]:
    """What a cache could have given to a run that used none: all that the turn before had read already."""
    found = {}
    for before, turn in pairwise(turns):
        again = min(before.usage.context or 0, turn.usage.context or 0)
        if again >= LEAST and "compaction" not in turn.flags:
            found[turn.number] = Break(again, what="nothing was cached")
    return found


def _in_full(turn: Turn) -> int:
    usage = turn.usage
    return (usage.input or 0) + (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0)


def _words(cause: str, where: str, idle_s: float | None) -> str:
    if cause == "expired":
        return f"the cache expired after {(idle_s or 0) / 60:.0f} idle minutes"
    if cause == "unknown":
        return "the request only grew, the provider had dropped its cache"
    return f"{where} changed" if cause != "model" else f"the model changed from {where}"
