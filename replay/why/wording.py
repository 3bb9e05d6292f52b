"""What a part says in one line: turns, tools, models and messages by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from .account import Account, Entry, callers
from .causes import spans
from .sorting import refused

WHOLE_TURNS = ("cycles", "retries", "failed_calls", "sub_agents", "extra_turns")
"""Causes that are whole turns, so that every turn of them is named."""


def what(cause: str, at: Sequence[int], amount: Decimal, turns: Decimal, mine: Account, other: Account | None) -> str:
    """One line for a part of the difference."""
    where = spans(at) if at else ""
    say = {
        "cycles": _cycles,
        "retries": _retries,
        "failed_calls": _failed,
        "sub_agents": _sub_agents,
        "dearer_model": _models,
        "cache_breaks": _breaks,
        "larger_context": _context,
        "longer_outputs": _outputs,
    }.get(cause)
    if not at and amount < 0:
        return _fewer(turns) if cause == "extra_turns" else "The usual run had more of it"
    if cause == "extra_turns":
        saved = "" if turns >= 0 else f"; {_fewer(turns)} in all"
        return f"{where}{saved}"
    if cause == "unexplained":
        return "The median lies between runs, or the prices of the two runs do not tell"
    return say(mine, other, at, where) if say is not None else where


def callers_at(mine: Account, at: Sequence[int]) -> tuple[str, ...]:
    """Where the turns of a part were called from."""
    wanted = set(at)
    return callers([e.turn for e in mine.entries if e.number in wanted])


def refused_words(mine: Account) -> str:
    """Refused attempts in words, empty when there were none: ``3 attempts refused (429, 529), 14 s waited``."""
    found = refused([e.turn for e in mine.entries])
    words = Counter(w for said in found.values() for w in said)
    if not words:
        return ""
    waited = sum(a.wait_ms or 0 for e in mine.entries for a in e.turn.attempts) / 1000
    count = sum(words.values())
    said = ", ".join(f"{w} ×{n}" if n > 1 else w for w, n in words.most_common(4))
    return f"{count:,} {'attempt' if count == 1 else 'attempts'} refused ({said}) in {spans(list(found))}, {waited:.0f} s waited"


def _fewer(turns: Decimal) -> str:
    return f"{abs(turns):g} {'turn' if abs(turns) == 1 else 'turns'} fewer"


def _cycles(mine: Account, _: Account | None, at: Sequence[int], where: str) -> str:
    found = [c for c in mine.cycles if set(c.turns) & set(at)]
    if not found:
        return where
    largest = max(found, key=lambda c: (c.wasted.usd or 0, c.wasted.turns))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{largest.sentence}{more}"


def _retries(mine: Account, _: Account | None, at: Sequence[int], where: str) -> str:
    words = refused_words(mine)
    if not at:
        return words
    return f"{where}: answers that were lost or asked for again" + (f"; {words}" if words else "")


def _failed(mine: Account, _: Account | None, at: Sequence[int], where: str) -> str:
    wanted = set(at)
    names = Counter(c.name for e in mine.entries if e.number in wanted for c in e.turn.tool_calls)
    said = ", ".join(f"{n} ×{k}" if k > 1 else n for n, k in names.most_common(4))
    return f"{where}: {said} failed" if said else f"{where}: the model call failed"


def _sub_agents(mine: Account, other: Account | None, at: Sequence[int], where: str) -> str:
    names = Counter(c.name or c.run[:8] for c in mine.children)
    said = ", ".join(f"{n} ×{k}" if k > 1 else n for n, k in names.most_common(4))
    turns = sum(c.turns for c in mine.children)
    usual = f"; {len(other.children)} usual" if other is not None else ""
    return f"{where}: {len(mine.children)} started ({said}), {turns:,} turns{usual}" if at else f"{said}{usual}"


def _models(mine: Account, other: Account | None, at: Sequence[int], where: str) -> str:
    theirs = _model_names(other.entries if other else ())
    wanted = set(at)
    ours = _model_names([e for e in mine.entries if e.number in wanted] or mine.entries)
    return f"{where}: {ours} instead of {theirs}" if ours != theirs else f"{where}: {ours} at another price"


def _model_names(entries: Sequence[Entry]) -> str:
    names = Counter(e.turn.model or "an unnamed model" for e in entries)
    return ", ".join(n for n, _ in names.most_common(2)) or "no model"


def _breaks(mine: Account, _: Account | None, at: Sequence[int], where: str) -> str:
    found = [(n, mine.breaks[n]) for n in at if n in mine.breaks]
    if not found:
        return "the usual run's cache broke more" if not at else where
    if all(b.what == "nothing was cached" for _, b in found):
        return f"{where}: nothing was cached, the usual run's requests were"
    number, largest = max(found, key=lambda f: f[1].tokens)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    said = f" {largest.what};" if largest.what else ""
    return f"turn {number}:{said} {largest.tokens:,} cached tokens paid in full again{more}"


def _context(mine: Account, other: Account | None, at: Sequence[int], where: str) -> str:
    ours = _mean([e.turn.usage.context for e in mine.entries])
    if other is None:
        return f"{ours:,} tokens read a turn, most in {where}"
    theirs = _mean([e.turn.usage.context for e in other.entries])
    return f"{ours:,} tokens read a turn, {theirs:,} usual; most in {where}"


def _outputs(mine: Account, other: Account | None, at: Sequence[int], where: str) -> str:
    ours = _mean([e.turn.usage.output for e in mine.entries])
    if other is None:
        return f"{ours:,} tokens written a turn, most in {where}"
    theirs = _mean([e.turn.usage.output for e in other.entries])
    return f"{ours:,} tokens written a turn, {theirs:,} usual; most in {where}"


def _mean(counts: Sequence[int | None]) -> int:
    known = [c for c in counts if c is not None]
    return round(sum(known) / len(known)) if known else 0
