"""Facts out of a store: runs with their tool sets and system prompts, each text read once for all runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...tracer.model import Run
from ..cycles import Declared
from ..recording import load_many
from .facts import RunFacts, ToolSet, facts_of, tools_of
from .group import Group

if TYPE_CHECKING:
    from ...tracer.store import Store

TOGETHER = 200
"""Runs whose tool sets are asked for at once."""


class Loader:
    """Makes facts of runs of one store; keeps the tool sets, which many turns and runs share."""

    def __init__(
        self,
        store: Store,
        *,
        group: Group,
        declared: Declared,
        overrides: Mapping[str, Mapping[str, float]],
    ) -> None:
        self._store = store
        self._given: dict[str, Any] = {"group": group, "declared": declared, "overrides": overrides}
        self._sets: dict[int, ToolSet | None] = {}

    def facts(self, runs: Sequence[Run]) -> Iterator[RunFacts]:
        """The facts of the runs in this order, each run read whole, a few in memory at a time."""
        for start in range(0, len(runs), TOGETHER):
            some = runs[start : start + TOGETHER]
            offered = self._offered([run.id for run in some])
            for recording in load_many(self._store, some):
                toolsets, systems = offered.get(recording.run.id, ({}, {}))
                yield facts_of(recording, toolsets=toolsets, systems=systems, **self._given)

    def _offered(self, runs: list[str]) -> dict[str, tuple[dict[int, ToolSet], dict[int, int]]]:
        """By run: tool set and system prompt of each turn."""
        query = (
            "select run, number, tools_blob, system_blob from base.turns where run in (select unnest(?::varchar[])) "
            "and not inherited and duplicate_of is null and (tools_blob is not null or system_blob is not null)"
        )
        rows = self._store.rows(query, [runs])
        self._read({row["tools_blob"] for row in rows} - {None} - self._sets.keys())
        found: dict[str, tuple[dict[int, ToolSet], dict[int, int]]] = {}
        for row in rows:
            toolsets, systems = found.setdefault(row["run"], ({}, {}))
            if (offered := self._sets.get(row["tools_blob"])) is not None:
                toolsets[row["number"]] = offered
            if row["system_blob"] is not None:
                systems[row["number"]] = row["system_blob"]
        return found

    def _read(self, blobs: set[int]) -> None:
        if not blobs:
            return
        query = "select id, text from base.blobs where id in (select unnest(?::bigint[])) and text is not null"
        for row in self._store.rows(query, [list(blobs)]):
            self._sets[row["id"]] = tools_of(_decoded(row["text"]))


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
