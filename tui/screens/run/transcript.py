"""The whole run as one flat text, read by windows: what is not on the screen is not read, however long the run."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual import events
from textual.message import Message
from textual.strip import Strip

from ....tracer.errors import LooptapeError
from ... import keymap
from ...data.views import RunView
from ...messages import Answered
from ...told.telling import Line, Passage
from ...widgets.cells import Spans, segments
from ...widgets.painted import Painted
from ...widgets.told import Place, Telling, kept, placed, plain

if TYPE_CHECKING:
    from ....tracer.model import Run
    from ....tracer.store import Store
    from ..page import Page

AHEAD = 12
"""Turns around the screen that are read before one comes to them."""
WINDOW = 40
"""Turns read at once on both sides."""
KEPT = 400
"""Turns kept in memory."""
GUESS = 8
"""Rows of a turn that is not read yet."""
LONG = "transcript.long"
"""Name of the remembered choice: long texts shown longer."""

At = tuple[int, int]
"""A row: of the head (0) or a turn (1, 2, …), and which one of it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a window says: turns by number; the head where it was asked for."""

    turns: Mapping[int, Telling]
    head: Telling | None


def told(store: Store, run: Run, first: int, last: int, origin: int | None = None) -> Told:
    """Some turns of a run as text; with ``origin``, the number of its first turn, also what stands above them."""
    from ....replay.recording import load
    from ...told import telling

    recording = load(store, run, first, last)
    turns = {turn.number: kept(telling.of_turn(recording, turn)) for turn in recording.turns}
    return Told(turns, None if origin is None else _head(store, run, origin))


def _head(store: Store, run: Run, first: int) -> Telling:
    from ....replay.message_parts import plain_text
    from ....tracer.observers import STATE
    from ...told import telling

    said: list[telling.Said] = list(telling.of_run(run))
    said += [telling.of_event(e) for e in store.events(run.id) if e.turn is None and e.kind != STATE]
    with suppress(LooptapeError):
        system = store.request(run.id, first).system
        if system:
            said.append(Line(("",), 0))
            said.append(Passage("[system] ", plain_text(system), telling.SHORT, "--request", "dim", 0))
    return kept(said)


class Transcript(Painted, can_focus=True):
    """Asks the store for what is on the screen, in a thread. The turn at the top is the selected one."""

    DEFAULT_CSS = "Transcript { height: 1fr; width: 1fr; }"
    KEYS: Sequence[keymap.Key] = (*keymap.READING, *keymap.TRANSCRIPT)
    BINDINGS = keymap.bindings(KEYS)

    class Moved(Message):
        """Another turn stands at the top, by a key pressed here."""

        def __init__(self, turn: int) -> None:
            super().__init__()
            self.turn = turn

    class Opened(Message):
        """The selected turn was asked for."""

        def __init__(self, turn: int) -> None:
            super().__init__()
            self.turn = turn

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view: RunView | None = None
        self._numbers: tuple[int, ...] = ()
        self._head: Telling | None = None
        self._told: OrderedDict[int, Telling] = OrderedDict()
        self._gone: set[int] = set()
        self._places: dict[int, Place] = {}
        self._top: At = (0, 0)
        self._current = 1
        self._long: bool | None = None
        self._asking = self._at_end = False
        self._said: int | None = None
        self._screenful: list[At] | None = None

    # what it shows

    @property
    def turn(self) -> int | None:
        """The selected turn."""
        return self._numbers[self._current - 1] if 0 < self._current <= len(self._numbers) else None

    def value(self) -> str | None:
        """The selected turn as it is told here, long texts as far as they are kept; None while it is not read."""
        telling = self._told.get(self.turn) if self.turn is not None else None
        return plain(telling) if telling is not None else None

    def show(self, view: RunView, turn: int | None = None) -> None:
        """A run as it is now; turns whose line changed are read again. ``turn``: the one to stand on."""
        old, stands = self._view, self.turn
        if view is not old:
            if old is None or old.run.id != view.run.id:
                self._told.clear()
                self._head, self._top, self._current, stands = None, (0, 0), 1, None
            else:
                self._forget(old, view)
                if old.run != view.run:
                    self._head = None
            self._view = view
            self._numbers = tuple(row.number for row in view.turns)
            self._gone.clear()
            self._places.clear()
        wanted = turn if turn is not None else stands
        if wanted is not None and (turn is not None or self._numbers):
            self.choose(wanted)
        self._moved(tell=False)

    def choose(self, turn: int) -> None:
        """Stand on a turn."""
        at = bisect_left(self._numbers, turn) + 1
        if at > len(self._numbers) or self._numbers[at - 1] != turn or at == self._current:
            return
        self._current = at
        self._top = min((at if at > 1 else 0, 0), self._last_top)
        self._moved(tell=False)

    def take_keys(self) -> None:
        """The keys go here."""
        self.screen.set_focus(self)

    def _forget(self, old: RunView, new: RunView) -> None:
        """Drop the turns whose line changed."""
        before = {row.number: row for row in old.turns if row.number in self._told}
        for row in new.turns:
            if row.number in before and before[row.number] != row:
                del self._told[row.number]

    # reading

    def _want(self) -> None:
        """Read what is on the screen and around it, as far as it is not there."""
        if self._asking or self._view is None or not self._numbers or not self.size.height:
            return
        shown = [at for at, _ in self._rows() if at] or [1]
        near = range(max(1, shown[0] - AHEAD), min(len(self._numbers), shown[-1] + AHEAD) + 1)
        missing = [
            at for at in near if self._numbers[at - 1] not in self._told and self._numbers[at - 1] not in self._gone
        ]
        if not missing and self._head is not None:
            return
        middle = missing[0] if missing and missing[0] > shown[-1] else missing[-1] if missing else shown[0]
        if any(shown[0] <= at <= shown[-1] for at in missing):
            middle = shown[0]
        first = self._numbers[max(0, middle - 1 - WINDOW)]
        last = self._numbers[min(len(self._numbers), middle + WINDOW) - 1]
        self._ask(self._view, first, last)

    def _ask(self, view: RunView, first: int, last: int) -> None:
        page = cast("Page", self.screen)
        source, run = page.source, view.run
        origin = self._numbers[0] if self._head is None else None
        self._asking = True

        def job() -> Message:
            try:
                found = source.ask(lambda store: told(store, run, first, last, origin))
            except BaseException:
                self._asking = False
                raise
            return Answered(lambda: self._take(view, found, first, last))

        page.read(job, "transcript")

    def _take(self, view: RunView, found: Told, first: int, last: int) -> None:
        self._asking = False
        if self._view is None or view.run.id != self._view.run.id:
            return
        if view is self._view:  # a turn that was removed meanwhile is not asked for again and again
            self._gone.update(n for n in self._numbers if first <= n <= last and n not in found.turns)
        if found.head is not None:
            self._head = found.head
            self._places.pop(0, None)
        for number, telling in found.turns.items():
            self._told[number] = telling
            self._told.move_to_end(number)
            self._places.pop(bisect_left(self._numbers, number) + 1, None)
        while len(self._told) > KEPT:
            number, _ = self._told.popitem(last=False)
            self._places.pop(bisect_left(self._numbers, number) + 1, None)
        self._settle()

    # rows

    def _place(self, at: int) -> Place | None:
        """Where the rows of the head or a turn stand; None while it is not read."""
        if at not in self._places:
            telling = self._head if at == 0 else self._told.get(self._numbers[at - 1])
            if telling is None:
                return None
            self._places[at] = placed(telling, max(8, self.size.width - 4), long=self.long)
        return self._places[at]

    @property
    def long(self) -> bool:
        """True where long texts are shown longer."""
        if self._long is None:
            self._long = bool(cast("Page", self.screen).loop_app.memory.get(LONG, False))
        return self._long

    def _height(self, at: int) -> int:
        place = self._place(at)
        return (GUESS if at else 3) if place is None else place.rows + 1

    def _step(self, at: At, rows: int) -> At:
        """So many rows on (or back), never beyond the first and last row."""
        segment, row = at[0], at[1] + rows
        while row < 0 and segment > 0:
            segment -= 1
            row += self._height(segment)
        while segment < len(self._numbers) and row >= self._height(segment):
            row -= self._height(segment)
            segment += 1
        return segment, max(0, min(row, self._height(segment) - 1))

    @property
    def _last_top(self) -> At:
        """The row at the top when the last one is at the foot."""
        last = len(self._numbers)
        return self._step((last, self._height(last) - 2), 1 - self.size.height) if last else (0, 0)

    def _rows(self) -> list[At]:
        if self._screenful is None:
            self._screenful = self._screen()
        return self._screenful

    def _screen(self) -> list[At]:
        found: list[At] = []
        segment, row = self._top
        while len(found) < self.size.height and segment <= len(self._numbers):
            height = self._height(segment)
            found += [(segment, y) for y in range(row, min(height, row + self.size.height - len(found)))]
            segment, row = segment + 1, 0
        return found

    def render_line(self, y: int) -> Strip:
        """One row: the mark of the selected turn, text, and where in the run one is."""
        width, rows = self.size.width, self._rows()
        if y >= len(rows):
            return self.blank(width)
        at, row = rows[y]
        selected = at == self._current
        edge = "accent" if self.has_focus else "dim"
        line = segments((("▌ " if selected else "  ", edge), *self._text(at, row)), self.looks, self.looks["page"])
        strip = Strip(line).adjust_cell_length(width - 1, self.looks["page"])
        return Strip.join([strip, self.strip(self._thumb(y), 1)])

    def _text(self, at: int, row: int) -> Spans:
        place = self._place(at)
        if place is not None:
            return place.row(row)
        if row:
            return ()
        if not at:
            return (("reading the run …", "faint"),)
        number = self._numbers[at - 1]
        return ((f"{number}  {'is not in the store any more' if number in self._gone else 'reading …'}", "faint"),)

    def _thumb(self, y: int) -> Spans:
        height, count = self.size.height, len(self._numbers) + 1
        rows = self._rows()
        if not rows or (rows[0] == (0, 0) and rows[-1][0] == count - 1 and len(rows) < height):
            return ()
        begin = int(rows[0][0] / count * height)
        end = max(begin + 1, round((rows[-1][0] + 1) / count * height))
        return (("┃", "dim"),) if begin <= y < end else ()

    # moving

    def on_resize(self, _event: events.Resize) -> None:
        """Other width, other rows."""
        self._places.clear()
        self._settle()

    def on_focus(self) -> None:
        """The mark of the selected turn changes."""
        self.refresh()

    def on_blur(self) -> None:
        """The mark of the selected turn changes."""
        self.refresh()

    def on_click(self) -> None:
        """A click takes the keys here."""
        self.focus()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        event.stop()
        self._scroll(-3)

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self._scroll(lines)

    def action_page(self, pages: int) -> None:
        """Scroll by screens."""
        self._scroll(pages * max(1, self.size.height - 2))

    def action_top(self) -> None:
        """To the beginning."""
        self._top, self._current = (0, 0), 1
        self._moved()

    def action_bottom(self) -> None:
        """To the end."""
        self._current = max(1, len(self._numbers))
        self._top = self._last_top
        self._moved()

    def action_open(self) -> None:
        """Ask for the selected turn."""
        if self.turn is not None:
            self.post_message(self.Opened(self.turn))

    def action_longer(self) -> None:
        """Long texts cut short, or longer."""
        self._long = not self.long
        cast("Page", self.screen).loop_app.memory.put(LONG, self._long)
        self._places.clear()
        self._top = min((self._top[0], 0), self._last_top)
        self._moved(tell=False)
        cast("Page", self.screen).say("long texts are shown" if self._long else "long texts are cut short")

    def _settle(self) -> None:
        """Heights are others now: the end stays the end, else the row at the top stays, and the selected turn in sight."""
        segment, row = self._top
        self._top = min((segment, min(row, self._height(segment) - 1)), self._last_top)
        if self._at_end:
            self._top = self._last_top
        elif self._current not in {max(1, at) for at, _ in self._screen()}:
            self._top = min((self._current, 0), self._last_top)
        self._moved(tell=False)

    def _scroll(self, rows: int) -> None:
        """By rows; where the text ends, the selection goes on through what is on the screen."""
        if not self._numbers:
            return
        before, last = self._top, self._last_top
        top_turn = max(1, before[0])
        if rows < 0 and self._current > top_turn:
            self._current = max(top_turn, self._current - 1 if rows == -1 else top_turn)
        else:
            self._top = min(self._step(before, rows), last) if before < last or rows < 0 else before
            if self._top != before:
                self._current = max(1, self._top[0])
            elif rows > 0:
                self._current = min(len(self._numbers), self._current + 1 if rows == 1 else len(self._numbers))
        self._moved()

    def _moved(self, *, tell: bool = True) -> None:
        self._screenful = None
        self._at_end = bool(self._numbers) and self._top >= self._last_top
        self._want()
        self.refresh()
        turn = self.turn
        if tell and turn is not None and turn != self._said:
            self.post_message(self.Moved(turn))
        self._said = turn
