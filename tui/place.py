"""A place in the recordings, a run or one of its turns: what is marked, compared, copied, gone on from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A run, or a turn of it."""

    run: str
    turn: int | None = None

    @property
    def written(self) -> str:
        """As every command takes it: ``RUN`` or ``RUN:7``."""
        return self.run if self.turn is None else f"{self.run}:{self.turn}"


@dataclass(frozen=True, slots=True)
class Subject:
    """What the keys y, o and e are about on a screen: a place, and what is selected there.

    Attributes:
        value: The selected text whole (a result, a message, a finding); None where only the place is meant.
        what: What the value is, in two or three words: ``result of get_order``.
        json: The same as decoded JSON, where it has such a form.
        caller: ``file:line`` of the program that called, if known.
    """

    place: Place | None = None
    value: str | None = None
    what: str = ""
    json: object = None
    caller: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which runs a screen is about: those named, else those of a filter text, else all."""

    runs: tuple[str, ...] = ()
    filter: str = ""
