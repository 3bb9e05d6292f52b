"""Usage and model to money, by date, with the source and the matched model named. Unknown is None, never 0.

A person's own price file comes first (`prices.own`), then the list of genai-prices (`prices.listed`). A price counts
only for the exact id, the id with a date or the id with ``-latest`` (`prices.names`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal

from .model import Turn, Usage
from .prices import Served, Sheet, Unpriced, listed, own, rates, served


@dataclass(frozen=True, slots=True)
class Price:
    """What a call cost. ``usd`` is None when it cannot be priced; ``why`` then says the reason.

    Attributes:
        source: The price list and its version.
        matched: Whose price it is in that list: ``anthropic/claude-opus-4-5``; of a price file the id alone.
        how: What that id is to the model's: ``exact``, ``dated`` or ``latest``.
        assumed: What had to be taken for granted: a lifetime of cache writes that nobody told, a provider.
    """

    usd: Decimal | None
    source: str | None = None
    matched: str | None = None
    why: str | None = None
    how: str | None = None
    assumed: tuple[str, ...] = ()


def price(
    provider: str | None,
    model: str | None,
    usage: Usage,
    at_us: int | None,
    *,
    how_served: Served | None = None,
    url: str | None = None,
) -> Price:
    """The price of one model call at its time.

    Args:
        at_us: Microseconds since the epoch; None: today's price.
        how_served: Speed, tier, region (`prices.served`); None: what the raw usage tells.
        url: The address that was called: whose price it is.

    Raises:
        UsageError: The price file of the settings cannot be used.
    """
    if not model:
        return Price(None, why="no model named")
    if usage.input is None and usage.output is None:
        return Price(None, why="no usage")
    if how_served is None:
        how_served = served.served(served.facts(usage.raw))
    try:
        found = sheet(provider, model, at_us, how_served, url)
    except Unpriced as reason:
        return Price(None, sources(), why=str(reason))
    try:
        usd, notes = rates.cost(found, usage, how_served.searches)
    except Unpriced as reason:
        return Price(None, found.source, found.matched, str(reason), found.how)
    assumed = (*found.assumed, *how_served.assumed, *notes)
    return Price(usd, found.source, found.matched, None, found.how, assumed)


def turn_price(turn: Turn, usage: Usage | None = None) -> Price:
    """What a recorded turn costs by today's lists at its time, served as it was; with another usage, what that would.

    Raises:
        UsageError: As `price` does.
    """
    return price(
        turn.provider,
        turn.model or turn.request_model,
        turn.usage if usage is None else usage,
        turn.ended_at or turn.started_at,
        how_served=served.served(turn.price.served) if turn.price.served else None,
        url=turn.price.url,
    )


def portions(turn: Turn) -> tuple[rates.Portion, ...]:
    """What a turn's cost is made of by today's lists; they add up to its price. Nothing where it has none.

    Reasoning is told only where it costs other than the output that it is part of.

    Raises:
        UsageError: As `price` does.
    """
    model = turn.model or turn.request_model
    if not model or turn_price(turn).usd is None:
        return ()
    how = served.served(turn.price.served) if turn.price.served else served.served(served.facts(turn.usage.raw))
    found = sheet(turn.provider, model, turn.ended_at or turn.started_at, how, turn.price.url)
    return rates.portions(found, turn.usage, how.searches)


def sheet(provider: str | None, model: str, at_us: int | None, how_served: Served, url: str | None = None) -> Sheet:
    """The rates that hold for a model at a time.

    Raises:
        Unpriced: There are none.
        UsageError: The price file of the settings cannot be used.
    """
    at = int(time.time() * 1_000_000) if at_us is None else at_us
    file = own.current()
    mine = file.sheet(provider, model, at, how_served.when) if file is not None else None
    return mine or listed.sheet(provider, model, url, at, how_served.when)


def sources() -> str:
    """The price lists in use, with their versions."""
    file = own.current()
    return listed.source() if file is None else f"{file.source}, {listed.source()}"


def context_window(provider: str | None, model: str | None) -> int | None:
    """Tokens that a model can read at most, as the price list says; None when it does not."""
    found = listed.find(provider, model) if model else None
    size = getattr(found.info, "context_window", None) if found is not None else None
    return size if isinstance(size, int) and size > 0 else None
