"""How a run of the built-in loop ended, and how several of them spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REASONS = (
    "model", "turns", "seconds", "tokens", "cost", "errors", "goal", "cycle", "user", "context", "model-error",
    "model-limit", "miss", "bad-answer", "consecutive-errors", "same-error",
)  # fmt: skip
"""Why a run ended; ``model`` is the model's own stop, ``miss`` a request or call that a recording does not hold."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the loop is over: one of `REASONS`, the run's status, and one sentence."""

    reason: str
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run.

    Attributes:
        run: Its id.
        turns: Turns of its own.
        cost_usd: List price of its model calls; None when one of them has no price.
        verdict: What the goal check said last: ``pass``, ``fail``, or None without one.
        text: The last text of the model.
    """

    run: str
    reason: str
    status: str
    detail: str
    turns: int
    calls: int
    tokens: int
    cost_usd: float | None
    text: str | None
    verdict: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Spread:
    """How the outcomes of one fork, run several times, lie apart.

    Attributes:
        outcomes: Each of them, in the order they were started.
        reasons: End reason to count.
        turns, cost_usd: (least, median, most); cost is None when a run has no price.
        texts: Groups of equal last texts, the largest first: text and the ids of its runs.
        passed, checked: How many passed the check, of how many that were checked.
        failures: Samples that could not run at all: one line each.
    """

    outcomes: tuple[Outcome, ...]
    reasons: Mapping[str, int]
    turns: tuple[float, float, float] | None
    cost_usd: tuple[float, float, float] | None
    texts: tuple[tuple[str, tuple[str, ...]], ...]
    passed: int = 0
    checked: int = 0
    failures: tuple[str, ...] = field(default=())

    @property
    def pass_rate(self) -> float | None:
        """Passed of checked, None without a check."""
        return self.passed / self.checked if self.checked else None

    def as_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "samples": len(self.outcomes),
            "outcomes": [o.as_json() for o in self.outcomes],
            "reasons": dict(self.reasons),
            "turns": _range(self.turns),
            "cost_usd": _range(self.cost_usd),
            "texts": [{"text": text, "runs": list(runs)} for text, runs in self.texts],
            "passed": self.passed,
            "checked": self.checked,
            "pass_rate": self.pass_rate,
            "failures": list(self.failures),
        }


def _range(given: tuple[float, float, float] | None) -> dict[str, float] | None:
    return None if given is None else dict(zip(("least", "median", "most"), given, strict=True))
