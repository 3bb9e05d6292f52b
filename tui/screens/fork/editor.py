"""A text in a real editor, in a box over the screen: taken with ctrl+s, left with Esc."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from ....tracer.errors import LooptapeError
from ... import keymap
from ...outside.editable import Editable
from ...widgets.bars import HeadBar, KeyBar, NoticeBar

Mistake = Callable[[str], tuple[int, int] | None]


class CleanArea(TextArea):
    """A TextArea that takes nothing from the clipboard which could act on the terminal; Tab is a tab."""

    def __init__(self, given: Editable) -> None:
        super().__init__(given.text, soft_wrap=True, show_line_numbers=given.json, compact=True)
        self._given = given

    async def _on_paste(self, event: events.Paste) -> None:
        """The text of the clipboard, cleaned."""
        event.stop()
        event.prevent_default()
        self.put(self._given.pasted(event.text))

    async def _on_key(self, event: events.Key) -> None:
        """Tab stands for itself here; there is nowhere else to go."""
        if event.key == "tab":
            event.stop()
            event.prevent_default()
            self.put("  " if self._given.json else "\t")

    def put(self, text: str) -> None:
        """Insert a text where the cursor is, in place of what is selected."""
        done = self._replace_via_keyboard(text, *self.selection)
        if done is not None:
            self.move_cursor(done.end_location)


class TextEditor(ModalScreen[str | None]):
    """Gives back the text that was taken, None when it was left.

    Args:
        title: What is edited.
        given: The text.
        check: Raises LooptapeError when a text cannot be taken.
        mistake: Line and column (from 0) of what is wrong with a text.
    """

    DEFAULT_CSS = """
    TextEditor { align: center middle; background: $background 60%; }
    TextEditor > Vertical { width: 96%; height: 90%; max-width: 140; background: $background; border: round $primary; }
    TextEditor CleanArea, TextEditor CleanArea:focus { height: 1fr; border: none; padding: 0 1; background: $background; }
    """
    KEYS: Sequence[keymap.Key] = keymap.FORK_EDITOR
    BINDINGS = keymap.bindings(KEYS)

    def __init__(
        self, title: str, given: Editable, check: Callable[[str], object], mistake: Mistake = lambda _text: None
    ) -> None:
        super().__init__()
        self._title, self._given, self._check, self._mistake = title, given, check, mistake
        self._warned = False  # a mistake is told of
        self._leaving = False  # Esc was pressed once over a text that is not taken

    def compose(self) -> ComposeResult:
        """A box with the text."""
        with Vertical():
            yield HeadBar()
            yield CleanArea(self._given)
            yield NoticeBar()
            yield KeyBar(keymap.FORK_EDITOR)

    def on_mount(self) -> None:
        """The text takes the keys."""
        facts = (("JSON", "dim"),) if self._given.json else (("text", "dim"),)
        self.query_one(HeadBar).show((((self._title, "strong"),), [facts]))
        if "‹U+" in self._given.text and not self._given.json:
            self.say("‹U+…› stands for one character that a terminal must not get; leave it, and it is kept")
        rows = sum(1 + len(line) // 100 for line in self._given.text.split("\n")[:200])
        whole = self.app.size.height * 9 // 10
        self.query_one(Vertical).styles.height = min(whole, max(14, rows + 6))  # as high as it has text
        self.set_focus(self.area)

    @property
    def area(self) -> CleanArea:
        """The editor."""
        return self.query_one(CleanArea)

    def say(self, text: str) -> None:
        """A line below the text."""
        self.query_one(NoticeBar).passing(text)

    def on_text_area_changed(self) -> None:
        """Something was typed: what was said is read."""
        if self._warned:
            self._warned = False
            self.query_one(NoticeBar).trouble("")
            self.query_one(NoticeBar).lasting()

    def action_take(self) -> None:
        """Take the text, if it can be; else stand where the mistake is."""
        text = self._given.back(self.area.text)
        try:
            self._check(text)
        except LooptapeError as error:
            place = self._mistake(self.area.text)
            if place is not None:
                self.area.move_cursor(place)
            self.query_one(NoticeBar).trouble(error.what)
            self._warned = True
            return
        self.dismiss(text)

    def action_leave(self) -> None:
        """Leave it; what was typed is lost, so that it takes two presses then."""
        if self._leaving or self.area.text == self._given.text:
            self.dismiss(None)
        else:
            self._leaving = True
            self.say("what you typed is not taken yet: ctrl+s takes it, Esc once more leaves it")
