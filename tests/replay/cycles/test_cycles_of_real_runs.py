"""The labelled stretches of real runs: loops that people saw, and look-alikes that are none."""

import json

from looptape.replay.cycles import find_cycles
from looptape.replay.recording import load
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, memory_store
from testdata import require


def test_real_loops_are_found_and_look_alikes_are_left_alone():
    """At least 12 of 13 loops, at most 1 of 10 look-alikes; labels count turns from 0."""
    folder = require("corpus")
    labels = json.loads((folder / "LOOPS.json").read_text("utf-8"))["labels"]
    found: dict[str, list] = {}
    for name in {said["file"] for said in labels}:
        store = memory_store()
        import_path(store, folder / name)
        runs = store.runs(Filter(limit=0, include_empty=True))
        found[name] = [f for run in runs for f in find_cycles(load(store, run))]
    seen = {"loop": 0, "not_loop": 0, "borderline": 0}
    for said in labels:
        first, last = said["from_turn"] + 1, said["to_turn"] + 1
        seen[said["label"]] += any(f.first_turn <= last and f.last_turn >= first for f in found[said["file"]])
    assert seen["loop"] >= 12
    assert seen["not_loop"] <= 1
