"""Facts out of a store: a run with its tool sets and system prompts, each text read once for all runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...tracer.model import Run
from ..cycles import Declared
from ..recording import load
from .facts import RunFacts, ToolSet, facts_of, tools_of
from .group import Group

if TYPE_CHECKING:
    from ...tracer.store import Store


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

    def facts(self, run: Run) -> RunFacts:
        """The facts of a run, read whole."""
        recording = load(self._store, run)
        query = (
            "select number, tools_blob, system_blob from base.turns "
            "where run = ? and not inherited and duplicate_of is null"
        )
        rows = self._store.rows(query, [run.id])
        self._read({row["tools_blob"] for row in rows} - {None} - self._sets.keys())
        toolsets = {row["number"]: found for row in rows if (found := self._sets.get(row["tools_blob"])) is not None}
        systems = {row["number"]: row["system_blob"] for row in rows if row["system_blob"] is not None}
        return facts_of(recording, toolsets=toolsets, systems=systems, **self._given)

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
