"""What the store knows of its own prices: models without one, and figures of older price lists."""

from __future__ import annotations

from typing import Any, Protocol

_OWN = "not inherited and duplicate_of is null and ended_at is not null and (input is not null or output is not null)"
_UNPRICED = f"""
  select coalesce(model, request_model) as model, count(*) as turns from base.turns
  where {_OWN} and cost_usd is null and coalesce(model, request_model) is not null group by 1 order by turns desc, 1
"""  # noqa: S608 - made of our own words
_SOURCES = f"""
  select price_source as source, count(*) as turns from base.turns where {_OWN} and cost_usd is not null
  group by 1 order by 1
"""  # noqa: S608


class _Rows(Protocol):
    def rows(self, text: str) -> list[dict[str, Any]]: ...


def unpriced_models(store: _Rows) -> list[tuple[str, int]]:
    """Models that no price list names, with how many turns they answered; the most first."""
    return [(r["model"], r["turns"]) for r in store.rows(_UNPRICED)]


def price_sources(store: _Rows) -> dict[str, int]:
    """How many turns were priced by each list."""
    return {r["source"] or "?": r["turns"] for r in store.rows(_SOURCES)}
