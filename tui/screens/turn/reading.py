"""What the tabs of a turn ask beyond the turn itself: changes, context, findings, wire, price; and where a jump leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from textual.message import Message

from ....tracer.errors import LooptapeError
from ....tracer.model import Request, Turn
from ...data.views import Trouble, TurnView, WireView
from ...widgets.blocks import Document

if TYPE_CHECKING:
    from ....replay.context import Context
    from ....replay.diff import Change
    from ....replay.rules import Finding
    from ....tracer.prices.rates import Portion
    from ....tracer.store import Store
    from ...data.source import Source


@dataclass(frozen=True, slots=True)
class Want:
    """Which document is wanted: a turn's tab, raw or pretty, with so much around each change."""

    number: int
    tab: str
    raw: bool = False
    around: int = 1


@dataclass(frozen=True, slots=True)
class Changes:
    """How a turn's request differs from the one before.

    Attributes:
        before: The request before, None for the first.
        called: Names of the tools that the run ever called.
    """

    before: Request | None = None
    changes: tuple[Change, ...] = ()
    called: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Findings:
    """What cycles and rules say of a run, and the title of every rule."""

    findings: tuple[Finding, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()

    def at(self, number: int) -> tuple[Finding, ...]:
        """Those that touch a turn, and those of the run as a whole."""
        return tuple(f for f in self.findings if not f.first_turn or f.first_turn <= number <= f.last_turn)


@dataclass(frozen=True, slots=True)
class Paid:
    """What a turn's cost is made of by today's price lists."""

    portions: tuple[Portion, ...] = ()

    @property
    def total(self) -> Decimal:
        """Their sum."""
        return sum((p.usd for p in self.portions), Decimal(0))


@dataclass(frozen=True, slots=True)
class Wired:
    """What went over the wire; ``altered``: some of the stream's chunks were changed by redaction or the program."""

    view: WireView
    altered: bool = False


class Built(Message):
    """A tab was made of a turn, as far as it is known yet; ``extras`` is what was read for it."""

    def __init__(self, view: TurnView, want: Want, document: Document, extras: Mapping[str, Any]) -> None:
        super().__init__()
        self.view, self.want, self.document, self.extras = view, want, document, extras


class Sought(Message):
    """The turn that a jump leads to, or none."""

    def __init__(self, number: int | None, what: str, step: int) -> None:
        super().__init__()
        self.number, self.what, self.step = number, what, step


NEEDS: Mapping[str, tuple[str, ...]] = {
    "request": ("changes", "context"),
    "usage": ("paid",),
    "context": ("context",),
    "wire": ("wire",),
    "findings": ("findings",),
}
"""What each tab needs beyond the turn."""
LONG = 2000
"""Turn from which the request tab does not weigh its parts by itself: that takes a second for every few thousand turns."""
HEAVY = 200_000
"""Characters of JSON from which a result is shown as it is before it is indented."""
SLOW = frozenset({"context", "findings"})
"""What may take a second in a long run: the tab is shown before."""


def takes_time(view: TurnView) -> bool:
    """True where results hold so much JSON that it takes a while to be indented."""
    return any(
        isinstance(c.result, str) and len(c.result) > HEAVY and c.result[:64].lstrip()[:1] in ("{", "[")
        for turn in (view.turn, view.before)
        if turn is not None
        for c in turn.tool_calls
    )


def read(name: str, source: Source, view: TurnView, wanted: Callable[[], bool] = lambda: True) -> Any:
    """One of these; a `Trouble` where it could not be had, for the tab must still be shown.

    Args:
        wanted: Asked now and then while the context is weighed: on False that ends, for others wait for the store.
    """
    run, number = view.run.id, view.turn.number
    try:
        if name == "wire":
            return _wire(source, run, number)
        if name == "paid":
            return _paid(view.turn)
        questions: dict[str, Callable[[Store], Any]] = {
            "changes": lambda store: changes(store, run, number, view.request),
            "context": lambda store: _context(store, run, number, wanted),
            "findings": lambda store: findings(store, run),
        }
        return source.ask(questions[name])
    except LooptapeError as error:
        return Trouble(error.what, error.cure)


def changes(store: Store, run: str, number: int, now: Request | None) -> Changes:
    """How a request differs from the one of the turn before; only what follows the messages both have is compared."""
    from ....replay.diff.requests import requests

    names = store.rows("select distinct name from base.calls where run = ?", [run])
    called = frozenset(str(row["name"]) for row in names if row["name"])
    if now is None or number < 2:
        return Changes(None, (), called)
    before = store.request(run, number - 1)
    return Changes(before, tuple(requests(before, now, now.kept)), called)


def findings(store: Store, run: str) -> Findings:
    """What the cycle detector and all rules say of a run, by its settings."""
    from ....replay.rules.circles import TITLES, as_report, cycles_of
    from ....replay.rules.config import read_config
    from ....replay.rules.lint import all_rules, lint, ordered

    found = store.run(run)
    loaded = all_rules()
    config = read_config(loaded.rules)
    report = lint(store, [found], config)
    circles = as_report(cycles_of(store, [found], config.declared), [found])
    titles = {rule.ID: rule.TITLE for rule in loaded.rules} | dict(TITLES)
    every = ordered([*circles.findings, *report.findings], [found])
    unknown = tuple(f"{u.rule}: needs {', '.join(u.missing)}" for u in report.unknown)
    return Findings(tuple(every), titles, unknown, report.troubles)


def error_beside(source: Source, run: str, number: int, step: int) -> Sought:
    """The nearest turn with an error."""
    from ....replay.cursor import next_error

    return Sought(source.ask(lambda store: next_error(store, run, number, step)), "errors", step)


def peer_beside(source: Source, run: str, turn: Turn, step: int) -> Sought:
    """The nearest turn that calls one of the tools of this turn."""
    from ....replay.cursor import next_call

    names = sorted({call.name for call in turn.tool_calls})
    said = f"calls of {names[0]}" if len(names) == 1 else "calls of these tools"
    return Sought(source.ask(lambda store: next_call(store, run, turn.number, names, step)), said, step)


def _context(store: Store, run: str, number: int, wanted: Callable[[], bool]) -> Context:
    from ....replay.context import context

    return context(cast("Store", _While(store, wanted)), run, number)


class _While:
    """A store whose steps end in an error once nobody wants the answer any more."""

    def __init__(self, store: Store, wanted: Callable[[], bool]) -> None:
        self._store = store
        self._wanted = wanted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def steps(self, run: str, last: int | None = None) -> Iterator[Any]:
        """As the store's own."""
        for step in self._store.steps(run, last):
            if not self._wanted():
                raise LooptapeError("left", "Another turn is looked at", "")
            yield step


def _wire(source: Source, run: str, number: int) -> Wired:
    view = source.wire(run, number)
    if not view.chunks:
        return Wired(view)
    query = "select coalesce(bool_or(altered), false) as altered from base.chunks where run = ? and turn = ?"
    try:
        return Wired(view, bool(source.ask(lambda store: store.rows(query, [run, number]))[0]["altered"]))
    except LooptapeError:
        return Wired(view)


def _paid(turn: Turn) -> Paid:
    from ....tracer.pricing import portions

    return Paid(portions(turn))
