"""The filter language: `model:claude* error:yes turns:>20 tag.customer:4711 since:7d text:"a b"` as a Filter of the store."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..tracer.errors import UsageError

if TYPE_CHECKING:
    from ..tracer.store import Filter, Store

_PAIR = re.compile(r'(tag\.[^\s:"]+|[A-Za-z_][\w.-]*):(?:"((?:[^"\\]|\\.)*)"|(\S*))(?=\s|$)')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)')
_BOUND = re.compile(r"(>=|<=|>|<|=)?\$?(\d+(?:\.\d+)?)")
_RANGE = re.compile(r"\$?(\d+(?:\.\d+)?)\.\.\$?(\d+(?:\.\d+)?)")
_SPACED = re.compile(r"(?s)(tag\.[^\s:\"]+|[A-Za-z_][\w.-]*):(.*\s.*)")
_NEXT = re.compile(r"\s(tag\.[^\s:\"]+|[a-z]+):\S")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_EARLIEST = -(2**62)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the language: the field of Filter that it fills, and how its value is read (value, now) -> field."""

    field: str
    read: Callable[[str, int], Any]


def parse(text: str, now: int | None = None) -> Filter:
    """The runs that a filter text means: pairs ``key:value``, all of which must hold; bare words are ``text:``.

    Args:
        text: ``*`` in a value stands for any text; a value with spaces stands in double quotes (``\\"`` inside).
        now: Microseconds since the epoch that ``since:7d`` counts from; the present by default.

    Raises:
        UsageError: A key is not known (the nearest is named), stands there twice, or its value cannot be read.
    """
    from ..tracer.store import Filter

    now = time.time_ns() // 1000 if now is None else now
    given: dict[str, Any] = {}
    tags: list[tuple[str, str]] = []
    numbers: list[tuple[str, str, float]] = []
    for key, value in _pairs(text):
        if key.startswith("tag."):
            tags.append((key.removeprefix("tag."), _words(value, now)))
            continue
        if key in NUMBERS:
            numbers += _bounds(key, value)
            continue
        known = KEYS.get(key)
        if known is None:
            raise _unknown(key, value)
        if known.field in given:
            raise UsageError("bad-filter", f"{key}: stands twice in the filter", "Give it once; * stands for any text")
        if not value:
            raise UsageError("bad-filter", f"{key}: has no value", f'Write {key}:VALUE, or {key}:"A VALUE"')
        given[known.field] = known.read(value, now)
    return Filter(**given, tags=tuple(tags), numbers=tuple(numbers), limit=0)


def written(words: Sequence[str]) -> str:
    """The words of a command line as one filter text: quotes that the shell took away are put back."""
    return " ".join(_quoted(word) for word in words)


def ready(store: Store, given: Filter, tell: Callable[[str], None] | None = None) -> None:
    """Finds out what a filter asks for and the store has not looked at yet: which of its runs go round in circles.

    Args:
        tell: Is told the progress.
    """
    if given.cycle is not None or given.sort == "wasted":
        from .analytics.wasted import keep_cycles

        keep_cycles(store, replace(given, cycle=None, sort="time", limit=0), tell=tell)


def moment(text: str | None, now: int) -> int | None:
    """A moment in µs: ``30m``, ``12h``, ``7d``, ``2w`` ago, or an ISO date or time (local when no zone is given).

    Raises:
        UsageError: It is neither.
    """
    if not text:
        return None
    if text[:-1].isdecimal() and text[-1] in _SECONDS:
        return max(now - int(text[:-1]) * _SECONDS[text[-1]] * 1_000_000, _EARLIEST)
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1e6)
    except (ValueError, OverflowError, OSError):
        raise UsageError("bad-time", f"{text!r} is no time", "Use 30m, 12h, 7d, 2w or 2026-11-29") from None


def _words(value: str, _: int) -> str:
    return value


def _yes_or_no(value: str, _: int) -> bool:
    if value.lower() not in _YES:
        raise UsageError("bad-filter", f"{value!r} is neither yes nor no", "Write yes or no, as in error:yes")
    return _YES[value.lower()]


def _bounds(key: str, value: str) -> list[tuple[str, str, float]]:
    """``>20``, ``<=1.5``, ``7`` or ``5..10`` as bounds."""
    found = _RANGE.fullmatch(value)
    if found:
        return [(key, ">=", float(found[1])), (key, "<=", float(found[2]))]
    found = _BOUND.fullmatch(value)
    if not found:
        raise UsageError(
            "bad-filter", f"{key}:{value} is no number", f"Write {key}:>20, {key}:<=5, {key}:7 or {key}:5..10"
        )
    return [(key, found[1] or "=", float(found[2]))]


def _quoted(word: str) -> str:
    pair = _SPACED.fullmatch(word)
    if pair is None or pair[2].startswith('"') or (pair[1] != "text" and _several(pair[2])):
        return word
    escaped = pair[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{pair[1]}:"{escaped}"'


def _several(value: str) -> bool:
    """True when a value goes on with another key: a whole filter that the shell was given in one pair of quotes."""
    return any(k[1] in KEYS or k[1] in NUMBERS or k[1].startswith("tag.") for k in _NEXT.finditer(value))


NUMBERS = ("turns", "calls", "errors", "cost", "tokens", "seconds")
"""Keys whose value is a number with a bound."""
KEYS = {
    "project": Key("project", _words),
    "model": Key("model", _words),
    "tool": Key("tool", _words),
    "error": Key("error", _yes_or_no),
    "since": Key("since", moment),
    "text": Key("text", _words),
    "status": Key("status", _words),
    "task": Key("task", _words),
    "outcome": Key("outcome", _words),
    "name": Key("name", _words),
    "session": Key("session", _words),
    "agent": Key("agent", _words),
    "source": Key("source", _words),
    "cycle": Key("cycle", _yes_or_no),
}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Keys with their values as written; the bare words together as one ``text``, at the end."""
    bare: list[str] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        pair, quoted = _PAIR.match(text, position), _QUOTED.match(text, position)
        if pair:
            value = pair[3] if pair[2] is None else _plain(pair[2])
            if pair[2] is None and value.startswith('"'):
                raise UsageError("bad-filter", f"the quote after {pair[1]}: does not end", 'Close it with "')
            yield pair[1], value
            position = pair.end()
            continue
        if quoted:
            bare.append(_plain(quoted[1]))
            position = quoted.end()
            continue
        word = text[position:].split(maxsplit=1)[0]
        if ':"' in word or word.startswith('"'):
            raise UsageError("bad-filter", f"the quote at {word!r} does not end as it should", 'Close it with "')
        bare.append(word)
        position += len(word)
    if bare:
        yield "text", " ".join(bare)


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)


def _unknown(key: str, value: str) -> UsageError:
    near = difflib.get_close_matches(key.lower(), [*KEYS, *NUMBERS, "tag."], 1, 0.5)
    if key == "tag" or near == ["tag."]:
        return UsageError("bad-filter", f"the filter has no key {key!r}", f"Name the tag: tag.NAME:{value or 'VALUE'}")
    meant = f"Did you mean {near[0]}:{value}? " if near else ""
    return UsageError(
        "bad-filter",
        f"the filter has no key {key!r}",
        f'{meant}The keys are {", ".join((*KEYS, *NUMBERS))} and tag.NAME; words to look for: text:"..."',
    )
