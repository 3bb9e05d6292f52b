"""Plays the sample loops on a fixed stage and makes their tapes, the same bytes every time.

The clock, the ids and the facts about the program are given. What depends on where this project lies, or on chance,
is written neutrally: the folder in ``caller``, the span ids.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any
from unittest import mock

from ..tracer import facts, process, tape
from ..tracer.canonical import digest
from ..tracer.journal import Journal
from ..tracer.recorder import Recorder
from . import stage
from .loops import SAMPLES, Sample

VERSIONS = {"looptape": "0.1.0", "python": "3.13.7", "anthropic": "2.14.0", "httpx2": "2.16.2"}
FACTS = {
    "project": "/home/dev/shop-agent",
    "git_commit": "5f0c1d9a7be24c63a1f8e2b90d4476c3ab15e08d",
    "versions": VERSIONS,
}
_SPANS = {"trace_id": 32, "span_id": 16, "parent_span_id": 16}


def make() -> dict[str, bytes]:
    """Every sample's tape by its file name. Takes a few seconds; nothing is left behind."""
    from ..tracer.store import open_store
    from ..tracer.store.export import records_of

    with tempfile.TemporaryDirectory(prefix="looptape-samples-") as folder:
        home = Path(folder)
        runs = {sample: _play(sample, home) for sample in SAMPLES}
        with open_store(home, deadline=30) as store:
            return {f"{sample.name}.jsonl": _lines(sample, records_of(store, run)) for sample, run in runs.items()}


@contextmanager
def recording(home: Path, **described: Any) -> Iterator[Journal]:
    """What is recorded in the block goes to a journal of its own in this store directory, as from a process of its own.

    Args:
        home: The store directory.
        **described: Facts about the program, as for `facts.describe`.
    """
    journal = Journal(home)
    recorder = Recorder(journal)
    former = process.replace(recorder)
    facts.describe(**described)
    try:
        yield journal
    finally:
        recorder.at_exit()
        facts.describe(**dict.fromkeys(described))
        process.replace(former)


def runs_in(journal: Journal) -> list[str]:
    """The ids of the runs that a journal has begun, sub-agents after those that started them."""
    if not journal.path.exists():
        return []
    with journal.path.open("rb") as lines:
        records = [record for _, record in tape.read_lines(lines) if not isinstance(record, str)]
    return list(dict.fromkeys(record["run"] for record in records if record["kind"] == "run_start"))


def _play(sample: Sample, home: Path) -> str:
    """Plays a loop on a fixed stage and gives the id of its run."""
    began = int(datetime.fromisoformat(sample.began).timestamp()) * 1_000_000
    free = {k: v for k, v in os.environ.items() if not k.startswith(("LOOPTAPE", "ANTHROPIC_", "OTEL_"))}
    with (
        mock.patch.dict(os.environ, free, clear=True),
        stage.fixed(began, digest(sample.name)[:8]) as pace,
        recording(home, name=sample.name, **FACTS) as journal,
    ):
        stage.play(sample.load(), pace)
    return runs_in(journal)[0]


def _lines(sample: Sample, records: Iterable[tape.Record]) -> bytes:
    head = tape.header(writer=f"looptape {VERSIONS['looptape']}", python=VERSIONS["python"], content="full")
    spans: dict[str, str] = {}
    lines = [tape.line(head)]
    lines += [tape.line(_neutral(record, sample, spans)) for record in records if record["kind"] != "header"]
    return b"".join(lines)


def _neutral(record: tape.Record, sample: Sample, spans: dict[str, str]) -> tape.Record:
    if record["kind"] != "turn_start":
        return record
    record = dict(record)
    if record["caller"]:
        record["caller"] = f"agents/{PurePath(record['caller']).name}"
    for name, length in _SPANS.items():
        if record[name]:
            fresh = digest(f"{sample.name} span {len(spans)}")[:length]
            record[name] = spans.setdefault(record[name], fresh)
    return record
