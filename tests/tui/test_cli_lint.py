"""`looptape lint`: runs named and picked, formats, baselines, settings, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import small_tape
import turn_tapes
from claude_session import SessionLines, call, tokens
from commandline import looptape
from looptape.sample_traces import demo
from looptape.tracer.model import Parent
from looptape.tracer.store import open_store
from rule_runs import call as made
from rule_runs import recording_of, turn, work

SAMPLES = {tape.stem: tape for tape in demo.tapes()}
HEALTHY = ("revenue", "tool_errors", "malformed_call", "parallel", "compaction", "rate_limit", "sub_agent", "streaming")
SICK = {"cycle": "L05", "missing_result": "L06", "interrupted": "L07"}
LOOP = [turn(made("find_order", {"number": "A-1"}, "Error: no such order", error=True)) for _ in range(4)]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def store(tmp_path: Path, count: int, *, name: str = "orders") -> None:
    """So many runs that go round in circles."""
    with open_store(tmp_path / "home") as opened:
        for number in range(count):
            one = recording_of(*LOOP, *work(2), turn(text="No order."), id=f"{number:016x}", name=name)
            opened.ingest(turn_tapes.records(one))


def test_every_sample_is_named_here() -> None:
    assert set(SAMPLES) == {*HEALTHY, *SICK}


@pytest.mark.parametrize("name", HEALTHY)
def test_the_healthy_samples_have_no_finding(name: str) -> None:
    ran = looptape("lint", str(SAMPLES[name]), "--json", "--fail-on", "warning")
    assert ran.json["findings"] == []
    assert ran.json["warnings"] == []
    assert ran.code == 0


@pytest.mark.parametrize(("name", "rule"), SICK.items())
def test_each_sick_sample_has_its_fault(name: str, rule: str) -> None:
    found = looptape("lint", str(SAMPLES[name]), "--json", "--select", "L").json["findings"]
    assert rule in [f["rule"] for f in found]


def test_a_run_killed_while_a_tool_ran_is_told_once(tmp_path: Path) -> None:
    lines = SessionLines()
    lines.user("fix")
    lines.answer("msg_1", "ok", call("z1", "Bash", command="sleep 999"), usage=tokens(5, 5), stop="tool_use")
    ran = looptape("lint", str(lines.write(tmp_path / "killed.jsonl")), "--json")
    (one,) = ran.json["findings"]
    assert (one["rule"], one["first_turn"], one["last_turn"]) == ("L07", 1, 1)
    assert "sleep 999" in one["message"]
    assert "error result" in one["fix"]


def test_the_text_tells_run_rule_turns_evidence_cure_and_page() -> None:
    ran = looptape("lint", str(SAMPLES["cycle"]), "--select", "L05")
    assert ran.code == 1
    assert ran.out.startswith("where-is-my-parcel ")
    for part in (
        "error   L05",
        "turn 1-7",
        "wasted 3 turns",
        "> ",
        "fix: ",
        "looptape lint --explain L05",
        "8 turns, limit",
    ):
        assert part in ran.out
    assert ran.err == "1 error, 0 warnings in 1 run\n"


def test_what_cannot_be_judged_is_told_with_the_missing_fields(tmp_path: Path) -> None:
    lines = SessionLines()
    lines.user("go")
    for n in range(5):
        lines.answer(f"m{n}", call(f"c{n}", "read", f=f"{n}.txt"), usage=tokens(9, 9), stop="tool_use")
        lines.result(f"c{n}", f"text {n}")
    lines.answer("last", "Done.", usage=tokens(9, 9), stop="end_turn")
    file = str(lines.write(tmp_path / "session.jsonl"))
    assert "unknown L01 cannot judge this run: not recorded: run.limits" in looptape("lint", file).out
    unknown = looptape("lint", file, "--json").json["unknown"]
    assert {"rule", "run", "missing"} == set(unknown[0])
    assert ["run.limits"] in [u["missing"] for u in unknown if u["rule"] == "L01"]


# -- which runs ----------------------------------------------------------------------------------------------


def test_sub_agents_of_a_named_run_are_looked_at(tmp_path: Path) -> None:
    lead = recording_of(turn(made("research", {}, "none")), turn(text="None."), id="a" * 16, name="lead")
    child = recording_of(
        *LOOP, turn(text="None."), id="b" * 16, name="worker", parent=Parent("a" * 16, 1, "research", "sub-agent")
    )
    file = small_tape.write(tmp_path / "two.jsonl", turn_tapes.records(lead), turn_tapes.records(child))
    ran = looptape("lint", str(file), "--json", "--select", "L05")
    assert ran.json["runs"] == ["a" * 16, "b" * 16]
    assert [f["run"] for f in ran.json["findings"]] == ["b" * 16]


def test_over_many_runs_a_table_by_rule_tells_the_total_waste(tmp_path: Path) -> None:
    store(tmp_path, 7)
    ran = looptape("lint", "--all", "--select", "L05", "--limit", "3")
    head, row = ran.out.splitlines()[:2]
    assert head.split() == ["rule", "what", "runs", "errors", "warnings", "turns", "tokens", "usd"]
    assert row.split()[-6:-1] == ["7", "0", "7", "21", "22k"]
    assert "3 of 7 findings: --limit 0 for all" in ran.err
    assert "0 errors, 7 warnings in 7 runs" in ran.err
    assert looptape("lint", "--all", "--select", "L05", "--limit", "0").out.count("warning L05") == 7


def test_filters_pick_the_runs(tmp_path: Path) -> None:
    store(tmp_path, 2)
    assert len(looptape("lint", "--all", "--json").json["runs"]) == 2
    assert looptape("lint", "--tool", "no_such_tool", "--json").json["runs"] == []
    assert looptape("lint", "--since", "1h", "--json").json["runs"] == []


def test_several_runs_and_tapes_are_one_report(tmp_path: Path) -> None:
    store(tmp_path, 2)
    ran = looptape("lint", "0" * 16, str(SAMPLES["cycle"]), "--json", "--select", "L05")
    assert len(ran.json["runs"]) == 2
    assert [f["severity"] for f in ran.json["findings"]] == ["error", "warning"]


def test_turns_of_a_reference_pick_the_findings_that_touch_them() -> None:
    tape = SAMPLES["cycle"]
    assert len(looptape("lint", f"{tape}:2-3", "--json", "--select", "L05").json["findings"]) == 1
    assert looptape("lint", f"{tape}:8", "--json", "--select", "L05").json["findings"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no run is named"),
        (["last", "--all"], "RUN excludes --all"),
        (["last", "--json", "--format", "sarif"], "exclude each other"),
        (["last", "--write-baseline"], "needs a file"),
        (["--all", "--baseline", "none.json"], "there is no baseline none.json"),
        (["--all", "--select", "L99"], "there is no rule 'L99'"),
        (["--all", "--since", "soon"], "soon"),
        (["--explain", "L77"], "no page of a rule 'L77'"),
    ],
    ids=["nothing", "both", "two formats", "no file", "no baseline", "no rule", "no time", "no page"],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    store(tmp_path, 1)
    ran = looptape("lint", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


# -- what counts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 0), (["--fail-on", "warning"], 1), (["--fail-on", "never"], 0), (["--fail-on", "warning", "--ignore", "L05"], 0)],
    ids=["errors only", "warnings too", "never", "not that rule"],
)  # fmt: skip
def test_the_exit_code_follows_fail_on(tmp_path: Path, arguments: list[str], code: int) -> None:
    store(tmp_path, 1)
    assert looptape("lint", "0" * 16, "--select", "L05", *arguments).code == code


def test_a_baseline_lets_old_findings_pass_and_new_ones_not(tmp_path: Path) -> None:
    store(tmp_path, 1)
    common = ("--all", "--select", "L05", "--baseline", "known.json", "--fail-on", "warning")
    written = looptape("lint", *common, "--write-baseline")
    assert (written.code, written.err.splitlines()[0]) == (0, "1 findings written to known.json")
    later = looptape("lint", *common)
    assert later.code == 0
    assert "1 finding of the baseline not shown" in later.err
    store(tmp_path, 2, name="orders")
    more = looptape("lint", *common, "--json")
    assert (more.code, len(more.json["findings"]), more.json["known"]) == (1, 1, 1)


def test_settings_of_the_project_are_heard(tmp_path: Path) -> None:
    store(tmp_path, 1)
    (tmp_path / "looptape.toml").write_text('[lint]\nignore = ["L05"]\n')
    ran = looptape("lint", "0" * 16, "--json")
    assert "L05" not in ran.json["rules"]
    assert "L05" not in [f["rule"] for f in ran.json["findings"]]


def test_explain_prints_the_page() -> None:
    ran = looptape("lint", "--explain", "l05")
    assert ran.code == 0
    assert ran.out.startswith("# L05: Cycle noticed only at the cap\n")


@pytest.mark.parametrize("form", ["sarif", "github", "junit"])
def test_other_formats_name_rule_and_run(form: str) -> None:
    ran = looptape("lint", str(SAMPLES["cycle"]), "--select", "L05", "--format", form)
    assert ran.code == 1
    assert "L05" in ran.out
    assert "find_order" in ran.out
    if form == "sarif":
        assert json.loads(ran.out)["version"] == "2.1.0"
