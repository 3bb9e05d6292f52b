"""The foot of the fork screen: what would happen, what runs live, what it may cost; and how it went."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from ....replay.engine.forks.beside import ForkVerdict
from ....replay.engine.forks.telling import LIVE, listed
from ...format import counted, money
from ...safe_text import clean
from ...widgets.cells import Spans
from ...widgets.painted import Bar
from ...widgets.wrapping import wrap
from ..page import told
from .reading import Sketch

SHARE = 3
"""It takes a third of the screen at most."""


class PlanBar(Bar):
    """Some lines of words that wrap, as high as they need."""

    DEFAULT_CSS = "PlanBar { height: 2; border-top: solid $panel; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[Spans] = ()
        self._rows: list[Spans] = []

    def show(self, lines: Sequence[Spans]) -> None:
        """Other lines."""
        self._lines = lines
        self._fold()

    @property
    def said(self) -> str:
        """All lines as plain text."""
        return "\n".join("".join(t for t, _ in line) for line in self._lines)

    def on_resize(self, _event: events.Resize) -> None:
        """Other width, other rows."""
        self._fold()

    def spans_of(self, y: int, _width: int) -> Spans:
        """One row."""
        return ((" ", "text"), *self._rows[y]) if y < len(self._rows) else ()

    def _fold(self) -> None:
        room = max(1, self.size.width - 2)
        cleaned = [tuple((clean(t), role) for t, role in line) for line in self._lines]
        rows = [row for line in cleaned for row in wrap(line, room, hang=2)]
        most = max(4, self.app.size.height // SHARE)
        if len(rows) > most:
            rows = [*rows[: most - 1], (("…", "dim"),)]
        if rows != self._rows:
            self._rows = rows
            self.styles.height = len(rows) + 1
        self.refresh()


def plan_lines(sketch: Sketch) -> list[Spans]:
    """What would happen."""
    if sketch.trouble is not None:
        return [(("! ", "bad_strong"), (told(sketch.trouble), "bad"))]
    if sketch.ready is None or sketch.will is None:
        return [(("reading …", "dim"),)]
    will = sketch.will
    lines: list[Spans] = [
        ((sketch.begins[:1].upper() + sketch.begins[1:] + ".", "dim"),),
        (
            ("Will run live: ", "strong"), (listed(will.live), "accent_strong" if will.live else "text"), (". ", "text"),
            ("Will not run: ", "strong"), (listed(will.still) + ".", "text"),
        ),
    ]  # fmt: skip
    lacks = sketch.ready.start.lacks
    if lacks:
        more = f"  (and {len(lacks) - 1} more: at the top of the list)" if len(lacks) > 1 else ""
        lines.append((("! ", "accent_strong"), ("The recording lacks: ", "text"), (lacks[0], "dim"), (more, "text")))
    if sketch.hindered:
        lines.append((("! ", "accent_strong"), (f"{sketch.hindered}; the line “model” says who else answers.", "text")))
    if sketch.cost is not None:
        lines.append(((sketch.cost.words()[:1].upper() + sketch.cost.words()[1:] + ".", "text"),))
    return lines


def question(sketch: Sketch) -> str:
    """What one says yes to before anything live runs; empty where nothing would."""
    ready, will = sketch.ready, sketch.will
    if ready is None or will is None or not will.live:
        return ""
    said: list[str] = []
    if ready.model.live:
        cost = f" ({sketch.cost.words()})" if sketch.cost is not None else ""
        said.append(f"sends requests to {ready.model.host} as {ready.model_name or '(no name)'}{cost}")
    tools = [f.name for f in sketch.facts if f.how == LIVE]
    if tools:
        said.append(f"runs {listed(tools)} for real")
    return f"This {' and '.join(said)}."


def running_line(turn: int, seconds: float, *, stopping: bool, note: str = "") -> list[Spans]:
    """Where it is."""
    if stopping:
        return [(("Stopping: it ends with the answer or call that is on its way.", "accent"),)]
    where = (f"turn {turn} is running", "text")
    return [(("◌ ", "accent_strong"), where, (f"   {seconds:.0f} s", "dim"), (note, "dim"), ("   ctrl+x stops it", "dim"))]  # fmt: skip


def verdict_lines(verdict: ForkVerdict) -> list[Spans]:
    """How it went."""
    outcome = verdict.outcome
    good = outcome.status == "completed"
    sign = "✓" if good else "✗" if outcome.status == "failed" or outcome.reason == "miss" else "■"
    role = "accent_strong" if good else "bad_strong" if sign == "✗" else "strong"
    turns = counted(outcome.turns, "turn")
    head: Spans = (
        (f"{sign} {outcome.status}", role), (f"  {turns} of its own · {money(outcome.cost_usd)}", "dim"),
        (f"   {outcome.reason}: {outcome.detail}", "text"),
    )  # fmt: skip
    told = [line for line in verdict.lines() if not outcome.detail or outcome.detail not in line]  # once is enough
    return [head, *(((line, "dim"),) for line in told)]
