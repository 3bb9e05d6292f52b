"""What `context` answers: shares by origin, growth, what is stale, repeated or removed, and where the cache broke."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """Tokens of one origin (and tool). ``how``: recorded, apportioned or estimated; ``pieces``: how many parts."""

    origin: str
    tool: str | None
    tokens: int
    how: str
    pieces: int


@dataclass(frozen=True, slots=True)
class Growth:
    """The window of a turn: its tokens (``how`` as in the usage, or estimated), by origin, and its messages.

    ``added`` and ``dropped`` count messages against the turn before.
    """

    turn: int
    tokens: int
    how: str
    shares: Mapping[str, int]
    messages: int
    added: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Stale:
    """A result in the window that nothing refers to any more.

    Attributes:
        turn: The turn that called, None where the run did not make the call.
        last_used: The last turn whose answer refers to it, None when none does.
        superseded_by: The turn that made the same call again.
        carried: Turns that have carried it until now.
    """

    call: str | None
    tool: str | None
    turn: int | None
    tokens: int
    last_used: int | None
    superseded_by: int | None
    carried: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """A text that stands in the window more than once. ``tokens``: of all copies but one; ``messages``: numbers."""

    origin: str
    tool: str | None
    text: str
    times: int
    tokens: int
    messages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """What left the window at a turn. ``kind``: compaction, shortened or edited; ``instead``: tokens put in its place."""

    turn: int
    kind: str
    messages: int
    tokens: int
    shares: Mapping[str, int]
    instead: int


@dataclass(frozen=True, slots=True)
class Break:
    """A turn that could not go on with the cached prefix of the turn before.

    Attributes:
        cause: tools, system, message, model, params, expired or unknown.
        place: What changed first, as numbered on screen: ``messages[3] part 2``, a tool's name.
        message, part: Their numbers from 1, where a message changed.
        tokens: Tokens read again that the cache had; None when the usage does not tell.
        usd: What that cost more than reading them from the cache; None when not priced.
        idle_s: Seconds since the answer of the turn before.
    """

    turn: int
    cause: str
    place: str
    message: int | None = None
    part: int | None = None
    tokens: int | None = None
    usd: float | None = None
    idle_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cache:
    """Tokens of a turn that came from a cache, were written to it, or neither; and the run's share until there."""

    read: int | None
    written: int | None
    fresh: int | None
    run_read: int
    run_context: int


@dataclass(frozen=True, slots=True)
class Context:
    """What fills the window of a turn.

    Attributes:
        tokens: Recorded total, or the sum of estimates; ``how`` tells: recorded, derived, estimated.
        window: Tokens that the model can read at most, None when the price list does not say.
        rate: Recorded tokens to one by the estimator, over this run.
        recorded: False when the turn's request was not recorded.
        by_message: Tokens of every message of the window, in order.
    """

    run: str
    turn: int
    model: str | None
    tokens: int
    how: str
    window: int | None
    rate: float
    shares: tuple[Share, ...]
    growth: tuple[Growth, ...]
    stale: tuple[Stale, ...]
    repeats: tuple[Repeat, ...]
    removed: tuple[Removed, ...]
    cache: Cache
    breaks: tuple[Break, ...]
    messages: int
    recorded: bool = True
    by_message: tuple[int, ...] = ()
