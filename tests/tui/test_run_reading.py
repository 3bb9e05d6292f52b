"""The turn list out of a store: at once around a turn, whole, and later only what is new."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import long_tape
from looptape.tracer import tape
from looptape.tracer.store import Store, memory_store
from looptape.tui.data import run_reading
from looptape.tui.data.source import Gate

RUN = "a" * 16


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as made:
        made.ingest(long_tape.records(RUN, 40, 20, ended=False))
        yield made


def read_from(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """From which turn on each later reading begins."""
    begun: list[int | None] = []
    whole = store.turn_batches

    def watched(run: str, first: int | None = None, last: int | None = None) -> Any:
        begun.append(first)
        return whole(run, first, last)

    monkeypatch.setattr(store, "turn_batches", watched)
    return begun


def more_turns(store: Store, first: int, last: int) -> None:
    for number in range(first, last + 1):
        store.ingest(long_tape.one_turn(RUN, number, 20, long_tape.START + number * 1_000_000))


def test_a_later_reading_begins_behind_what_stands_as_it_did(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = run_reading.read(store, RUN)
    more_turns(store, 41, 43)
    begun = read_from(store, monkeypatch)
    again = run_reading.read(store, RUN, known)
    assert begun == [40 - run_reading.UNSETTLED + 1]
    assert again.turns == run_reading.read(store, RUN).turns
    assert [r.number for r in again.turns] == list(range(1, 44))


def test_all_is_read_again_when_an_earlier_turn_says_something_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = run_reading.read(store, RUN)
    store.write(lambda con: con.execute("update base.calls set is_error = true where turn = 3"))
    begun = read_from(store, monkeypatch)
    again = run_reading.read(store, RUN, known)
    assert begun == [None]
    assert again.turns[2].bad


def test_of_a_long_run_the_turns_around_the_selected_one_come_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_reading, "LONG", 30)
    monkeypatch.setattr(run_reading, "AROUND", 5)
    view = run_reading.read(store, RUN, around=20)
    assert [r.number for r in view.turns] == list(range(15, 26))
    assert not view.whole
    whole = run_reading.read(store, RUN, view)
    assert whole.whole
    assert len(whole.turns) == 40


def test_batches_are_the_rows_in_their_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tracer.store.light.BATCH", 7)
    batches = list(store.turn_batches(RUN))
    assert [len(b) for b in batches] == [7, 7, 7, 7, 7, 5]
    assert [r for b in batches for r in b] == store.turn_rows(RUN)
    assert all(len(r.tool_calls) == 1 for b in batches for r in b)


def test_the_fresh_part_of_a_request_is_what_the_turn_before_did_not_have(store: Store) -> None:
    whole, fresh = store.request(RUN, 20), store.request(RUN, 20, fresh=True)
    assert fresh.messages == whole.messages[whole.kept :]
    assert len(fresh.messages) == 2
    assert fresh.kept == 0


def test_it_is_the_same_where_the_history_was_replaced_cut_or_said_again() -> None:
    lists = ("abc", "abcde", "axc", "axcd", "axcd", "ax", "axyz", "", "q", "axcd")
    with memory_store() as store:
        store.ingest(talk(lists))
        for turn in range(1, len(lists) + 1):
            whole, fresh = store.request(RUN, turn), store.request(RUN, turn, fresh=True)
            assert "".join(m["content"] for m in whole.messages) == lists[turn - 1]
            assert fresh.messages == whole.messages[whole.kept :]


def talk(lists: Sequence[str]) -> Iterator[tape.Record]:
    """A run whose requests hold these one-letter messages, each list written down as what it keeps of the one before."""
    yield {"kind": "run_start", "run": RUN, "at": 1, "source": "sdk"}
    before = ""
    for number, letters in enumerate(lists, 1):
        keep = 1 if letters and letters[:1] == before[:1] else 0  # less than it could be: what is the same comes again
        blobs = [tape.blob(json.dumps({"role": "user", "content": letter})) for letter in letters[keep:]]
        yield from blobs
        yield {
            "kind": "turn_start", "run": RUN, "turn": number, "at": number, "api": "anthropic.messages", "mode": "full",
            "keep": keep, "append": [b["hash"] for b in blobs], **({"base": number - 1} if keep else {}),
        }  # fmt: skip
        before = letters


def test_readers_share_the_store_and_a_writer_is_alone() -> None:
    gate, order = Gate(), []
    both = threading.Barrier(2, timeout=60)

    def reader() -> None:
        with gate.shared():
            both.wait()  # hangs unless two are inside at the same time
            order.append("read")

    def writer() -> None:
        with gate.alone():
            order.append("written")

    with gate.shared():
        waiting = threading.Thread(target=writer)
        waiting.start()
        readers = [threading.Thread(target=reader) for _ in range(2)]
        for one in readers:
            one.start()
        for one in readers:
            one.join(60)
        assert order == ["read", "read"]
    waiting.join(60)
    assert order == ["read", "read", "written"]


def test_turns_of_a_long_run_are_the_collectors_again_when_its_screen_is_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_reading, "LONG", 10)
    try:
        view = run_reading.read(store, RUN)
        assert gc.get_freeze_count()
        run_reading.let_go(view)
        assert not gc.get_freeze_count()
    finally:
        gc.freeze()
