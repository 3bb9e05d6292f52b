"""What a run has used so far, and which limit that reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...tracer.clock import now
from ...tracer.model import Usage
from ...tracer.prices import Served
from ...tracer.pricing import price
from .outcome import Ending
from .policy import Policy


@dataclass(slots=True)
class Spending:
    """Turns, tokens, money and failures of one run's own turns."""

    policy: Policy
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)
    unpriced: str | None = None
    uncounted: bool = False
    failed_in_a_row: int = 0
    goal_tries: int = 0

    def take_over(self, counted: Mapping[str, Any]) -> None:
        """What the run had used before it was resumed."""
        self.turns, self.calls = int(counted.get("turns", 0)), int(counted.get("calls", 0))
        self.tokens = int(counted.get("tokens", 0))
        for usd in counted.get("usd", ()):
            if usd is None:
                self.unpriced = self.unpriced or "an earlier turn has no price"
            else:
                self.usd += Decimal(str(usd))

    def add(self, usage: Usage, provider: str, model: str | None, how_served: Served | None = None) -> float | None:
        """A model call; gives its price in dollars, None when it has none."""
        self.tokens += (usage.context or 0) + (usage.output or 0)
        self.uncounted = self.uncounted or (usage.context is None and usage.output is None)
        found = price(provider, model, usage, now(), how_served=how_served)
        if found.usd is None:
            self.unpriced = self.unpriced or found.why or "no price"
            return None
        self.usd += found.usd
        return float(found.usd)

    @property
    def cost_usd(self) -> float | None:
        """What was spent; None when a part has no price."""
        return None if self.unpriced is not None else float(self.usd)

    def executed(self, failed: int, calls: int) -> None:
        """The calls of a turn, and how many of them failed."""
        self.calls += calls
        if calls:
            self.failed_in_a_row = self.failed_in_a_row + 1 if failed == calls else 0

    def reached(self, seconds_left: float | None) -> Ending | None:
        """The limit that forbids another turn."""
        policy = self.policy
        if policy.max_turns is not None and self.turns >= policy.max_turns:
            return _limit("turns", f"{self.turns} of {policy.max_turns}")
        if seconds_left is not None and seconds_left <= 0:
            return _limit("seconds", f"{policy.max_seconds:g} s are over")
        if policy.max_errors is not None and self.failed_in_a_row >= policy.max_errors:
            return Ending("errors", "halted", f"every call failed in {self.failed_in_a_row} turns in a row")
        if policy.max_tokens is not None:
            if self.uncounted:
                return _limit("tokens", "an answer tells no usage: the budget cannot be held")
            if self.tokens >= policy.max_tokens:
                return _limit("tokens", f"{self.tokens} of {policy.max_tokens}")
        if policy.max_cost_usd is not None:
            if self.unpriced is not None:
                return _limit("cost", f"{self.unpriced}: the budget cannot be held")
            if self.usd >= Decimal(str(policy.max_cost_usd)):
                return _limit("cost", f"${self.usd:.4f} of ${policy.max_cost_usd:g}")
        return None


def _limit(name: str, detail: str) -> Ending:
    return Ending(name, "limit", detail)
