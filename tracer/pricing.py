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
        total = info.calc_price(_counts(usage), owner, genai_request_timestamp=at).total_price
    except (ValueError, LookupError, ArithmeticError) as error:
        return Price(None, _source(), f"{owner.id}/{info.id}", f"cannot be priced ({error})")
    return Price(Decimal(total), _source(), f"{owner.id}/{info.id}")


def _counts(usage: Usage) -> Any:
    """Our disjoint buckets as the package wants them: input includes what was read from and written to a cache."""
    from genai_prices import Usage as Counts

    writes = (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0)
    given = {
        "input_tokens": (usage.input or 0) + (usage.cache_read or 0) + writes,
        "cache_read_tokens": usage.cache_read or 0,
        "cache_write_tokens": writes,
        "cache_write_1h_tokens": usage.cache_write_1h or 0,
        "output_tokens": usage.output or 0,
    }
    # a count of zero asks for a price that not every model has
    return Counts(**{k: v for k, v in given.items() if v or k in ("input_tokens", "output_tokens")})


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
