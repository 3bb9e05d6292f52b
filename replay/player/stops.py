"""Why a replay stopped: a request or call that the recording does not have, unwrapped tools, a cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...tracer.errors import LooptapeStop


@dataclass(frozen=True, slots=True)
class Miss:
    """What was asked and is not recorded.

    Attributes:
        run, turn: The recorded turn it was compared with (the turn that would have been next).
        path: JSONPath in the request's body, as ``$.messages[0].content``; ``NAME.ARGUMENT`` for a tool call.
        paths: Every differing path, ``path`` first.
        recorded, got: Both shortened; None where there is nothing.
        nearest: The recorded call that is most alike.
        cure: What to do.
        what: One sentence that says what missed.
    """

    run: str | None
    turn: int | None
    path: str | None
    recorded: str | None
    got: str | None
    nearest: str | None
    cure: str
    what: str
    paths: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The miss as short lines."""
        found = [self.what]
        if self.path is not None:
            more = len(self.paths) - 1
            found.append(
                f"  at        {self.path}" + (f" (and {more} more: {_few(self.paths[1:])})" if more > 0 else "")
            )
        if self.recorded is not None or self.got is not None:
            found += [f"  recorded  {self.recorded or '(nothing)'}", f"  got       {self.got or '(nothing)'}"]
        if self.nearest:
            found.append(f"  nearest   {self.nearest}")
        return [*found, f"  {self.cure}"]


class ReplayMismatch(LooptapeStop):
    """The program asked for something that the recording does not hold."""

    exit_code = 1

    def __init__(self, miss: Miss) -> None:
        self.miss = miss
        self.run, self.turn, self.path, self.paths = miss.run, miss.turn, miss.path, miss.paths
        self.recorded, self.got, self.nearest, self.cure = miss.recorded, miss.got, miss.nearest, miss.cure
        super().__init__("looptape: " + "\n".join(miss.lines()))


class UnwrappedTools(LooptapeStop):
    """The recording has calls of tools that would really run, since they are not wrapped in this program."""

    exit_code = 2

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(
            f"looptape: stopped before turn 1: the recording has calls of tools that are not wrapped here and would "
            f"really run: {', '.join(self.names)}.\n"
            "  Wrap them with @looptape.tool (or a dispatcher with looptape.tools), or accept that they run: --unwrapped run"
        )


class ReplayStopped(LooptapeStop):
    """A limit of the replay itself: a cap on what is live, a live tool that was not named, a request that is no JSON."""

    exit_code = 1

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"looptape: replay stopped: {reason}")


def _few(paths: Sequence[str]) -> str:
    return ", ".join(paths[:4]) + (", …" if len(paths) > 4 else "")
