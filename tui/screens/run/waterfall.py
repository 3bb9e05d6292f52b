"""The run over time: a line a turn, parallel calls and sub-agents on lines of their own, pauses cut short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from ... import keymap
from ...data.views import RunView, TurnRow
from ...format import duration
from ...messages import Answered
from ...told.time_axis import elapsed, round_step
from ...widgets import waterfall_bars as bars
from ...widgets import waterfall_lines as lines
from ...widgets.cells import Column, Spans, lay_out
from ...widgets.painted import Bar
from ...widgets.virtual_list import MARGIN, VirtualList
from ..turn_sign import mark
from .table import seconds

if TYPE_CHECKING:
    from ....tracer.store import Store
    from ....tracer.store.times import TurnTimes
    from ..page import Page

COLUMNS = (
    Column("number", "#", 5, right=True, keep=10),
    Column("mark", " ", 1, keep=9),
    Column("name", "tool", 14, keep=10, grow=1, most=20),
    Column("seconds", "s", 5, right=True, keep=8),
    Column("chart", "", 24, keep=11, grow=7),
)
GAP = 1


class Axis(Bar):
    """The head: column titles, and the times above the chart."""

    DEFAULT_CSS = "Axis { height: 1; }"

    def __init__(self, fall: Waterfall) -> None:
        super().__init__()
        self._fall = fall

    def spans_of(self, y: int, width: int) -> Spans:
        """One line of titles and round times since the beginning."""
        slots = lay_out(COLUMNS, max(1, width - MARGIN - 2), GAP)
        titles = [" "] * (width + 1)
        for slot in slots:
            title = slot.column.title
            at = MARGIN + slot.x + (slot.width - len(title) if slot.column.right else 0)
            titles[at : at + len(title)] = title
        seen = self._fall.seen
        if seen is None or slots[-1].column.key != "chart":
            return (("".join(titles[:width]), "head"),)
        x0, free = MARGIN + slots[-1].x, 0
        for cut in seen.cuts:
            titles[x0 + cut] = bars.PAUSE
        for cell, micros in seen.axis.ticks(seen.left, seen.width, seen.scale):
            said = elapsed(micros, round_step(seen.scale * 12))
            if cell >= free and cell + len(said) <= seen.width:
                titles[x0 + cell : x0 + cell + len(said)] = said
                free = cell + len(said) + 2
        return (("".join(titles[:width]), "head"),)


class Legend(Bar):
    """The foot: what the signs mean that occur in this run, and the scale."""

    DEFAULT_CSS = "Legend { height: 1; }"

    def __init__(self, fall: Waterfall) -> None:
        super().__init__()
        self._fall = fall

    def spans_of(self, y: int, width: int) -> Spans:
        """Signs with their words as far as there is room; at the right end what a cell stands for."""
        seen, said = self._fall.seen, ""
        if seen is not None:
            said = f"{duration(seen.scale / 1000)} a cell "
        room, shown = width - len(said) - 3, [("  ", "text")]
        for sign, word, role in bars.LEGEND:
            if sign in self._fall.signs and len(sign) + len(word) + 4 <= room:
                shown += [(sign, role), (f" {word}   ", "faint")]
                room -= len(sign) + len(word) + 4
        return (*shown, (" " * max(0, room + 1) + said, "faint"))


class Waterfall(Vertical):
    """Asks the store for the times of the run it is shown, in a thread; moves with j and k, zooms with + and -."""

    DEFAULT_CSS = "Waterfall { height: 1fr; width: 1fr; } Waterfall VirtualList { height: 1fr; }"
    KEYS: Sequence[keymap.Key] = keymap.WATERFALL
    BINDINGS = keymap.bindings(KEYS)

    class Moved(Message):
        """Another turn is selected, by a key pressed here."""

        def __init__(self, turn: int) -> None:
            super().__init__()
            self.turn = turn

    class Opened(Message):
        """A line was asked for; ``run`` is that of a sub-agent, None for the turn itself."""

        def __init__(self, turn: int, run: str | None) -> None:
            super().__init__()
            self.turn = turn
            self.run = run

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.turn: int | None = None
        self.seen: bars.Window | None = None
        self._view: RunView | None = None
        self._chart = lines.Chart()
        self._read_rows: Sequence[TurnRow] = ()
        self._scale = 0.0  # microseconds a cell; 0: not chosen yet
        self._whole = False
        self._left = 0.0

    def compose(self) -> ComposeResult:
        """Times above, lines, signs below."""
        yield Axis(self)
        yield VirtualList[lines.Line](COLUMNS, lines.key_of, self._cell, head=False, gap=GAP)
        yield Legend(self)

    @property
    def listing(self) -> VirtualList[lines.Line]:
        """The lines."""
        return self.query_one(VirtualList)

    @property
    def signs(self) -> frozenset[str]:
        """The signs that occur in this run."""
        return self._chart.signs

    def show(self, view: RunView, turn: int | None = None) -> None:
        """A run as it is now; what is known of it already is not read again. ``turn``: the one to stand on."""
        if self._view is not None and self._view.run.id != view.run.id:
            self._chart, self._read_rows, self._scale, self.turn = lines.Chart(), (), 0.0, None
        if turn is not None:
            self.turn = turn
        new = view is not self._view
        self._view = view
        if new:
            self._read(view)
        elif turn is not None:
            self.choose(turn)

    def choose(self, turn: int) -> None:
        """Stand on a turn."""
        self.turn = turn
        line = self.listing.selected
        if line is None or line.turn.number != turn:
            index = self._chart.lines.index_of(turn)
            if index is not None:
                self.listing.choose(index)
        self._keep_in_view()

    def take_keys(self) -> None:
        """The keys go here."""
        self.screen.set_focus(self.listing)

    # reading

    def _read(self, view: RunView) -> None:
        page = cast("Page", self.screen)
        source, known, chart = page.source, self._read_rows, self._chart

        def question(store: Store) -> list[TurnTimes]:
            first = _first_changed(known, view.turns)
            if first is None:
                return list(chart.turns)
            last = None if view.whole else view.turns[-1].number
            return [*(t for t in chart.turns if t.number < first), *store.turn_times(view.run.id, first, last)]

        def job() -> Message:
            from ....tracer.store.quiet_gc import fewer_collections
            from ....tracer.store.times import until

            with fewer_collections():
                turns = source.ask(question)
                made = lines.chart_of(until(turns, source.now()), view.turns)
            return Answered(lambda: self._take(view, made))

        page.read(job, "waterfall")

    def _take(self, view: RunView, chart: lines.Chart) -> None:
        if self._view is None or view.run.id != self._view.run.id:
            return
        self._chart, self._read_rows = chart, view.turns
        index = chart.lines.index_of(self.turn) if self.turn is not None else None
        line = self.listing.selected
        stays = line is not None and line.turn.number == self.turn
        self._measure()
        key = None if index is None or stays else lines.key_of(chart.lines[index])
        self.listing.show(chart.lines, select=key)
        if self.turn is None and chart.turns:
            self.turn = chart.turns[0].number
        self._keep_in_view()
        self._paint()

    # the scale

    def action_zoom(self, steps: int) -> None:
        """Twice as near, or half; what is selected stays where it is."""
        if self.seen is None:
            return
        anchor = self._begin_of_selected()
        x = self.seen.cell(anchor) if anchor is not None else self.seen.width / 2
        if not 0 <= x < self.seen.width:
            x = self.seen.width / 10
        fit = self._chart.axis.fitting(self.seen.width)
        scale = min(max(self._scale / 2.0**steps, 1000.0), max(fit, 1000.0))
        self._whole = scale == fit
        self._scale = scale
        if anchor is not None:
            self._left = self._chart.axis.at(anchor, scale) - x
        self._paint()

    def action_pan(self, steps: int) -> None:
        """A quarter of the chart to the right (or left)."""
        if self.seen is not None:
            before = self.seen.left
            self._left += steps * self.seen.width / 4
            self._paint()
            if self.seen.left == before:
                end = "the whole run is shown" if self._whole else f"nothing {'later' if steps > 0 else 'earlier'}"
                cast("Page", self.screen).say(end)

    def action_fit(self) -> None:
        """The whole run at once."""
        if self.seen is not None:
            self._scale, self._whole, self._left = self._chart.axis.fitting(self.seen.width), True, 0.0
            self._paint()

    def on_resize(self, _event: events.Resize) -> None:
        """Other room."""
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        self._measure()
        self._keep_in_view()
        self._paint()

    def _measure(self) -> None:
        """A first scale: the lines of a screen side by side, or the whole run where it is short."""
        width = self._room
        if width <= 0 or not self._chart.axis.starts:
            return
        fit = self._chart.axis.fitting(width)
        if self._whole or (not self._scale and len(self._chart.lines) <= self.listing.size.height):
            self._scale, self._whole = fit, True
        elif not self._scale:
            rows = max(8.0, self.listing.size.height * len(self._chart.turns) / max(1, len(self._chart.lines)) * 0.7)
            near = self._chart.axis.unit * rows / width
            self._scale = max(1000.0, min(fit, near))
            self._whole = self._scale == fit

    @property
    def _room(self) -> int:
        slots = lay_out(COLUMNS, max(1, self.listing.size.width - MARGIN - 2), GAP)
        return slots[-1].width if slots and slots[-1].column.key == "chart" else 0

    def _paint(self) -> None:
        width = self._room
        if width <= 0 or not self._scale:
            self.seen = None
        else:
            length = self._chart.axis.length(self._scale)
            self._left = float(int(min(max(0.0, self._left), max(0.0, length - width / 2 if length > width else 0.0))))
            self.seen = bars.window(self._chart.axis, self._left, width, self._scale)
        self.listing.repaint()
        for bar in self.query(Bar):
            bar.refresh()

    def _begin_of_selected(self) -> int | None:
        line = self.listing.selected
        found = bars.busy(line.turn) if line is not None else None
        return found[0] if found else None

    def _keep_in_view(self) -> None:
        """Pan so that the selected turn begins inside the window."""
        line = self.listing.selected
        found = bars.busy(line.turn) if line is not None else None
        if found is None or self.seen is None:
            return
        begin, end = self.seen.cell(found[0]), self.seen.cell(found[1])
        width = self.seen.width
        if begin < 0 or begin >= width - 2 or (end > width and begin > width / 2):
            # the lower on the screen, the farther to the right: so the lines above stay in sight
            lines_seen = max(1, self.listing.size.height - 1)
            low = min(1.0, max(0.0, (self.listing.cursor - self.listing.scroll_offset.y) / lines_seen))
            self._left += begin - width * (0.08 + 0.62 * low)
            self._paint()

    # the list

    def on_virtual_list_moved(self, message: VirtualList.Moved) -> None:
        """Tell which turn is selected now."""
        message.stop()
        line = self.listing.selected
        if line is None:
            return
        self._keep_in_view()
        if line.turn.number != self.turn:
            self.turn = line.turn.number
            self.post_message(self.Moved(line.turn.number))

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """Ask for the turn, or for the sub-agent's run."""
        message.stop()
        line = self.listing.selected
        if line is not None:
            self.post_message(self.Opened(line.turn.number, line.child.run if line.child is not None else None))

    def _cell(self, line: lines.Line, column: str) -> Spans:
        row = self._chart.rows.get(line.turn.number)
        if column == "chart":
            return lines.chart(line, self.seen, bool(row and row.user_turn)) if self.seen is not None else ()
        if column == "name":
            return lines.name(line)
        if line.offset:
            return ()
        if column == "number":
            return ((str(line.turn.number), "dim"),)
        if column == "mark":
            return mark(row) if row is not None else ()
        return ((seconds(lines.took_ms(line.turn)), "dim"),)


def _first_changed(known: Sequence[TurnRow], now: Sequence[TurnRow]) -> int | None:
    """Number of the first turn whose line is another than before; None when all are the same.

    What still ran then is read anew, also where its line says the same.
    """
    if not now:
        return None
    last = next(
        (i for i, (a, b) in enumerate(zip(known, now, strict=False)) if a is not b and a != b),
        min(len(known), len(now)),
    )
    if last == len(now):
        return now[-1].number if now[-1].status == "open" or any(c.open for c in now[-1].calls) else None
    return now[last].number
