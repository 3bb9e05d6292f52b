"""Untrusted text into text that is safe and honest on a terminal: nothing in it can act, nothing in it hides.

Everything a recording holds (prompts, results, tool names, titles, errors) was written by others. Before it
reaches a widget, a title, a notification or a print it goes through `clean`. Markup is a second door: pass
cleaned text to Textual only as `Content`/`Text` objects or with ``markup=False``, never as a markup string.
"""

from __future__ import annotations

import re
import unicodedata

ELLIPSIS = "…"
NEWLINE = "↵"
TAB = 4

# Marks that are often stacked to overrun the lines above; more than eight on one letter is no language.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_SUSPECT = re.compile(
    "\r\n"
    "|[\U000e0020-\U000e007e]+"  # tag characters: an invisible copy of ASCII, used to hide prompts
    f"|(?P<marks>[{_MARKS}]{{9,}})"
    "|["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: every escape sequence begins with one
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ufe00-\ufe0f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff"
    "]+"
)
_CUT_OFF = "\u200c\u200d"


def clean(text: str, *, multiline: bool = False, limit: int | None = None) -> str:
    """Text that may be shown: control codes, invisible and direction-changing characters become visible.

    Plain text (also emoji sequences, accents, right-to-left scripts) is returned unchanged; cleaning twice is
    cleaning once.

    Args:
        multiline: Keep line ends as ``\\n`` and expand tabs; else a line end shows as ``↵`` and a tab as a space.
        limit: At most this many terminal cells (a line end counts as one); a cut text ends in ``…``.
    """
    cut = False
    if limit is not None and len(text) > 16 * limit + 64:
        text, cut = text[: 16 * limit + 64], True
    if not (text.isascii() and text.isprintable()):
        if multiline and "\t" in text:
            text = text.expandtabs(TAB)
        text = _SUSPECT.sub(lambda match: _shown(match, multiline), text)
    return text if limit is None else _limited(text, limit, cut)


def lines(text: str) -> list[str]:
    """The cleaned lines of a text; only a line end separates them, as in `clean` with ``multiline``."""
    return clean(text, multiline=True).split("\n")


def hidden(text: str) -> list[int]:
    """Where characters stand that `clean` shows as something else; line feeds and tabs are none of them."""
    if text.isascii() and text.isprintable():
        return []
    found: list[int] = []
    for match in _SUSPECT.finditer(text):
        first = match.start()
        if match.group("marks"):
            found += range(first + 8, match.end())
            continue
        before = text[first - 1] if first else ""
        for place in range(first, match.end()):
            char, after = text[place], text[place + 1 : place + 2]
            belongs = not "\U000e0020" <= char <= "\U000e007e" and _belongs(char, before, after)
            if not belongs and char not in "\n\t":
                found.append(place)
            before = char if belongs else ""
    return found


def width(text: str) -> int:
    """Terminal cells that a cleaned one-line text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # costs 20 ms; most text is ASCII

    return cell_len(text)


def fit(text: str, cells: int, *, right: bool = False) -> str:
    """A cleaned one-line text in exactly this many cells: cut with ``…`` or padded."""
    text = _limited(text, cells, False)
    gap = " " * (cells - width(text))
    return gap + text if right else text + gap


def _limited(text: str, limit: int, cut: bool) -> str:
    if not cut and (len(text) <= limit // 2 or _cells(text) <= limit):
        return text
    if limit <= 0:
        return ""
    room = limit - 1
    kept = text[:room] if text[:limit].isascii() else _longest(text, room)
    return kept.rstrip(_CUT_OFF) + ELLIPSIS


def _longest(text: str, room: int) -> str:
    low, high = 0, min(len(text), 16 * room + 64)
    while low < high:
        middle = (low + high + 1) // 2
        if _cells(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _cells(text: str) -> int:
    return width(text) + (0 if text.isascii() else text.count("\n"))


def _shown(match: re.Match[str], multiline: bool) -> str:
    run = match.group()
    if run == "\r\n":
        return "\n" if multiline else NEWLINE
    if "\U000e0020" <= run[0] <= "\U000e007e":
        return f"‹tags {''.join(chr(ord(c) - 0xE0000) for c in run)}›"
    if match.group("marks"):
        return run[:8] + "".join(map(_named, run[8:]))
    text = match.string
    before = text[match.start() - 1] if match.start() else ""
    after = text[match.end()] if match.end() < len(text) else ""
    return _each(run, before, after, multiline)


def _each(run: str, before: str, after: str, multiline: bool) -> str:
    out, last = [], before
    for index, char in enumerate(run):
        following = run[index + 1] if index + 1 < len(run) else after
        if _belongs(char, last, following):
            out.append(char)
            last = char
        else:
            out.append(_picture(char, multiline))
            last = ""
    return "".join(out)


def _belongs(char: str, last: str, following: str) -> bool:
    """True for the joiners and selectors that writing and emoji need where they stand."""
    if not last:
        return False
    if char in "\ufe0e\ufe0f":
        return last in "#*0123456789" or (last > "\x7f" and unicodedata.category(last)[0] in "SP")
    if char == "\u200d" and following:
        symbols = unicodedata.category(last) in ("So", "Sk") or last == "\ufe0f"
        return (symbols and unicodedata.category(following) == "So") or _script(last, following)
    return char == "\u200c" and bool(following) and _script(last, following)


def _script(last: str, following: str) -> bool:
    """Arabic and Indic letters: scripts that spell with joiners."""
    return all("\u0620" <= c <= "\u0dff" and unicodedata.category(c)[0] in "LM" for c in (last, following))


def _picture(char: str, multiline: bool) -> str:
    if char == "\n":
        return "\n" if multiline else NEWLINE
    if char == "\t":
        return " "
    if char < "\x20":
        return chr(0x2400 + ord(char))
    return "␡" if char == "\x7f" else _named(char)


def _named(char: str) -> str:
    return f"‹U+{ord(char):04X}›"
