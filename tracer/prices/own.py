"""A person's own price file, over the built-in list: their contract, a model of their own, a local one that is free.

``{"unit": "USD per 1,000,000 tokens", "version": "2026-11", "models": {"acme-large-1": {"input": "5", "output": "25"}}}``;
docs/cost.md has all of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .listed import Context
from .names import candidates, plain
from .rates import Rates, Sheet, Unpriced

UNIT = "USD per 1,000,000 tokens"
VARIABLE = "LOOPTAPE_PRICES"

_RATES = tuple(f.name for f in fields(Rates))
_CONDITIONS = {"service_tier", "speed", "processing", "region"}
_ENTRY = {*_RATES, "tiers", "provider", "from", "until", "when"}
_DAY_US = 86_400_000_000
_Place = tuple[Path, str]  # a file and where in it: for errors


@dataclass(frozen=True, slots=True)
class Entry:
    """One price of a model. ``first`` and ``last``: days since the epoch on which it holds, None: no end."""

    base: Rates
    tiers: tuple[tuple[int, Rates], ...]
    provider: str | None
    first: int | None
    last: int | None
    when: frozenset[tuple[str, str]]


@dataclass(frozen=True, eq=False, slots=True)
class PriceFile:
    """A price file that was read. ``source``: its name with its version, or with a digest of it."""

    path: Path
    source: str
    models: Mapping[str, tuple[Entry, ...]]
    names: Mapping[str, str]

    def sheet(self, provider: str | None, model: str, at_us: int, context: Context) -> Sheet | None:
        """The rates of a model; None when the file does not name it for that provider and day.

        Raises:
            Unpriced: The file names it, but not as it was served.
        """
        return _sheet(self, provider, model, at_us // _DAY_US, context)


@lru_cache(maxsize=4096)
def _sheet(file: PriceFile, provider: str | None, model: str, day: int, context: Context) -> Sheet | None:
    for name, how in candidates(model):
        holding = [e for e in file.models.get(name, ()) if _holds(e, provider, day)]
        if not holding:
            continue
        served = [e for e in holding if e.when <= set(context)]
        if not served:
            raise Unpriced(f"{file.path.name} has a price for {model} only where {_said(holding[0].when)}")
        best = max(served, key=lambda e: (len(e.when), e.provider is not None, e.first if e.first is not None else -1))
        for key, value in context:
            if (key, value) not in best.when and key != "region":
                raise Unpriced(f"{file.path.name} has no price for {model} with {key.replace('_', ' ')} {value}")
        return Sheet(best.base, best.tiers, file.source, file.names[name], how)
    return None


def _holds(entry: Entry, provider: str | None, day: int) -> bool:
    mine = entry.provider is None or (provider or "").lower() == entry.provider
    return mine and (entry.first is None or day >= entry.first) and (entry.last is None or day <= entry.last)


def _said(when: frozenset[tuple[str, str]]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} is {value}" for key, value in sorted(when))


def current() -> PriceFile | None:
    """The price file of the settings; None when there is none. Read again when it changes.

    Raises:
        UsageError: It cannot be read, or says something that is no price.
    """
    given = os.environ.get(VARIABLE, "").strip()
    path = str(Path(given).expanduser().absolute()) if given else _of_settings(_cwd())
    if path is None:
        return None
    try:
        state = os.stat(path)
    except OSError as error:
        raise UsageError(
            "bad-prices",
            f"cannot read the price file {path}: {error.strerror}",
            f"Correct the setting `prices` ({VARIABLE}), or remove it",
        ) from None
    return read(path, state.st_mtime_ns, state.st_size)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


@lru_cache(maxsize=8)
def _of_settings(_folder: str) -> str | None:
    from ..settings import effective

    value = effective()["prices"].value
    return str(value) if value else None


@lru_cache(maxsize=8)
def read(path: str, _changed: int = 0, _size: int = 0) -> PriceFile:
    """A price file.

    Raises:
        UsageError: ``bad-prices``: names the place and what would be right.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
        told = json.loads(data.decode("utf-8"), parse_float=Decimal, parse_int=Decimal)
    except OSError as error:
        raise UsageError(
            "bad-prices", f"cannot read the price file {file}: {error.strerror}", "Correct the path"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError("bad-prices", f"{file} is not JSON: {error}", "docs/cost.md has an example") from None
    if not isinstance(told, dict) or not isinstance(told.get("models"), dict):
        raise _bad((file, "the file"), 'is no object with "models"')
    if told.get("unit", UNIT) != UNIT:
        raise _bad((file, "unit"), f"is {told['unit']!r}, not {UNIT!r}")
    version = told.get("version")
    source = f"{file.name} {version if version is not None else blake2b(data, digest_size=4).hexdigest()}"
    models = {plain(name): _entries((file, f"models.{name}"), given) for name, given in told["models"].items()}
    return PriceFile(file, source, models, {plain(name): name for name in told["models"]})


def _entries(place: _Place, given: Any) -> tuple[Entry, ...]:
    many = given if isinstance(given, list) else [given]
    if not many:
        raise _bad(place, "is empty")
    return tuple(_entry((place[0], place[1] + (f"[{i}]" if len(many) > 1 else "")), one) for i, one in enumerate(many))


def _entry(place: _Place, given: Any) -> Entry:
    file, name = place
    if not isinstance(given, dict):
        raise _bad(place, "is no object of prices")
    for key in given:
        if key not in _ENTRY:
            raise _bad((file, f"{name}.{key}"), f"is not known; known are {', '.join(sorted(_ENTRY))}")
    prices = {key: _price((file, f"{name}.{key}"), given[key]) for key in _RATES if key in given}
    if not prices:
        raise _bad(place, "holds no price")
    provider = given.get("provider")
    if provider is not None and not isinstance(provider, str):
        raise _bad((file, f"{name}.provider"), "is no text")
    return Entry(
        Rates(**prices),
        _tiers((file, f"{name}.tiers"), given.get("tiers", []), prices),
        provider.lower() if provider else None,
        _day((file, f"{name}.from"), given.get("from")),
        _day((file, f"{name}.until"), given.get("until")),
        _when((file, f"{name}.when"), given.get("when", {})),
    )


def _tiers(place: _Place, given: Any, base: dict[str, Decimal]) -> tuple[tuple[int, Rates], ...]:
    file, name = place
    if not isinstance(given, list):
        raise _bad(place, "is no list")
    found = []
    for number, tier in enumerate(given):
        at = f"{name}[{number}]"
        above = tier.get("above_input_tokens") if isinstance(tier, dict) else None
        if not isinstance(above, Decimal) or above < 0 or above != int(above):
            raise _bad((file, at), 'has no whole number "above_input_tokens"')
        for key in tier:
            if key != "above_input_tokens" and key not in _RATES:
                raise _bad((file, f"{at}.{key}"), f"is not known; known are {', '.join(_RATES)}")
        prices = {key: _price((file, f"{at}.{key}"), tier[key]) for key in _RATES if key in tier}
        found.append((int(above), Rates(**{**base, **prices})))
    return tuple(sorted(found, key=lambda tier: tier[0], reverse=True))


def _price(place: _Place, given: Any) -> Decimal:
    try:
        value = Decimal(given) if isinstance(given, (str, Decimal)) else None
    except ArithmeticError:
        value = None
    if value is None or not value.is_finite() or value < 0:
        raise _bad(place, f"is {_shown(given)}: no amount of US dollars")
    return value


def _day(place: _Place, given: Any) -> int | None:
    if given is None:
        return None
    try:
        day = date.fromisoformat(given)
    except (TypeError, ValueError):
        raise _bad(place, f"is {_shown(given)}: no date like 2026-11-01") from None
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days


def _when(place: _Place, given: Any) -> frozenset[tuple[str, str]]:
    if not isinstance(given, dict):
        raise _bad(place, "is no object")
    for key, value in given.items():
        if key not in _CONDITIONS or not isinstance(value, str):
            raise _bad(
                place, f"asks for {key} {_shown(value)}; known are {', '.join(sorted(_CONDITIONS))}, each a text"
            )
    return frozenset((key, value.lower()) for key, value in given.items())


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else repr(value)


def _bad(place: _Place, what: str) -> UsageError:
    return UsageError("bad-prices", f"{place[0]}: {place[1]} {what}", "docs/cost.md has an example of a price file")
