"""The one-line bars of every screen: head, tabs, notices, and the keys at the foot."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from ..keymap import Key
from .cells import Spans, spread, width_of
from .painted import Bar

HeadLine = tuple[Spans, Sequence[Spans]]


class HeadBar(Bar):
    """What one looks at on the left, its totals on the right; one or more lines."""

    DEFAULT_CSS = "HeadBar { height: 1; }"
    background = "surface"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[HeadLine] = ()

    def show(self, *lines: HeadLine) -> None:
        """The lines, each as its left end and the facts at its right end, the most important last."""
        self._lines = lines
        self.styles.height = max(1, len(lines))
        self.refresh()

    def spans_of(self, y: int, width: int) -> Spans:
        """One line with a blank at both ends."""
        if y >= len(self._lines):
            return ()
        left, right = self._lines[y]
        return ((" ", "text"), *spread(left, right, width - 2), (" ", "text"))


class NoticeBar(Bar):
    """What the user must know now: a held store, a failed reading, what a key did. Hidden when there is nothing."""

    DEFAULT_CSS = "NoticeBar { height: auto; max-height: 4; display: none; }"
    background = "surface"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lasting: tuple[Spans, ...] = ()
        self._trouble: Spans = ()
        self._passing: Spans = ()

    def lasting(self, *lines: Spans) -> None:
        """Lines that stay until they are replaced; a reading went well, so the trouble is over."""
        self._lasting = lines[:2]
        self._trouble = ()
        self._update()

    def trouble(self, text: str) -> None:
        """What could not be read; stays until a reading goes well."""
        self._trouble = (("! ", "bad_strong"), (text, "bad"))
        self._update()

    def passing(self, text: str) -> None:
        """A line that stays until the next key. Empty text takes it away."""
        self._passing = (("› ", "accent"), (text, "text")) if text else ()
        self._update()

    @property
    def said(self) -> str:
        """All lines as plain text."""
        return "\n".join("".join(t for t, _ in line) for line in self._lines)

    @property
    def _lines(self) -> tuple[Spans, ...]:
        return (*self._lasting, *(line for line in (self._trouble, self._passing) if line))

    def spans_of(self, y: int, width: int) -> Spans:
        """One line."""
        return ((" ", "text"), *self._lines[y]) if y < len(self._lines) else ()

    def _update(self) -> None:
        self.display = bool(self._lines)
        self.styles.height = max(1, len(self._lines))
        self.refresh()


class KeyBar(Bar):
    """The keys valid here, as many as there is room for; the last one always has room."""

    DEFAULT_CSS = "KeyBar { height: 1; dock: bottom; }"
    background = "surface"

    def __init__(self, keys: Sequence[Key], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = tuple(k for k in keys if k.short)

    def show(self, keys: Sequence[Key]) -> None:
        """Other keys."""
        self._keys = tuple(k for k in keys if k.short)
        self.refresh()

    def spans_of(self, y: int, width: int) -> Spans:
        """Key and word, key and word, … and the menu of keys at the right end."""
        last = next((k for k in self._keys if k.action == "keys"), None)
        right: Spans = (("?", "accent_strong"), (" keys", "dim")) if last else ()
        room = width - 2 - width_of(right) - 2
        left: list[tuple[str, str]] = []
        for key in self._keys:
            if key is last:
                continue
            words = ((key.shown.split(" ")[0] or key.label, "accent_strong"), (f" {key.short}", "dim"), ("   ", "dim"))
            if width_of(words) > room:
                break
            left += words
            room -= width_of(words)
        return ((" ", "text"), *spread(tuple(left), (right,), width - 2), (" ", "text"))


class TabBar(Bar):
    """Numbered tabs, one of them chosen."""

    DEFAULT_CSS = "TabBar { height: 1; }"
    background = "surface"

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(names)
        self._notes: dict[int, str] = {}
        self.active = 0

    def choose(self, index: int) -> None:
        """Make another tab the chosen one."""
        self.active = index % len(self._names)
        self.refresh()

    def note(self, notes: dict[int, str]) -> None:
        """Small remarks behind the names: a count, a sign."""
        self._notes = notes
        self.refresh()

    def spans_of(self, y: int, width: int) -> Spans:
        """The names; the chosen one in brackets of its own, so that it shows without colour."""
        wide = sum(len(self._label(i)) + 2 for i in range(len(self._names))) + 2 <= width
        spans: list[tuple[str, str]] = [(" ", "text")]
        for index in range(len(self._names)):
            label = self._label(index) if wide else self._short(index)
            if index == self.active:
                spans += [("▐", "accent"), (label, "tab"), ("▌", "accent")]
            else:
                spans.append((f" {label} ", "dim"))
        return tuple(spans)

    def on_click(self, event: events.Click) -> None:
        """The tab under the pointer."""
        x, at = event.x, 1
        wide = sum(len(self._label(i)) + 2 for i in range(len(self._names))) + 2 <= self.size.width
        for index in range(len(self._names)):
            size = len(self._label(index) if wide else self._short(index)) + 2
            if at <= x < at + size:
                self.post_message(self.Chosen(index))
                return
            at += size

    def _label(self, index: int) -> str:
        note = self._notes.get(index, "")
        return f"{index + 1} {self._names[index]}{' (' + note + ')' if note else ''}"

    def _short(self, index: int) -> str:
        return self._label(index) if index == self.active else f"{index + 1} {self._names[index][:4]}"
