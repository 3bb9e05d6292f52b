"""L03: the context grows without bound."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...tracer.model import Turn
from .facts import CallFacts, RunFacts
from .rule import Finding, Said, Unknown, quote, span

ID = "L03"
TITLE = "Context without bound"
FIX = (
    "Cut long results where they are made, put a stub in place of a result that was given before, and shorten the "
    "conversation at 70 to 75 % of the window."
)
TURNS = 10
"""A shorter run has no trend."""
STRAIGHT = 0.9
"""R squared from which growth is a straight line: nothing ever leaves the context."""
HALF, NEAR = 0.5, 0.8
"""Shares of the window: from half on models overlook what stands in the middle; at 80 % one large result ends the run."""
ONE_RESULT = 0.25
"""Share of the window from which one result alone crowds out the rest."""
REPEATED = 0.3
"""Share of the prompt that is results given twice or more."""
WORTH = 8_000
"""Prompt tokens from which repeated results are worth a word."""
SAME_FROM = 200
"""Characters from which an equal result is a repetition; shorter ones are acknowledgements."""
TOKEN = 4
"""Characters of a token, roughly, for English and code."""
SHORTENING = frozenset({"claude-code", "claude-bodies", "codex", "gemini-cli", "opencode"})
"""Clients that shorten the conversation themselves, late: half full is no sign that nothing would."""
THRESHOLDS = {
    "turns": TURNS, "straight": STRAIGHT, "half": HALF, "near": NEAR, "one_result": ONE_RESULT, "repeated": REPEATED,
    "worth": WORTH,
}  # fmt: skip

_OVERFLOW = re.compile(
    r"context[_ ](?:window|length)[_ ]?(?:was )?(?:exceed|limit)|maximum context length|prompt is too long|exceeds? the context"
    r"|input is too long|too many (?:input )?tokens|context_length_exceeded",
    re.IGNORECASE,
)


def check(facts: RunFacts) -> Iterator[Said]:
    """An overflow; growth in a straight line towards the window; one huge result; results given again and again."""
    at = facts.thresholds(ID, THRESHOLDS)
    overflown = [t for t in facts.turns if _overflows(t)]
    if overflown:
        yield _overflow(facts, overflown)
    bare = False
    for turns in _by_agent(facts).values():
        sized = [t for t in turns if t.usage.context]
        if len(turns) >= at["turns"] and len(sized) < len(turns) / 2:
            bare = True
        elif not overflown:
            yield from _growth(facts, sized, at["turns"], at["straight"], at["half"], at["near"])
    if bare:
        yield Unknown(ID, facts.run.id, ("turns.usage",))
    yield from _huge(facts, at["one_result"])
    yield from _again(facts, at["repeated"], at["worth"])


def _by_agent(facts: RunFacts) -> dict[str | None, list[Turn]]:
    found: dict[str | None, list[Turn]] = {}
    for turn in facts.turns:
        found.setdefault(turn.agent, []).append(turn)
    return found


def _overflows(turn: Turn) -> bool:
    if turn.stop_reason == "model_context_window_exceeded":
        return True
    said = (turn.error or "", *(f"{a.error or ''} {(a.body or '')[:2000]}" for a in turn.attempts))
    return turn.status == "error" and any(_OVERFLOW.search(text) for text in said)


def _overflow(facts: RunFacts, turns: list[Turn]) -> Finding:
    numbers = [t.number for t in turns]
    return Finding(
        ID, "error", facts.run.id, numbers[0], numbers[-1],
        f"The context no longer fitted into the model's window ({span(numbers)})",
        tuple(f"turn {t.number}: {quote(t.error or t.stop_reason or '')}" for t in turns[:3]),
        facts.waste(numbers), 0.95, FIX,
    )  # fmt: skip


def _growth(
    facts: RunFacts, turns: Sequence[Turn], least: float, straight: float, half: float, near: float
) -> Iterator[Said]:
    if len(turns) < least or facts.compactions.intersection(t.number for t in turns):
        return
    sizes = [float(t.usage.context or 0) for t in turns]
    slope, fit = _line(sizes)
    if slope <= 0 or fit < straight:
        return
    last = turns[-1]
    window = facts.window(last)
    if window is None or sizes[-1] > 1.05 * window:  # more than it can hold: the list does not know this variant
        yield Unknown(ID, facts.run.id, (f"context window of {last.model or last.request_model or 'the model'}",))
        return
    share = sizes[-1] / window
    if share > (near if facts.run.source in SHORTENING else half):
        yield Finding(
            ID, "error" if share > near else "warning", facts.run.id, turns[0].number, last.number,
            f"The context grew with every turn, {slope:,.0f} tokens each, to {share:.0%} of the window, and was never shortened",
            (f"turn {turns[0].number}: {sizes[0]:,.0f} tokens", f"turn {last.number}: {sizes[-1]:,.0f} of {window:,}"),
            facts.waste(()), round(min(0.9, fit), 2), FIX,
        )  # fmt: skip


def _line(values: Sequence[float]) -> tuple[float, float]:
    """Slope and R squared of the straight line through values one step apart."""
    count = len(values)
    middle, mean = (count - 1) / 2, sum(values) / count
    across = sum((x - middle) ** 2 for x in range(count))
    both = sum((x - middle) * (y - mean) for x, y in enumerate(values))
    total = sum((y - mean) ** 2 for y in values)
    return (both / across, both * both / (across * total)) if across and total else (0.0, 0.0)


def _huge(facts: RunFacts, share: float) -> Iterator[Finding]:
    huge: list[tuple[CallFacts, float]] = []
    for call in facts.calls:
        size = len(call.text or "") / TOKEN
        turn = facts.turn(call.turn)
        window = facts.window(turn) if turn is not None and size > WORTH else None
        if window is not None and size > share * window:
            huge.append((call, size / window))
    if huge:
        worst = max(huge, key=lambda h: h[1])
        numbers = [c.turn for c, _ in huge]
        yield Finding(
            ID, "error", facts.run.id, min(numbers), max(numbers),
            f"One result filled about {worst[1]:.0%} of the window (turn {worst[0].turn}: {worst[0].short})",
            tuple(f"turn {c.turn}: {c.short}: {len(c.text or ''):,} characters" for c, _ in huge[:3]),
            facts.waste(()), 0.8, FIX,
        )  # fmt: skip


def _again(facts: RunFacts, share: float, worth: float) -> Iterator[Finding]:
    """Of the last prompt of each agent, what is a result that stands in it already."""
    for turns in _by_agent(facts).values():
        last = next((t for t in reversed(turns) if (t.usage.context or 0) >= worth), None)
        if last is None:
            continue
        start = max((n for n in facts.compactions if n <= last.number), default=0)
        mine = {t.number for t in turns}
        given: dict[str, CallFacts] = {}
        twice: list[CallFacts] = []
        for call in facts.calls:
            if call.turn not in mine or not start <= call.turn < last.number or len(call.text or "") < SAME_FROM:
                continue
            if call.text in given:
                twice.append(call)
            else:
                given[call.text or ""] = call
        tokens = sum(len(c.text or "") for c in twice) / TOKEN
        if twice and tokens >= share * (last.usage.context or 0):
            yield _repeated(facts, last, twice, tokens)


def _repeated(facts: RunFacts, last: Turn, twice: list[CallFacts], tokens: float) -> Finding:
    numbers = [c.turn for c in twice]
    context = last.usage.context or 1
    return Finding(
        ID, "warning", facts.run.id, min(numbers), last.number,
        f"About {tokens / context:.0%} of turn {last.number}'s prompt are results that were given before, word for word",
        tuple(f"turn {c.turn}: {c.short}: {len(c.text or ''):,} characters again" for c in twice[:3]),
        facts.waste(()), 0.8, FIX,
    )  # fmt: skip
