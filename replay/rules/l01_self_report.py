"""L01: the loop ends only by the model's own word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..cycles import kinds as tool_kinds
from .facts import CallFacts, RunFacts
from .rule import Finding, Said, Unknown, quote

ID = "L01"
TITLE = "Ends only by the model's own word"
FIX = (
    "Give the run limits (turns, cost, seconds) and a check of the result that is not the model's own word: "
    "looptape.run(max_turns=..., ...), run.done(text) with a goal check."
)
TRIVIAL_TURNS = 3
"""A run of three turns (ask, look, answer) needs no backstop to be cheap."""
TIMES_MEDIAN = 3
"""Three times the usual is beyond what one task varies by from run to run."""
MEDIAN_OF = 3
"""Fewer other runs than that have no usual."""
THRESHOLDS = {"trivial_turns": TRIVIAL_TURNS, "times_median": TIMES_MEDIAN, "median_of": MEDIAN_OF}

_CLAIM = re.compile(
    r"\b(?:all|the) (?:\w+ )?(?:tests?|checks?|builds?) (?:now |are |is )*(?:pass|passing|passed|succeed|green)"
    r"|\b(?:successfully|is (?:now )?(?:fixed|complete|done|working|resolved)|(?:has|have) been (?:fixed|resolved|completed|implemented)"
    r"|everything (?:works|passes)|works (?:now|correctly|as expected)|task (?:is )?(?:complete|done))\b",
    re.IGNORECASE,
)
_ADMITS = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|not|n't|unable|unrelated|pre-?existing|could not|cannot|however|except|unfortunately|"
    r"still|remaining|skipped?|couldn)\b",
    re.IGNORECASE,
)
_BAD = re.compile(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|^(?:FAILED|FAIL|BUILD FAILED)\b", re.MULTILINE)


def check(facts: RunFacts) -> Iterator[Said]:
    """A run without a recorded limit that the model ended, and claims that the run's own last check denies."""
    at = facts.thresholds(ID, THRESHOLDS)
    if facts.ended_by != "model" or len(facts.turns) <= at["trivial_turns"]:
        return
    checked = facts.run.outcome is not None or any(e.kind == "goal" for e in facts.events)
    denied = None if checked else _denied(facts)
    limited = bool(facts.run.limits)
    if denied is not None:
        yield _contradicted(facts, denied, limited=limited)
    elif facts.foreign:
        if not limited:
            yield Unknown(ID, facts.run.id, ("run.limits",))
    elif not limited and facts.run.parent is None:  # a sub-agent is held by its parent's limits
        yield _unlimited(facts, at["times_median"], at["median_of"])


def _unlimited(facts: RunFacts, times: float, least: float) -> Finding:
    turns = len(facts.turns)
    usual = facts.group.median_turns(facts.run.task or facts.run.name, facts.run.id)
    long = usual is not None and usual[1] >= least and turns > times * usual[0]
    extra = f", {turns} turns where {usual[1]} other runs of it took {usual[0]:g}" if long and usual is not None else ""
    wasted = [t.number for t in facts.turns[int(usual[0]) :]] if long and usual is not None else []
    return Finding(
        ID, "error" if long else "warning", facts.run.id, facts.turns[0].number, facts.turns[-1].number,
        f"No backstop recorded: no limit of turns, tokens, cost or time, and the model's own stop ended it{extra}",
        (f"stop reason {facts.turns[-1].stop_reason}", "limits: none"),
        facts.waste(wasted), 0.9 if long else 0.7, FIX,
    )  # fmt: skip


def _contradicted(facts: RunFacts, denied: tuple[CallFacts, str], *, limited: bool) -> Finding:
    call, claim = denied
    last = facts.turns[-1].number
    return Finding(
        ID, "warning" if limited or facts.foreign else "error", facts.run.id, call.turn, last,
        f"The model says that it is done, but the last check of the run failed (turn {call.turn}: {call.short}) "
        "and was not run again",
        (f"turn {last}: {quote(claim)}", f"turn {call.turn}: {quote(_telling(call.text or ''))}"),
        facts.waste(()), 0.75, FIX,
    )  # fmt: skip


def _denied(facts: RunFacts) -> tuple[CallFacts, str] | None:
    """The last check, when it failed and the last words claim success without a word of doubt."""
    words = facts.turns[-1].text or ""
    claim = _CLAIM.search(words)
    if claim is None or _ADMITS.search(words):
        return None
    checks = [c for c in facts.calls if _is_check(c) and c.text is not None]
    if not checks or not (checks[-1].failed or _BAD.search((checks[-1].text or "")[-3000:])):
        return None
    return checks[-1], words[max(0, claim.start() - 40) : claim.end() + 60]


def _is_check(call: CallFacts) -> bool:
    """A build or a test suite; a script that the model wrote to see something is none."""
    if call.command is None:
        return call.check
    found = tool_kinds.programs(call.command) & tool_kinds.CHECKS
    return bool(found) and " install" not in call.command


def _telling(text: str) -> str:
    match = _BAD.search(text)
    return text[match.start() : match.start() + 160] if match else text[-160:]
