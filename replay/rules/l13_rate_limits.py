"""L13: the loop goes on as before when it is told to slow down."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ...tracer.model import Attempt, Turn
from .facts import CallFacts, RunFacts
from .failures import RATE_STATUSES
from .l12_all_alike import grows
from .rule import Finding, Said, Unknown, quote, span

ID = "L13"
TITLE = "Rate limits ignored"
FIX = (
    "Wait as long as Retry-After says; without it double the gaps, with some chance in them (60 s at most, 5 tries), and let "
    "all workers draw on one shared budget of requests."
)
SLACK = 0.1
"""Seconds by which clocks and rounding may make a wait look short."""
SLACK_SHARE = 0.02
"""The same as a share: Retry-After is in whole seconds, timers wake early."""
TIMES = 3
"""Refusals from which the gaps between them are a policy."""
GROWTH = 1.3
"""Growth between gaps below which they do not grow."""
TOGETHER = 0.05
"""Seconds within which the retries of several workers are one burst: chance would spread them."""
THRESHOLDS = {"times": TIMES, "growth": GROWTH, "together": TOGETHER}

_RATE = re.compile(r"\b(?:429|529)\b|rate.?limit|too many requests|throttl|quota exceeded|overloaded", re.IGNORECASE)
_WAIT = re.compile(
    r"(?:retry|try again|wait)\W{0,3}(?:after|in|for|at least)?\W{0,3}(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?\b",
    re.IGNORECASE,
)
_HEAD = 600


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was told to slow down. ``wanted``: seconds it should wait; ``gap``: seconds until the next try.

    ``timed``: the gap is known, or there was no next try.
    """

    turn: int
    what: str
    wanted: float | None
    gap: float | None
    timed: bool
    again_at: int | None = None
    again_refused: bool = False


def check(facts: RunFacts) -> Iterator[Said]:
    """Requests and calls sent sooner than allowed, with gaps that do not grow, or all at once."""
    if not facts.turns:
        return
    at = facts.thresholds(ID, THRESHOLDS)
    refused = [_model(facts.turns)] + [_tool(calls) for calls in _by_tool(facts)]
    if facts.foreign and not any(t.attempts for t in facts.turns) and not any(refused):
        yield Unknown(ID, facts.run.id, ("attempts",))
        return
    if any(not r.timed for found in refused for r in found):
        yield Unknown(ID, facts.run.id, ("attempts.started_at", "tool_calls.started_at"))
    for found in refused:
        early = [r for r in found if _early(r)]
        if early:
            yield _too_soon(facts, early)
        else:
            for chain in _chains(found):
                yield from _not_slower(facts, chain, int(at["times"]), at["growth"])
    yield from _burst(facts, refused[0], at["together"])


def _model(turns: Sequence[Turn]) -> list[Refusal]:
    """Refusals of model calls: within a turn, or at its end with another turn after it."""
    tries = [(turn, attempt) for turn in turns for attempt in turn.attempts]
    found = []
    for (turn, one), following in itertools.zip_longest(tries, tries[1:]):
        if one.status not in RATE_STATUSES:
            continue
        after = following[1] if following is not None and following[0].agent == turn.agent else None
        gap = _gap(one, after, same=following is not None and following[0] is turn)
        said = f"{one.status} {one.error or ''}".strip()
        timed = after is None or gap is not None
        again = after is not None and after.status in RATE_STATUSES
        begun = after.started_at if after is not None else None
        found.append(Refusal(turn.number, said, retry_after(one), gap, timed, begun, again))
    return found


def _gap(one: Attempt, after: Attempt | None, *, same: bool) -> float | None:
    if after is None:
        return None
    if one.ended_at is not None and after.started_at is not None:
        return (after.started_at - one.ended_at) / 1e6
    return after.wait_ms / 1000 if same and after.wait_ms is not None else None


def retry_after(attempt: Attempt) -> float | None:
    """Seconds that the answer told to wait; None when it did not say."""
    headers = {k.lower(): v for k, v in attempt.headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
    try:
        until = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    if attempt.ended_at is None:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.fromtimestamp(attempt.ended_at / 1e6, UTC)).total_seconds())


def _by_tool(facts: RunFacts) -> list[list[CallFacts]]:
    found: dict[str, list[CallFacts]] = {}
    for call in facts.calls:
        if call.command is None:  # what a command line prints is data
            found.setdefault(call.name, []).append(call)
    return list(found.values())


def _tool(calls: list[CallFacts]) -> list[Refusal]:
    found = []
    for place, call in enumerate(calls):
        if not _refused(call):
            continue
        text = (call.text or "")[:_HEAD]
        after = next((c for c in calls[place + 1 :] if c.turn > call.turn), None)
        ended, began = call.call.ended_at, after.call.started_at if after is not None else None
        gap = (began - ended) / 1e6 if began is not None and ended is not None else None
        said = f"{call.short}: {quote(text, 100)}"
        again = after is not None and _refused(after)
        found.append(Refusal(call.turn, said, _named_wait(text), gap, after is None or gap is not None, began, again))
    return found


def _refused(call: CallFacts) -> bool:
    return bool(call.failed and _RATE.search((call.text or "")[:_HEAD]))


def _early(refusal: Refusal) -> bool:
    """True when the next try came sooner than the answer allowed."""
    wanted, gap = refusal.wanted, refusal.gap
    return bool(wanted) and gap is not None and gap < (wanted or 0) - max(SLACK, SLACK_SHARE * (wanted or 0))


def _chains(found: list[Refusal]) -> Iterator[list[Refusal]]:
    """Refusals that followed each other, with nothing that worked between."""
    chain: list[Refusal] = []
    for refusal in found:
        chain.append(refusal)
        if not refusal.again_refused:
            yield chain
            chain = []
    if chain:
        yield chain


def _named_wait(text: str) -> float | None:
    match = _WAIT.search(text)
    if match is None:
        return None
    unit = (match[2] or "s").lower()
    return float(match[1]) * (0.001 if unit.startswith(("ms", "milli")) else 60 if unit.startswith("m") else 1)


def _too_soon(facts: RunFacts, early: list[Refusal]) -> Finding:
    worst = max(early, key=lambda r: (r.wanted or 0) - (r.gap or 0))
    numbers = [r.turn for r in early]
    return Finding(
        ID, "error", facts.run.id, min(numbers), max(numbers),
        f"Told to wait {worst.wanted:g} s, the loop tried again after {max(0.0, worst.gap or 0):.1f} s ({span(numbers)})",
        tuple(f"turn {r.turn}: {quote(r.what)}; wait {r.wanted:g} s, waited {max(0.0, r.gap or 0):.1f} s" for r in early[:3]),
        facts.waste(()), 0.9, FIX,
    )  # fmt: skip


def _not_slower(facts: RunFacts, found: list[Refusal], times: int, growth: float) -> Iterator[Finding]:
    """Gaps that stay as they are; where the server named the wait and it was kept, they are the server's."""
    gaps = [r.gap for r in found if r.gap is not None and not r.wanted]
    if len(found) < times or len(gaps) < times - 1 or grows(gaps, growth):
        return
    numbers = [r.turn for r in found]
    yield Finding(
        ID, "warning", facts.run.id, min(numbers), max(numbers),
        f"Told {len(found)} times to slow down, the loop tried again at gaps that do not grow ({', '.join(f'{g:.1f} s' for g in gaps[:6])})",
        tuple(f"turn {r.turn}: {quote(r.what)}" for r in found[:3]), facts.waste(()), 0.8, FIX,
    )  # fmt: skip


def _burst(facts: RunFacts, found: list[Refusal], together: float) -> Iterator[Finding]:
    """Retries of several turns that run beside each other, at one moment: three at once, or two of them twice."""
    timed = sorted((r.again_at, r.turn) for r in found if r.again_at is not None)
    bursts: list[set[int]] = []
    for place, (at, turn) in enumerate(timed):
        near = {turn} | {t for moment, t in timed[place + 1 :] if moment - at <= together * 1e6}
        if len(near) > 1:
            bursts.append(near)
    if not bursts or (max(map(len, bursts)) < 3 and len(bursts) < 2):
        return
    turns = sorted(set().union(*bursts))
    yield Finding(
        ID, "warning", facts.run.id, turns[0], turns[-1],
        f"After being told to slow down, {len(turns)} parallel model calls tried again within {together * 1000:g} ms of each other ({span(turns)})",
        tuple(f"turn {r.turn}: {quote(r.what)}" for r in found if r.turn in turns)[:3], facts.waste(()), 0.75, FIX,
    )  # fmt: skip
