"""What may stand in for the model and the tools of this process: a replay installs it, the seams ask it.

Nothing here knows what a replay is: the transports and wrapped tools ask whoever is installed, and send or
run as always where the answer is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .live import OpenRun, OpenTurn
from .providers import Provider


@dataclass(frozen=True, slots=True)
class Asked:
    """A model call that is about to be made, as recording has read it.

    Attributes:
        turn: The turn of the run that is being recorded now; ``run`` is its run.
        attempt: 1 for the first sending of this request, 2 for its first retry.
        raw: The request's body as it would be sent.
        hashes: Blob hash of every message of the request, those kept from the conversation before included.
        fresh: Blob hash to redacted JSON text, of the messages that are new.
        parts: Redacted JSON texts of system, tools and parameters; None where there is none.
        mode: ``full``, ``thread`` or ``previous_response``: whether the server holds earlier messages.
        part_hashes: Blob hashes of ``parts``.
    """

    provider: Provider
    url: str
    headers: Mapping[str, str]
    raw: bytes
    run: OpenRun
    turn: OpenTurn
    attempt: int
    hashes: tuple[str, ...]
    fresh: Mapping[str, str]
    parts: tuple[str | None, str | None, str | None]
    model: str | None
    stream: bool
    mode: str
    part_hashes: tuple[str | None, str | None, str | None] = (None, None, None)


class Hold(Protocol):
    """Keeps an answer back until those that were there earlier have been given."""

    def wait(self) -> None:
        """Returns when the answer may be given; never later than its own patience."""

    async def wait_async(self) -> None:
        """The same for a coroutine."""

    def release(self) -> None:
        """The answer has been given whole (or dropped): the next may go. Safe to call twice."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in place of the server's.

    Attributes:
        status: HTTP status; None when no answer came at all, then ``error`` is raised at once.
        chunks: The body in the pieces that the program shall read, without content-encoding.
        error: Raised after the last chunk (a cut stream), or instead of any answer.
    """

    status: int | None
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[bytes, ...] = ()
    error: ReplyError | None = None
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class ReplyError:
    """A transport's exception as it was recorded: the name of its class in the client's own HTTP library, its words."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolAsked:
    """A wrapped tool that is about to run. ``call`` is its id, ``turn`` the turn that asked for it, when known.

    ``side_effect``: what its decorator declares.
    """

    name: str
    arguments: Any
    run: OpenRun | None = None
    turn: int | None = None
    call: str | None = None
    side_effect: str | None = None


@dataclass(frozen=True, slots=True)
class ToolReply:
    """A result in place of the tool's: what it returned, or the exception that it raises. ``origin``: recorded, stub.

    ``gave``: as the tape's ``call_end`` says it, where a plain function gave back a coroutine or the like.
    """

    value: Any = None
    error: BaseException | None = None
    origin: str = "recorded"
    hold: Hold | None = None
    gave: str | None = None


class Substitute(Protocol):
    """Stands in for the model and the tools. Whatever it raises that is a `LooptapeStop` reaches the program."""

    def prepare(self, provider: Provider, raw: bytes) -> bytes:
        """The request as it shall be recorded and sent: the same bytes, or with another model's name."""

    def answer(self, asked: Asked) -> Reply | None:
        """The answer to give; None to send the request for real."""

    def tool(self, asked: ToolAsked) -> ToolReply | None:
        """The result to give; None to run the tool."""

    def opened(self, run: OpenRun) -> None:
        """A run is about to be written: its source and parent may be set."""


@dataclass(slots=True)
class _State:
    substitute: Substitute | None = None
    tools: set[str] = field(default_factory=set)
    dispatchers: int = 0


_state = _State()


def install(substitute: Substitute | None) -> Substitute | None:
    """Puts a substitute in place (None: nobody stands in) and gives the former one."""
    former, _state.substitute = _state.substitute, substitute
    return former


def installed() -> Substitute | None:
    """Who stands in, None in every ordinary process."""
    return _state.substitute


def register(name: str | None) -> None:
    """Notes a wrapped tool; None for a dispatcher, which may run any."""
    if name is None:
        _state.dispatchers += 1
    else:
        _state.tools.add(name)


def registered() -> tuple[frozenset[str], bool]:
    """Names of the tools that are wrapped in this process, and whether a dispatcher is."""
    return frozenset(_state.tools), _state.dispatchers > 0
