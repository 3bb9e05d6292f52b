"""What is open in this process right now: runs, their turns, the calls that wait for a result."""

from __future__ import annotations

import itertools
import os
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import facts
from .bodies import Body
from .canonical import canonical
from .providers.answer import Answer, AnswerCall

if TYPE_CHECKING:
    from .spans import RunSpan, TurnSpan

_order = itertools.count()


@dataclass(slots=True, eq=False, repr=False)
class PendingCall:
    """A tool call that a response asked for. ``claimed``: a wrapped tool has taken it up.

    ``left``: the tool ended in another context than it began in, which still says that it runs.
    """

    id: str
    name: str
    key: str
    run: OpenRun
    turn: int
    claimed: bool = False
    measured: bool = False
    invented: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class Wording:
    """What a request says, redacted, for one who answers in the model's place (see `substitute.Asked`)."""

    hashes: tuple[str, ...]
    fresh: dict[str, str]
    parts: tuple[str | None, str | None, str | None]
    part_hashes: tuple[str | None, str | None, str | None]
    model: str | None
    stream: bool
    mode: str


@dataclass(slots=True, eq=False, repr=False)
class OpenTurn:
    """A turn while it lasts: from its request until the next request of its run."""

    run: OpenRun
    number: int
    started_at: int
    api: str
    status: str = "open"
    in_flight: bool = False
    strand: tuple[int, int] = (0, 0)
    agent: str | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)
    stop_reason: str | None = None
    end: str | None = None
    error: str | None = None
    error_type: str | None = None
    calls: tuple[AnswerCall, ...] = ()
    span: TurnSpan | None = None
    flags: list[str] = field(default_factory=list)
    invented: int = 0
    chain: Chain | None = None
    content: tuple[tuple[str, ...], Any, Any] | None = None
    wording: Wording | None = None
    answer: Answer | None = None
    served: bool | None = None
    """Whether the last answer came from one who stands in for the model; None when nobody does."""

    @property
    def may_be_retried(self) -> bool:
        """False when its last attempt was refused for what it asked (400, 401, ...): asking again is a new call.

        A redirect is followed by the HTTP library, as another attempt.
        """
        status = self.attempts[-1].get("status") if self.attempts else None
        return status is None or 300 <= status < 400 or status in (408, 409, 425, 429) or status >= 500


@dataclass(slots=True, eq=False, repr=False)
class Chain:
    """One conversation of a run as its last request had it, with the answer that followed."""

    run: OpenRun
    api: str
    body: Body | None = None
    hashes: tuple[str, ...] = ()
    parts: tuple[str | None, str | None, str | None] = (None, None, None)
    part_texts: tuple[str | None, str | None, str | None] | None = None
    tools_key: str | None = None
    turn: int = 0
    answer: Answer | None = None
    answer_text: str | None = None
    generation: int = 0
    touched: int = field(default_factory=lambda: next(_order))
    counted: int = 0

    @property
    def size(self) -> int:
        """Bytes that are kept of it."""
        return len(self.body.whole) if self.body else 0

    def touch(self) -> None:
        """This conversation was used just now."""
        self.touched = next(_order)


@dataclass(slots=True, eq=False, repr=False)
class OpenRun:
    """A run while its loop may go on.

    ``explicit`` runs were opened by `run()` and end with its block; the others end at a terminal
    response and open again when a later request extends them.
    """

    id: str
    explicit: bool
    name: str | None = field(default_factory=facts.name)
    session: str | None = None
    agent: str | None = None
    source: str | None = None
    parent: dict[str, Any] | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    above: Where | None = None
    turns: int = 0
    last: OpenTurn | None = None
    chain: Chain | None = None
    chains: list[Chain] = field(default_factory=list)
    pending: dict[str, PendingCall] = field(default_factory=dict)
    children: dict[str, list[OpenRun]] = field(default_factory=dict)
    ended: bool = False
    span: RunSpan | None = None
    generation: int = -1
    pid: int = field(default_factory=os.getpid)
    observers: tuple[Any, ...] = ()
    """`observers.Observer`s: who watches it, its own first, then those of the runs around it."""
    stopped: tuple[str, str] | None = None
    """Status and reason that one of them stopped it with."""

    @property
    def in_flight(self) -> bool:
        """True while a model call of this run has not come back."""
        return self.last is not None and self.last.in_flight

    def follow(self, before: OpenRun) -> None:
        """Goes on where another run was over: a new prompt in the same conversation."""
        self.name, self.session, self.agent = before.name, before.session, before.agent
        self.parent = {"run": before.id, "turn": before.turns, "call": None, "kind": "resume"}

    def descend(self, above: OpenRun, call: PendingCall | None) -> None:
        """Was started inside another run, by a call's tool where it is known."""
        self.name, self.session, self.observers = call.name if call else above.name, above.session, above.observers
        turn = call.turn if call else above.turns or None
        self.parent = {"run": above.id, "turn": turn, "call": call.id if call else None, "kind": "sub-agent"}
        above.children.setdefault(call.id if call else "", []).append(self)


@dataclass(frozen=True, slots=True)
class Where:
    """The place in the code's context: the run, and the call whose tool is running, if any."""

    run: OpenRun
    call: PendingCall | None = None


where: ContextVar[Where | None] = ContextVar("looptape_where", default=None)
unrecorded: ContextVar[bool] = ContextVar("looptape_unrecorded", default=False)
"""Set where somebody else records the model call that is made here (the built-in loop does so itself)."""
strand_given: ContextVar[tuple[int, int] | None] = ContextVar("looptape_strand", default=None)
"""Set where requests of one strand come on any thread (behind the proxy); see `routing.strand`."""


def leave(token: Token[Where | None]) -> bool:
    """Back to the place before; False from another context than entered (a generator's finaliser), where it stays."""
    try:
        where.reset(token)
    except ValueError:
        return False
    return True


def call_key(name: str, arguments: Any) -> str:
    """What makes two calls the same: tool name and canonical arguments."""
    return f"{name}\x00{canonical(arguments)}"
