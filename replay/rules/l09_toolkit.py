"""L09: every turn offers the whole toolkit though little of it is used, or tools are taken for one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...tracer.model import Turn
from ..cycles import Waste
from ..cycles.kinds import name_words
from .facts import CallFacts, RunFacts
from .failures import PERMANENT, SEMANTIC
from .l10_malformed import misnamed, refused_by_schema
from .rule import Finding, Said, Unknown, counted, quote, span

ID = "L09"
TITLE = "The whole toolkit on every turn"
FIX = (
    "Choose the tools for the task when it begins, or let the model search for the rest (deferred loading); do not change "
    "the set in the middle of a run, for that throws the prompt cache away."
)
FIX_CONFUSED = (
    "Say in each description what the tool is for and when the other one is right, or make one tool of the two."
)
TURNS = 10
"""A shorter run has not had the time to use its tools."""
TOOLS = 20
"""Offered tools from which models begin to take the wrong one."""
SHARE = 0.1
"""Share of the prompt from which the schemas are a cost of their own."""
USED = 0.2
"""Share of the offered tools that is used; below a fifth the set was not made for this task."""
CONFUSIONS = 2
"""One wrong turn is a slip; the same two tools a second time are a confusion."""
TOKEN = 4
"""Characters of a token, roughly, for English and code."""
THRESHOLDS = {"turns": TURNS, "tools": TOOLS, "share": SHARE, "used": USED, "confusions": CONFUSIONS}


def check(facts: RunFacts) -> Iterator[Said]:
    """A toolkit that is mostly not used, and pairs of tools of which the second was meant."""
    at = facts.thresholds(ID, THRESHOLDS)
    yield from _confused(facts, at["confusions"])
    if len(facts.turns) < at["turns"] or not facts.calls:
        return
    if not facts.toolsets:
        yield Unknown(ID, facts.run.id, ("request.tools",))
        return
    offered = [t for t in facts.turns if t.number in facts.toolsets]
    if len(offered) >= at["turns"] and len(offered) == len(facts.turns):
        yield from _whole(facts, offered, at["tools"], at["share"], at["used"])


def _whole(facts: RunFacts, turns: list[Turn], many: float, heavy: float, little: float) -> Iterator[Said]:
    sets = [facts.toolsets[t.number] for t in turns]
    names = set(sets[0].names).intersection(*(s.names for s in sets))
    used = names & {c.name for c in facts.calls}
    if not names or len(used) >= little * len(names):
        return
    shares = [s.size / TOKEN / t.usage.context for s, t in zip(sets, turns, strict=True) if t.usage.context]
    heavy_all = bool(shares) and len(shares) == len(turns) and min(shares) > heavy
    if len(names) <= many and not heavy_all:
        return
    wrong = [c for c in facts.calls if misnamed(facts, c) or refused_by_schema(c)]
    idle = sum(s.size for s in sets) / TOKEN * (1 - len(used) / len(names))
    of_prompt = f", {min(shares):.0%} of the prompt or more" if heavy_all else ""
    said = f"; {counted(len(wrong), 'call')} named a wrong tool or did not fit its schema" if wrong else ""
    yield Finding(
        ID, "error" if wrong else "warning", facts.run.id, turns[0].number, turns[-1].number,
        f"Every turn offers {len(names)} tools (about {sets[0].size / TOKEN:,.0f} tokens{of_prompt}), and {len(used)} of them are used{said}",
        (f"used: {quote(', '.join(sorted(used)) or 'none')}", f"idle: {quote(', '.join(sorted(names - used)))}",
         *(f"turn {c.turn}: {c.short}" for c in wrong[:2])),
        Waste(0, round(idle), None, None), 0.8, FIX,
    )  # fmt: skip


def _confused(facts: RunFacts, least: float) -> Iterator[Finding]:
    found: dict[tuple[str, str], list[tuple[CallFacts, CallFacts]]] = {}
    calls = [c for c in facts.calls if c.effect != "bookkeeping"]
    for place, call in enumerate(calls[:-1]):
        if not call.failed or call.failure not in (PERMANENT, SEMANTIC) or call.command is not None:
            continue
        following = next((c for c in calls[place + 1 :] if c.turn > call.turn), None)
        if following is not None and following.turn <= call.turn + 1 and _meant(call, following):
            found.setdefault((call.name, following.name), []).append((call, following))
    for (one, other), pairs in found.items():
        if len(pairs) >= least:
            numbers = [c.turn for c, _ in pairs]
            yield Finding(
                ID, "warning", facts.run.id, numbers[0], pairs[-1][1].turn,
                f"{one} is taken for {other}: {len(pairs)} times it failed and the other worked with the same arguments ({span(numbers)})",
                tuple(f"turn {c.turn}: {c.short}: {quote(c.text or '', 80)}; then {d.short}" for c, d in pairs[:3]),
                facts.waste(numbers), 0.75, FIX_CONFUSED,
            )  # fmt: skip


def _meant(call: CallFacts, following: CallFacts) -> bool:
    """True when the next call is another tool of like name or use, with the same values, and works."""
    if following.name == call.name or following.failed or following.failed is None or following.command is not None:
        return False
    one, other = _values(call), _values(following)
    akin = bool(name_words(call.name) & name_words(following.name)) or call.effect == following.effect
    return bool(one) and akin and sum((one & other).values()) >= max(1, len(one) // 2)


def _values(call: CallFacts) -> Counter[str]:
    given = call.call.arguments
    return (
        Counter(str(v) for v in given.values() if v not in (None, "", True, False))
        if isinstance(given, dict)
        else Counter()
    )
