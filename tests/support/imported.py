"""The records that an importer makes of a file, by kind, for tests that look at them without a store."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes


class Imported:
    """What an importer yielded and noted."""

    def __init__(self, records: list[dict[str, Any]], notes: Notes) -> None:
        self.records = records
        self.notes = notes
        self.blobs: Mapping[str, str] = {r["hash"]: r["text"] for r in records if r["kind"] == "blob"}

    @property
    def main(self) -> str:
        """The first run."""
        return next(iter(self.notes.runs))

    def of(self, kind: str, run: str | None = None) -> list[dict[str, Any]]:
        """Records of a kind and run (the first when none is given)."""
        return [r for r in self.records if r["kind"] == kind and r.get("run") == (run or self.main)]

    def turns(self, run: str | None = None) -> dict[int, dict[str, Any]]:
        """The last turn_end of every turn, by number."""
        return {r["turn"]: r for r in self.of("turn_end", run)}

    def end(self, run: str | None = None) -> tuple[str, str]:
        """Status and reason at the end."""
        last = self.of("run_end", run)[-1]
        return last["status"], last["reason"]

    def request(self, turn: int, run: str | None = None) -> list[Any]:
        """The messages of a turn, decoded."""
        start = next(r for r in self.of("turn_start", run) if r["turn"] == turn)
        kept = self.request(start["base"], run)[: start["keep"]] if start["keep"] else []
        return kept + [json.loads(self.blobs[h]) for h in start["append"]]

    def response(self, turn: int, run: str | None = None) -> Any:
        """The response body of a turn, decoded."""
        return json.loads(self.blobs[self.turns(run)[turn]["response"]])


def read(importer: ModuleType, what: str | bytes | Path, context: Context | None = None) -> Imported:
    """Runs an importer over a text or a file."""
    if isinstance(what, Path):
        source = Source(str(what), (what,))
    else:
        source = Source("-", stream=io.BytesIO(what.encode() if isinstance(what, str) else what))
    notes = Notes()
    return Imported(list(importer.records(source, notes, context or Context())), notes)
