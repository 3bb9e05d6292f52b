"""What a rule is and what it says: findings, and unknowns where the recording lacks what the rule would need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..cycles import Waste

if TYPE_CHECKING:
    from .facts import RunFacts
    from .group import Group

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a loop, seen in one run.

    Attributes:
        rule: Id of the rule, ``L05``.
        first_turn, last_turn: Turn numbers, both included; 0 where no turn is meant.
        message: One sentence: what is wrong, with its figures.
        evidence: Short quotes of the recording.
        wasted: What went into it for nothing; None inside where the recording does not say.
        confidence: 0 to 1.
        fix: What to do, in one or two sentences.
        fingerprint: Equal for the same fault of the same loop in another run of it; filled by `lint`.
        caller: ``file:line`` of the loop's code that made the call of its first turn, where known; filled by `lint`.
    """

    rule: str
    severity: Severity
    run: str
    first_turn: int
    last_turn: int
    message: str
    evidence: tuple[str, ...] = ()
    wasted: Waste = field(default_factory=Waste)
    confidence: float = 0.9
    fix: str = ""
    fingerprint: str = ""
    caller: str | None = None

    @property
    def url(self) -> str:
        """The rule's page, as a path in the repository."""
        return f"docs/rules/{self.rule}.md"

    def as_json(self) -> dict[str, Any]:
        """The fields of the JSON output."""
        return {**asdict(self), "evidence": list(self.evidence), "url": self.url}


@dataclass(frozen=True, slots=True)
class Unknown:
    """A rule cannot judge a run: these fields are not in the recording."""

    rule: str
    run: str
    missing: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The fields of the JSON output."""
        return {"rule": self.rule, "run": self.run, "missing": list(self.missing)}


Said = Finding | Unknown


class Rule(Protocol):
    """A rule that looks at one run; a module fits. ``THRESHOLDS`` (optional): the numbers that settings may change."""

    ID: str
    TITLE: str

    def check(self, facts: RunFacts) -> Iterator[Said]:
        """What it finds in the run; nothing when all is well."""


class GroupRule(Protocol):
    """A rule that looks at many runs at once (one limit for all of them)."""

    ID: str
    TITLE: str

    def check_group(self, group: Group) -> Iterator[Said]:
        """What it finds among the runs."""


def thresholds_of(rule: object) -> Mapping[str, float]:
    """The numbers of a rule that settings may change, with their defaults."""
    found = getattr(rule, "THRESHOLDS", {})
    return found if isinstance(found, Mapping) else {}


def quote(text: str, limit: int = 160) -> str:
    """A text as evidence: on one line, short, its cut marked."""
    flat = " ".join(text[: limit * 4].split())
    return flat if len(flat) <= limit and len(text) <= limit * 4 else flat[:limit].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """``1 turn``, ``3 turns``, ``2,000 calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def span(numbers: list[int] | tuple[int, ...]) -> str:
    """Turn numbers for people: ``turn 3``, ``turns 3 to 9``, ``turns 3, 7 and 9``."""
    found = sorted(set(numbers))
    if not found:
        return "no turn"
    if len(found) == 1:
        return f"turn {found[0]}"
    if found[-1] - found[0] == len(found) - 1 and len(found) > 2:
        return f"turns {found[0]} to {found[-1]}"
    if len(found) > 6:
        return f"{len(found)} turns from {found[0]} to {found[-1]}"
    return f"turns {', '.join(map(str, found[:-1]))} and {found[-1]}"
