"""Findings: of one run or many, with what they wasted; every key of the screen."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import small_tape
import turn_tapes
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Place, Scope
from rule_runs import call, recording_of, turn, work
from tui_driver import Seat, drive, shown
from tui_fakes import EVIL, FakeSource

LOOP = [turn(call("find_order", {"number": "A-1"}, "Error: no such order", error=True)) for _ in range(12)]
SICK, OTHER, WELL, WILD = (f"{n:016x}" for n in (1, 2, 3, 4))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with open_store(folder) as store:
        for run, name in ((SICK, "orders"), (OTHER, "parcels")):
            one = recording_of(*work(2), *LOOP, turn(text="No order."), id=run, name=name)
            store.ingest(turn_tapes.records(one))
        store.ingest(small_tape.records(WELL, name="well"))
        wild = [turn(call("find", {EVIL: EVIL}, f"Error: {EVIL}", error=True), text=EVIL) for _ in range(6)]
        store.ingest(turn_tapes.records(recording_of(*wild, turn(text=EVIL), id=WILD, name=EVIL, task=EVIL)))
    return folder


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def findings(home: Path, scope: Scope, *keys: str, **more: Any) -> str:
    return shown(home, lambda app: app.open_findings(scope), *keys, **more)


def test_a_run_that_goes_round_has_its_cycle_and_its_rules_with_what_they_wasted(home: Path) -> None:
    text = findings(home, Scope((SICK,)))
    assert "findings  orders 00000000" in text
    assert "1 run looked at" in text
    assert "L05" in text
    assert "↻" in text
    line = next(line for line in text.split("\n") if line.startswith("▌"))
    assert "✗" in line
    assert "3-14" in line
    assert "fix" in text
    assert "evidence" in text


def test_what_two_findings_tell_of_the_same_turns_counts_once(home: Path) -> None:
    text = findings(home, Scope((SICK,)))
    head = next(line for line in text.split("\n") if line.startswith(" wasted "))
    assert "wasted 11 turns" in head
    assert "turns told twice count once" in head
    both = findings(home, Scope((SICK, OTHER)))
    assert "wasted 22 turns" in both


def test_what_cannot_be_judged_is_listed_dim_and_said(home: Path) -> None:
    text = findings(home, Scope((SICK,)), "G")
    assert "could not be judged: missing" in text
    assert "the recording lacks" in text


def test_over_all_runs_each_finding_names_its_run(home: Path) -> None:
    text = findings(home, Scope())
    assert "all runs" in text
    assert "4 runs looked at" in text
    assert "parcels" in text
    assert "orders" in text


def test_the_filter_of_the_runs_says_which_are_looked_at(home: Path) -> None:
    text = findings(home, Scope(filter="name:orders"))
    assert "name:orders" in text
    assert "1 run looked at" in text
    assert "parcels" not in text


def test_a_filter_that_cannot_be_read_is_told(home: Path) -> None:
    assert "nonsense" in findings(home, Scope(filter="nonsense:1"))


def test_enter_goes_to_the_turn(home: Path) -> None:
    text = findings(home, Scope((SICK,)), "enter")
    assert "turn 3 of 15" in text


def test_slash_narrows_to_words_and_escape_gives_all_back(home: Path) -> None:
    text = findings(home, Scope(), "slash", *"parcels", "enter")
    rows = [line for line in text.split("\n") if " ✗ " in line or " ▲ " in line]
    assert "shown" in text
    assert rows
    assert all("parcels" in row for row in rows[1:] if "3-14" in row)
    assert "no finding has these words" in findings(home, Scope(), "slash", *"zzzz", "enter")
    back = findings(home, Scope(), "slash", *"parcels", "enter", "escape")
    assert "orders" in back
    assert "shown" not in back


def test_s_sorts_and_the_order_is_remembered(home: Path) -> None:
    text = findings(home, Scope((SICK, OTHER)), "s", "r")
    first = next(line for line in text.split("\n") if line.startswith("▌"))
    assert "L0" in first or "L1" in first or "↻" in first

    async def then(seat: Seat) -> None:
        assert seat.app.memory.get("findings.sort") == "rule"
        await seat.press("q")
        seat.app.open_findings(Scope((SICK,)))
        await seat.settle()
        rules = [row.rule for row in seat.app.screen.listing.rows if row.finding is not None]
        assert rules == sorted(rules)

    findings(home, Scope((SICK,)), "s", "r", then=then)


def test_capital_e_opens_the_page_of_the_rule(home: Path) -> None:
    text = findings(home, Scope((SICK,)), "slash", *"L05", "enter", "E")
    assert "rule L05" in text
    assert "Cycle noticed only at the cap" in text
    assert "Fix. Watch for repetition" in text
    assert "**" not in text
    back = findings(home, Scope((SICK,)), "E", "q")
    assert "findings  orders" in back


def test_the_page_of_a_cycle_says_what_goes_round(home: Path) -> None:
    assert "Cycle: " in findings(home, Scope((SICK,)), "slash", *"cycle-", "enter", "E")


def test_a_healthy_run_says_that_nothing_was_found_or_what_was_not_judged(home: Path) -> None:
    text = findings(home, Scope((WELL,)))
    assert "errors" not in text.split("\n")[0]
    assert "1 run looked at" in text


def test_escape_stops_the_search_and_what_was_found_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.replay.rules.stepwise.TURNS", 1)
    going, go_on = threading.Event(), threading.Event()

    class Slow(StoreSource):
        read_runs = 0

        def ask(self, question: Any) -> Any:
            answer = super().ask(question)
            if getattr(question, "__name__", "") == "read":
                self.read_runs += 1
                if self.read_runs == 2:
                    going.set()
                    go_on.wait(120)
            return answer

    async def steps(seat: Seat) -> None:
        seat.app.open_findings(Scope((SICK, OTHER, WELL)))
        await seat.met(going.is_set, settle=False)
        await seat.met(lambda: "1 of 3 runs looked at  Esc stops" in seat.text, settle=False)
        await seat.pilot.press("escape")
        go_on.set()
        await seat.settle()
        assert "stopped: 1 of 3 runs looked at" in seat.text
        assert "L05" in seat.text
        await seat.press("escape")
        assert "findings  3 runs" not in seat.text

    drive(Slow(home), steps)


def test_the_selected_finding_is_what_the_other_keys_are_about(home: Path) -> None:
    async def then(seat: Seat) -> None:
        subject = seat.app.screen.subject()
        assert subject.place == Place(SICK, 3)
        assert subject.value
        assert subject.json["run"] == SICK
        assert seat.app.screen.scope() == Scope((SICK,))
        await seat.press("exclamation_mark")
        assert "these are the findings" in seat.text

    findings(home, Scope((SICK,)), then=then)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 12)], ids=["80x24", "120x40", "40x12"])
def test_what_was_recorded_cannot_act_on_the_terminal(home: Path, size: tuple[int, int]) -> None:
    async def then(seat: Seat) -> None:
        for _ in range(8):
            assert not any(c in seat.text.replace("\n", "") for c in map(chr, (*range(32), 127, *range(128, 160))))
            await seat.press("j")

    findings(home, Scope((WILD,)), size=size, then=then)


def test_a_store_that_cannot_be_read_is_told() -> None:
    async def steps(seat: Seat) -> None:
        seat.app.source.ask = _held
        seat.app.open_findings(Scope())
        await seat.settle()
        assert "python (PID 4711) has the store open" in seat.text

    drive(FakeSource(), steps)


def _held(_question: object) -> object:
    raise LooptapeError("store-held", "python (PID 4711) has the store open", "close it")
