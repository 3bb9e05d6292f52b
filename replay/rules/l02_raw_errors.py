"""L02: a tool's raw error reaches the model: too long, unreadable, or saying nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..cycles import masks
from .facts import CallFacts, RunFacts
from .failures import CANCELLED, DENIED
from .rule import Finding, Said, Unknown, quote, span

ID = "L02"
TITLE = "Raw tool errors"
FIX = (
    "Give the model the cause, the argument at fault, the values allowed and one suggestion, in 500 characters at most; "
    "keep the raw text in your own log."
)
LONG = 2_000
"""Characters beyond which an error is a dump: what it says in one line is lost in it."""
FRAMES = 25
"""Stack frames beyond which nobody, model or person, reads the trace."""
BARE = 80
"""An error shorter than this can be content-free; a longer one says something."""
THRESHOLDS = {"long": LONG, "frames": FRAMES, "bare": BARE}

_FRAME = re.compile(r'^\s*(?:File "[^"]+", line \d+|at [^\n]{1,200}[(:]\S*:?\d+|\d+: 0x|#\d+ )', re.MULTILINE)
_CONTROL = re.compile(r"\x1b[\[\]()][0-9;?]*[A-Za-z]?|[\x00-\x08\x0e-\x1a]")
_HTML = re.compile(r"<!doctype html|<html[\s>]|<body[\s>]", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_HOLLOW = frozenset(
    _WORD.findall(
        "a an the error errors occurred happened while during when running run executing execution calling call of to in with "
        "tool tools function please try trying again later once more something went wrong failed failure fail internal unknown "
        "unexpected exception request operation could not be completed was is it this that sorry bad invalid input output "
        "result none null unable cannot can t didn did your and or command"
    )
)
"""Words that say that something failed, and nothing about what."""


def check(facts: RunFacts) -> Iterator[Said]:
    """One finding per tool and kind of rawness. Output of command lines is data, no error message of a tool."""
    at = facts.thresholds(ID, THRESHOLDS)
    failed = [
        c
        for c in facts.calls
        if c.failed and c.command is None and not c.check and c.failure not in (CANCELLED, DENIED)
    ]
    if any(c.text is None for c in failed):
        yield Unknown(ID, facts.run.id, ("tool_calls.result",))
    found: dict[tuple[str, str], list[CallFacts]] = {}
    for call in failed:
        kind = _rawness(call, at["long"], int(at["frames"]), at["bare"])
        if kind is not None:
            found.setdefault((call.name, kind), []).append(call)
    for (name, kind), calls in found.items():
        yield _finding(facts, name, kind, calls)


def _rawness(call: CallFacts, long: float, frames: int, bare: float) -> str | None:
    text = call.text
    if text is None:
        return None
    if _HTML.search(text[:3_000]):
        return "an HTML page"
    if _CONTROL.search(text):
        return "terminal control codes"
    if len(_FRAME.findall(text)) > frames:
        return f"a stack trace of more than {frames} frames"
    if len(text) > long:
        return f"more than {long:,.0f} characters"
    return "nothing of the cause" if len(text) < bare and _hollow(text, call) else None


def _hollow(text: str, call: CallFacts) -> bool:
    """True when no word of it tells what was wrong: all are empty phrases or the tool's own name."""
    words = {w.lower() for w in _WORD.findall(text)}
    name = {w.lower() for w in _WORD.findall(call.name)}
    return not any(c.isdigit() for c in text) and words <= _HOLLOW | name


def _finding(facts: RunFacts, name: str, kind: str, calls: list[CallFacts]) -> Finding:
    again = [call for call in calls if _repeated(facts, call)]
    turns = [c.turn for c in calls]
    retried = f"; {len(again)} times the model made the same call again, and failed again" if again else ""
    return Finding(
        ID, "error" if again else "warning", facts.run.id, min(turns), max(turns),
        f"The error of {name} gave the model {kind} ({span(turns)}){retried}",
        tuple(f"turn {c.turn}: {quote(c.text or '')}" for c in calls[:3]),
        facts.waste(c.turn + 1 for c in again), 0.85, FIX,
    )  # fmt: skip


def _repeated(facts: RunFacts, call: CallFacts) -> bool:
    """True when the next call of the tool changed no argument and met the same kind of error."""
    later = next((c for c in facts.calls if c.turn > call.turn and c.name == call.name), None)
    if later is None or later.key != call.key or not later.failed:
        return False
    return masks.shape_of_error(later.text or "") == masks.shape_of_error(call.text or "")
