"""A box with choices: Enter takes one, or its letter does; / narrows them; Esc takes none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from .. import keymap
from ..safe_text import clean
from ..widgets.bars import HeadBar, KeyBar
from ..widgets.cells import GAP, Column, Spans
from ..widgets.filter_bar import FilterBar
from ..widgets.painted import Bar
from ..widgets.virtual_list import VirtualList
from ..widgets.wrapping import wrap


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a menu.

    Attributes:
        id: What the menu gives back.
        text: What it does.
        key: What stands before it: the key that does the same outside, or a letter.
        note: A remark behind it.
    """

    id: str
    text: str
    key: str = ""
    note: str = ""


class Words(Bar):
    """A text over the choices, as many lines as it needs."""

    DEFAULT_CSS = "Words { height: 0; }"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._rows: list[Spans] = []

    def fold(self, width: int) -> int:
        """Wraps it; the lines that it takes, a blank one at the end included."""
        rows = [row for line in self._text.split("\n") for row in wrap(((clean(line), "text"),), max(1, width - 2))]
        self._rows = [*rows, ()] if self._text else []
        self.styles.height = len(self._rows)
        return len(self._rows)

    def spans_of(self, y: int, _width: int) -> Spans:
        """One line."""
        return ((" ", "text"), *self._rows[y]) if y < len(self._rows) else ()


class Menu(ModalScreen[str | None]):
    """Gives back the id of the choice, None when there was none.

    Args:
        title: What is chosen, in a few words.
        choices: The lines.
        verb: What Enter does, as the foot says it.
        selected: Id of the choice that is selected at first.
        words: What there is to know before one chooses; wraps.
    """

    BINDINGS = keymap.bindings(keymap.MENU)

    def __init__(
        self, title: str, choices: Sequence[Choice], *, verb: str = "take it", selected: str = "", words: str = ""
    ) -> None:
        super().__init__()
        self._words = words
        self._title = title
        self._choices = tuple(choices)
        self._verb = verb
        self._selected = selected
        self._width = 0

    def ask(self, app: App[Any], then: Callable[[str], object]) -> None:
        """Open it; ``then`` is told the id of the choice, and nothing where there was none."""

        def told(choice: str | None) -> None:
            if choice is not None:
                then(choice)

        app.push_screen(self, told)

    def compose(self) -> ComposeResult:
        """A box with a list."""
        key, text, note = (self._longest(part) for part in ("key", "text", "note"))
        columns = [Column("text", "", min(text, 40), grow=1, keep=8)]
        if key:
            columns.insert(0, Column("key", "", min(max(key, 3), 12), right=True, keep=9))
        if note:
            columns.append(Column("note", "", min(note, 40), keep=3))
        self._width = sum(c.width for c in columns) + max(0, text - 40) + GAP * (len(columns) + 3) + 2
        with Vertical(id="menu"):
            yield HeadBar()
            yield Words(self._words)
            yield FilterBar("words of a line")
            yield VirtualList[Choice](columns, lambda c: c.id, _cells, head=False)
            yield KeyBar(tuple(replace(k, short=self._verb) if k.action == "open" else k for k in keymap.MENU_KEYS))

    def on_mount(self) -> None:
        """Fill it; as high as it has choices, as far as there is room."""
        box, room = self.query_one("#menu"), self.app.size
        least = 76 if self._words else 48
        width = min(max(self._width, cell_len(clean(self._title)) + 6, least), max(20, room.width - 2))
        told = self.query_one(Words).fold(width - 2)
        box.styles.width = width
        box.styles.height = min(len(self._choices) + 4 + told, max(8, room.height - 2))
        self._show(self._selected or None)
        self.set_focus(self.listing)

    def _longest(self, part: str) -> int:
        return max((cell_len(clean(getattr(c, part), limit=200)) for c in self._choices), default=0)

    @property
    def listing(self) -> VirtualList[Choice]:
        """The list."""
        return self.query_one(VirtualList)

    def on_key(self, event: events.Key) -> None:
        """The letter of a choice takes it."""
        if self.query_one(FilterBar).has_keys:
            return
        if event.key in _OWN:
            return
        taken = next((c.id for c in self._choices if c.key == event.character), None)
        if taken is not None:
            event.stop()
            self.dismiss(taken)

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """Close and say which."""
        message.stop()
        self.dismiss(message.key)

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        """Narrow while typing."""
        self._show(None)

    def on_filter_bar_left(self) -> None:
        """Back to the list."""
        self.query_one(FilterBar).settle()
        self.set_focus(self.listing)

    def action_filter(self) -> None:
        """Type to narrow."""
        self.query_one(FilterBar).open()

    def action_close(self) -> None:
        """First what was typed goes, then the menu."""
        if self.query_one(FilterBar).text:
            self.query_one(FilterBar).clear()
            self.set_focus(self.listing)
        else:
            self.dismiss(None)

    def _show(self, select: str | None) -> None:
        words = self.query_one(FilterBar).text.casefold().split()
        shown = [c for c in self._choices if all(w in f"{c.key} {c.text} {c.note}".casefold() for w in words)]
        self.query_one(HeadBar).show((((self._title, "strong"),), ()))
        self.listing.show(shown, select=select)


_OWN = frozenset(one for key in (*keymap.MENU, *keymap.LIST) for one in key.keys.split(","))
"""Keys that move in the menu itself: they take no choice, whatever key that has outside."""


def _cells(choice: Choice, column: str) -> Spans:
    if column == "key":
        return ((choice.key, "accent_strong"),)
    return ((choice.text, "text"),) if column == "text" else ((choice.note, "dim"),)
