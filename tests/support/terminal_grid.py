"""What stands on a terminal after some octets: places and text are followed, colours let go by."""

from __future__ import annotations

import codecs
import re

from looptape.tui.safe_text import width

_TOKEN = re.compile(
    r"\x1b\[([0-9;:?<>=$]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_^X][^\x1b]*\x1b\\|\x1b[ -/]*[0-OQ-WYZ\\`-~]|([\r\n\b])"
)
_CUT = re.compile(r"\x1b(?:\[[0-9;:?<>=$ -/]*|[\]P_^X][^\x07\x1b]*\x1b?)?$")


class Grid:
    """A terminal's cells."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.rows = columns, lines
        self._cells = [[" "] * columns for _ in range(lines)]
        self._x = self._y = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, octets: bytes) -> None:
        """Take in what a program sent; a sequence may be cut between two calls."""
        text = self._rest + self._decoder.decode(octets)
        self._rest, at = "", 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is not None:
                self._obey(token)
                at = token.end()
            elif text[at] == "\x1b" and _CUT.match(text, at):
                self._rest, at = text[at:], len(text)
            else:
                self._put(text[at])
                at += 1

    def resize(self, columns: int, lines: int) -> None:
        """Another size: what stands there stays, as far as there is room."""
        kept = [row[:columns] + [" "] * (columns - len(row)) for row in self._cells[:lines]]
        self._cells = kept + [[" "] * columns for _ in range(lines - len(kept))]
        self.columns, self.rows = columns, lines

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def find(self, words: str) -> tuple[int, int]:
        """Column and line, from 0, where these words first stand."""
        for y, line in enumerate(self.lines):
            if words in line:
                return width(line[: line.index(words)]), y
        raise AssertionError(f"{words!r} is not on the screen:\n{self.text}")

    def _put(self, character: str) -> None:
        wide = width(character)
        if wide and self._y < self.rows and self._x < self.columns:
            self._cells[self._y][self._x] = character
            if wide == 2 and self._x + 1 < self.columns:
                self._cells[self._y][self._x + 1] = ""
        elif not wide and 0 < self._x <= self.columns and self._y < self.rows:
            self._cells[self._y][self._x - 1] += character
        self._x += wide

    def _obey(self, token: re.Match[str]) -> None:
        given, final, control = token.groups()
        if control:
            self._x = 0 if control == "\r" else max(0, self._x - 1) if control == "\b" else self._x
            self._y += control == "\n"
            return
        if final not in ("H", "J", "K", "A", "B", "C", "D") or not re.fullmatch(r"[0-9;]*", given or ""):
            return
        numbers = [int(n) if n else 0 for n in (given or "").split(";")]
        if final == "H":
            self._y = max(1, numbers[0]) - 1
            self._x = max(1, numbers[1] if len(numbers) > 1 else 1) - 1
        elif final == "J":
            self._cells = [[" "] * self.columns for _ in range(self.rows)]
        elif final == "K" and self._y < self.rows:
            self._cells[self._y][self._x :] = [" "] * (self.columns - self._x)
        elif final in "ABCD":
            by = max(1, numbers[0])
            self._y = max(0, self._y + {"A": -by, "B": by}.get(final, 0))
            self._x = max(0, self._x + {"C": by, "D": -by}.get(final, 0))
