"""What the screens show, as frozen snapshots: made by a source, drawn by a screen, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...tracer.model import Event, Request, Run, ToolCall, Turn

if TYPE_CHECKING:
    from ...replay.listing import Line, Listing
    from ...tracer.store import light


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that could not be done: what happened, and what to do."""

    what: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions of another tool on this machine, and the command that imports them."""

    what: str
    command: str


@dataclass(frozen=True, slots=True)
class RunsWanted:
    """What the list of runs is to show.

    Attributes:
        filter: A text of the filter language; empty for all runs.
        sort: An order of the store's, ``backwards`` the other way round.
        grouping: list, lineage or project; ``folded`` are the keys of projects whose runs are not shown.
        at: The key around which lines are read.
        first: A first look: only so many keys at the beginning; 0 for all.
    """

    filter: str = ""
    sort: str = "time"
    backwards: bool = False
    grouping: str = "list"
    folded: frozenset[str] = frozenset()
    at: str | None = None
    first: int = 0


@dataclass(frozen=True, slots=True)
class RunsView:
    """The list of runs: the keys of all, whole lines of those that are looked at, what the store has to say."""

    listing: Listing
    lines: Mapping[str, Line] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class CallMark:
    """A tool call in a list: its name, whether it failed, whether it is still open, the run that it started."""

    name: str
    bad: bool = False
    open: bool = False
    child: str | None = None
    provider: bool = False


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as a list shows it: small, whatever the turn holds. Times in milliseconds.

    ``context`` is what the model read: ``fresh``, ``read`` from the cache and ``written`` to it together.
    """

    number: int
    status: str = "ok"
    calls: tuple[CallMark, ...] = ()
    stop_reason: str | None = None
    context: int | None = None
    output: int | None = None
    cost_usd: float | None = None
    generate_ms: float | None = None
    execute_ms: float | None = None
    attempts: int = 1
    user_turn: bool = False
    inherited: bool = False
    flags: tuple[str, ...] = ()
    error: str | None = None
    fresh: int | None = None
    read: int | None = None
    written: int | None = None

    @property
    def bad(self) -> bool:
        """True when the model call or one of its tools failed."""
        return self.status == "error" or any(c.bad for c in self.calls)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with the lines of its turn list.

    Attributes:
        whole: False while only the turns around the selected one were read.
        settled: Up to which turn, and what the store said of the turns until there (``Store.stand``): as long as it says
            the same, a later reading begins behind them.
    """

    run: Run
    turns: tuple[TurnRow, ...] = ()
    events: tuple[Event, ...] = ()
    notices: tuple[str, ...] = ()
    whole: bool = True
    settled: tuple[int, object] = (0, None)


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn whole: what came in, what the model answered, what its tools gave back.

    Attributes:
        before: The turn before it, whose results came in; None for the first.
        last: Number of the run's last turn.
        request_trouble: Why there is no request.
        fresh: The request has only the messages that were new in the turn.
    """

    run: Run
    turn: Turn
    request: Request | None = None
    before: Turn | None = None
    last: int = 0
    request_trouble: str | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class WireView:
    """What went over the wire in one turn, as text; chunks are (offset in µs, text)."""

    run: str
    number: int
    request: str | None = None
    response: str | None = None
    chunks: tuple[tuple[int, str], ...] = ()
    trouble: str | None = None


def row_of(turn: Turn | light.TurnRow) -> TurnRow:
    """The line of a turn in a list; the store's light rows are enough for it."""
    return rows_of((turn,))[0]


def rows_of(turns: Iterable[Turn | light.TurnRow]) -> list[TurnRow]:
    """The lines of turns in a list. Light rows share their calls, so their marks are shared too."""
    marks: dict[int, tuple[CallMark, ...]] = {}
    made = []
    for turn in turns:
        calls = turn.tool_calls
        if (found := marks.get(id(calls))) is None:
            found = marks[id(calls)] = tuple(map(_mark, calls))
        made.append(_row(turn, found))
    return made


def _row(turn: Turn | light.TurnRow, calls: tuple[CallMark, ...]) -> TurnRow:
    usage = turn if isinstance(turn, tuple) else turn.usage
    written = _sum(usage.cache_write_5m, usage.cache_write_1h)
    return TurnRow(
        turn.number,
        turn.status,
        calls,
        turn.stop_reason,
        _sum(usage.input, usage.cache_read, written),
        usage.output,
        turn.cost_usd,
        turn.generate_ms,
        turn.execute_ms,
        turn.attempts if isinstance(turn.attempts, int) else len(turn.attempts),
        turn.user_turn,
        turn.inherited,
        turn.flags,
        turn.error and turn.error[:500],
        usage.input,
        usage.cache_read,
        written,
    )


def _sum(*values: int | None) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _mark(call: ToolCall | light.CallRow) -> CallMark:
    return CallMark(
        name=call.name[:200],
        bad=call.is_error is True or not call.valid,
        open=call.state in ("requested", "running", "no_result", "incomplete"),
        child=call.child_run,
        provider=call.origin == "provider",
    )
