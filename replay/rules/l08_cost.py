"""L08: what the run costs is not measured, or the cache that would make it cheap is lost on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...tracer.model import Turn
from ..cycles import Waste
from .facts import RunFacts
from .rule import Finding, Said, Unknown, counted, span

ID = "L08"
TITLE = "Cost unmeasured, cache lost"
FIX_USAGE = (
    "Keep the usage object of every answer, and watch a running total with alarms at 50, 80 and 100 % of the budget."
)
FIX_PRICE = "Name the model as its provider does, or keep the cost that the provider reports beside the answer."
FIX_FIELDS = "Keep the provider's whole usage object: cache reads cost a tenth, so a total without them is no cost."
FIX_CACHE = (
    "Keep the beginning of the request as it was, byte for byte: append only, no time or random id in the system prompt, "
    "tools in a fixed order."
)
MISSING = 0.05
"""One turn in twenty without usage moves a total by less than prices vary; more makes it no total."""
FIELDS_FROM = 1_024
"""Prompt tokens from which providers cache at all."""
DROP = 0.5
"""A fall of the cached share by half is no rounding: the beginning of the prompt was not found again."""
LARGE = 10_000
"""Prompt tokens from which a lost cache is worth a word."""
SHORT_LIFE, LONG_LIFE = 300, 3_600
"""Seconds that a cache entry lives: five minutes, or an hour where that was paid for."""
THRESHOLDS = {
    "missing": MISSING, "fields_from": FIELDS_FROM, "drop": DROP, "large": LARGE, "short_life": SHORT_LIFE,
    "long_life": LONG_LIFE,
}  # fmt: skip
CACHING = frozenset({"anthropic", "openai", "google", "deepseek"})
"""Providers whose usage says what came from the cache."""


def check(facts: RunFacts) -> Iterator[Said]:
    """Turns without usage or price, usage without its cache fields, and falls of the cached share."""
    answered = [t for t in facts.turns if (t.status == "ok" and t.response is not None) or t.usage.origin != "missing"]
    if not answered:
        return
    at = facts.thresholds(ID, THRESHOLDS)
    yield from _unmeasured(facts, answered, at["missing"])
    yield from _unpriced(facts, [t for t in answered if t.usage.origin != "missing"], at["missing"])
    yield from _without_fields(facts, answered, at["fields_from"])
    for before, turn, gap in _neighbours(facts):
        if _lost(facts, before, turn, at["drop"], at["large"]):
            life = at["long_life"] if before.usage.cache_write_1h else at["short_life"]
            if gap is None:
                yield Unknown(ID, facts.run.id, ("turns.started_at",))
                return
            if gap < life:
                yield _fall(facts, before, turn)


def _unmeasured(facts: RunFacts, answered: list[Turn], share: float) -> Iterator[Said]:
    """Streams without usage are T05's."""
    silent = [t for t in answered if t.usage.origin == "missing" and not t.stream]
    if len(silent) <= share * len(answered):
        return
    if facts.foreign:
        yield Unknown(ID, facts.run.id, ("turns.usage",))
        return
    numbers = [t.number for t in silent]
    yield Finding(
        ID, "warning", facts.run.id, numbers[0], numbers[-1],
        f"{len(silent)} of {counted(len(answered), 'turn')} have no usage ({span(numbers)}): nobody knows what the run cost",
        tuple(f"turn {t.number}: {t.model or 'no model'}, no usage in the answer" for t in silent[:3]),
        facts.waste(()), 0.9, FIX_USAGE,
    )  # fmt: skip


def _unpriced(facts: RunFacts, priced: list[Turn], share: float) -> Iterator[Said]:
    free = [t for t in priced if t.cost_usd is None and t.reported_cost_usd is None]
    if len(free) <= share * len(priced) or facts.run.reported_cost_usd is not None:
        return
    names = Counter(t.model or t.request_model for t in free)
    if None in names or facts.foreign:  # an importer may not be told the model's whole name
        missing = {"turns.model" if name is None else f"price of {name}" for name in names}
        yield Unknown(ID, facts.run.id, tuple(sorted(missing)))
        return
    numbers = [t.number for t in free]
    known = ", ".join(str(name) for name, _ in names.most_common(3))
    yield Finding(
        ID, "warning", facts.run.id, numbers[0], numbers[-1],
        f"{len(free)} of {counted(len(priced), 'turn')} cannot be priced: no list knows {known}",
        tuple(f"{name}: {counted(count, 'turn')}" for name, count in names.most_common(3)), facts.waste(()), 0.85, FIX_PRICE,
    )  # fmt: skip


def _without_fields(facts: RunFacts, answered: list[Turn], least: float) -> Iterator[Said]:
    bare = [
        t for t in answered
        if t.provider in CACHING and (t.usage.context or 0) >= least and t.usage.cache_read is None
    ]  # fmt: skip
    if len(bare) < 2 or any(t.usage.cache_read is not None for t in answered):  # somebody does keep them
        return
    if facts.foreign:
        yield Unknown(ID, facts.run.id, ("turns.usage.cache_read",))
        return
    numbers = [t.number for t in bare]
    yield Finding(
        ID, "info", facts.run.id, numbers[0], numbers[-1],
        f"The usage of {counted(len(bare), 'turn')} says nothing of the cache, though {bare[0].provider} counts it",
        tuple(f"turn {t.number}: {t.usage.context:,} tokens read" for t in bare[:3]), facts.waste(()), 0.7, FIX_FIELDS,
    )  # fmt: skip


def _neighbours(facts: RunFacts) -> Iterator[tuple[Turn, Turn, float | None]]:
    """Consecutive turns of one agent with one model, and the seconds from the end of the one to the other."""
    last: dict[tuple[str | None, str | None], Turn] = {}
    for turn in facts.turns:
        key = (turn.agent, turn.model or turn.request_model)
        before = last.get(key)
        last[key] = turn
        if before is None or turn.status != "ok" or before.status != "ok":
            continue
        began = before.started_at  # the entry is read, and lives anew, when a request begins
        yield before, turn, None if began is None or turn.started_at is None else (turn.started_at - began) / 1e6


def _lost(facts: RunFacts, before: Turn, turn: Turn, drop: float, large: float) -> bool:
    one, other = before.usage, turn.usage
    if one.partial or other.partial or one.cache_read is None or other.cache_read is None:
        return False
    if (one.context or 0) < large or (other.context or 0) < large:
        return False
    fall = one.cache_read / (one.context or 1) - other.cache_read / (other.context or 1)
    if fall <= drop or turn.number in facts.compactions:
        return False
    changed = facts.toolsets.get(before.number), facts.toolsets.get(turn.number)
    if all(changed) and changed[0] != changed[1]:
        return False
    systems = facts.systems.get(before.number), facts.systems.get(turn.number)
    # A large new part (a file, a long result) lowers the share with the cache whole: what was read stays.
    return systems[0] == systems[1] and other.cache_read < one.cache_read * (1 - drop)


def _fall(facts: RunFacts, before: Turn, turn: Turn) -> Finding:
    one, other = before.usage, turn.usage
    again = min(one.cache_read or 0, other.context or 0) - (other.cache_read or 0)
    why, sure = _why(before, turn)
    return Finding(
        ID, "warning", facts.run.id, turn.number, turn.number,
        f"The cache was lost at turn {turn.number}: {_share(before)} of the prompt came from it before, {_share(turn)} now; {why}",
        (f"turn {before.number}: {one.cache_read:,} of {one.context:,} tokens cached",
         f"turn {turn.number}: {other.cache_read:,} of {other.context:,} tokens cached"),
        Waste(0, again, None, None), sure, FIX_CACHE,
    )  # fmt: skip


def _why(before: Turn, turn: Turn) -> tuple[str, float]:
    """What the recording says of the cause, and how sure the finding is with it."""
    if "edited" in turn.flags:
        return "earlier messages were changed", 0.85
    shorter = (before.usage.context or 0) - (turn.usage.context or 0)
    if shorter > 0:
        return f"the prompt is {shorter:,} tokens shorter, so earlier messages were changed or left out", 0.8
    return "nothing recorded explains it", 0.7


def _share(turn: Turn) -> str:
    return f"{(turn.usage.cache_read or 0) / (turn.usage.context or 1):.0%}"
