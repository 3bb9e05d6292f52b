"""The price list of the package genai-prices (no network), read more strictly than the package reads it.

Its own matching goes by prefixes and patterns: a new model would be priced as its older neighbour. Here an id counts
only when the list names it (see `names`). What it lists for one day, tier and speed becomes a `Sheet`, kept, so that
a turn costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from .names import candidates, plain
from .rates import Rates, Sheet, Unpriced

Context = tuple[tuple[str, str], ...]

_BUCKETS = {
    "input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
    "reasoning": "output_reasoning_mtok",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTES = 24 * 60
# Capacity that was bought beforehand: the list cannot know what it cost, its standard rate is what can be said.
_COMMITTED = frozenset({("anthropic", "service_tier", "priority")})


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """A model of the list. ``by_minute``: its price changes within a day."""

    owner: Any
    info: Any
    how: str
    assumed: tuple[str, ...]
    by_minute: bool

    @property
    def matched(self) -> str:
        """Provider and id, as the list has them."""
        return f"{self.owner.id}/{self.info.id}"


def sheet(provider: str | None, model: str, url: str | None, at_us: int, context: Context) -> Sheet:
    """The rates of a model at a time (microseconds since the epoch), served as the context says.

    Raises:
        Unpriced: The list does not name the model, or not served so.
    """
    found = find(provider, model, url)
    if found is None:
        raise Unpriced(f"no price for {model}")
    minute = at_us // 60_000_000
    return _sheet(found, minute if found.by_minute else minute // _MINUTES * _MINUTES, context)


def source() -> str:
    """The list and its version, and when the program around us fetched a newer one, if it did."""
    snapshot = _snapshot()
    return _packaged() + (f", updated {snapshot.timestamp:%Y-%m-%d}" if snapshot.from_auto_update else "")


@lru_cache(maxsize=1)
def _packaged() -> str:
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"


def newest_date() -> date | None:
    """The last day up to today on which a price of the list begins: the list is no older than that."""
    today = datetime.now(tz=UTC).date()
    days = (
        start
        for provider in _snapshot().providers
        for info in provider.models
        for priced in (*(info.prices if isinstance(info.prices, list) else ()), *(info.price_variants or ()))
        if isinstance(start := getattr(priced.constraint, "start_date", None), date) and start <= today
    )
    return max(days, default=None)


def size() -> int:
    """How many models the list has."""
    return sum(len(p.models) for p in _snapshot().providers)


def _snapshot() -> Any:
    from genai_prices import data_snapshot

    return data_snapshot.get_snapshot()


# -- which model ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def find(provider: str | None, model: str, url: str | None = None) -> Found | None:
    """The model of the list that this id names.

    The provider is whose address was called, else the one told; where the list has no such model of that provider,
    the model's maker, and that is then assumed.
    """
    called = _by_url(_host(url)) if url else None
    told = _by_id(provider) if provider else None
    wanted = called or told
    if wanted is not None and (hit := _within(wanted, model)):
        return _found(*hit, ())
    maker = next((p for p in _snapshot().providers if p.model_match and p.model_match.is_match(model.lower())), None)
    hit = _within(maker, model) if maker is not None and maker is not wanted else None
    if hit is None:
        return None
    name = wanted.id if wanted is not None else provider
    return _found(*hit, (f"the price of {hit[0].id}: {name} has none listed for this model",) if name else ())


def _found(owner: Any, info: Any, how: str, assumed: tuple[str, ...]) -> Found:
    priced = (*(info.prices if isinstance(info.prices, list) else ()), *(info.price_variants or ()))
    by_minute = any(hasattr(p.constraint, "start_time") for p in priced)
    return Found(owner, info, how, assumed, by_minute)


def _within(provider: Any, model: str) -> tuple[Any, Any, str] | None:
    """The model among a provider's own, then among those of the makers whose models it offers at their price."""
    makers = [p for name in provider.fallback_model_providers or () if (p := _by_id(name)) is not None]
    for owner in (provider, *makers):
        names = _names(owner.id)
        for name, how in candidates(model, bedrock=owner.id == "aws"):
            if name in names:
                return provider, names[name], how
    return None


@lru_cache(maxsize=64)
def _names(provider: str) -> dict[str, Any]:
    """Every id that the list gives for a model of this provider."""
    owner = _by_id(provider)
    models = owner.models if owner is not None else ()
    named = {plain(text): info for info in models for text in _listed(info.match)}
    return named | {plain(info.id): info for info in models}


def _listed(clause: Any) -> Iterator[str]:
    """Ids that stand in a match rule; patterns, and texts that only together make a rule, name none."""
    for part in getattr(clause, "or_", ()):
        yield from _listed(part)
    for name in ("equals", "starts_with", "contains", "ends_with"):
        value = getattr(clause, name, None)
        if isinstance(value, str):
            yield value


@lru_cache(maxsize=256)
def _by_id(provider: str) -> Any:
    from genai_prices.data_snapshot import find_provider_by_id

    return find_provider_by_id(_snapshot().providers, provider)


def _host(url: str) -> str:
    """The address without its path: paths hold ids and would fill the memory of `_by_url`."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"


@lru_cache(maxsize=256)
def _by_url(host: str) -> Any:
    return next((p for p in _snapshot().providers if re.match(p.api_pattern, host)), None)


# -- what it costs --------------------------------------------------------------------------------------------


@lru_cache(maxsize=16384)
def _sheet(found: Found, minute: int, context: Context) -> Sheet:
    at = _EPOCH + timedelta(minutes=minute)
    assumed = (*found.assumed, *_unlisted(found, at, context))
    prices = {k: v for k, v in vars(found.info.get_prices(at, dict(context))).items() if v is not None}
    starts = sorted({t.start for v in prices.values() for t in getattr(v, "tiers", ())}, reverse=True)
    tiers = tuple((start, _rates(prices, start + 1)) for start in starts)
    return Sheet(_rates(prices, 0), tiers, source(), found.matched, found.how, assumed)


def _unlisted(found: Found, at: datetime, context: Context) -> Iterator[str]:
    """What is assumed where the list has no price for the way a call was served.

    Raises:
        Unpriced: For the ways whose price is known to be another one.
    """
    for name, value in context:
        variants = [v for v in found.info.price_variants or () if v.when.get(name) == value]
        if any(v.constraint is None or v.constraint.active(at) for v in variants):
            continue
        if name == "region":
            yield f"standard rate: no price listed for region {value}"
        elif (found.owner.id, name, value) in _COMMITTED:
            yield f"standard rate: {value} capacity is bought beforehand"
        else:
            since = min(
                (str(v.constraint.start_date) for v in variants if hasattr(v.constraint, "start_date")), default=""
            )
            when = f", listed only since {since}" if since else ""
            raise Unpriced(f"no price for {found.matched} with {name.replace('_', ' ')} {value} on {at:%Y-%m-%d}{when}")


def _rates(prices: dict[str, Any], context: int) -> Rates:
    """The rates of a call that reads so many tokens."""
    at = {name: _at(prices.get(key), context) for name, key in _BUCKETS.items()}
    request, search = _at(prices.get("requests_kcount"), context), _at(prices.get("web_searches_kcount"), context)
    return Rates(**at, request=None if request is None else request / 1000, search=search)


def _at(price: Any, context: int) -> Decimal | None:
    """A price at a size of the input; a plain one is the same at all sizes."""
    if price is None or isinstance(price, Decimal):
        return price
    above = [tier.price for tier in price.tiers if context > tier.start]
    return Decimal(above[-1] if above else price.base)
