"""The line one types a filter into. What is pasted is cleaned like all other text."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from ..safe_text import clean


class _CleanInput(Input):
    """An Input in which nothing stands that could act on the terminal."""

    BINDINGS = [Binding("escape", "leave(False)", show=False), Binding("down,tab", "leave(True)", show=False)]

    def validate_value(self, value: str) -> str:
        """Whatever sets the value, a paste too."""
        return clean(value[:500])

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

    def compose(self) -> ComposeResult:
        """A slash and the input."""
        yield Static("/", markup=False)
        yield _CleanInput(
            placeholder="words in name, status, model, project, task", compact=True, select_on_focus=False
        )

    @property
    def text(self) -> str:
        """The filter."""
        return self.query_one(_CleanInput).value

    def open(self) -> None:
        """Show it and take the keys."""
        self.display = True
        self.screen.set_focus(self.query_one(_CleanInput))  # at once: the next key may be here already

    def clear(self) -> None:
        """No filter."""
        self.query_one(_CleanInput).value = ""
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
