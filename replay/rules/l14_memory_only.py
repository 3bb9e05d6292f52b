"""L14: the loop's state lives in memory only, so that an interrupted run is begun again from nothing."""

from __future__ import annotations

from collections.abc import Iterator

from .facts import RunFacts
from .group import FirstCall, RunLight
from .rule import Finding, Said, Unknown, quote

ID = "L14"
TITLE = "State only in memory"
FIX = (
    "Write each turn down before the next begins, give calls that change something a key by which a second one is recognised, "
    "and go on from the last turn after an interruption."
)
REPEATED = 3
"""First calls that come again; two may be how every run of the task begins."""
OVERLAP = 0.6
"""Share of the interrupted run's first calls that the later one begins with."""
WITHIN = 86_400
"""Seconds between the interruption and the run begun again; a day later it is another job."""
LONG_TURNS, LONG_SECONDS = 30, 600
"""A run so long is dear to lose."""
THRESHOLDS = {
    "repeated": REPEATED, "overlap": OVERLAP, "within": WITHIN, "long_turns": LONG_TURNS, "long_seconds": LONG_SECONDS,
}  # fmt: skip
_BROKEN = ("interrupted", "failed")
_SAVED = ("checkpoint", "resume", "guard_state", "state_saved")
_CHANGES = ("mutate", "actuate")
_PERSONS = ("user", "ctrl", "keyboardinterrupt", "cancel")


def check(facts: RunFacts) -> Iterator[Said]:
    """A run that broke off and was begun again; long runs of which nothing tells whether they could go on."""
    run = facts.run
    at = facts.thresholds(ID, THRESHOLDS)
    if run.parent is not None or not facts.turns:
        return
    if run.status in _BROKEN and not any(word in (run.reason or "").lower() for word in _PERSONS):
        own = [c for c in _first_calls(facts) if c.effect != "bookkeeping"]
        if not own and facts.foreign:
            yield Unknown(ID, run.id, ("tool_calls",))
        elif len(own) >= at["repeated"]:
            yield from _begun_again(facts, own, at["repeated"], at["overlap"], at["within"])
    elif not facts.foreign and _long(facts, at["long_turns"], at["long_seconds"]) and not _saved(facts):
        yield Unknown(ID, run.id, ("checkpoint events",))


def _first_calls(facts: RunFacts) -> tuple[FirstCall, ...]:
    known = next((r.first_calls for r in facts.group.runs if r.run.id == facts.run.id), ())
    return known or tuple(FirstCall(c.turn, c.name, c.key, c.effect) for c in facts.calls[:12])


def _long(facts: RunFacts, turns: float, seconds: float) -> bool:
    began, ended = facts.run.started_at, facts.run.ended_at
    took = (ended - began) / 1e6 if began is not None and ended is not None else 0
    return len(facts.turns) > turns or took > seconds


def _saved(facts: RunFacts) -> bool:
    return any(e.kind in _SAVED for e in facts.events)


def _begun_again(
    facts: RunFacts, own: list[FirstCall], least: float, overlap: float, within: float
) -> Iterator[Finding]:
    later = sorted((r for r in facts.group.runs if _later(facts, r, within)), key=lambda r: r.run.started_at or 0)
    for light in later:
        again = _same_beginning(own, [c for c in light.first_calls if c.effect != "bookkeeping"])
        if len(again) >= least and len(again) >= overlap * len(own):
            yield _finding(facts, light, again)
            return


def _later(facts: RunFacts, light: RunLight, within: float) -> bool:
    """A run of the same job that began after this one broke off, and that nobody linked to it."""
    run, other = facts.run, light.run
    if other.id == run.id or other.parent is not None or other.source in ("replay", "fork"):
        return False
    same = (run.task or run.name) == (other.task or other.name) and run.project == other.project
    ended = run.ended_at or run.started_at
    if not same or ended is None or other.started_at is None:
        return False
    return ended <= other.started_at <= ended + within * 1e6


def _same_beginning(own: list[FirstCall], others: list[FirstCall]) -> list[FirstCall]:
    """The calls that both begin with, in their order; one that came in between is passed over."""
    keys = [c.key for c in others]
    found, place = [], 0
    for call in own:
        if call.key in keys[place : place + 2]:
            place = keys.index(call.key, place) + 1
            found.append(call)
    return found


def _finding(facts: RunFacts, light: RunLight, again: list[FirstCall]) -> Finding:
    changing = [c for c in again if c.effect in _CHANGES]
    turns = sorted({c.turn for c in again})
    what = f"; {changing[0].name} changes something each time" if changing else ""
    shown = [quote(c.key.replace("\x1f", " "), 100) for c in (*changing, *(c for c in again if c not in changing))]
    return Finding(
        ID, "error" if changing else "warning", facts.run.id, turns[0], turns[-1],
        f"The run broke off ({facts.run.reason or facts.run.status}), and run {light.run.id} made its first {len(again)} calls again from the beginning{what}",
        tuple(shown[:4]), facts.waste(turns), 0.8, FIX,
    )  # fmt: skip
