"""L04: trouble of the process or its surroundings is fed to the model as if it were the task's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .facts import CallFacts, RunFacts
from .rule import Finding, Said, quote, span

ID = "L04"
TITLE = "Runtime trouble fed to the loop"
FIX = (
    "Tell faults of the runtime (memory, disk, network, container, credentials) apart outside the loop: pause or restart it "
    "there and go on from the saved turn, in place of giving them to the model as results."
)
RETRIES = 2
"""Turns that only try again: one may be a sound look whether it was a hiccup."""
MANY = 3
"""From three on nothing but the runtime's owner could have helped, and the model was paid to find that out."""
THRESHOLDS = {"retries": RETRIES, "many": MANY}

_FAULTS = (
    ("out of memory", r"out of memory|cannot allocate memory|oom-?kill|exit(?:ed)?(?: with)?(?: code| status)?\W{1,3}137\b|MemoryError"),
    ("the disk is full", r"no space left on device|disk quota exceeded|ENOSPC"),
    ("no name resolution", r"temporary failure in name resolution|could not resolve host|name or service not known|getaddrinfo|EAI_AGAIN|ENOTFOUND"),
    ("no network", r"network is unreachable|no route to host|ENETUNREACH"),
    ("the container is gone", r"no such container|container \S+ is not running|cannot connect to the docker daemon|sandbox (?:\S+ )?(?:was |has been |is )?"
     r"(?:terminated|gone|not running|stopped|not found|expired)|(?:target|browser|page|context)[\w ,]* (?:has been|was|is) closed"),
    ("the tool server is gone", r"(?:mcp )?server (?:\S+ )?(?:is )?(?:not connected|disconnected|has exited)|transport (?:is )?closed|server process (?:has )?(?:died|exited)"),
    ("a program of the tool is missing", r"posix_spawn|\bspawn \S+ E(?:NOENT|ACCES)"),
    ("credentials have run out", r"(?:token|credentials?|session|certificate|login) (?:has |have |is |are )?expired|ExpiredToken|reauthenticat|re-authenticate"),
)  # fmt: skip
_PATTERNS = tuple((what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _FAULTS)
_EDGE = 1_500


def check(facts: RunFacts) -> Iterator[Said]:
    """Stretches in which the model meets one fault of the runtime turn after turn and does nothing but try again."""
    at = facts.thresholds(ID, THRESHOLDS)
    numbers = [t.number for t in facts.turns]
    place = 0
    while place < len(numbers):
        first = next((c for c in facts.by_turn.get(numbers[place], ()) if fault_of(c) is not None), None)
        if first is None:
            place += 1
            continue
        retries = _retries(facts, numbers[place + 1 :], first)
        if len(retries) >= at["retries"]:
            yield _finding(facts, first, retries, many=len(retries) >= at["many"])
        place += 1 + len(retries)


def fault_of(call: CallFacts) -> str | None:
    """The fault of the runtime that a failed call tells, in a few words; None for every other result."""
    if not call.failed or call.text is None:
        return None
    said = call.text if len(call.text) <= 2 * _EDGE else f"{call.text[:_EDGE]}\n{call.text[-_EDGE:]}"
    return next((what for what, pattern in _PATTERNS if pattern.search(said)), None)


def _retries(facts: RunFacts, numbers: list[int], first: CallFacts) -> list[int]:
    """The turns after it that only try: every call (notes aside) meets the same fault or is the same call."""
    found: list[int] = []
    fault = fault_of(first)
    for number in numbers:
        turn = facts.turn(number)
        calls = [c for c in facts.by_turn.get(number, ()) if c.effect != "bookkeeping"]
        if turn is None or turn.user_turn or not calls:
            break
        if not all(fault_of(c) == fault or (c.key == first.key and c.failed) for c in calls):
            break
        found.append(number)
    return found


def _finding(facts: RunFacts, first: CallFacts, retries: list[int], *, many: bool) -> Finding:
    shown = [first, *(c for n in retries for c in facts.by_turn[n] if c.failed)][:3]
    return Finding(
        ID, "error" if many else "warning", facts.run.id, first.turn, retries[-1],
        f"A fault of the runtime ({fault_of(first)}) was given to the model as a result, which could only try again "
        f"({span(retries)})",
        tuple(f"turn {c.turn}: {c.short}: {quote(_telling(c.text or ''))}" for c in shown),
        facts.waste(retries), 0.85, FIX,
    )  # fmt: skip


def _telling(text: str) -> str:
    for _, pattern in _PATTERNS:
        if match := pattern.search(text):
            return text[max(0, match.start() - 60) : match.end() + 60]
    return text[:120]
