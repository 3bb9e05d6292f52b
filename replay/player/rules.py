"""The named rules of matching: what may differ in a text from run to run without being another request.

Each rule takes a text and gives it with placeholders, and the pieces that it replaced. They are narrow on purpose:
ids only where shaped as ids, dates in results only where they are a clock reading, never a number.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Where = Literal["open", "result", "data"]
"""Where a text stands: said by people, program or model; inside a tool's result; inside arguments or a schema."""

Applied = tuple[str, tuple[str, ...]]
Step = Callable[[str, Where], Applied]

UNICODE, REMINDERS, IDS, DATES, PATHS = "unicode-form", "reminders", "ids", "dates", "paths"

_REMINDER = re.compile(
    r"\s*(?:<system-reminder>.*?</system-reminder>"
    r"|<system_warning>\s*Token usage:.*?</system_warning>"
    r"|<budget:token_budget>\d+</budget:token_budget>"
    r"|Token usage: \d+/\d+; \d+ remaining)",
    re.DOTALL,
)
_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?:toolu|call|msg|req|resp|fc|rs|run|sess|session|thread|conv|chatcmpl)[_-](?:vrtx_|bdrk_)?"
    r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{14,}"
    r"|[0-7](?=[0-9A-Z]*[0-9])(?=[0-9]*[A-Z])[0-9A-HJKMNP-TV-Z]{25}"
    r")(?![0-9A-Za-z])"
)
_DAY = r"\d{4}[-/](?:0[1-9]|1[0-2])[-/](?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT)\b|\s?[+-]\d{2}:?\d{2}\b)?"
_WEEKDAY = r"(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_DATE = re.compile(
    rf"(?<![\w-])(?:{_DAY}(?P<iso>[T ]{_CLOCK}{_ZONE})?"
    rf"|(?:{_WEEKDAY},? )?(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {_MONTH} \d{{4}})(?P<said>,? {_CLOCK}{_ZONE})?"
    rf"|{_WEEKDAY} {_MONTH} [ \d]\d (?P<ctime>{_CLOCK})(?: [A-Z]{{3,4}})? \d{{4}}"
    r")(?![\w-])"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TMP = re.compile(
    r"(?<![\w./-])(?:/private)?(?:/var/folders/[\w+-]+/[\w+-]+/T|/var/tmp|/tmp)"
    r"(?:/pytest-of-[^/\s\"']+/pytest-\d+|/tmp[A-Za-z0-9_]{6,12}(?![\w.-]))?(?![\w.-])"
)
_HOME = re.compile(r"(?<![\w./-])/(?:home|Users)/[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a recording and this process have around them.

    Attributes:
        roots: Working and project directories of both.
        days: The days of the recording and of now, a day more on either side.
    """

    roots: tuple[str, ...] = ()
    days: frozenset[dt.date] = frozenset()


def around(roots: Iterable[str | None], instants_us: Iterable[int | None]) -> Surroundings:
    """Surroundings from directories and from times in microseconds since the epoch."""
    kept = {r.rstrip("/") for r in roots if r and len(r) > 4 and r.count("/") > 1}
    days: set[dt.date] = set()
    for at in instants_us:
        if at is not None and 0 < at < 4_000_000_000_000_000:
            day = dt.datetime.fromtimestamp(at / 1e6, dt.UTC).date()
            days |= {day + dt.timedelta(days=d) for d in (-1, 0, 1)}
    return Surroundings(tuple(sorted(kept, key=lambda r: (-len(r), r))), frozenset(days))


def steps(
    surroundings: Surroundings, users: Iterable[tuple[str, Callable[[str], str]]] = ()
) -> tuple[tuple[str, Step], ...]:
    """The rules by name, in the order in which they apply; the user's own come last."""
    builtin: tuple[tuple[str, Step], ...] = (
        (UNICODE, _unicode),
        (REMINDERS, _reminders),
        (IDS, _ids),
        (DATES, _dates(surroundings.days)),
        (PATHS, _paths(surroundings.roots)),
    )
    return builtin + tuple((name, _users(function)) for name, function in users)


def _unicode(text: str, where: Where) -> Applied:
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text, ()
    return unicodedata.normalize("NFC", text), (text,)


def _reminders(text: str, where: Where) -> Applied:
    if where == "data" or ("<" not in text and "Token usage" not in text):
        return text, ()
    found: list[str] = []
    while matches := _REMINDER.findall(text):
        found += matches
        text = _REMINDER.sub("", text).strip()
    return text, tuple(found)


def _ids(text: str, where: Where) -> Applied:
    return _replaced(_ID, "<id>", text)


def _dates(days: frozenset[dt.date]) -> Step:
    """Times of day with their date wherever somebody speaks; all else only where it is a day of then or of now."""

    def apply(text: str, where: Where) -> Applied:
        found: list[str] = []

        def one(match: re.Match[str]) -> str:
            timed = match["iso"] or match["said"] or match["ctime"]
            if not (timed and where == "open") and _day(match[0]) not in days:
                return match[0]
            found.append(match[0])
            return "<time>" if timed else "<date>"

        return _DATE.sub(one, text), tuple(found)

    return apply


def _day(text: str) -> dt.date | None:
    """The day that a date names, None when there is no such day."""
    numbers = [int(n) for n in re.findall(r"(?<![:.,\d+])\d+(?![:\d])", text)]
    year = next((n for n in numbers if n > 31), None)
    rest = [n for n in numbers if n <= 31]
    named = next((_MONTHS.index(w.lower()) + 1 for w in re.findall(r"[A-Za-z]{3}", text) if w.lower() in _MONTHS), None)
    try:
        if named is not None and year is not None and rest:
            return dt.date(year, named, rest[0])
        return dt.date(int(text[:4]), int(text[5:7]), int(text[8:10]))
    except ValueError:
        return None


def _paths(roots: tuple[str, ...]) -> Step:
    own = re.compile("|".join(rf"(?<![\w./-]){re.escape(r)}(?![\w.-])" for r in roots)) if roots else None

    def apply(text: str, where: Where) -> Applied:
        if "/" not in text:
            return text, ()
        found: list[str] = []
        for pattern, mark in ((own, "<cwd>"), (_TMP, "<tmp>"), (_HOME, "<home>")):
            if pattern is not None:
                text, pieces = _replaced(pattern, mark, text)
                found += pieces
        return text, tuple(found)

    return apply


def _users(function: Callable[[str], str]) -> Step:
    def apply(text: str, where: Where) -> Applied:
        changed = function(text)
        return (changed, (text,)) if isinstance(changed, str) and changed != text else (text, ())

    return apply


def _replaced(pattern: re.Pattern[str], mark: str, text: str) -> Applied:
    found: list[str] = []

    def one(match: re.Match[str]) -> str:
        found.append(match[0])
        return mark

    return pattern.sub(one, text), tuple(found)
