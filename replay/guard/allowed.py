"""What a loop's author allows, as plain facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..cycles import Declared
from .limits import Caps

Rung = Literal["note", "notice", "block", "stop"]
RUNGS = ("note", "notice", "block", "stop")
"""How far the ladder may go; each includes those before it."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """See `Guard` for what each means.

    Attributes:
        goal: ``goal(text, run id)``; ``goal_is_async``: it gives a coroutine.
        told: Where the limits come from, for the record.
    """

    caps: Caps = field(default_factory=Caps)
    cycles: Rung = "note"
    goal: Callable[[str, str], Any] | None = None
    goal_is_async: bool = False
    on_goal_failed: Literal["feed", "end"] = "feed"
    goal_tries: int = 3
    declared: Declared = field(default_factory=Declared)
    told: str | None = None

    def allows(self, rung: Rung) -> bool:
        """Whether the ladder may go as far as this."""
        return RUNGS.index(rung) <= RUNGS.index(self.cycles)
