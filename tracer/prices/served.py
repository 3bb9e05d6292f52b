"""How a call was served, where that changes its price: speed, service tier, batch, region, web searches.

The answer's word counts; the request's only where the answer is silent. Standard service has no facts at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_ORDINARY = frozenset(
    {"", "normal", "standard", "standard_only", "default", "auto", "on_demand", "global", "not_available"}
)
_TIERS = {"flex": "flex", "priority": "priority", "fast": "fast", "batch": "batch"}
# Google's word for it is the kind of traffic.
_TRAFFIC = {"ON_DEMAND_PRIORITY": "priority", "ON_DEMAND_FLEX": "flex", "PROVISIONED_THROUGHPUT": "provisioned"}


@dataclass(frozen=True, slots=True)
class Served:
    """What is not standard.

    Attributes:
        when: Pairs as price lists name them: ``("service_tier", "flex")``, ``("speed", "fast")``,
            ``("processing", "batch")``, ``("region", "us")``.
        searches: Web searches that the provider made.
        assumed: What was taken for granted.
    """

    when: tuple[tuple[str, str], ...] = ()
    searches: int = 0
    assumed: tuple[str, ...] = ()


STANDARD = Served()


def facts(raw: Any, body: Any = None, params: Any = None) -> dict[str, Any] | None:
    """Facts to keep beside a turn; None for standard service.

    Args:
        raw: The usage object as the provider gave it.
        body: The whole response.
        params: Parameters of the request.
    """
    usage = raw if isinstance(raw, Mapping) else {}
    answer = body if isinstance(body, Mapping) else {}
    asked = params if isinstance(params, Mapping) else {}
    found: dict[str, Any] = {}
    tier = usage.get("service_tier") or answer.get("service_tier") or _TRAFFIC.get(str(usage.get("trafficType")))
    for name, told in (("service_tier", tier), ("speed", usage.get("speed"))):
        value = told if isinstance(told, str) else asked.get(name)
        if isinstance(value, str) and value.lower() not in _ORDINARY:
            found[name] = value.lower()
            if not isinstance(told, str):
                found["asked"] = True
    region = usage.get("inference_geo")
    if isinstance(region, str) and region.lower() not in _ORDINARY:
        found["region"] = region.lower()
    tools = usage.get("server_tool_use")
    searches = tools.get("web_search_requests") if isinstance(tools, Mapping) else None
    if isinstance(searches, int) and searches > 0:
        found["searches"] = searches
    if split := _split(usage):
        found["split"] = split
    return found or None


def _split(usage: Mapping[str, Any]) -> list[int] | None:
    """What the split of cache writes adds up to, and what was written, where the two differ."""
    parts, written = usage.get("cache_creation"), usage.get("cache_creation_input_tokens")
    if not isinstance(parts, Mapping) or not isinstance(written, int):
        return None
    lives = [parts.get(f"ephemeral_{life}_input_tokens") for life in ("5m", "1h")]
    told = sum(n for n in lives if isinstance(n, int))
    return None if told == written else [told, written]


def served(found: Mapping[str, Any] | None) -> Served:
    """Facts as price lists ask for them."""
    if not found:
        return STANDARD
    when: list[tuple[str, str]] = []
    assumed: list[str] = []
    tier = found.get("service_tier")
    if tier in _TIERS:
        when.append(("processing", "batch") if tier == "batch" else ("service_tier", tier))
    elif tier:
        assumed.append(f"standard rate: service tier {tier} is paid for in another way")
    when += [(name, str(found[name])) for name in ("speed", "region") if name in found]
    if found.get("asked"):
        assumed.append("served as it was asked: the answer does not say how")
    if "split" in found:
        told, written = found["split"]
        assumed.append(
            f"the split of the cache writes tells {told:,} of {written:,} tokens: the rest at the 5-minute rate"
            if told < written
            else f"the split of the cache writes tells {told:,} tokens, their sum {written:,}: taken as split"
        )
    return Served(tuple(when), int(found.get("searches", 0)), tuple(assumed))


@lru_cache(maxsize=4096)
def from_text(text: str | None) -> Served:
    """The same from facts kept as JSON text."""
    return served(json.loads(text)) if text else STANDARD
