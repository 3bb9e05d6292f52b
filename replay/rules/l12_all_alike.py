"""L12: failures that pass by themselves and failures that stay are treated alike."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from ...tracer.model import Attempt, Turn
from .facts import CallFacts, RunFacts
from .failures import DENIED, PERMANENT, RATE_STATUSES, TRANSIENT, failure_of_status
from .rule import Finding, Said, Unknown, counted, quote, span

ID = "L12"
TITLE = "All failures treated alike"
FIX_PERMANENT = (
    "Do not make a call again that failed for good: tell the model what is wrong with it, and refuse the same call until "
    "something was changed."
)
FIX_GIVEN_UP = (
    "Try a passing failure (timeout, reset, 5xx) again, 3 to 5 times with growing gaps, before it ends the run."
)
FIX_GAPS = "Let the gaps grow (double each, with some chance in them, 60 s at most): a service in trouble needs less, not more."
RETRIES = 2
"""Times that a call which failed for good is made again; the first may be a test whether it was a hiccup."""
CONSTANT_FROM = 3
"""Retries from which constant gaps are a policy and no chance."""
GROWTH = 1.3
"""Growth between gaps below which they do not grow; chance in a doubling leaves at least this."""
THRESHOLDS = {"retries": RETRIES, "constant_from": CONSTANT_FROM, "growth": GROWTH}

_DONE_BEFORE = re.compile(r"\b409\b|already (?:exists?|done|booked|cancelled|sent|applied)|duplicate", re.IGNORECASE)
_CHANGES = ("mutate", "command", "actuate", "unknown")


def check(facts: RunFacts) -> Iterator[Said]:
    """Lasting failures tried again, passing ones given up at once, retries without growing gaps."""
    at = facts.thresholds(ID, THRESHOLDS)
    if facts.calls and all(c.failed is None for c in facts.calls):
        yield Unknown(ID, facts.run.id, ("tool_calls.result", "tool_calls.is_error"))
    yield from _stubborn_calls(facts, at["retries"])
    yield from _stubborn_requests(facts, at["retries"])
    yield from _given_up(facts)
    yield from _constant(facts, int(at["constant_from"]), at["growth"])


def _stubborn_calls(facts: RunFacts, retries: float) -> Iterator[Finding]:
    """The same call after it failed for good, with nothing changed between."""
    failing: dict[str, list[CallFacts]] = {}
    done: list[list[CallFacts]] = []
    for call in facts.calls:
        turn = facts.turn(call.turn)
        if turn is not None and turn.user_turn and call.place == 1:
            done += failing.values()  # a person spoke between: that is a change
            failing = {}
        if call.failed and call.failure in (PERMANENT, DENIED) and not _DONE_BEFORE.search((call.text or "")[:500]):
            failing.setdefault(call.key, []).append(call)
        elif call.failed is False and call.effect in _CHANGES:
            done += failing.values()
            failing = {}
        elif call.key in failing:  # it failed otherwise, or it worked: it was no failure for good
            done.append(failing.pop(call.key))
    for calls in (*done, *failing.values()):
        turns = sorted({c.turn for c in calls})
        if len(turns) > retries:
            yield Finding(
                ID, "error", facts.run.id, turns[0], turns[-1],
                f"{calls[0].short} failed for good and was made again {counted(len(turns) - 1, 'time')}, unchanged ({span(turns)})",
                tuple(f"turn {c.turn}: {quote(c.text or '')}" for c in calls[:3]), facts.waste(turns[1:]), 0.85, FIX_PERMANENT,
            )  # fmt: skip


def _stubborn_requests(facts: RunFacts, retries: float) -> Iterator[Finding]:
    """A model call refused for good and sent again."""
    for same in _streaks(facts.turns):
        refused = [a for t in same for a in t.attempts if _class(a) == PERMANENT]
        again = max(len(refused), len(same)) - 1
        if again >= retries:
            numbers = [t.number for t in same]
            status = next((a.status for a in refused if a.status), None)
            yield Finding(
                ID, "error", facts.run.id, numbers[0], numbers[-1],
                f"The model's provider refused the request for good{f' ({status})' if status else ''}, and it was sent again {counted(again, 'time')} ({span(numbers)})",
                tuple(f"turn {t.number}: {quote(t.error or '')}" for t in same[:2]), facts.waste(numbers[1:]), 0.85, FIX_PERMANENT,
            )  # fmt: skip


def _streaks(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """Turns in a row that failed for good with the same words."""
    for (failed, _), group in itertools.groupby(turns, key=lambda t: (_refused(t), t.error)):
        if failed:
            yield list(group)


def _refused(turn: Turn) -> bool:
    last = turn.attempts[-1] if turn.attempts else None
    return turn.status == "error" and failure_of_status(last.status if last else None, turn.error) == PERMANENT


def _given_up(facts: RunFacts) -> Iterator[Finding]:
    if not facts.turns or facts.ended_by != "failure":
        return
    last = facts.turns[-1]
    final = last.attempts[-1] if last.attempts else None
    passing = (
        failure_of_status(final.status if final else None, last.error or (final.error if final else None)) == TRANSIENT
    )
    before = facts.turns[-2] if len(facts.turns) > 1 else None
    retried = len(last.attempts) > 1 or (before is not None and before.status == "error")
    if last.status == "error" and passing and not retried and (last.attempts or not facts.foreign):
        yield Finding(
            ID, "warning", facts.run.id, last.number, last.number,
            f"A passing failure of the model call ended the run at turn {last.number}, and nothing tried again",
            (quote(last.error or (final.error if final else None) or f"status {final.status if final else '?'}"),),
            facts.waste(t.number for t in facts.turns), 0.8, FIX_GIVEN_UP,
        )  # fmt: skip
        return
    calls = [c for c in facts.by_turn.get(last.number, ()) if c.failure == TRANSIENT]
    once = [c for c in calls if sum(d.key == c.key for d in facts.calls) == 1]
    if once:
        yield Finding(
            ID, "warning", facts.run.id, last.number, last.number,
            f"A passing failure of {once[0].name} ended the run at turn {last.number}, and nothing tried again",
            tuple(f"{c.short}: {quote(c.text or '', 120)}" for c in once[:2]),
            facts.waste(t.number for t in facts.turns), 0.7, FIX_GIVEN_UP,
        )  # fmt: skip


def _constant(facts: RunFacts, least: int, growth: float) -> Iterator[Finding]:
    """Retries of a model call at the same gap, or without any. Answers that say "slower" are L13's."""
    for turn in facts.turns:
        waits = [
            after.wait_ms / 1000 for before, after in itertools.pairwise(turn.attempts)
            if _class(before) == TRANSIENT and before.status not in RATE_STATUSES and after.wait_ms is not None
        ]  # fmt: skip
        if len(waits) >= least and not grows(waits, growth):
            gaps = ", ".join(f"{w:.1f} s" for w in waits[:6])
            yield Finding(
                ID, "warning", facts.run.id, turn.number, turn.number,
                f"The model call of turn {turn.number} was tried again {len(waits)} times without growing gaps ({gaps})",
                tuple(quote(f"{a.status or ''} {a.error or ''}".strip()) for a in turn.attempts[:2]), facts.waste(()), 0.8, FIX_GAPS,
            )  # fmt: skip


def grows(gaps: Sequence[float], growth: float) -> bool:
    """True when a later gap is longer than the one before it by this factor (a cap may hold the last ones)."""
    return any(b >= growth * max(a, 0.001) for a, b in itertools.pairwise(gaps))


def _class(attempt: Attempt) -> str | None:
    return failure_of_status(attempt.status, attempt.error)
