"""A store in memory that holds the rows of given runs, and nothing else of them: enough for lists, however long."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from looptape.replay.listing import Facts
from looptape.replay.listing.facts import version_of
from looptape.replay.rules.config import Config
from looptape.tracer.model import Run
from looptape.tracer.store import Store, memory_store
from looptape.tracer.store.rows import USAGE, Connection, append
from looptape.tracer.store.text import dumps

PLAIN = ("id", "name", "title", "agent", "project", "session", "task", "source", "status", "reason", "started_at",
         "ended_at", "git_commit", "list_price", "reported_cost_usd", "turns", "tool_calls", "errors", "unpriced_turns")  # fmt: skip
JSON = {"outcome": "outcome_json", "limits": "limits_json", "tags": "tags_json", "warnings": "warnings_json",
        "versions": "versions_json", "models": "models_json"}  # fmt: skip


def store_of(runs: Sequence[Run], facts: Mapping[str, Facts] | None = None) -> Store:
    """A new store with these runs, and what is kept beside some of them by their ids."""
    store = memory_store()
    store.write(lambda con: _fill(con, runs, facts or {}))
    return store


def _fill(con: Connection, runs: Sequence[Run], facts: Mapping[str, Facts]) -> None:
    append(con, "runs", (_row(run, place) for place, run in enumerate(reversed(runs), 1)))
    append(con, "derived", (row for run in runs if run.id in facts for row in _kept(run, facts[run.id])))


def _row(run: Run, place: int) -> dict[str, Any]:
    row = {name: getattr(run, name) for name in PLAIN}
    row |= {
        column: dumps(list(v) if isinstance(v := getattr(run, name), tuple) else v)
        for name, column in JSON.items()
        if getattr(run, name)
    }
    row |= {name: getattr(run.usage, name) for name in USAGE}
    row |= {"usage_origin": run.usage.origin, "usage_partial": run.usage.partial, "place": place}
    row["cost_usd"] = None if run.cost_usd is None else Decimal(str(run.cost_usd))
    row["difference_usd"] = run.cost_difference_usd
    if run.parent is not None:
        names = ("run", "turn", "call", "kind")
        row |= {f"parent_{name}": getattr(run.parent, name) for name in names}
    return row


def _kept(run: Run, facts: Facts) -> list[dict[str, Any]]:
    version = f"{version_of(Config())}:0:{run.turns}"
    share = facts.context / facts.window if facts.context and facts.window else None
    listed = {"findings": facts.findings, "worst": facts.worst, "context": facts.context, "window": facts.window,
              "share": share, "bars": facts.bars}  # fmt: skip
    wasted = {"cycles": facts.cycles, "usd": facts.wasted_usd}
    return [
        {"run": run.id, "kind": "listed", "version": version, "value_json": json.dumps(listed)},
        {"run": run.id, "kind": "wasted", "version": f"cycles-1:0:{run.turns}", "value_json": json.dumps(wasted)},
    ]
