"""What the loop asks of a toolbox: what tools there are, and one call at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...tracer.model import SideEffect

SEPARATOR = "__"
"""Between a namespace and a tool's name, as wire formats allow it: ``files__read``."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as the model is told of it, and how it may be run.

    Attributes:
        schema: JSON Schema of its arguments (an object); None where nobody knows it.
        side_effect: ``read``, ``poll`` and ``bookkeeping`` may be run again after a transient failure.
        keyed: It takes an idempotency key, so that it may be run again whatever it does.
        timeout: Seconds, None for the policy's.
        origin: How its calls are recorded: live, or stub.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    side_effect: SideEffect = "unknown"
    keyed: bool = False
    timeout: float | None = None
    origin: str = "live"

    @property
    def repeatable(self) -> bool:
        """True when running it twice does no harm, or is noticed by the tool itself."""
        return self.keyed or self.side_effect in ("read", "poll", "bookkeeping")


@dataclass(frozen=True, slots=True)
class ToolAsked:
    """One call.

    Attributes:
        occurrence: 1 for the first call of this tool with these arguments in the run, 2 for the next.
        key: Its idempotency key: the same in every attempt of this call, another for every other call.
        timeout: Seconds it may take.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    turn: int = 0
    occurrence: int = 1
    key: str = ""
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back: text, or content blocks as a provider takes them.

    Attributes:
        error_class: transient, permanent, semantic, denied or cancelled; None when it went well.
        origin: live, recorded or stub.
    """

    content: Any
    is_error: bool = False
    error_class: str | None = None
    origin: str = "live"


class ToolError(Exception):
    """A tool's failure that says more than its text.

    Args:
        message: The cause in one sentence.
        transient: The same call may succeed a little later.
        argument: The argument that is to blame.
        retry: What a valid retry would look like.
        retry_after: Seconds to wait before it, where somebody said so.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        argument: str | None = None,
        retry: str | None = None,
        retry_after: float | None = None,
        error_class: str | None = None,
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.argument = argument
        self.retry = retry
        self.retry_after = retry_after
        self.error_class = error_class or ("transient" if transient else "permanent")


class TooLate(TimeoutError):
    """Our own limit of time, not the tool's: whoever finds first that it is over, the model is told the same."""


class ToolMiss(Exception):
    """No source has a result for this call (a recording that does not hold it); the text names the nearest."""


class Toolbox(Protocol):
    """Runs tools."""

    def definitions(self) -> Sequence[Definition]:
        """The tools it can run."""

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """A result that is there already, without running anything; None when the tool must run."""

    def call(self, asked: ToolAsked) -> ToolResult:
        """Runs a tool; called from a thread of its own.

        Raises:
            ToolMiss: It cannot run this call at all.
            Exception: The tool failed.
        """

    def spec(self) -> dict[str, Any]:
        """How to make it again, as JSON; ``{"kind": ...}``."""

    def close(self) -> None:
        """Ends what it started."""


@dataclass(frozen=True, slots=True)
class NoTools:
    """A toolbox without tools."""

    def definitions(self) -> Sequence[Definition]:
        """None."""
        return ()

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """None."""
        return None

    def call(self, asked: ToolAsked) -> ToolResult:
        """Always a miss."""
        raise ToolMiss(f"nothing here runs {asked.name}")

    def spec(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "none"}

    def close(self) -> None:
        """Nothing to end."""


@dataclass(frozen=True, slots=True)
class Stub:
    """Always the same result for a tool. ``of`` says which tool it stands for."""

    of: str
    content: Any
    is_error: bool = False
    origin: str = field(default="stub", init=False)

    def definitions(self) -> Sequence[Definition]:
        """The tool that it stands for; its schema is the recording's."""
        return (Definition(self.of, side_effect="read", origin=self.origin),)

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """None: the call is checked like one that runs."""
        return None

    def call(self, asked: ToolAsked) -> ToolResult:
        """The given result."""
        return ToolResult(self.content, self.is_error, origin=self.origin)

    def spec(self) -> dict[str, Any]:
        """With the result."""
        return {"kind": "stub", "of": self.of, "content": self.content, "is_error": self.is_error}

    def close(self) -> None:
        """Nothing to end."""
