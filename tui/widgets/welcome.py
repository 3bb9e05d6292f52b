"""What an empty store shows: how to record, the demo, and what was found on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from ..source import Found
from .cells import Spans
from .painted import Bar

_INDENT = 4


class Welcome(Bar):
    """Short lines, no empty promises: every line names a command that exists."""

    DEFAULT_CSS = "Welcome { height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Spans] = ()

    def waiting(self) -> None:
        """Nothing is known yet."""
        self._lines = (((" " * _INDENT + "reading the store …", "dim"),),)
        self.refresh()

    def unreadable(self) -> None:
        """The store could not be read; the notice says why."""
        self._lines = (((" " * _INDENT + "the store could not be read; looptape tries again", "dim"),),)
        self.refresh()

    def nothing_matches(self, text: str) -> None:
        """A filter without a hit."""
        self._lines = (
            ((" " * _INDENT, "text"), ("no run matches ", "text"), (text, "strong")),
            ((" " * _INDENT + "Esc", "accent_strong"), ("  clears the filter", "dim")),
        )
        self.refresh()

    def empty(self, found: Sequence[Found]) -> None:
        """No run yet."""
        lines: list[Spans] = [
            (("Nothing recorded yet.", "strong"),),
            (),
            (("One line in your agent", "dim"),),
            (("  client = ", "text"), ("looptape.wrap", "accent_strong"), ("(anthropic.Anthropic())", "text")),
            (),
            (("or any program, unchanged", "dim"),),
            (("  looptape record -- ", "accent_strong"), ("python agent.py", "text")),
            (),
        ]
        choices = [("d", "a demo with recorded loops", "looptape demo")]
        choices += [("i", f"{one.what} found", one.command) for one in found]
        room = max(len(what) for _, what, _ in choices)
        for key, what, command in choices:
            lines.append(((key, "accent_strong"), (f"  {what:<{room}}   ", "text"), (command, "dim")))
        lines += [(), (("Runs appear here while they happen.", "dim"),)]
        self._lines = [((" " * _INDENT, "text"), *line) for line in lines]
        self.refresh()

    def spans_of(self, y: int, width: int) -> Spans:
        """Two blank lines, then the text."""
        top = 2 if self.size.height > len(self._lines) + 3 else 0
        return self._lines[y - top] if 0 <= y - top < len(self._lines) else ()
