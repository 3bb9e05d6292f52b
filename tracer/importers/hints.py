"""Whether lines may hold a secret at all: a few searches over their bytes, so that clean lines cost next to nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from .. import redaction

Search = Callable[[bytes], Any]

# Pieces of words by how rare they are in text: what the search jumps to. A word that holds none of them is
# searched for as it stands.
_ANCHORS = ("J", "x", "_", "-", "A", "ar")

# a known secret is looked for by its longest part that JSON writes in one way only
_PLAIN = re.compile(r"[A-Za-z0-9_.,:;=+~!#$%^&*@|?()<>\[\]{} -]+")
_LEAST = 4
_SINGLY = 6  # beyond so many, one search for all is faster than one for each


def searches(words: Iterable[bytes]) -> tuple[Search, ...]:
    """Searches that together find every line which holds one of the words.

    Each begins with a rare piece that some words share, and looks at what stands around it only there: the
    engine jumps from one such piece to the next, which takes a quarter of the time of ``word in line`` for each.
    """
    groups: dict[str, list[str]] = {}
    for name in redaction.shortest({w.decode() for w in words}):
        anchor = next((a for a in _ANCHORS if a in name), name)
        before, _, after = name.partition(anchor)
        look = f"(?<={re.escape(before + anchor)})" if before else ""
        groups.setdefault(anchor, []).append(look + re.escape(after))
    return tuple(_search(anchor, rests) for anchor, rests in groups.items())


def _search(anchor: str, rests: list[str]) -> Search:
    around = f"(?:{'|'.join(rests)})" if all(rests) else ""  # the piece may be a word itself
    return re.compile((re.escape(anchor) + around).encode()).search


_SEARCHES = searches(w.encode() for w in redaction.words() if w != "://")
# a password in a URL: wider than what is taken out, since its letters may be written as escapes here
_URL = re.compile(rb"://[^\s/@\"]{3,2000}@").search
# ASCII that is written as an escape may hide one of the words
_ESCAPED = re.compile(rb"\\u00[2-7]").search
_ESCAPED_URL = re.compile(rb"/(?<=:\\/)").search


def may_hold_secret(lines: bytes) -> bool:
    """False when no text of these JSON lines holds what `redaction` takes out: then nothing needs to be looked at."""
    if redaction.has_own_functions():
        return True
    for search in _SEARCHES:
        if search(lines):
            return True
    if b"@" in lines and _URL(lines):
        return True
    if (b"\\u00" in lines and _ESCAPED(lines) is not None) or _ESCAPED_URL(lines) is not None:
        return True
    known = redaction.known()
    return bool(known) and _holds_known(lines, known)


def _holds_known(lines: bytes, known: tuple[str, ...]) -> bool:
    needles, search = _needles(known)
    return any(needle in lines for needle in needles) if search is None else search(lines) is not None


@lru_cache(maxsize=4)
def _needles(known: tuple[str, ...]) -> tuple[tuple[bytes, ...], Search | None]:
    """What any line with one of these secrets holds, however its JSON is written, except as escaped ASCII."""
    parts = {max(_PLAIN.findall(secret), key=len, default="") for secret in known}
    if any(len(part) < _LEAST for part in parts):
        return (b"",), None  # nothing to go by: every line is looked at
    fewest = [p.encode() for p in redaction.shortest(parts)]
    return tuple(fewest), re.compile(b"|".join(map(re.escape, fewest))).search if len(fewest) > _SINGLY else None
