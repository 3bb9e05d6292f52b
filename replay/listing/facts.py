"""What lists show of a run beside its own figures: cycles, findings, how full its window was; found once, kept in the store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ...tracer.store import Filter
from ...tracer.store.text import encode

if TYPE_CHECKING:
    from ...tracer.model import Run
    from ...tracer.store import Store
    from ..rules.config import Config
    from ..rules.facts import RunFacts

VERSION = "listed-1"
BARS = 8
"""Heights of the small drawing of a run's context."""
LONG_TURNS = 2_000
"""Runs of more turns are not looked at on the side: that would take seconds of each."""
COMPARED = 2_000
"""Runs of the same task or project that the rules compare with, the newest."""
TOGETHER = 8
"""Runs that are read at once."""


@dataclass(frozen=True, slots=True)
class Facts:
    """None is: nobody looked yet, or it cannot be known; 0 is none.

    Attributes:
        cycles: How often the run went round in circles, with waste.
        findings: How many findings the rules have, ``worst`` is the highest severity of them.
        context: Tokens of its fullest request. ``window``: what its model can read, where the price list says it.
        bars: Context over the run's turns, the highest of each share.
    """

    cycles: int | None = None
    wasted_usd: float | None = None
    findings: int | None = None
    worst: str | None = None
    context: int | None = None
    window: int | None = None
    bars: tuple[int, ...] = ()


def kept(store: Store, ids: Sequence[str]) -> dict[str, Facts]:
    """What is kept of these runs, also where a run has gone on since."""
    query = "select run, kind, value_json from base.derived where kind in ('wasted', 'listed') and run in (select unnest(?::varchar[]))"
    told: dict[str, dict[str, Any]] = {}
    for row in store.rows(query, [[encode(i) for i in ids]]):
        value = json.loads(row["value_json"] or "{}")
        named = {"cycles": value.get("cycles"), "wasted_usd": value.get("usd")} if row["kind"] == "wasted" else value
        told.setdefault(row["run"], {}).update(named)
    return {run: _facts(value) for run, value in told.items()}


def look(
    store: Store,
    ids: Sequence[str],
    config: Config | None = None,
    *,
    seconds: float = 0.5,
) -> tuple[int, int]:
    """Finds the facts of those of these runs that have none, or went on since; how many it looked at, how many are left.

    Args:
        ids: Looked at in this order.
        config: The linter's; with no settings by default.
        seconds: No further run is begun after that time.
    """
    from ..rules.config import Config as Settings

    config = config or Settings()
    of = version_of(config)
    missing = _missing(store, ids, of)
    end = time.monotonic() + seconds
    done = 0
    while done < len(missing):
        some = missing[done : done + TOGETHER]
        _look_at(store, some, config, of)
        done += len(some)
        if time.monotonic() > end:
            break
    return done, len(missing) - done


def _look_at(store: Store, rows: Sequence[Mapping[str, Any]], config: Config, of: str) -> None:
    from ..analytics.wasted import VERSION as OF_CYCLES
    from ..analytics.wasted import keep, told, version
    from ..cycles import Declared

    found = {run.id: run for run in store.runs(Filter(ids=tuple(row["id"] for row in rows), limit=0))}
    windows = _windows(store, list(found))
    listed, wasted = [], []
    for facts, findings in _judged(store, list(found.values()), config):
        row = next(r for r in rows if r["id"] == facts.run.id)
        value = {"findings": len(findings), "worst": _worst(findings), **windows.get(facts.run.id, {})}
        listed.append((facts.run.id, version(row, of), json.dumps(value)))
        if config.declared == Declared():  # else the cycles that `looptape cycles` keeps are others
            wasted.append((facts.run.id, version(row, OF_CYCLES), json.dumps(told(facts.cycles))))
    keep(store, "listed", listed)
    if wasted:
        keep(store, "wasted", wasted)


def _judged(store: Store, runs: Sequence[Run], config: Config) -> Iterable[tuple[RunFacts, Sequence[Any]]]:
    """Each run's facts with what the rules find in it."""
    from ..rules.group import group_of
    from ..rules.lint import all_rules, lint_facts
    from ..rules.load import Loader

    rules = [rule for rule in all_rules().rules if config.wants(rule.ID)]
    overrides = {rule: dict(numbers) for rule, numbers in config.overrides.items()}
    group = group_of(store, runs, overrides=overrides, most=COMPARED)
    loader = Loader(store, group=group, declared=config.declared, overrides=overrides)
    for facts in loader.facts(runs):
        yield facts, lint_facts(facts, rules).findings


def _missing(store: Store, ids: Sequence[str], of: str) -> list[dict[str, Any]]:
    query = """
      select r.id, r.last_at, r.turns from base.runs as r
      where r.id in (select unnest(?::varchar[])) and r.turns > 0 and r.turns <= ? and r.id not in
        (select run from base.derived where kind = 'listed' and version = ? || ':' || coalesce(r.last_at, 0) || ':' || r.turns)
    """
    places = {run: place for place, run in enumerate(ids)}
    rows = store.rows(query, [[encode(i) for i in ids], LONG_TURNS, of])
    return sorted(rows, key=lambda row: places[row["id"]])


def _windows(store: Store, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The fullest request, its model's window, and the bars, by run."""
    query = """
      select run, number, provider, coalesce(model, request_model) as model, coalesce(input, 0) + coalesce(cache_read, 0)
        + coalesce(cache_write_5m, 0) + coalesce(cache_write_1h, 0) as context
      from base.turns where run in (select unnest(?::varchar[])) and not inherited and duplicate_of is null
        and coalesce(input, cache_read, cache_write_5m, cache_write_1h) is not null order by run, number
    """
    turns: dict[str, list[dict[str, Any]]] = {}
    for row in store.rows(query, [[encode(i) for i in ids]]):
        turns.setdefault(row["run"], []).append(row)
    return {run: _window(rows) for run, rows in turns.items()}


def _window(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sizes = [row["context"] for row in rows]
    fullest = max(rows, key=lambda row: row["context"])
    window = _window_of(fullest["provider"], fullest["model"])
    shares = min(BARS, len(sizes))
    bars = [max(sizes[i * len(sizes) // shares : (i + 1) * len(sizes) // shares]) for i in range(shares)]
    share = round(fullest["context"] / window, 4) if window else None
    return {"context": fullest["context"], "window": window, "share": share, "bars": bars}


@cache
def _window_of(provider: str | None, model: str | None) -> int | None:
    from ...tracer.pricing import context_window

    return context_window(provider, model)


def _worst(findings: Sequence[Any]) -> str | None:
    from ..rules.rule import SEVERITIES

    found = {f.severity for f in findings}
    return next((s for s in reversed(SEVERITIES) if s in found), None)


def version_of(config: Config) -> str:
    """Of what is kept: another one is found anew. The rules' settings are part of it."""
    from ...tracer.canonical import digest

    said = (
        config.select,
        config.ignore,
        sorted((k, sorted(v.items())) for k, v in config.overrides.items()),
        config.declared,
    )
    return f"{VERSION}-{digest(repr(said))[:8]}"


def _facts(value: Mapping[str, Any]) -> Facts:
    names = ("cycles", "wasted_usd", "findings", "worst", "context", "window")
    return Facts(**{name: value.get(name) for name in names}, bars=tuple(value.get("bars") or ()))
