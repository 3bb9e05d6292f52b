"""What is looked for: a text as it stands or a regular expression, and what a JSON text with it in it must hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...tracer.errors import UsageError

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "/": "\\/"}
_WEB = "<>&'+=/"  # some writers of JSON escape these too, for web pages
_COUNTED = re.compile(r"[*?{]")
_LITERAL = re.compile(r"[A-Za-z0-9_ ]+")
SHORTEST = 3  # a shorter word of a regular expression picks too little to be worth a look


@dataclass(frozen=True, slots=True)
class Needle:
    """What a search looks for.

    Attributes:
        plain: RE2 that a text with it in it matches.
        stored: RE2 that the JSON of a message with such a text in it matches; empty: each has to be read to know.
    """

    plain: str
    stored: str


def needle(text: str, *, regex: bool = False, case: bool | None = None) -> Needle:
    """What to look for.

    Args:
        regex: The text is a regular expression in RE2's syntax, else it is looked for as it stands.
        case: Whether capitals are told from small letters. None: those of a literal text are when it holds capitals; a
            regular expression says so itself, ``(?i)``.

    Raises:
        UsageError: There is nothing to look for.
    """
    if not text:
        raise UsageError("no-text", "there is nothing to look for", "Give the text, in quotes where it has spaces")
    if regex:
        fold = case is False
        words = _required(text)
        folded = fold or bool(re.search(r"\(\?[a-zA-Z]*i", text))
        return Needle(_folded(text, fold), "" if words is None else _folded("|".join(map(_json, words)), folded))
    fold = not (any(c.isupper() for c in text) if case is None else case)
    return Needle(_folded(re.escape(text), fold), _folded(_json(text, fold), fold))


def _folded(pattern: str, fold: bool) -> str:
    return f"(?i){pattern}" if fold else pattern


def _json(text: str, fold: bool = False) -> str:
    """RE2 for the ways in which a text may stand in JSON: letters as they are or escaped."""
    return "".join(_ways(c, fold) for c in text)


def _ways(char: str, fold: bool) -> str:
    if char.isascii() and (char.isalnum() or char in " _-.,:;()"):
        return re.escape(char)
    escapes = [_code(one) for one in dict.fromkeys((char, char.lower(), char.upper()) if fold else (char,))]
    ways = [f"(?i:{re.escape(code)})" for code in escapes if len(code) <= 12]
    if char in _SHORT:
        ways.append(re.escape(_SHORT[char]))
    if char >= " " and char != "\\":
        ways.append(re.escape(char))  # a quote stands for itself in arguments that were decoded
    return f"(?:{'|'.join(ways)})" if len(ways) > 1 else ways[0]


def _code(text: str) -> str:
    """``\\u00e9``, two of them for what lies beyond U+FFFF."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _required(pattern: str) -> list[str] | None:
    """Words of which every match holds one: the longest of the pattern, or of each of its alternatives.

    None when that cannot be said. It need not find all there are: what it finds only spares reading.
    """
    if "\\Q" in pattern or ("|" in pattern and "(" in pattern):
        return None
    found = [max(_words(branch), key=len, default="") for branch in pattern.split("|")]
    return None if any(len(word) < SHORTEST for word in found) else found


def _words(pattern: str) -> Iterator[str]:
    """Runs of letters, digits and spaces that stand in no group or class and are not optional."""
    at, depth = 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at = _after_escape(pattern, at)
        elif char == "[":
            at = _after_class(pattern, at)
        elif char == "{":
            at = max(pattern.find("}", at), at) + 1
        elif depth == 0 and (word := _LITERAL.match(pattern, at)):
            at = word.end()
            yield word[0][:-1] if _COUNTED.match(pattern, at) else word[0]
        else:
            depth += (char == "(") - (char == ")")
            at += 1


def _after_escape(pattern: str, at: int) -> int:
    r"""Past ``\d``, ``\x41``, ``\x{1F600}``, ``\pN``, ``\p{Greek}``, ``\123``."""
    known = re.compile(r"\\(?:[xpP]\{[^}]*\}|x[0-9A-Fa-f]{2}|[pP].|[0-7]{1,3}|.)", re.DOTALL).match(pattern, at)
    return known.end() if known else at + 1


def _after_class(pattern: str, at: int) -> int:
    """Past a class in brackets, whose first member may be ``]``."""
    at += 2 if pattern[at : at + 2] == "[^" else 1
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "\\":
            at = _after_escape(pattern, at)
        elif pattern[at : at + 2] == "[:":
            at = max(pattern.find(":]", at) + 2, at + 1)
        else:
            at += 1
    return at + 1
