"""Completion order: what ran side by side in the recording is answered in the order in which it ended there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

from ...tracer.routing import strand
from .recorded import RecordedCall, RecordedRuns, RecordedTurn

PATIENCE = 1.0
"""Seconds that an answer waits for others that do not come: the program may run one after another what ran together."""

Item = tuple[str, ...]


def model_item(turn: RecordedTurn) -> Item:
    """A model call, as something that ends."""
    return "model", turn.run, str(turn.number)


def tool_item(call: RecordedCall) -> Item:
    """A tool call, as something that ends."""
    return "tool", call.run, str(call.turn), call.id


class Order:
    """Who has to end before whom, and who has ended by now.

    Args:
        recorded: The runs; what has no times in them is not held back.
        told: Takes a note when something was not held back any longer.
    """

    def __init__(self, recorded: RecordedRuns, told: Callable[[str], None], patience: float | None = None) -> None:
        self._told = told
        self.patience = PATIENCE if patience is None else patience
        self.changed = threading.Condition()
        self.ended = 0
        self._settled: set[Item] = set()
        self._given: dict[Item, tuple[int, int]] = {}
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._before = _before(recorded)
        self._noted = False

    def renew(self) -> None:
        """In a forked child: nobody of the parent waits here, and what another thread held there is free."""
        self.changed = threading.Condition()
        self._waiting = []

    def hold(self, item: Item) -> Turnstile | None:
        """The hold of an item; None when nothing ran beside it, so that nobody waits for it either."""
        before = self._before.get(item)
        return Turnstile(self, item, before) if before is not None else None

    def blockers(self, before: frozenset[Item]) -> frozenset[Item]:
        """Those that have not ended yet, without those that this very strand holds open."""
        mine = strand()
        return frozenset(i for i in before if i not in self._settled and self._given.get(i) != mine)

    def give(self, item: Item) -> None:
        """The item's answer is being given by this strand."""
        self._given[item] = strand()

    def settle(self, *items: Item) -> None:
        """These have ended, or will never happen."""
        with self.changed:
            self._settled.update(items)
            self.ended += 1
            waiting, self._waiting = self._waiting, []
            self.changed.notify_all()
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits in it
                loop.call_soon_threadsafe(event.set)

    def wait_with(self, loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        """Sets an event of a loop when something ends."""
        self._waiting.append((loop, event))

    def give_up(self, blockers: frozenset[Item]) -> None:
        """These do not come while others wait for them: nobody waits for them again."""
        self.settle(*blockers)
        with self.changed:
            first, self._noted = not self._noted, True
        if first:
            self._told(
                f"the recorded completion order was not kept: {len(blockers)} of the calls that ran side by side did not "
                f"come within {self.patience:g} s (run one after another, or in a smaller pool)"
            )


class Turnstile:
    """Keeps one answer back until those that ended before it have been given."""

    def __init__(self, order: Order, item: Item, before: frozenset[Item]) -> None:
        self._order = order
        self._item = item
        self._before = before

    def wait(self) -> None:
        """Returns when the answer may be given; at the latest when nothing has ended for as long as patience lasts."""
        order = self._order
        with order.changed:
            late, seen = order.blockers(self._before), -1
            while late and seen != order.ended:
                seen = order.ended
                order.changed.wait_for(lambda: order.ended != seen, order.patience)  # noqa: B023 - called at once
                late = order.blockers(self._before)
            order.give(self._item)
        if late:
            order.give_up(late)

    async def wait_async(self) -> None:
        """The same for a coroutine. Under another event loop than asyncio's nothing is held back."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        order, seen = self._order, -1
        while True:
            event = asyncio.Event()
            with order.changed:
                late = order.blockers(self._before)
                if not late or seen == order.ended:
                    order.give(self._item)
                    break
                seen = order.ended
                order.wait_with(loop, event)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), order.patience)
        if late:
            order.give_up(late)

    def release(self) -> None:
        """The answer has been given whole, or dropped."""
        self._order.settle(self._item)


def _before(recorded: RecordedRuns) -> dict[Item, frozenset[Item]]:
    """For everything that ran beside something else: what of that ended before it, and does not come from it."""
    spans = sorted(_spans(recorded))
    found: dict[Item, set[Item]] = {}
    active: list[tuple[int, int, Item]] = []
    for start, end, item in spans:
        active = [a for a in active if a[1] > start]
        for other in active:
            first, later = sorted(((other[1], other[2]), (end, item)))
            if first[0] == later[0] or _comes_from(recorded, first[1], later[1]):
                continue
            found.setdefault(first[1], set())
            found.setdefault(later[1], set()).add(first[1])
        active.append((start, end, item))
    return {item: frozenset(before) for item, before in found.items()}


def _spans(recorded: RecordedRuns) -> Iterator[tuple[int, int, Item]]:
    for turn in recorded.turns():
        if turn.answered and turn.started_at is not None and turn.ended_at is not None:
            yield turn.started_at, turn.ended_at, model_item(turn)
        for call in turn.calls:
            if call.started_at is not None and call.ended_at is not None:
                yield call.started_at, call.ended_at, tool_item(call)


def _comes_from(recorded: RecordedRuns, item: Item, origin: Item) -> bool:
    """True when an item could only begin because of another: a call of its turn, a sub-agent's turn inside it."""
    seen = set()
    above: Item | None = item
    while above is not None and above not in seen:
        seen.add(above)
        if above == origin:
            return True
        above = _above(recorded, above)
    return False


def _above(recorded: RecordedRuns, item: Item) -> Item | None:
    kind, run, turn = item[:3]
    if kind == "tool":
        return "model", run, turn
    parent = recorded.parent_of(run)
    if parent is None or parent[1] is None:
        return None
    return ("tool", parent[0], str(parent[1]), parent[2]) if parent[2] else ("model", parent[0], str(parent[1]))
