"""The line one types into: a filter, a command. What is pasted is cleaned like all other text."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from ..safe_text import clean

MOST = 500
"""Characters that a line takes."""


class CleanInput(Input):
    """An Input in which nothing stands that could act on the terminal."""

    def validate_value(self, value: str) -> str:
        """Whatever sets the value, a paste too."""
        return clean(value[:MOST])


class _FilterInput(CleanInput):
    """The input of a filter: Esc and the way down lead back to the list."""

    BINDINGS = [Binding("escape", "leave(False)", show=False), Binding("down,tab", "leave(True)", show=False)]

    def action_leave(self, keep: bool) -> None:
        """Back to the list; Esc clears the filter."""
        if not keep:
            self.value = ""
        self.post_message(FilterBar.Left())


class FilterBar(Horizontal):
    """Hidden until it is needed; stays while it holds something."""

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; background: $surface; }
    FilterBar Static { width: 3; padding: 0 0 0 1; color: $accent; text-style: bold; background: $surface; }
    FilterBar Input { width: 1fr; border: none; height: 1; padding: 0; background: $surface; }
    FilterBar Input:focus { border: none; }
    """

    class Changed(Message):
        """Another filter text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The keys go back to the list."""

    def __init__(self, placeholder: str, *, sign: str = "/", id: str | None = None) -> None:
        super().__init__(id=id)
        self._placeholder = placeholder
        self._sign = sign

    def compose(self) -> ComposeResult:
        """A sign and the input."""
        yield Static(self._sign, markup=False)
        yield _FilterInput(placeholder=self._placeholder, compact=True, select_on_focus=False)

    @property
    def has_keys(self) -> bool:
        """True while one types here."""
        return self.query_one(_FilterInput).has_focus

    @property
    def text(self) -> str:
        """The filter."""
        return self.query_one(_FilterInput).value

    def open(self) -> None:
        """Show it and take the keys."""
        self.display = True
        self.screen.set_focus(self.query_one(_FilterInput))  # at once: the next key may be here already

    def put(self, text: str) -> None:
        """Another filter, as if it had been typed; the keys stay where they are."""
        self.query_one(_FilterInput).value = text
        self.display = bool(text)

    def clear(self) -> None:
        """No filter."""
        self.query_one(_FilterInput).value = ""
        self.display = False

    def settle(self) -> None:
        """The keys left: hidden when it is empty."""
        self.display = bool(self.text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the screen."""
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: back to the list."""
        event.stop()
        self.post_message(self.Left())
