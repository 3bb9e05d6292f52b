"""The collector of the process is as it was when records are in."""

from __future__ import annotations

import gc

import pytest

from looptape.tracer.store import memory_store
from looptape.tracer.store.quiet_gc import YOUNG, fewer_collections


@pytest.fixture
def thresholds():
    before = gc.get_threshold()
    gc.set_threshold(650, 9, 8)
    yield (650, 9, 8)
    gc.set_threshold(*before)


def test_an_ingest_gives_the_thresholds_back(thresholds):
    seen = []

    def records():
        seen.append(gc.get_threshold()[0])
        yield {"kind": "run_start", "run": "0123456789abcdef", "at": 1}

    with memory_store() as store:
        store.ingest(records())
    assert seen == [YOUNG]
    assert gc.get_threshold() == thresholds


def test_an_ingest_that_fails_gives_them_back(thresholds):
    def records():
        yield {"kind": "run_start", "run": "0123456789abcdef", "at": 1}
        raise OSError("gone")

    with memory_store() as store, pytest.raises(OSError, match="gone"):
        store.ingest(records())
    assert gc.get_threshold() == thresholds


def test_the_outermost_of_several_gives_them_back(thresholds):
    with fewer_collections():
        with fewer_collections():
            pass
        assert gc.get_threshold()[0] == YOUNG
    assert gc.get_threshold() == thresholds


def test_a_collector_that_is_off_stays_off(thresholds):
    gc.set_threshold(0)
    with fewer_collections():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0
