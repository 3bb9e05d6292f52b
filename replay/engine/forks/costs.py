"""What a fork with a live model may cost, before it runs: a turn, and all the turns that its limits allow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ....tracer.clock import now
from ....tracer.model import Turn, Usage
from ....tracer.pricing import price
from ....tracer.providers import by_api
from .order import Ready

_OUTPUT = 500
"""Tokens of an answer where the recording tells none."""
_SAID = 4
"""Characters of a request that make a token, where the recording tells no usage."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking the model may cost, in dollars of the list price; tools cost nothing here.

    Attributes:
        turn: The first turn, with nothing read from a cache.
        most: All turns that are allowed, each longer than the one before by what turns added in the recording.
        turns: How many those are; None without a limit.
        limit: The limit of cost, None without one: it is looked at after each turn, so that one turn may pass it.
        why: Why there is no price.
    """

    turn: float | None = None
    most: float | None = None
    turns: int | None = None
    limit: float | None = None
    why: str = ""

    def words(self) -> str:
        """``about $0.09 a turn, stops at 50 turns or $1.00; at worst about $1.09``."""
        stops = f"stops at {self.turns} turns" if self.turns is not None else "no limit of turns"
        if self.turn is None:
            return f"no price known ({self.why}); {stops}"
        each = f"about {_usd(self.turn)} a turn"
        if self.limit is not None and (self.most is None or self.limit < self.most):
            return f"{each}, {stops} or {_usd(self.limit)}; at worst about {_usd(self.limit + self.turn)}"
        worst = f"; at worst about {_usd(self.most)}" if self.most is not None else ""
        return f"{each}, {stops}{worst}"


def estimate(fork: Ready) -> Estimate | None:
    """What a live model may cost; None when the model is not live."""
    if not fork.model.live:
        return None
    policy = fork.order.policy()
    turns = [t for t in fork.plan.turns if t.usage.context is not None]
    before = [t for t in turns if t.number <= fork.start.turn] or turns[:1]
    context = before[-1].usage.context if before else len(str(fork.start.body)) // _SAID
    growth = max(0.0, _median([b - a for a, b in pairwise(t.usage.context or 0 for t in turns)]))
    answer = _answer(fork, turns)
    count = policy.max_turns
    last = (count or 1) - 1
    sums = (count or 1) * (context or 0) + growth * last * (last + 1) / 2
    turn, why = _price(fork, context or 0, answer)
    most, _ = _price(fork, round(sums), answer * (count or 1))
    return Estimate(turn, None if count is None else most, count, policy.max_cost_usd, why)


def _answer(fork: Ready, turns: Sequence[Turn]) -> int:
    """Tokens of the longest answer so far, as far as the request allows them."""
    most = fork.start.body.get("max_tokens")
    seen = max((t.usage.output or 0 for t in turns), default=0) or _OUTPUT
    return min(seen, most) if isinstance(most, int) and not isinstance(most, bool) else seen


def _price(fork: Ready, read: int, written: int) -> tuple[float | None, str]:
    provider = by_api(fork.start.api).NAME
    usage = Usage(input=read, output=written, origin="estimated")
    found = price(provider, fork.model_name, usage, now(), url=fork.model.spec.get("base_url"))
    return (None, found.why or "unknown") if found.usd is None else (float(found.usd), "")


def _median(values: Sequence[int]) -> float:
    return float(statistics.median(values)) if values else 0.0


def _usd(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.01 else f"${amount:.4f}"
