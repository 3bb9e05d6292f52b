"""The first look at the list, begun before the screen's library is loaded."""

from __future__ import annotations

import threading
from pathlib import Path

import small_tape
from looptape.replay.listing import Listing
from looptape.tracer.store import open_store
from looptape.tui.data import runs_reading
from looptape.tui.data.ahead import Ahead
from looptape.tui.data.source import StoreSource
from looptape.tui.data.views import RunsView, RunsWanted
from looptape.tui.memory import Memory

VIEW = RunsView(Listing(keys=("a",)))


def test_it_is_read_in_another_thread_and_given_out_once() -> None:
    threads = []

    def read(_wanted: RunsWanted) -> RunsView:
        threads.append(threading.current_thread().name)
        return VIEW

    ahead = Ahead(RunsWanted(first=9), read)
    assert ahead.take(RunsWanted(first=9)) is VIEW
    assert ahead.take(RunsWanted(first=9)) is None
    assert threads == ["first-look"]


def test_what_is_wanted_otherwise_by_then_is_read_anew() -> None:
    assert Ahead(RunsWanted(), lambda _: VIEW).take(RunsWanted(sort="cost")) is None


def test_a_look_that_fails_is_left_to_the_reading_that_can_say_so() -> None:
    def fail(_wanted: RunsWanted) -> RunsView:
        raise OSError("held")

    assert Ahead(RunsWanted(), fail).take(RunsWanted()) is None


def test_a_source_looks_ahead_as_the_list_was_looked_at_the_last_time(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
    memory = Memory(tmp_path)
    runs_reading.remember(memory, RunsWanted(filter="turns:>0", sort="cost", grouping="project"))
    memory.save()
    source = StoreSource(tmp_path)
    source.look_ahead()
    wanted = runs_reading.remembered(Memory(tmp_path), first=runs_reading.FIRST)
    assert (wanted.filter, wanted.sort, wanted.grouping) == ("turns:>0", "cost", "project")
    first = source.runs(wanted)
    assert small_tape.RUN in first.listing.keys
    assert small_tape.RUN in first.lines
    assert source.runs(wanted) is not first


def test_what_cannot_be_used_of_the_memory_is_left_out(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.put("runs.filter", "colour:red")
    memory.put("runs.sort", ["beauty", 7])
    memory.put("runs.group", "by mood")
    assert runs_reading.remembered(memory) == RunsWanted(grouping="lineage")


def test_every_order_of_the_list_is_one_of_the_store() -> None:
    from looptape.tracer.store.filters import SORTS
    from looptape.tui.screens.runs.table import COLUMNS, ORDERS

    assert {order.sort for order in ORDERS} == set(runs_reading.SORTS)
    assert set(runs_reading.SORTS) <= set(SORTS)
    assert {order.column for order in ORDERS} - {""} <= {column.key for column in COLUMNS}
    assert all(order.falling == SORTS[order.sort].falling for order in ORDERS)
