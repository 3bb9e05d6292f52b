"""Steps from turn to turn, asked of the store."""

from __future__ import annotations

import pytest

from composed import Composed, Step
from looptape.replay.cursor import next_call, next_error
from looptape.tracer.store import memory_store

RUN = "d" * 16
STEPS = [
    Step(tool="read"), Step(tool="write", is_error=True), Step(tool="read"), Step(tool=None),
    Step(status="error", tool=None), Step(tool="read"), Step(tool=None),
]  # fmt: skip


@pytest.fixture(scope="module")
def store():
    found = memory_store()
    found.ingest(Composed(RUN, STEPS).records())
    found.ingest(Composed("e" * 16, [Step(tool="write", is_error=True)] * 9).records())
    return found


@pytest.mark.parametrize(
    ("at", "step", "wanted"), [(1, 1, 2), (2, 1, 5), (5, 1, None), (7, -1, 5), (5, -1, 2), (2, -1, None)]
)
def test_the_next_error_is_a_failed_tool_or_a_failed_call_of_the_model(
    store, at: int, step: int, wanted: int | None
) -> None:
    assert next_error(store, RUN, at, step) == wanted


@pytest.mark.parametrize(("at", "step", "wanted"), [(1, 1, 3), (3, 1, 6), (6, 1, None), (6, -1, 3), (1, -1, None)])
def test_the_next_call_of_a_tool_is_found_in_this_run_only(store, at: int, step: int, wanted: int | None) -> None:
    assert next_call(store, RUN, at, ["read"], step) == wanted
    assert next_call(store, RUN, at, ["read", "write"], -1) == ({1: None, 3: 2, 6: 3}[at])


def test_no_tool_leads_nowhere(store) -> None:
    assert next_call(store, RUN, 1, []) is None
