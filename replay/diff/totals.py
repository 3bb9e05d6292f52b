"""What two sides come to: turns, calls, errors, tokens, money and time, of the turns that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...tracer.model import Turn, Usage, add_usage


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over turns, inherited ones among them (they are part of what is compared).

    Attributes:
        cost_usd: Sum over the priced turns, None when none is; ``unpriced_turns`` tells how many are missing.
        generate_ms, execute_ms: Sums of what is known, None when nothing is.
        context: Tokens of the last turn's window.
    """

    turns: int
    tool_calls: int
    errors: int
    usage: Usage
    cost_usd: float | None
    unpriced_turns: int
    generate_ms: float | None
    execute_ms: float | None
    context: int | None


def totals(turns: Sequence[Turn]) -> Totals:
    """The totals of some turns."""
    calls = [c for t in turns for c in t.tool_calls]
    costs = [t.cost_usd for t in turns if t.cost_usd is not None]
    return Totals(
        turns=len(turns),
        tool_calls=len(calls),
        errors=sum(1 for c in calls if c.is_error) + sum(1 for t in turns if t.status == "error"),
        usage=add_usage([t.usage for t in turns]),
        cost_usd=sum(costs) if costs else None,
        unpriced_turns=len(turns) - len(costs),
        generate_ms=_sum([t.generate_ms for t in turns]),
        execute_ms=_sum([t.execute_ms for t in turns]),
        context=turns[-1].usage.context if turns else None,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None
