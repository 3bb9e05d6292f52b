"""Usage and model to money, by date, with the source and the matched model named. Unknown is None, never 0.

Prices come with the genai-prices package (no network). Its matching by prefix is too loose for us: a new model
would be priced as its older neighbour. So a match counts only when the package lists our id exactly, or our id
without its date or ``-latest``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from .model import Usage

_SUFFIX = re.compile(r"(?:-(?:20\d{6}|20\d\d-\d\d-\d\d|latest))$")


@dataclass(frozen=True, slots=True)
class Price:
    """What a call cost. ``usd`` is None when it cannot be priced; ``why`` then says the reason.

    Attributes:
        source: The price list and its version.
        matched: Provider and model id in that list, ``anthropic/claude-opus-4-5``.
    """

    usd: Decimal | None
    source: str | None = None
    matched: str | None = None
    why: str | None = None


def price(provider: str | None, model: str | None, usage: Usage, at_us: int | None) -> Price:
    """The price of one model call at its time (microseconds since the epoch; None: today's price)."""
    if not model:
        return Price(None, why="no model named")
    if usage.input is None and usage.output is None:
        return Price(None, why="no usage")
    found = _find(provider, model)
    if found is None:
        return Price(None, _source(), why=f"no price for {model}")
    owner, info = found
    at = None if at_us is None else datetime.fromtimestamp(at_us / 1_000_000, UTC)
    try:
        total = _total(owner, info, usage, at)
    except (ValueError, LookupError, ArithmeticError) as error:
        return Price(None, _source(), f"{owner.id}/{info.id}", f"cannot be priced ({error})")
    return Price(total, _source(), f"{owner.id}/{info.id}")


def context_window(provider: str | None, model: str | None) -> int | None:
    """Tokens that a model can read at most, as the price list says; None when it does not."""
    found = _find(provider, model) if model else None
    size = getattr(found[1], "context_window", None) if found is not None else None
    return size if isinstance(size, int) and size > 0 else None


def _total(owner: Any, info: Any, usage: Usage, at: datetime | None) -> Decimal:
    """What a usage costs: by rates worked out once for each price, since the package takes 0.2 ms for every call."""
    prices = info.get_prices(at or datetime.now(tz=UTC))
    given = _counts(usage)
    tier = max((s for s in _tiers(prices) if given["input_tokens"] > s), default=0)
    key = (owner.id, info.id, id(prices), tier, tuple(given))
    known = _rates.get(key)
    if known is None or known[0] is not prices:
        by_hand = _PackagePrice(owner, info, at, tuple(given))
        known = _rates[key] = (prices, by_hand.rates(tier, usage))
    rates = known[1]
    if rates is None:
        return _PackagePrice(owner, info, at).of(**given)
    return sum((rate * (n or 0) / _MILLION for n, rate in zip(_buckets(usage), rates, strict=True)), Decimal(0))


# Dollars per million tokens of each of `_buckets`, None where they do not add up: by provider, model, price (the object
# is kept, so that its id stays its own), tier and which counts there are.
_rates: dict[tuple[str, str, int, int, tuple[str, ...]], tuple[Any, tuple[Decimal, ...] | None]] = {}
_MILLION = 1_000_000


class _PackagePrice:
    """What the package says that a model call costs at a time; ``names``: counts that are always given."""

    def __init__(self, owner: Any, info: Any, at: datetime | None, names: tuple[str, ...] = ()) -> None:
        self._owner, self._info, self._at, self._names = owner, info, at, names

    def of(self, **counts: int) -> Decimal:
        """Dollars. Raises ValueError or LookupError for a count that has no price."""
        from genai_prices import Usage as Counts

        given = Counts(**{**dict.fromkeys(self._names, 0), **counts})
        return Decimal(self._info.calc_price(given, self._owner, genai_request_timestamp=self._at).total_price)

    def rates(self, tier: int, usage: Usage) -> tuple[Decimal, ...] | None:
        """Rates of the buckets for calls whose input is more than the tier's begin."""
        some = tier + 1  # as much input as makes it this tier
        inputs: list[dict[str, int]] = [
            {},
            {"cache_read_tokens": some},
            {"cache_write_tokens": some},
            {"cache_write_tokens": some, "cache_write_1h_tokens": some},
        ]
        found = [
            self.of(input_tokens=some, **more) * _MILLION / some if more.keys() <= set(self._names) else Decimal(0)
            for more in inputs
        ]
        found.append(self.of(input_tokens=some, output_tokens=_MILLION) - self.of(input_tokens=some))
        told = sum((rate * (n or 0) / _MILLION for n, rate in zip(_buckets(usage), found, strict=True)), Decimal(0))
        return tuple(r.normalize() for r in found) if not self.of() and told == self.of(**_counts(usage)) else None


def _tiers(prices: Any) -> set[int]:
    """Numbers of input tokens beyond which other prices hold."""
    return {t.start for price in vars(prices).values() for t in getattr(price, "tiers", ())}


def _buckets(usage: Usage) -> tuple[int | None, ...]:
    return usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.output


def _counts(usage: Usage) -> dict[str, int]:
    """Our disjoint buckets as the package wants them: input includes what was read from and written to a cache."""
    writes = (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0)
    given = {
        "input_tokens": (usage.input or 0) + (usage.cache_read or 0) + writes,
        "cache_read_tokens": usage.cache_read or 0,
        "cache_write_tokens": writes,
        "cache_write_1h_tokens": usage.cache_write_1h or 0,
        "output_tokens": usage.output or 0,
    }
    # a count of zero asks for a price that not every model has
    return {k: v for k, v in given.items() if v or k in ("input_tokens", "output_tokens")}


@lru_cache(maxsize=1024)
def _find(provider: str | None, model: str) -> tuple[Any, Any] | None:
    from genai_prices import data_snapshot

    snapshot = data_snapshot.get_snapshot()
    for hint in dict.fromkeys((provider, None)):
        try:
            owner, info = snapshot.find_provider_model(model, None, hint, None)
        except LookupError:
            continue
        names = {info.id, *_listed(info.match)}
        if model.lower() in names or _stem(model.lower()) in {_stem(n) for n in names}:
            return owner, info
    return None


def _listed(clause: Any) -> Iterator[str]:
    """Ids that the price list names; patterns that only resemble an id are left out."""
    for part in (*getattr(clause, "or_", ()), *getattr(clause, "and_", ())):
        yield from _listed(part)
    for name in ("equals", "starts_with"):
        value = getattr(clause, name, None)
        if isinstance(value, str):
            yield value.lower()


def _stem(model: str) -> str:
    return _SUFFIX.sub("", model)


@lru_cache(maxsize=1)
def _source() -> str:
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"
