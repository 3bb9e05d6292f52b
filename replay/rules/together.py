"""What findings wasted together: two that tell of the same turns count once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..cycles import Waste
from .rule import Finding


def together(findings: Iterable[Finding]) -> Waste:
    """The waste of all findings; of those of a run whose turns overlap only the heaviest counts, so it is a lower bound."""
    by_run: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.wasted != Waste():
            by_run.setdefault(finding.run, []).append(finding)
    return added([heaviest(some).wasted for of_run in by_run.values() for some in overlapping(of_run)])


def overlapping(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings of one run in groups whose turns meet; one that means no turn means all of them."""
    found: list[list[Finding]] = []
    reach = -1
    for one in sorted(findings, key=lambda f: f.first_turn):
        if found and one.first_turn <= reach:
            found[-1].append(one)
        else:
            found.append([one])
        reach = max(reach, one.last_turn if one.first_turn else 10**9)
    return found


def heaviest(findings: Sequence[Finding]) -> Finding:
    """The finding that wasted most: by money, then by tokens, turns and time."""
    return max(findings, key=lambda f: (f.wasted.usd or 0, f.wasted.tokens or 0, f.wasted.turns, f.wasted.seconds or 0))


def added(wastes: Sequence[Waste]) -> Waste:
    """The sum; what no part knows stays not known."""

    def total(name: str) -> float | None:
        known = [v for w in wastes if (v := getattr(w, name)) is not None]
        return sum(known) if known else None

    tokens = total("tokens")
    return Waste(sum(w.turns for w in wastes), None if tokens is None else int(tokens), total("usd"), total("seconds"))
