"""How much a run took: turns, tool calls, tokens and money, and what of it nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from ...tracer.model import Turn
from ...tracer.pricing import turn_price

TOLERATED = ("turns", "tokens", "usd")
"""What has a budget."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run with its sub-agents, or of all runs of a tape.

    Attributes:
        tokens: Input, cache reads, cache writes and output together; None when no turn says any.
        usd: What they cost; None while a billed turn cannot be priced (``usd_known`` has the rest).
        unpriced: Billed turns without a price, and why: model names.
        unmetered: Billed turns that say no usage.
    """

    turns: int = 0
    tool_calls: int = 0
    tokens: int | None = None
    usd: Decimal | None = None
    usd_known: Decimal = Decimal(0)
    unpriced: tuple[str, ...] = ()
    unmetered: int = 0

    def get(self, name: str) -> int | Decimal | None:
        """The figure of that name; tokens are unknown as soon as one billed turn says none."""
        if name == "tokens" and self.unmetered:
            return None
        found: int | Decimal | None = getattr(self, name)
        return found

    def missing(self, name: str) -> str:
        """Why a figure is not known."""
        if name == "tokens" or not self.unpriced:
            return f"{self.unmetered} of {self.turns} turns say no usage"
        models = ", ".join(dict.fromkeys(self.unpriced))
        return f"{len(self.unpriced)} of {self.turns} turns cannot be priced ({models})"


def figures(turns: Iterable[Turn], *, owned: bool = True) -> Figures:
    """The figures of turns.

    Args:
        owned: Leave out the money and tokens of inherited turns (a fork's past); a replay of a test counts them.
    """
    count = calls = tokens = unmetered = 0
    spent, unpriced = Decimal(0), []
    for turn in turns:
        count += 1
        calls += len(turn.tool_calls)
        usage = turn.usage
        metered = usage.input is not None or usage.output is not None
        if (owned and turn.inherited) or not (metered or turn.status == "ok"):
            continue
        tokens += (usage.context or 0) + (usage.output or 0)
        unmetered += not metered
        found = turn_price(turn)
        if found.usd is None:
            unpriced.append(turn.model or turn.request_model or "no model named")
        else:
            spent += found.usd
    return Figures(count, calls, tokens, None if unpriced else spent, spent, tuple(unpriced), unmetered)


def limit(base: int | Decimal, tolerance: Decimal) -> Decimal:
    """The most that a figure may be: its base and the tolerance (0.1 is ten percent) on top."""
    return Decimal(base) * (1 + tolerance)


def shown(name: str, value: int | Decimal | None) -> str:
    """A figure for people."""
    if value is None:
        return "not known" if name != "usd" else "not priced"
    return f"${Decimal(value):.6f}" if name == "usd" else f"{int(value):,}"
