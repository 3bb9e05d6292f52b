"""The limits of a guarded run: what it has used, its sub-agents included, and which cap that reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ...tracer import quiet
from ...tracer.clock import monotonic, now
from ...tracer.model import Usage

CAPS = ("turns", "seconds", "tokens", "cost_usd", "consecutive_errors")
"""Those that a run records with its limits."""

Reached = tuple[str, str]
"""A reason of `LoopStopped` and its sentence."""


@dataclass(frozen=True, slots=True)
class Caps:
    """What the author allows; None: no such limit. See `Guard`."""

    turns: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    consecutive_errors: int | None = None
    same_error: int | None = None


@dataclass(slots=True)
class Spent:
    """Time, tokens and money of a run with its sub-agents. Resumed runs go on counting, but the time."""

    caps: Caps
    tokens: int = 0
    usd: Decimal = Decimal(0)
    since: float = field(default_factory=monotonic)

    def add(self, usage: Usage, provider: str, model: str | None) -> None:
        """A model call. What cannot be counted is said once: the other limits hold all the same."""
        if self.caps.tokens is not None:
            if usage.context is None and usage.output is None:
                quiet.say("an answer tells no usage: the guard's token limit cannot count it")
            self.tokens += (usage.context or 0) + (usage.output or 0)
        if self.caps.cost_usd is not None:
            from ...tracer.pricing import price

            found = price(provider, model, usage, now())
            if found.usd is None:
                quiet.say(f"{found.why or 'no price is known'}: the guard's cost limit cannot count it")
            self.usd += found.usd or 0

    def reached(self) -> Reached | None:
        """The cap that forbids another model call."""
        caps, seconds = self.caps, monotonic() - self.since
        if caps.seconds is not None and seconds >= caps.seconds:
            return "seconds", f"{seconds:.1f} s of {caps.seconds:g} are over"
        if caps.tokens is not None and self.tokens >= caps.tokens:
            return "tokens", f"{self.tokens} of {caps.tokens}"
        if caps.cost_usd is not None and self.usd >= Decimal(str(caps.cost_usd)):
            return "cost", f"${self.usd:.4f} of ${caps.cost_usd:g}"
        return None

    def as_json(self) -> dict[str, Any]:
        """What a run that goes on from this one has to know."""
        return {"tokens": self.tokens, "usd": str(self.usd)}

    def take_over(self, saved: Mapping[str, Any]) -> None:
        """Goes on counting from what `as_json` said."""
        self.tokens, self.usd = int(saved.get("tokens") or 0), Decimal(str(saved.get("usd") or 0))


@dataclass(slots=True)
class Errors:
    """Failures in a row of one run. ``same``: tool and kind of error to the turns in a row that had it."""

    in_a_row: int = 0
    same: dict[str, int] = field(default_factory=dict)
    words: str = ""

    def turn(self, failed: Mapping[str, str], succeeded: frozenset[str], calls: int, failures: int) -> None:
        """A turn whose calls are over.

        Args:
            failed: Kind of error (with its tool, after a colon) to the error's words.
            succeeded: Tools of which a call went well.
        """
        if not calls:
            return
        self.in_a_row = self.in_a_row + 1 if failures == calls else 0
        self.same = {k: n for k, n in self.same.items() if k.partition(":")[0] not in succeeded}
        for kind, said in failed.items():
            self.same[kind] = self.same.get(kind, 0) + 1
            self.words = said
        while len(self.same) > 64:
            del self.same[next(iter(self.same))]

    def reached(self, caps: Caps) -> Reached | None:
        """The cap that forbids another turn."""
        if caps.consecutive_errors is not None and self.in_a_row >= caps.consecutive_errors:
            return "consecutive-errors", f"every call failed in {self.in_a_row} turns in a row"
        most = max(self.same, key=lambda k: self.same[k], default=None)
        if caps.same_error is not None and most is not None and self.same[most] >= caps.same_error:
            tool = most.partition(":")[0]
            return "same-error", f"{tool} failed in the same way in {self.same[most]} turns in a row: {self.words}"
        return None
