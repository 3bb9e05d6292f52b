"""Which of a run's turns are set aside, each once: those in cycles, answers asked for again, calls that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...tracer.model import Turn
from .account import Account, Entry

_LOST = ("error", "abandoned", "cancelled", "interrupted")


def set_aside(account: Account, usual_turns: int | None = None) -> dict[int, str]:
    """Turn numbers with their cause: cycles before retries before failed calls.

    Of a cycle the first lap is work, unless the run without it has still as many turns as usual: then it, too, is more
    than the usual run did.

    Args:
        usual_turns: Turns of the usual run that are not set aside; None where there is none.
    """
    last = max((e.number for e in account.entries), default=0)
    own = {e.number for e in account.entries}
    found: dict[int, str] = {}
    first_laps: list[list[int]] = []
    for cycle in account.cycles:
        lap = cycle.period if cycle.kind != "chant" else len(cycle.turns)
        wasted = cycle.turns[lap:] if cycle.wasted.turns else ()
        found |= {n: "cycles" for n in wasted if n in own}
        if wasted:
            first_laps.append([n for n in cycle.turns[:lap] if n in own])
    for entry in account.entries:
        if entry.number not in found and (cause := _lost(entry, last)):
            found[entry.number] = cause
    for lap_turns in first_laps if usual_turns is not None else ():
        rest = [n for n in lap_turns if n not in found]
        if len(own) - len(found) - len(rest) >= (usual_turns or 0):
            found |= dict.fromkeys(rest, "cycles")
    return found


def _lost(entry: Entry, last: int) -> str | None:
    turn = entry.turn
    if entry.again or (turn.status in _LOST and turn.number != last):
        return "retries"
    if turn.status in _LOST:
        return "failed_calls" if turn.status == "error" else None
    calls = [c for c in turn.tool_calls if c.origin != "provider"]
    return "failed_calls" if calls and all(c.is_error or not c.valid for c in calls) else None


def pairs(mine: Sequence[Entry], usual: Sequence[Entry]) -> list[tuple[Entry | None, Entry | None]]:
    """The turns of two runs side by side: equal calls first, the others in order.

    None stands only where one run has more turns than the other: as many times as it has more.
    """
    import difflib

    keys_a, keys_b = [_key(e.turn) for e in mine], [_key(e.turn) for e in usual]
    found: list[tuple[Entry | None, Entry | None]] = []
    left_a: list[Entry] = []
    left_b: list[Entry] = []
    for _, a0, a1, b0, b1 in difflib.SequenceMatcher(None, keys_a, keys_b, autojunk=False).get_opcodes():
        both = min(a1 - a0, b1 - b0)
        found += zip(mine[a0 : a0 + both], usual[b0 : b0 + both], strict=True)
        left_a += mine[a0 + both : a1]
        left_b += usual[b0 + both : b1]
    both = min(len(left_a), len(left_b))
    found += zip(left_a[:both], left_b[:both], strict=True)
    return [*found, *((e, None) for e in left_a[both:]), *((None, e) for e in left_b[both:])]


def refused(turns: Sequence[Turn]) -> Mapping[int, list[str]]:
    """Refused attempts by turn, as words: ``429``, or the name of the error."""
    found: dict[int, list[str]] = {}
    for turn in turns:
        tries = turn.attempts[:-1] if turn.status == "ok" else turn.attempts[1:]
        if len(turn.attempts) > 1:
            found[turn.number] = [str(a.status or a.error_type or "no answer") for a in tries]
    return found


def _key(turn: Turn) -> tuple[tuple[str, str], ...]:
    return tuple((c.name, c.arguments_raw) for c in turn.tool_calls)
