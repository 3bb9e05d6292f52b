"""Rates of the usage buckets, their long-context tiers, and the arithmetic: exact, in decimals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, Decimal, getcontext, localcontext
from typing import Any

from ..model import Usage

_EXACT = Context(prec=60)
_ENOUGH = 28  # digits that hold every count of tokens times every price; the program around us may have set fewer
_MILLION = 1_000_000
_THOUSAND = 1_000


class Unpriced(Exception):
    """A call that cannot be priced; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens; None where the list says nothing.

    Attributes:
        reasoning: Set only where reasoning costs other than the output that it is part of.
        request: Dollars per call.
        search: Dollars per thousand web searches of the provider.
    """

    input: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    output: Decimal | None = None
    reasoning: Decimal | None = None
    request: Decimal | None = None
    search: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rates of a model as it was served on a day.

    Attributes:
        tiers: ``(above, rates)``, the largest first: rates of the whole call once its input is more than ``above`` tokens.
        source: The price list and its version.
        matched: Whose price it is in that list: ``anthropic/claude-opus-4-5``.
        how: ``exact``, ``dated`` or ``latest``: what the id found is to the id asked for.
        assumed: What was taken for granted to find these rates.
    """

    base: Rates
    tiers: tuple[tuple[int, Rates], ...]
    source: str
    matched: str
    how: str
    assumed: tuple[str, ...] = ()

    def rates(self, context: int) -> Rates:
        """The rates for a call that reads so many tokens."""
        for above, rates in self.tiers:
            if context > above:
                return rates
        return self.base


@dataclass(frozen=True, slots=True)
class Portion:
    """What one kind of token, or the call itself, cost.

    Attributes:
        name: A bucket of the usage, ``request`` or ``searches``.
        count: Tokens, or how many calls or searches.
        rate: Dollars per million tokens, per call, or per thousand searches.
    """

    name: str
    count: int
    rate: Decimal
    usd: Decimal


def portions(sheet: Sheet, usage: Usage, searches: int = 0) -> tuple[Portion, ...]:
    """What `cost` is made of: they add up to it. Reasoning stands apart only where it costs other than output.

    Raises:
        Unpriced: As `cost` does.
    """
    rates = sheet.rates(usage.context or 0) if sheet.tiers else sheet.base
    bare = replace(sheet, base=replace(rates, request=None), tiers=())
    found = []
    apart = rates.reasoning is not None and bool(usage.reasoning)
    thought = min(usage.reasoning or 0, usage.output or 0) if apart else 0
    for name in ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output"):
        count = (getattr(usage, name) or 0) - (thought if name == "output" else 0)
        if count:
            alone: dict[str, Any] = {name: count}
            usd, _ = cost(bare, Usage(**alone))
            found.append(Portion(name, count, usd * _MILLION / count, usd))
    if thought:
        usd, _ = cost(bare, Usage(output=thought, reasoning=thought))
        found.append(Portion("reasoning", thought, usd * _MILLION / thought, usd))
    if rates.request is not None:
        found.append(Portion("request", 1, rates.request, rates.request))
    if searches and rates.search is not None:
        found.append(Portion("searches", searches, rates.search, rates.search * searches / _THOUSAND))
    return tuple(found)


def cost(sheet: Sheet, usage: Usage, searches: int = 0) -> tuple[Decimal, tuple[str, ...]]:
    """Dollars of a call, and what had to be assumed.

    Raises:
        Unpriced: The list has no rate for tokens that the call used.
    """
    rates = sheet.rates(usage.context or 0) if sheet.tiers else sheet.base
    if getcontext().prec >= _ENOUGH:
        return _total(rates, usage, searches)
    with localcontext(_EXACT):
        return _total(rates, usage, searches)


def _total(rates: Rates, usage: Usage, searches: int) -> tuple[Decimal, tuple[str, ...]]:
    notes: list[str] = []
    total = _input(rates, usage, notes)
    if usage.output:
        total += _output(rates, usage)
    total /= _MILLION
    if rates.request is not None:
        total += rates.request
    if searches:
        if rates.search is None:
            notes.append("the web searches are not counted: no price for them")
        else:
            total += rates.search * searches / _THOUSAND
    return total, tuple(notes)


def _input(rates: Rates, usage: Usage, notes: list[str]) -> Decimal:
    total = Decimal(0)
    fresh = rates.input
    if usage.input:
        total += _known(fresh, "input") * usage.input
    if usage.cache_read:
        rate = rates.cache_read
        if rate is None:
            rate = _known(fresh, "cache reads")
            notes.append("cache reads at the input rate: no price for them")
        total += rate * usage.cache_read
    short = rates.cache_write_5m
    if usage.cache_write_5m:
        if short is None:
            notes.append("cache writes at the input rate: no price for them")
        elif usage.cache_write_1h is None and rates.cache_write_1h not in (None, short):
            notes.append("cache writes at the 5-minute rate: how long they live is not told")
        total += _known(fresh if short is None else short, "cache writes") * usage.cache_write_5m
    if usage.cache_write_1h:
        rate = rates.cache_write_1h
        if rate is None:
            rate = _known(fresh if short is None else short, "cache writes")
            notes.append("1-hour cache writes at the 5-minute rate: no price for them")
        total += rate * usage.cache_write_1h
    return total


def _output(rates: Rates, usage: Usage) -> Decimal:
    written, thought = usage.output or 0, usage.reasoning or 0
    if rates.reasoning is None or not thought:
        return _known(rates.output, "output") * written
    thought = min(thought, written)
    return _known(rates.output, "output") * (written - thought) + rates.reasoning * thought


def _known(rate: Decimal | None, what: str) -> Decimal:
    if rate is None:
        raise Unpriced(f"no price for {what}")
    return rate
