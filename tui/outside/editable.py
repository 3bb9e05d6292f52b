"""Texts as an editor on the screen may hold them: nothing in them acts on the terminal, and they come back exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..safe_text import hidden

MOST = 400_000
"""Characters up to which a text is edited on the screen; larger ones go to $EDITOR."""

_NAMED = re.compile("‹U\\+([0-9A-F]{4,6})›")
_LIKE_NAMED = re.compile("‹(?=U\\+)")


@dataclass(frozen=True, slots=True)
class Editable:
    """A text for an editor.

    Attributes:
        text: What the editor holds: lines end with a line feed; a character that a terminal must not get stands
            as ``‹U+001B›``, in JSON as ``\\\\u001b``.
        json: It is JSON.
        crlf: Its lines ended with carriage return and line feed, and will again.
    """

    text: str
    json: bool = False
    crlf: bool = False

    def back(self, edited: str) -> str:
        """The text that an edited one stands for; of ``text`` itself the very text that it was made of."""
        if not self.json:
            edited = _NAMED.sub(lambda m: chr(int(m[1], 16)) if int(m[1], 16) <= 0x10FFFF else m[0], edited)
        return edited.replace("\n", "\r\n") if self.crlf else edited

    def pasted(self, text: str) -> str:
        """What is pasted, as the editor may hold it."""
        return _shown(text.replace("\r\n", "\n").replace("\r", "\n"), json=self.json)


def editable(text: str, *, json: bool = False) -> Editable:
    """A text made ready for an editor."""
    plain = text.replace("\r\n", "")
    crlf = "\r\n" in text and "\n" not in plain and "\r" not in plain
    return Editable(_shown(text.replace("\r\n", "\n") if crlf else text, json=json), json, crlf)


def _shown(text: str, *, json: bool) -> str:
    if not json and "‹U+" in text:  # what looks like a name of ours is no such name
        parts = _LIKE_NAMED.split(text)
        return "‹U+2039›".join(_swapped(p, json=False) for p in parts)
    return _swapped(text, json=json)


def _swapped(text: str, *, json: bool) -> str:
    made, last = [], 0
    for place in hidden(text):
        made += [text[last:place], _escape(text[place]) if json else f"‹U+{ord(text[place]):04X}›"]
        last = place + 1
    return "".join([*made, text[last:]])


def _escape(char: str) -> str:
    """As JSON writes it; beyond 16 bits as two halves."""
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
