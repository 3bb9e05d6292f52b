"""The one-line bars of every screen: head, tabs, notices, and the keys at the foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual import events
from textual.message import Message
from textual.screen import Screen

from ..keymap import Key
from .cells import GAP, Spans, cleaned, spread, width_of
from .painted import Bar
from .wrapping import wrap

HeadLine = tuple[Spans, Sequence[Spans]]


def act(screen: Screen[Any], action: str) -> None:
    """Run an action as its key would: the focused widget's, else that of what is around it."""
    name, first = "action_" + action.split("(")[0], screen.focused or screen
    owner = next((w for w in first.ancestors_with_self if hasattr(w, name)), screen.app)
    screen.app.call_later(screen.app.run_action, action, owner)


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

    DEFAULT_CSS = "NoticeBar { height: auto; max-height: 9; display: none; }"
    background = "surface"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lasting: tuple[Spans, ...] = ()
        self._trouble: tuple[Spans, ...] = ()
        self._passing: tuple[Spans, ...] = ()
        self._rows: list[Spans] = []

    def lasting(self, *lines: Spans) -> None:
        """Lines that stay until they are replaced; a reading went well, so the trouble is over."""
        self._lasting = lines[:2]
        self._trouble = ()
        self._update()

    def trouble(self, text: str) -> None:
        """What could not be read; stays until a reading goes well."""
        self._trouble = _signed("! ", "bad", text)
        self._update()

    def passing(self, text: str) -> None:
        """What stays until the next key; a line end begins another. Empty text takes it away."""
        self._passing = _signed("› ", "accent", text) if text else ()
        self._update()

    @property
    def said(self) -> str:
        """All lines as plain text."""
        return "\n".join("".join(t for t, _ in line) for line in self._lines)

    @property
    def _lines(self) -> tuple[Spans, ...]:
        return (*self._lasting, *self._trouble, *self._passing)

    def spans_of(self, y: int, width: int) -> Spans:
        """One line."""
        return ((" ", "text"), *self._rows[y]) if y < len(self._rows) else ()

    def on_resize(self, _event: events.Resize) -> None:
        """Other room, other rows."""
        self._fold()

    def _update(self) -> None:
        self.display = bool(self._lines)
        self._fold()

    def _fold(self) -> None:
        """A line that is too long goes on below, three rows at most: what there is to do stands at its end."""
        width = max(10, (self.size.width or self.app.size.width) - 2)
        rows: list[Spans] = []
        for line in self._lines:
            folded = wrap(cleaned(line), width, hang=2)
            rows += folded if len(folded) <= _MOST else [*folded[: _MOST - 1], (("  …", "dim"), *folded[-1][1:])]
        self._rows = rows
        self.styles.height = max(1, len(rows))
        self.refresh()


_MOST = 3
"""Rows of one notice."""


def _signed(sign: str, role: str, text: str) -> tuple[Spans, ...]:
    first, *more = text.split("\n")
    plain = "bad" if role == "bad" else "text"
    strong = "bad_strong" if role == "bad" else role
    return (((sign, strong), (first, plain)), *((("  ", plain), (line, plain)) for line in more))


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
        left, right = self._laid_out(width)
        words = [span for _, spans in left for span in spans]
        return ((" ", "text"), *spread(tuple(words), (right[1] if right else (),), width - 2), (" ", "text"))

    def on_click(self, event: events.Click) -> None:
        """A word under the pointer does what its key does."""
        left, right = self._laid_out(self.size.width)
        at = 1
        if right is not None and event.x >= self.size.width - 1 - width_of(right[1]):
            act(self.screen, right[0].action)
            return
        for key, spans in left:
            size = width_of(spans)
            if at <= event.x < at + size - GAP:
                act(self.screen, key.action)
                return
            at += size

    def _laid_out(self, width: int) -> tuple[list[tuple[Key, Spans]], tuple[Key, Spans] | None]:
        """The keys that fit with their words, and the menu of keys."""
        rebound = getattr(self.app, "rebound", tuple)
        keys: Sequence[Key] = rebound(self._keys)
        last = next((k for k in keys if k.action == "keys"), None)
        right = None
        if last is not None and last.keys:
            right = (last, ((last.label.split(" ")[0], "accent_strong"), (" keys", "dim")))
        room = width - 2 - (width_of(right[1]) if right else 0) - 2
        left: list[tuple[Key, Spans]] = []
        for key in keys:
            if key is last or not key.keys:
                continue
            words = ((key.label.split(" ")[0], "accent_strong"), (f" {key.short}", "dim"), ("   ", "dim"))
            if width_of(words) > room:
                break
            left.append((key, words))
            room -= width_of(words)
        return left, right


class TabBar(Bar):
    """Numbered tabs, one of them chosen."""

    DEFAULT_CSS = "TabBar { height: 1; }"
    background = "surface"

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, names: Sequence[str], *, narrow: Mapping[str, str] | None = None, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(names)
        self._narrow = dict(narrow or {})
        self._notes: dict[int, str] = {}
        self.active = 0

    @property
    def names(self) -> Sequence[str]:
        """What the tabs are called."""
        return self._names

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
        spans: list[tuple[str, str]] = [(" ", "text")]
        for index, label in enumerate(self._labels(width)):
            if index == self.active:
                spans += [("▐", "accent"), (label, "tab"), ("▌", "accent")]
            else:
                spans.append((f" {label} ", "dim"))
        return tuple(spans)

    def on_click(self, event: events.Click) -> None:
        """The tab under the pointer."""
        at = 1
        for index, label in enumerate(self._labels(self.size.width)):
            size = len(label) + 2
            if at <= event.x < at + size:
                self.post_message(self.Chosen(index))
                return
            at += size

    def _labels(self, width: int) -> list[str]:
        """The fullest labels that fit: with all remarks, with that of the chosen one, with none, with short names."""
        count = range(len(self._names))
        bare = [f"{i + 1} {name}" for i, name in enumerate(self._names)]
        short = [f"{i + 1} {self._narrow.get(name, name)}" for i, name in enumerate(self._names)]
        noted = [self._label(i) if i == self.active else bare[i] for i in count]
        for labels in ([self._label(i) for i in count], noted, bare):
            if sum(len(label) + 2 for label in labels) < width:
                return labels
        return short

    def _label(self, index: int) -> str:
        note = self._notes.get(index, "")
        return f"{index + 1} {self._names[index]}{' (' + note + ')' if note else ''}"
