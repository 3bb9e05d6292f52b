"""What an empty store shows: how to record, the demo, and what was found on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.views import Found
from .cells import Spans
from .painted import Bar

_INDENT = 4


class Welcome(Bar):
    """Short lines, no empty promises: every line names a command that exists."""

    DEFAULT_CSS = "Welcome { height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Spans] = ()
        self._doing = ""

    def doing(self, text: str) -> None:
        """What goes on meanwhile, in place of what is offered; empty: that again."""
        self._doing = text
        self.refresh()

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
        lines.append(
            (("d", "accent_strong"), ("  the demo: sample loops, recorded here into a store of their own", "text"))
        )
        before = "  import, and keep in step: "
        for number, one in enumerate(found):
            key, words = ("i", before) if not number else (" ", " " * len(before))
            lines.append(((key, "accent_strong"), (words, "text"), (one.what, "strong")))
        if not found:
            lines.append(
                (("  looptape import PATH", "accent_strong"), ("   sessions and tapes you already have", "dim"))
            )
        lines += [(), (("Runs appear here while they happen.", "dim"),)]
        self._lines = [((" " * _INDENT, "text"), *line) for line in lines]
        self.refresh()

    def spans_of(self, y: int, width: int) -> Spans:
        """Two blank lines, then the text."""
        lines = self._lines if not self._doing else ((((" " * _INDENT) + "… ", "accent"), (self._doing, "text")),)
        top = 2 if self.size.height > len(lines) + 3 else 0
        return lines[y - top] if 0 <= y - top < len(lines) else ()
