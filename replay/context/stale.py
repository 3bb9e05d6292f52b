"""Results that nothing refers to any more, judged by words: what the answers from a turn on still say of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...tracer.canonical import canonical
from ...tracer.model import ToolCall, Turn
from ...tracer.store.text import loads
from .answers import Stale
from .pieces import Entry, Piece

RULE = (
    "a result counts as used by an answer whose words, thinking or arguments hold a telling word of it (a name, number "
    "or path part that the prompt does not have), or 3 plain ones; superseded: the same call was made again"
)
_WORD = re.compile(r"[\w.-]+")
_SPACES = str.maketrans({c: " " for c in map(chr, range(128)) if not (c.isalnum() or c in "_.-")})
_ENDS = ".-"
_TELLING = re.compile(r"[\d_.-]|.[A-Z]")
_PLAIN, _NEEDED = 5, 3  # letters of a plain word, and how many of them make a reference
_EVERYWHERE, _LEAST = 0.25, 4  # a word in more of the results than this says nothing about one of them


def stale(entries: Sequence[Entry], prompt: Iterable[Piece], turns: Sequence[Turn], number: int) -> list[Stale]:
    """Results in the window of turn ``number`` that no answer from there on refers to, the largest first.

    Args:
        entries: The window's messages.
        prompt: Pieces of the system text, the tools and the users' messages: their words tell nothing.
        turns: All turns of the run, also those after ``number``.
    """
    known = {w.strip(_ENDS) for piece in prompt for w in _words(piece.text)}
    mentions = {w: last for w, last in _mentions(turns).items() if w not in known and (_tells(w) or len(w) >= _PLAIN)}
    spelled = {w + end: w for w in mentions for end in ("", ".", "-", "...")}  # as they stand at the end of a sentence
    results = [(e, p) for e in entries for p in e.pieces if p.origin == "result"]
    calls = _calls(turns, results)
    again = {(name, arguments): turn for turn, name, arguments in sorted(c for c in calls if c is not None)}
    words = [{spelled[w] for w in filter(spelled.__contains__, _words(p.text))} for _, p in results]
    common = Counter(w for found in words for w in found)
    most = max(_LEAST, _EVERYWHERE * len(results))
    found = []
    for (entry, piece), call, own in zip(results, calls, words, strict=True):
        if entry.since >= number:
            continue  # it just came in
        used = _last_use([w for w in own if common[w] < most], mentions, entry.since)
        last = again[call[1:]] if call else None
        superseded = last if call and last != call[0] else None
        if superseded is not None or used is None or used < number:
            turn = call[0] if call else None
            carried = number - entry.since + 1
            found.append(Stale(piece.call, piece.tool, turn, round(piece.tokens), used, superseded, carried))
    return sorted(found, key=lambda s: -s.tokens)


def _calls(turns: Sequence[Turn], results: Sequence[tuple[Entry, Piece]]) -> list[tuple[int, str, str] | None]:
    """Turn, tool and arguments of the call that each result answers; an id may be used again, the latest counts."""
    made: dict[str, list[tuple[int, ToolCall]]] = {}
    for turn in turns:
        for call in turn.tool_calls:
            made.setdefault(call.id, []).append((turn.number, call))
    found: list[tuple[int, str, str] | None] = []
    for entry, piece in results:
        earlier = [(n, c) for n, c in made.get(piece.call or "", ()) if n < entry.since]
        found.append(_made(*earlier[-1]) if earlier else None)
    return found


def _made(number: int, call: ToolCall) -> tuple[int, str, str]:
    return number, call.name, canonical(loads(call.arguments_raw))


def _mentions(turns: Sequence[Turn]) -> dict[str, int]:
    """The last turn whose answer holds a word."""
    last: dict[str, int] = {}
    for turn in turns:
        texts = [turn.text or "", turn.thinking or "", *(c.arguments_raw for c in turn.tool_calls)]
        for word in _words(" ".join(texts)):
            last[word.strip(_ENDS)] = turn.number
    last.pop("", None)
    return last


def _words(text: str) -> list[str]:
    """Words with the full stops and dashes inside and after them; splitting plain text is twice as fast."""
    return text.translate(_SPACES).split() if text.isascii() else _WORD.findall(text)


def _last_use(own: Iterable[str], mentions: Mapping[str, int], since: int) -> int | None:
    """The last turn that refers to a result with these words, that came in with turn ``since``."""
    telling: list[int] = []
    plain: list[int] = []
    for word in own:
        last = mentions[word]
        if last >= since:
            (telling if _tells(word) else plain).append(last)
    if len(plain) >= _NEEDED:
        telling.append(sorted(plain)[-_NEEDED])
    return max(telling, default=None)


def _tells(word: str) -> bool:
    return len(word) >= 3 and _TELLING.search(word) is not None
