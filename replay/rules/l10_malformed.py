"""L10: a malformed call crashes the loop, is repaired without a word, or is made again as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .facts import CallFacts, RunFacts
from .rule import Finding, Said, Unknown, counted, quote, span

ID = "L10"
TITLE = "Malformed calls crash or are silently repaired"
FIX = (
    "Check name and arguments before running anything; answer a bad call with an error result that quotes the schema and what "
    "is wrong, three times at most, then ask for an answer in text."
)
FIX_REPAIR = "Give the model an error result in place of running a guess: it does not know what was really run."
WITHIN = 1
"""Turns between the bad call and the end from which the one ended the other."""
IDENTICAL = 2
"""The same malformed call a second time: what came back did not tell the model what was wrong."""
THRESHOLDS = {"within": WITHIN, "identical": IDENTICAL}

_SCHEMA = re.compile(
    r"(?:arguments?|input|parameters?)[\w ]{0,20}(?:not|in)\s?valid|invalid (?:tool |function )?(?:arguments|input|json)|"
    r"is not valid JSON|InputValidationError|validation errors? for|JSONDecodeError|failed schema validation|"
    r"does not match (?:the )?schema|(?:required|missing)[\w ]{0,20}(?:property|parameter|argument|field)",
    re.IGNORECASE,
)
_UNKNOWN_TOOL = re.compile(
    r"(?:no such|unknown|unavailable|invalid|unrecogni[sz]ed|non-?existent) (?:tool|function)\b|(?:tool|function) [\w.`'\"-]{1,80} "
    r"(?:(?:is|was) )?(?:not found|not available|does(?:n't| not) exist|not exist)|is not a (?:valid|known) (?:tool|function)",
    re.IGNORECASE,
)
_CRASH = re.compile(
    r"JSONDecode|ValidationError|SchemaError|KeyError|TypeError|Expecting (?:',' delimiter|value|property name)|is not valid JSON"
)
_HEAD = 400


def check(facts: RunFacts) -> Iterator[Said]:
    """Bad calls that ended the run, that ran all the same, or that came again unchanged."""
    if not facts.calls:
        if facts.foreign and len(facts.turns) > 1 and not any(t.response is not None for t in facts.turns):
            yield Unknown(ID, facts.run.id, ("tool_calls",))
        return
    at = facts.thresholds(ID, THRESHOLDS)
    bad = [c for c in facts.calls if malformed(facts, c)]
    yield from _crashed(facts, bad, int(at["within"]))
    yield from _repaired(facts, bad)
    yield from _again(facts, bad, at["identical"])


def malformed(facts: RunFacts, call: CallFacts) -> bool:
    """No JSON object, a tool that was not offered, or refused for its arguments."""
    return not call.call.valid or misnamed(facts, call) or refused_by_schema(call)


def misnamed(facts: RunFacts, call: CallFacts) -> bool:
    """True for a tool that the request did not offer, or that the loop said it did not know."""
    if call.call.origin == "provider":
        return False
    offered = facts.toolsets.get(call.turn)
    if offered is not None and call.name not in offered.names:
        return call.failed is not False  # a loop that knows it by another name runs it
    return bool(call.failed and _UNKNOWN_TOOL.search((call.text or "")[:_HEAD]))


def refused_by_schema(call: CallFacts) -> bool:
    """True when the result says that the arguments do not fit; what a command line prints is its own business."""
    return bool(call.failed and call.command is None and _SCHEMA.search((call.text or "")[:_HEAD]))


def _crashed(facts: RunFacts, bad: list[CallFacts], within: int) -> Iterator[Finding]:
    if not facts.turns or facts.ended_by not in ("failure", "cut"):
        return
    last = facts.turns[-1]
    ending = [c for c in bad if last.number - c.turn <= within and c.unanswered]
    told = _CRASH.search(f"{facts.run.reason or ''} {last.error or ''} {last.error_type or ''}")
    if not ending and not (told and any(last.number - c.turn <= within for c in bad)):
        return
    found = ending or [c for c in bad if last.number - c.turn <= within]
    yield _finding(
        facts, "error", found, f"A malformed call of {found[-1].name} ended the run ({facts.run.reason or facts.run.status})",
        0.9 if told else 0.75, FIX, wasted=(),
    )  # fmt: skip


def _repaired(facts: RunFacts, bad: list[CallFacts]) -> Iterator[Finding]:
    ran = [c for c in bad if not c.call.valid and c.call.state == "done" and c.failed is False]
    if ran:
        yield _finding(
            facts, "warning", ran,
            f"{counted(len(ran), 'call')} whose arguments are no JSON object ran all the same, with something else than the model wrote ({span([c.turn for c in ran])})",
            0.85, FIX_REPAIR, wasted=(),
        )  # fmt: skip


def _again(facts: RunFacts, bad: list[CallFacts], least: float) -> Iterator[Finding]:
    same: dict[str, list[CallFacts]] = {}
    for call in bad:
        same.setdefault(f"{call.name}\x1f{call.call.arguments_raw}", []).append(call)
    for calls in same.values():
        turns = {c.turn for c in calls}
        if len(turns) >= least and any(c.failed for c in calls):
            yield _finding(
                facts, "warning", calls, f"The same malformed call of {calls[0].name} came {len(turns)} times ({span(list(turns))})",
                0.85, FIX, wasted=tuple(sorted(turns))[1:],
            )  # fmt: skip


def _finding(
    facts: RunFacts, severity: str, calls: list[CallFacts], message: str, confidence: float, fix: str, wasted: tuple[int, ...]
) -> Finding:  # fmt: skip
    shown = tuple(
        f"turn {c.turn}: {c.name}({quote(c.call.arguments_raw, 80)}): "
        f"{quote(c.call.invalid_reason or c.text or 'no result', 100)}"
        for c in calls[:3]
    )
    numbers = [c.turn for c in calls]
    return Finding(
        ID, "error" if severity == "error" else "warning", facts.run.id, min(numbers), max(numbers), message, shown,
        facts.waste(wasted), confidence, fix,
    )  # fmt: skip
