"""Damaged copies of a valid JSON document, for fuzz tests; and what every importer owes to them."""

from __future__ import annotations

import copy
import io
import json
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from looptape.tracer import tape as tapes
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
from looptape.tracer.store import Filter, memory_store

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        -1,
        10**30,
        1.5,
        float("nan"),
        "",
        "\ud800",
        "x" * 300,
        "2026-99-99",
        [],
        [[]],
        {},
        {"type": []},
        [None],
        {"": 0},
    ]
)


@st.composite
def damaged(draw: st.DrawFn, valid: Any) -> bytes:
    """A document with some values put to something odd, lost or doubled, and sometimes its bytes cut."""
    value = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 5))):
        _change(draw, value)
    data = json.dumps(value).encode()
    way = draw(st.sampled_from(["whole", "whole", "whole", "cut", "bytes"]))
    place = draw(st.integers(0, len(data)))
    if way == "cut":
        return data[:place]
    return data if way == "whole" else data[:place] + draw(st.binary(max_size=6)) + data[place:]


def read_whatever_it_is(importer: ModuleType, data: bytes) -> tuple[list[dict[str, Any]], Notes]:
    """Records and notes; asserts that nothing is lost without a word and that a tape can hold the records."""
    notes = Notes()
    importer.recognise(data[:65536])
    try:
        records = list(importer.records(Source("-", stream=io.BytesIO(data)), notes, Context()))
    except LooptapeError:
        return [], notes
    known: set[str] = set()
    for record in records:
        assert record["kind"] in tapes.KINDS
        tapes.line(record)
        known |= {record["hash"]} if record["kind"] == "blob" else set()
        assert set(record.get("append", ())) <= known, "a blob precedes its first reference"
    said = notes.skipped or notes.unknown or notes.warnings or notes.counts["objects"] == 0
    assert notes.runs or said, "nothing of the file was kept and nobody said so"
    return records, notes


def store_whatever_it_is(importer: ModuleType, data: bytes) -> None:
    """The records can be stored and read back."""
    records, _ = read_whatever_it_is(importer, data)
    with memory_store() as store:
        store.ingest(records)
        for run in store.runs(Filter(limit=0, include_empty=True)):
            for turn in store.turns(run.id):
                store.request(run.id, turn.number)
                assert all(c.ms is None or c.ms >= 0 for c in turn.tool_calls)


def _change(draw: st.DrawFn, value: Any) -> None:
    node = value
    while isinstance(node, (dict, list)) and node:
        keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw(st.sampled_from(keys))
        child = node[key]
        if not isinstance(child, (dict, list)) or not child or draw(st.integers(0, 3)) == 0:
            way = draw(st.sampled_from(["odd", "odd", "gone", "twice"]))
            if way == "gone":
                del node[key]
            elif way == "twice" and isinstance(node, list):
                node.insert(key, copy.deepcopy(child))
            else:
                node[key] = copy.deepcopy(draw(ODD))  # later changes may reach into it
            return
        node = child
