"""Days as people have them: local dates of moments, right on the days when clocks change."""

from __future__ import annotations

from datetime import datetime, timedelta

SECOND = 1_000_000
_STEP = 7 * 86400
DAY = 86400 * SECOND
_FURTHEST = 253_402_000_000  # seconds: the year 9999


def local_day(at: str, first: int | None, last: int | None) -> str:
    """SQL for the local day (days since 1970-01-01) of the µs in ``at``, which lie between ``first`` and ``last``."""
    changes = offsets(first or 0, last if last is not None else (first or 0))
    cases = "".join(f" when {at} < {until} then {offset}" for until, offset in changes[:-1] if until is not None)
    offset = f"case{cases} else {changes[-1][1]} end" if cases else str(changes[-1][1])
    return f"(({at} + {offset}) // {DAY})::integer"


def offsets(first: int, last: int) -> list[tuple[int | None, int]]:
    """The zone's offsets (µs) between two moments: each with the moment at which it ends, the last with None."""
    start, end = (min(max(at // SECOND, -2_000_000_000), _FURTHEST) for at in (first, last))
    found: list[tuple[int | None, int]] = []
    at, offset = start, _offset(start)
    while at < end:
        after = min(at + _STEP, end)
        if _offset(after) != offset:
            change = _change(at, after, offset)
            found.append((change * SECOND, offset * SECOND))
            at, offset = change, _offset(change)
        else:
            at = after
    return [*found, (None, offset * SECOND)]


def _change(low: int, high: int, offset: int) -> int:
    """The first second after ``low`` that has another offset; ``high`` has one."""
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(second: int) -> int:
    """Seconds that the local clock (``TZ``) is ahead of UTC at a moment."""
    moment = datetime.fromtimestamp(second).astimezone()
    return round((moment.utcoffset() or timedelta()).total_seconds())
