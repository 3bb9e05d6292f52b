"""`looptape cycles`: what known shapes of loops look like to a person and to a script."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import small_tape
import turn_tapes
from claude_session import SessionLines, call, tokens
from commandline import looptape
from looptape.tracer.model import Parent
from rule_runs import call as made
from rule_runs import recording_of, turn, work

Call = tuple[str, dict[str, Any], str]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def session(path: Path, turns: Iterable[list[Call]], *, usage: dict[str, Any] | None = None) -> str:
    """A session file: one answer with these calls per turn, and their results."""
    lines = SessionLines()
    lines.user("go")
    for number, calls in enumerate(turns, 1):
        blocks = [call(f"c{number}_{n}", tool, **arguments) for n, (tool, arguments, _) in enumerate(calls)]
        lines.answer(f"m{number}", *blocks, usage=usage or tokens(10, 5), stop="tool_use")
        for n, (_, _, result) in enumerate(calls):
            lines.result(f"c{number}_{n}", result, error=result.startswith(("old text", "1 failed")))
    return str(lines.write(path / "session.jsonl"))


def test_the_same_call_with_the_same_result_five_times_is_one_finding(tmp_path: Path) -> None:
    file = session(tmp_path, [[("grep", {"p": "foo"}, "no match")]] * 5)
    ran = looptape("cycles", file, "--json")
    (one,) = ran.json["findings"]
    assert (one["period"], one["laps"], one["first_turn"], one["last_turn"]) == (1, 5, 1, 5)
    assert one["kind"] == "exact"
    assert ran.code == 1


def test_polling_that_progresses_is_no_finding(tmp_path: Path) -> None:
    states = ["queued", "running 20%", "running 60%", "running 90%", "done"]
    file = session(tmp_path, [[("job_status", {"id": 7}, state)] for state in states])
    ran = looptape("cycles", file)
    assert (ran.code, ran.out, ran.err) == (0, "", "no cycle in this run\n")


def test_a_lap_of_three_turns_is_one_finding_with_its_errors_quoted(tmp_path: Path) -> None:
    lap: list[list[Call]] = [
        [("read", {"f": "a.py"}, "code")],
        [("edit", {"f": "a.py", "old": "x", "new": "y"}, "old text not found")],
        [("test", {}, "1 failed")],
    ]
    ran = looptape("cycles", session(tmp_path, lap * 4), "--json")
    (one,) = ran.json["findings"]
    assert (one["period"], one["laps"], one["first_turn"], one["last_turn"]) == (3, 4, 1, 12)
    assert "old text not found" in " ".join(one["calls"])


def test_a_set_of_parallel_calls_in_any_order_is_one_finding(tmp_path: Path) -> None:
    three: list[Call] = [("read", {"f": name}, f"text of {name}") for name in "abc"]
    orders = [(0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0)]
    ran = looptape("cycles", session(tmp_path, [[three[n] for n in order] for order in orders]), "--json")
    (one,) = ran.json["findings"]
    assert (one["kind"], one["laps"], len(one["calls"])) == ("fan_out", 5, 3)


def test_a_runaway_poll_is_one_finding_with_the_totals_of_the_stretch(tmp_path: Path) -> None:
    poll: list[Call] = [("process", {"action": "log", "sessionId": "X"}, "no new output")]
    ran = looptape("cycles", session(tmp_path, [poll] * 1535, usage=tokens(5, 20, 187_000)), "--json")
    (one,) = ran.json["findings"]
    assert (one["period"], one["laps"]) == (1, 1535)
    stretch = one["stretch"]
    assert (stretch["cache_read"], stretch["input"], stretch["output"]) == (287_045_000, 7_675, 30_700)


# -- a store -------------------------------------------------------------------------------------------------

PARENT, CHILD = "a" * 16, "b" * 16


@pytest.fixture
def family(tmp_path: Path) -> str:
    """A healthy run whose sub-agent goes round, as a tape."""
    start = made("research", {"q": "mugs"}, "nothing found")
    lead = recording_of(turn(start), turn(text="Nothing."), id=PARENT, name="lead")
    loop = [turn(made("find_order", {"number": "A-1"}, "Error: no such order", error=True)) for _ in range(4)]
    child = recording_of(
        *loop, *work(2), turn(text="Nothing."), id=CHILD, name="worker", parent=Parent(PARENT, 1, start.id, "sub-agent")
    )
    return str(small_tape.write(tmp_path / "two.jsonl", turn_tapes.records(lead), turn_tapes.records(child)))


def test_sub_agents_belong_to_the_run(family: str) -> None:
    ran = looptape("cycles", family, "--json")
    assert ran.json["runs"] == [PARENT, CHILD]
    assert [f["run"] for f in ran.json["findings"]] == [CHILD]
    told = looptape("cycles", family)
    assert f"{CHILD}: Turns 1 to 4" in told.out
    assert told.err == "1 cycle in this run and its 1 sub-agent\n"


@pytest.mark.parametrize(
    ("laps", "fail_on", "code"),
    [(4, "error", 0), (4, "warning", 1), (7, "error", 1), (7, "never", 0)],
    ids=["known, errors only", "known, warnings", "went on", "never"],
)
def test_the_exit_code_tells_how_far_it_went(tmp_path: Path, laps: int, fail_on: str, code: int) -> None:
    file = session(tmp_path, [[("grep", {"p": "foo"}, "no match")]] * laps)
    assert looptape("cycles", file, "--fail-on", fail_on).code == code


def test_turns_of_a_reference_pick_the_cycles_that_touch_them(tmp_path: Path) -> None:
    quiet: list[list[Call]] = [[("read", {"f": str(n)}, f"page {n} is new")] for n in range(10)]
    file = session(tmp_path, [*[[("grep", {"p": "foo"}, "no match")]] * 4, *quiet])
    assert len(looptape("cycles", f"{file}:3-9", "--json").json["findings"]) == 1
    assert looptape("cycles", f"{file}:8-9", "--json").json["findings"] == []


def test_what_settings_say_of_a_tool_is_heard(tmp_path: Path) -> None:
    file = session(tmp_path, [[("peek_queue", {"q": "mail"}, "3 waiting")]] * 5)
    assert len(looptape("cycles", file, "--json").json["findings"]) == 1
    (tmp_path / "looptape.toml").write_text('[tools]\npeek_queue = "poll"\n')
    assert looptape("cycles", file, "--json").json["findings"] == []
    (tmp_path / "looptape.toml").write_text('[tools]\npeek_queue = "look"\n')
    refused = looptape("cycles", file)
    assert refused.code == 2
    assert "tools.peek_queue: 'look' is no effect of a tool" in refused.err


@pytest.mark.parametrize("form", ["sarif", "github", "junit"])
def test_other_formats_name_the_cycle(tmp_path: Path, form: str) -> None:
    file = session(tmp_path, [[("grep", {"p": "foo"}, "no match")]] * 5)
    ran = looptape("cycles", file, "--format", form)
    assert ran.code == 1
    assert "grep(p=foo) 5 times" in ran.out
    assert "cycle-exact" in ran.out


def test_two_formats_exclude_each_other(tmp_path: Path) -> None:
    ran = looptape("cycles", session(tmp_path, [[("a", {}, "b")]]), "--json", "--format", "sarif")
    assert (ran.code, ran.out) == (2, "")
    assert "exclude each other" in ran.err
