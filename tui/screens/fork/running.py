"""A fork that runs beside its parent: its thread, what it tells, and how both look next to each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass

from textual.message import Message

from ....replay.engine.forks import beside, order
from ....replay.engine.forks.beside import ForkVerdict, Pair, Said, SaidCall
from ....replay.engine.forks.forking import carry_out, refuse_miss
from ....replay.engine.forks.order import Ready
from ....replay.engine.policy import Hooks, TurnDone
from ....tracer.errors import LooptapeError
from ...data.source import Source
from ...data.views import Trouble
from ...format import money
from ...widgets.blocks import Block, Body, Document, Head
from ...widgets.cells import Column, Spans

COLUMNS = (
    Column("number", "#", 4, right=True, keep=9),
    Column("parent", "parent", 20, grow=1, keep=7),
    Column("sign", "", 1, keep=8),
    Column("fork", "fork", 20, grow=1, keep=9),
    Column("cost", "$", 8, right=True, keep=3),
)
_SHORT = 300


class Opened(Message):
    """The new run is there, and its first turn is asked for."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run


class TurnCame(Message):
    """A turn is over."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said


class Ended(Message):
    """The fork is over. ``here``: the new run stands in this store, and can be opened."""

    def __init__(self, verdict: ForkVerdict, *, here: bool) -> None:
        super().__init__()
        self.verdict = verdict
        self.here = here


class Broke(Message):
    """The fork could not run."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble


class ForkRun:
    """One fork while it runs, in a thread of its own. The thread does not keep the program open.

    Args:
        source: Where the recorded run is.
        tell: Takes its messages, from any thread.
    """

    def __init__(self, source: Source, ready: Ready, tell: Callable[[Message], object]) -> None:
        self._source, self._ready, self._tell = source, ready, tell
        self._hooks = Hooks(observer=self._saw)
        self._came: list[Said] = []
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), daemon=True, name="fork")

    def begin(self) -> None:
        """Runs it."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it at the next possible moment."""
        self._hooks.stop.set()

    @property
    def stopping(self) -> bool:
        """True once it was stopped."""
        return self._hooks.stop.is_set()

    def _saw(self, done: TurnDone) -> None:
        said = beside.of_done(done)
        self._came.append(said)
        self._say(TurnCame(said))

    def _say(self, message: Message) -> None:
        """Tell it, if there is anyone: the app may end between the look whether it is there and the message."""
        with suppress(RuntimeError):
            self._tell(message)

    def _work(self) -> None:
        try:
            verdict = self._carried_out()
        except LooptapeError as error:
            self._say(Broke(Trouble(error.what, error.cure)))
        except Exception as error:  # the screen outlives whatever a fork runs into
            self._say(Broke(Trouble(f"The fork broke: {type(error).__name__}: {error}")))
        else:
            self._say(Ended(verdict, here=self._is_here(verdict.outcome.run)))

    def _carried_out(self) -> ForkVerdict:
        ready = self._ready
        live = order.sources(ready.order)
        try:
            tools = order.tools(ready, live)
            model, runs = self._source.ask(lambda store: order.begun(store, ready))
        except BaseException:
            order.close(live)
            raise
        self._say(Opened(runs[0].id))
        spread = carry_out(ready.start, runs, model, tools.box, ready.order.policy(), hooks=self._hooks)
        refuse_miss(spread)
        return beside.judge(ready, tools.live, self._came, spread.outcomes[0])

    def _is_here(self, run: str) -> bool:
        """Takes the new run in; False where the source is another place than the recorder's."""
        try:
            return self._source.run(run).run.id == run
        except Exception:  # a tape file does not hold it
            return False


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A line of the list: a turn of both runs.

    Attributes:
        asked: The fork is at it now.
        live: The tools that really run.
    """

    pair: Pair
    asked: bool = False
    live: frozenset[str] = frozenset()


def lines(ready: Ready, came: list[Said], live: frozenset[str], *, running: bool) -> tuple[TurnLine, ...]:
    """The lines of both runs; the turn that is asked for now stands there too."""
    pairs = list(beside.side_by_side(ready, came))
    now = (came[-1].number + 1) if came else _first(ready)
    found = [TurnLine(p, running and p.number == now, live) for p in pairs]
    if running and all(p.number != now for p in pairs):
        found.append(TurnLine(Pair(now, None, None), True, live))
    return tuple(found)


def _first(ready: Ready) -> int:
    return ready.start.turn if ready.start.stage == "execute" else ready.start.inherited + 1


def line_cells(line: TurnLine, column: str) -> Spans:
    """A line's spans in a column."""
    pair = line.pair
    if column == "number":
        return ((str(pair.number), "text"),)
    if column == "parent":
        return short(pair.parent, "dim")
    if column == "fork":
        return (("◌ running", "accent"),) if line.asked and pair.fork is None else short(pair.fork, "text", line.live)
    if column == "cost":
        return ((money(pair.fork.cost_usd, sign=False), "dim"),) if pair.fork and pair.fork.cost_usd else ()
    if pair.parent is None or pair.fork is None:
        return ()
    return (("≠", "accent_strong"),) if pair.differs else (("=", "dim"),)


def short(said: Said | None, role: str, live: frozenset[str] = frozenset()) -> Spans:
    """A turn on one line: its calls with their arguments, else its words."""
    if said is None:
        return ()
    if said.error:
        return (("✗ ", "bad_strong"), (said.error[:_SHORT], "bad"))
    spans: list[tuple[str, str]] = []
    for call in said.calls:
        spans += [("  ", role)] if spans else []
        spans += [(call.name, role), *_origin(call, live)]
        spans += [(" ✗", "bad_strong")] if call.is_error else []
        spans.append((f" {call.arguments[:_SHORT]}", "dim"))
    return tuple(spans) or ((" ".join((said.text or "(nothing said)")[:_SHORT].split()), role),)


def _origin(call: SaidCall, live: frozenset[str]) -> Spans:
    """How a call of the fork was answered, where that was not from the recording."""
    if call.origin == "live":
        return ((" LIVE", "accent_strong"),) if call.name in live else ()
    return ((f" {call.origin}", "accent"),) if call.origin in ("stub", "edited") else ()


def both(line: TurnLine) -> Document:
    """A turn of both runs, whole: the fork's, then the parent's."""
    pair = line.pair
    differ = f"   {pair.differs} differ" if pair.differs else ""
    absent = "running …" if line.asked else "no such turn"
    parent = [Head((("no such turn", "dim"),), 2)] if pair.parent is None else _whole(pair.parent, frozenset())
    fork = [Head(((absent, "dim"),), 2)] if pair.fork is None else _whole(pair.fork, line.live)
    return (
        Head(((f"fork, turn {pair.number}", "strong"), (differ, "accent"))), *fork, Head(()),
        Head(((f"parent, turn {pair.number}", "strong"),)), *parent,
    )  # fmt: skip


def _whole(said: Said, live: frozenset[str]) -> list[Block]:
    found: list[Block] = [Body(said.text, indent=2)] if said.text else []
    if said.error:
        found.append(Body(said.error, "bad", indent=2))
    for call in said.calls:
        found.append(Head((("→ ", "accent"), (call.name, "strong"), *_origin(call, live)), 2))
        found.append(Body(call.arguments, "dim", indent=4, syntax="json", most=20))
        if call.result is not None:
            found += _result(call.result, is_error=call.is_error)
    return found or [Head((("(nothing said)", "dim"),), 2)]


def _result(text: str, *, is_error: bool) -> list[Block]:
    """A short result beside its sign, a long one below it."""
    sign = ("✗ ", "bad_strong") if is_error else ("↳ ", "accent")
    role = "bad" if is_error else "text"
    if "\n" not in text and len(text) <= _SHORT:
        return [Head((sign, (text or "(empty)", role)), 4)]
    return [Head((sign,), 4), Body(text, role, indent=6, most=30)]
