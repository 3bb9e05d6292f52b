"""Whether a line may hold a secret at all: a few searches over its bytes, so that clean lines cost next to nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .. import redaction

Search = Callable[[bytes], Any]

# Pieces of words by how rare they are in text: what the search jumps to. A word that holds none of them is
# searched for as it stands.
_ANCHORS = ("J", "V", "A", "x", "k", "g", "p", "hf", "ar")


def searches(words: Iterable[bytes]) -> tuple[Search, ...]:
    """Searches that together find every line which holds one of the words.

    Each begins with a rare piece that some words share, and looks at what stands around it only there: the
    engine jumps from one such piece to the next, which takes a quarter of the time of ``word in line`` for each.
    """
    names = sorted({w.decode() for w in words})
    groups: dict[str, list[str]] = {}
    for name in names:
        if any(other != name and other in name for other in names):
            continue  # whoever finds the shorter one finds this
        anchor = next((a for a in _ANCHORS if a in name), name)
        before, _, after = name.partition(anchor)
        look = f"(?<={re.escape(before + anchor)})" if before else ""
        groups.setdefault(anchor, []).append(look + re.escape(after))
    return tuple(_search(anchor, rests) for anchor, rests in groups.items())


def _search(anchor: str, rests: list[str]) -> Search:
    around = f"(?:{'|'.join(rests)})" if all(rests) else ""  # the piece may be a word itself
    return re.compile((re.escape(anchor) + around).encode()).search


_SEARCHES = searches(w.encode() for kind, words, _ in redaction._PATTERNS if kind != "url-password" for w in words)
# a password in a URL: wider than what is taken out, since its letters may be written as escapes here
_URL = re.compile(rb"://[^\s/@\"]{3,2000}@").search
# ASCII that is written as an escape may hide one of the words
_ESCAPED = re.compile(rb"\\u00[2-7]").search
_ESCAPED_URL = re.compile(rb"/(?<=:\\/)").search


def may_hold_secret(line: bytes) -> bool:
    """False when no text of this JSON line holds what `redaction` takes out: then nothing needs to be looked at."""
    if redaction._known or redaction.has_own_functions():
        return True
    for search in _SEARCHES:
        if search(line):
            return True
    if b"@" in line and _URL(line):
        return True
    return (b"\\u00" in line and _ESCAPED(line) is not None) or _ESCAPED_URL(line) is not None
