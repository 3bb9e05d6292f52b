"""L06: no policy for parallel calls of which some fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .facts import CallFacts, RunFacts
from .failures import CANCELLED
from .rule import Finding, Said, Severity, counted, quote, span

ID = "L06"
TITLE = "Partial failure of parallel calls"
FIX = (
    "Settle all calls of a turn, pair each result with its id and report each by itself, the failed ones as errors; "
    "keep the results of those that worked."
)
SOON = 2
"""Turns in which a sibling that worked is done again: later it may be needed anew."""
THRESHOLDS = {"soon": SOON}

_BLAMED = re.compile(
    r"sibling|(?:another|other|previous|earlier|one of the) (?:parallel |tool |of the )*calls? .{0,30}(?:fail|error|abort|cancel|reject)"
    r"|(?:batch|whole group|all (?:parallel )?calls) .{0,20}(?:fail|abort|cancel)",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(r"[\w./:@-]{4,}")
_CHANGES = ("mutate", "command", "actuate")


def check(facts: RunFacts) -> Iterator[Said]:
    """Calls without a result, calls failed for another's sake, and calls done again though they had worked."""
    soon = int(facts.thresholds(ID, THRESHOLDS)["soon"])
    blamed: list[CallFacts] = []
    for number, calls in facts.by_turn.items():
        if len(calls) < 2:
            continue
        lost = unpaired(facts, number)
        if lost:
            said = f"{len(lost)} of {len(calls)} parallel calls of turn {number} never got a result"
            yield _finding(facts, "error", number, number, lost, said, 0.95)
            continue
        blamed += _blamed(calls)
        again = _again(facts, number, calls, soon)
        if again:
            yield _redone(facts, number, again)
    if blamed:
        yield _not_run(facts, blamed)


def unpaired(facts: RunFacts, number: int) -> list[CallFacts]:
    """The calls of a turn with several that never got a result, though the loop went on or ended by itself."""
    calls = facts.by_turn.get(number, ())
    lost = [c for c in calls if c.unanswered]
    last = number == facts.turns[-1].number
    if len(calls) < 2 or (last and (facts.ended_by in ("cut", "running", "guard") or len(lost) == len(calls))):
        return []  # the run ended before they could be answered: that is no policy
    return lost


def _blamed(calls: tuple[CallFacts, ...]) -> list[CallFacts]:
    failed = [c for c in calls if c.failed and c.text]
    found = [c for c in failed if _BLAMED.search((c.text or "")[:500])]
    for call in failed:
        if call.failure == CANCELLED:  # a person's word goes to all of them
            continue
        twins = [c for c in failed if c is not call and c.text == call.text and c.key != call.key and c not in found]
        found += [c for c in twins if _speaks_of(call, c)]
    return found


def _speaks_of(owner: CallFacts, other: CallFacts) -> bool:
    """True when the text that both got names something of the one's arguments that the other has not."""
    mine = set(_SPECIFIC.findall(owner.call.arguments_raw)) - set(_SPECIFIC.findall(other.call.arguments_raw))
    theirs = set(_SPECIFIC.findall(other.call.arguments_raw)) - set(_SPECIFIC.findall(owner.call.arguments_raw))
    said = set(_SPECIFIC.findall((owner.text or "")[:2000]))
    return bool(mine & said) and not theirs & said


def _again(facts: RunFacts, number: int, calls: tuple[CallFacts, ...], soon: int) -> list[CallFacts]:
    """Successful calls of a turn with a failed one that are made again, nothing having changed between."""
    if not any(c.failed for c in calls) or all(c.failed for c in calls):
        return []
    worked = {c.key: c for c in calls if c.failed is False and c.effect not in ("poll", "bookkeeping")}
    if any(c.effect in _CHANGES and c.key not in worked for c in calls):
        return []
    found: list[CallFacts] = []
    for later in range(number + 1, number + soon + 1):
        turn = facts.turn(later)
        if turn is None or turn.user_turn:
            break
        following = facts.by_turn.get(later, ())
        found += [c for c in following if c.key in worked and not c.check]
        if any(c.effect in _CHANGES and c.key not in worked and not c.failed for c in following):
            break
    return found


def _not_run(facts: RunFacts, blamed: list[CallFacts]) -> Finding:
    """One finding for the run: it is one policy, however often it strikes."""
    turns = [c.turn for c in blamed]
    return _finding(
        facts, "error", min(turns), max(turns), blamed,
        f"{counted(len(blamed), 'parallel call')} failed because another one of the turn did ({span(turns)})", 0.8,
    )  # fmt: skip


def _redone(facts: RunFacts, number: int, again: list[CallFacts]) -> Finding:
    changing = [c for c in again if c.effect in ("mutate", "actuate")]
    what = f"; {changing[0].name} changes something each time" if changing else ""
    numbers = sorted({c.turn for c in again})
    alone = [n for n in numbers if all(c in again for c in facts.by_turn[n])]
    return _finding(
        facts, "error" if changing else "warning", number, numbers[-1], again,
        f"One of the parallel calls of turn {number} failed, and {len(again)} that had worked were made again "
        f"in {span(numbers)}{what}",
        0.8, alone,
    )  # fmt: skip


def _finding(
    facts: RunFacts, severity: Severity, first: int, last: int, calls: list[CallFacts], message: str, confidence: float,
    wasted: Iterable[int] = (),
) -> Finding:  # fmt: skip
    shown = tuple(f"turn {c.turn}: {c.short}" + (f": {quote(c.text, 100)}" if c.text else "") for c in calls[:4])
    return Finding(ID, severity, facts.run.id, first, last, message, shown, facts.waste(wasted), confidence, FIX)
