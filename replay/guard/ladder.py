"""What a guard says to the model and how far up the ladder a cycle is: plain functions over a finding."""

from __future__ import annotations

from collections.abc import Sequence

from ...tracer.observers import MARK
from ..cycles import CycleFinding
from ..cycles.finding import LEVELS

WARN, INTERVENE, STOP = 1, 2, 3
STUB_FROM = 512
"""Characters from which a result that the model has already is replaced by a line: below it a line saves nothing."""
TOLD = 6
"""Tools that a notice names at most."""

_ADVICE = {
    "exact": "The result will be the same again. Use what it says, or do something else",
    "fan_out": "The results will be the same again. Use what they say, or do something else",
    "period": "Going through it again will change nothing. Leave this path",
    "near": "Small changes of the arguments bring nothing new. Ask for something else, or use what you have",
    "error": "The same kind of error will come back. Read what it says, change the cause, or use another tool",
    "check": "The edits so far did not touch the cause. Read the failure again from its first line before the next edit",
    "empty": "There may be nothing to find there. Look somewhere else, or say that it was not found",
    "stagnation": "Nothing new has been seen for a while. Decide with what is known",
    "bookkeeping": "Notes and plans alone change nothing. Take the first step of the plan",
    "text": "Saying it again changes nothing. Use a tool, or give the answer",
    "chant": "Say it once",
    "compaction": "This was done before the context was shortened. Go on from its outcome",
    "ping_pong": "Handing over again changes nothing. Do the work, or say what is missing",
    "sub_agent": "Another one will come back with the same. Use what they brought",
}


def level(finding: CycleFinding) -> int:
    """0 note, 1 warn, 2 intervene, 3 stop."""
    return LEVELS.index(finding.level)


def notice(finding: CycleFinding, tools: Sequence[str], used: set[str]) -> str:
    """What repeats, since when, and what was not tried: one short text for the model."""
    return f"{finding.sentence}. {_ADVICE[finding.kind]}.{untried(tools, used)}"


def refused(finding: CycleFinding, name: str, tools: Sequence[str], used: set[str]) -> str:
    """The error that stands in the place of a result: the tool did not run."""
    return (
        f"{MARK} {name} was not run: it would only repeat what has been going on since turn {finding.first_turn}. "
        f"{finding.sentence}. {_ADVICE[finding.kind]}.{untried(tools, used)} "
        "If nothing is left to try, answer with what is known and say what is missing."
    )


def is_refusal(text: str, name: str) -> bool:
    """Whether a recorded result is what `refused` says, in whatever shape."""
    return f"{MARK} {name} was not run" in text[:200]


def stub(turn: int, size: int) -> str:
    """In the place of a payload that the model has already."""
    return f"{MARK} the same {size} characters as in the result of turn {turn}: they are not repeated here."


def untried(tools: Sequence[str], used: set[str]) -> str:
    """The tools that were never called, as a sentence; empty where that is not known or there are none."""
    left = [t for t in tools if t not in used]
    if not left:
        return ""
    more = f" and {len(left) - TOLD} more" if len(left) > TOLD else ""
    return f" Not tried so far: {', '.join(left[:TOLD])}{more}."
