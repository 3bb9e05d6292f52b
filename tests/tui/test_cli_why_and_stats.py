"""`why`, `stats` and `sql --attach`: what people and scripts get."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from commandline import looptape
from composed import START, Composed, Step, healthy
from looptape.replay import analytics
from looptape.replay.why import explain
from looptape.tracer.store import open_store
from looptape.tui.told import stats_text, why_text
from looptape.tui.told.bars import bar, columns

SUBJECT, ODD = "5" * 16, "6" * 16
LOOPING = Step(input=4, cache_read=60_000, cache_write=400, output=900, arguments={"path": "a.py"}, result="no change")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    steps = [*healthy()[:4], *[replace(LOOPING, caller="loop.py:40")] * 12, *healthy()[4:]]
    odd = [replace(s, model="unheard-of-9", tools=("read", "idle")) for s in healthy(3)]
    runs = [
        *(Composed(f"{n:016x}", healthy(), name="refund-1", task="refund", outcome="pass") for n in range(1, 4)),
        Composed(SUBJECT, steps, name="refund-2", task="refund", outcome="fail"),
        Composed(ODD, odd, name="odd"),
    ]
    with open_store(folder) as store:
        store.ingest(record for run in runs for record in run.records())
    return folder


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)


def test_why_says_first_what_it_cost_then_why_then_where_to_look() -> None:
    ran = looptape("why", "refund-2")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert len(lines) <= 24
    assert lines[0].startswith(
        "refund-2 took $0.50 and 20 turns: 12 turns more, $0.40 above the usual $0.10 and 8 turns"
    )
    assert "(median of 3 runs of task refund)" in lines[0]
    assert lines[1].startswith("Most of it: turns in cycles, $0.40. Turns 5 to 16:")
    (row,) = [line for line in lines if line.startswith("turns in cycles")]
    assert "████████" in row
    assert "+12" in row
    assert "loop.py:40" in row
    assert any(line.startswith(f"looptape show {SUBJECT[:8]}:5 ") for line in lines)


def test_why_of_a_run_that_took_less_says_so_in_whole_sentences() -> None:
    head = looptape("why", "refund-1", "--against", "refund-2").out.splitlines()[1]
    assert re.fullmatch(r"Most of it: turns in cycles, \$0\.\d+\. The usual run had more of it", head), head


def test_why_as_json_has_the_promised_fields_and_sums() -> None:
    found = looptape("why", "refund-2", "--json").json
    assert found["version"] == 1
    assert found["run"] == SUBJECT
    assert (found["against"]["runs"], found["against"]["median_turns"]) == (3, 8)
    part = next(p for p in found["parts"] if p["cause"] == "cycles")
    assert {"cause", "usd", "turns", "first_turn", "last_turn", "what"} <= set(part)
    assert (part["first_turn"], part["last_turn"], part["turns"], part["callers"]) == (5, 16, 12, ["loop.py:40"])
    assert sum(p["usd"] for p in found["parts"]) + found["unexplained_usd"] == pytest.approx(
        found["above_usd"], abs=1e-12
    )
    assert found["above_usd"] == pytest.approx(found["usd"] - found["against"]["median_usd"])


def test_why_against_a_run_and_without_peers_and_without_prices() -> None:
    assert "(run 0000000000000001)" in looptape("why", "refund-2", "--against", "0000000000000001").out
    alone = looptape("why", "odd").out
    assert "nothing to compare with" in alone
    assert "cannot be priced: compared in tokens" in alone
    assert "tokens" in alone.splitlines()[0]
    assert looptape("why", "odd", "--json").json["against"] == {
        "runs": 0, "median_usd": None, "median_turns": None, "median_tokens": None, "kind": "none", "name": "odd",
        "ids": [], "nearest": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("why", "refund-2:3"), "whole run"),
        (("why", "refund-2", "--against", "refund-1:2"), "whole run"),
        (("why", "nobody"), "there is no run"),
        (("stats", "--by", "nonsense"), "nothing can be counted by"),
        (("stats", "--by", "tool,day"), "tools are counted alone"),
        (("stats", "--format", "csv"), "several tables"),
        (("stats", "--by", "day", "--format", "parquet"), "parquet needs a file"),
        (("sql", "select 1", "--attach", "nowhere.csv"), "is no file"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(arguments: tuple[str, ...], says: str) -> None:
    ran = looptape(*arguments)
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_stats_by_model_marks_what_is_partial() -> None:
    ran = looptape("stats", "--by", "model")
    lines = ran.out.splitlines()
    assert lines[0].split()[:3] == ["model", "runs", "turns"]
    assert lines[1].startswith("claude-sonnet-4-5")
    assert "3 turns cannot be priced" in ran.out
    rows = looptape("stats", "--by", "model", "--json").json["rows"]
    assert [(r["model"], r["turns"], r["cost_usd"] is None) for r in rows] == [
        ("claude-sonnet-4-5", 44, False),
        ("unheard-of-9", 3, True),
    ]


def test_the_overview_tells_models_tasks_cycles_and_idle_tools() -> None:
    out = looptape("stats").out
    for head in ("models", "tasks", "wasted in cycles: 11 turns", "tools offered and never called"):
        assert any(line.startswith(head) for line in out.splitlines()), head
    found = looptape("stats", "--json").json
    assert [r["run"] for r in found["runs_with_cycles"]] == [SUBJECT]
    assert [r["tool"] for r in found["never_called"]] == ["idle"]
    assert found["not_looked_at"] == 0


def test_the_history_of_a_task() -> None:
    rows = looptape("stats", "--task", "refund", "--json").json["rows"]
    assert [r["turns"] for r in rows] == [8, 8, 8, 20]
    assert looptape("stats", "--task", "refund", "--by", "model", "--json").json["rows"][0]["turns"] == 44
    assert looptape("stats", "--task", "nobody").err == "nothing to count\n"


def test_stats_as_csv_and_parquet(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(looptape("stats", "--by", "task", "--format", "csv").out)))
    assert [(r["task"], r["runs"], r["successes"]) for r in rows] == [("refund", "4", "3"), ("odd", "1", "0")]
    for by in ("model,day", "task", "tool"):
        assert looptape("stats", "--by", by, "--format", "parquet", "-o", str(tmp_path / "x.parquet")).code == 0
    assert looptape("stats", "--task", "refund", "--format", "parquet", "-o", str(tmp_path / "h.parquet")).code == 0
    with duckdb.connect() as con:
        assert con.execute(f"select sum(turns) from '{tmp_path / 'h.parquet'}'").fetchone() == (44,)


def test_sql_reads_one_attached_file(tmp_path: Path) -> None:
    (tmp_path / "plans.csv").write_text("task,plan\nrefund,gold\n")
    query = "select p.plan, count(*) as runs from runs as r join plans as p on p.task = r.task group by 1"
    assert looptape("sql", query, "--attach", "plans.csv", "--format", "csv").out == "plan,runs\ngold,4\n"
    assert looptape("sql", query, "--format", "csv").code == 2


def test_bars_are_as_long_as_their_share() -> None:
    assert [bar(v, 8, 8) for v in (8, 4, 0, 0.5)] == ["████████", "████", "", "▌"]
    assert bar(-4, 8, 8) == "░░░░"
    assert columns([0, 1, None, 4]) == " ▃·█"
    assert columns([1.0] * 120, 60) == "█" * 60
    assert columns([0, 0]) == "··"


def narrow(monkeypatch: pytest.MonkeyPatch, cells: int = 80) -> None:
    """stdout is a terminal of so many cells."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((cells, 24)))


def test_on_a_narrow_terminal_what_a_part_is_and_who_called_stand_whole_below_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(home) as store:
        found = explain(store, store.run(SUBJECT))
    narrow(monkeypatch)
    why_text.show(found, {"show", "context", "cycles"})
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("turns in cycles"))
    assert lines[at + 1].startswith("    Turns 5 to 16: the loop ran read(path=a.py)")
    assert lines[at + 2] == "    loop.py:40"
    assert len(lines) <= 24
    assert "…" not in "".join(lines)


def test_on_a_narrow_terminal_figures_go_before_names_are_cut(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(home) as store:
        found = analytics.stats(store, ["model", "day"])
    narrow(monkeypatch)
    stats_text.show(found, ["model", "day"])
    shown = capsys.readouterr()
    day = datetime.fromtimestamp(START / 1_000_000).date()  # as people here call it
    assert f"claude-sonnet-4-5  {day.isoformat()}" in shown.out
    assert "unheard-of-9" in shown.out
    assert all(len(line) <= 80 for line in shown.out.splitlines())
    assert "not shown in a terminal this narrow" in shown.err


def test_without_peers_the_first_lines_name_what_could_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = [Step(input=20_000, output=100) for _ in range(6)]
    steps = [*read, *[replace(LOOPING, caller="loop.py:40")] * 5, Step(tool=None)]
    with open_store(tmp_path / "alone") as store:
        store.ingest(Composed("7" * 16, steps, name="alone").records())
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "alone"))
    lines = looptape("why", "alone").out.splitlines()
    assert lines[1].startswith("Could be saved: turns in cycles, $0.")
    assert next(line for line in lines if line.startswith("cause")) == lines[4]
    assert lines[5].startswith("context read")  # the largest, but no fault
    assert lines[lines.index("look at") + 1].startswith("looptape show 77777777:")


def test_only_runs_of_subscription_clients_are_headed_list_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    listed = Composed("8" * 16, healthy(3), name="mine", task="a_1", more={"source": "claude-code", "list_price": True})
    with open_store(tmp_path) as store:
        store.ingest(listed.records())
    assert "list $" in looptape("stats", "--by", "model").out
    assert "list $" in looptape("stats", "--task", "a_1").out
    with open_store(tmp_path) as store:
        store.ingest(Composed("9" * 16, healthy(3), name="other", task="ab1").records())
    mixed = looptape("stats", "--by", "model").out
    assert "list $" not in mixed
    assert "partly list price: some runs are of clients that are often paid by subscription" in mixed
    assert "list price" not in looptape("stats", "--task", "ab1").out
    assert len(looptape("stats", "--task", "a_*", "--json").json["rows"]) == 1  # only the star stands for any text
    assert "tag.some_cost" in looptape("stats", "--by", "tag.some_cost").out


def test_a_part_that_costs_nothing_has_a_share_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    lost = [replace(s, status="error", input=None, cache_read=None, cache_write=None, output=None) for s in healthy(8)]
    broken = Composed("d" * 16, [*healthy(8)[:4], *lost[4:]], name="job", task="t", status="failed")
    with open_store(tmp_path) as store:
        store.ingest(r for run in (Composed("c" * 16, healthy(8), task="t"), broken) for r in run.records())
    rows = [line for line in looptape("why", "d" * 16).out.splitlines() if line.startswith(("retries", "failed calls"))]
    assert len(rows) == 2
    assert all(" 0 % " in row and "-0" not in row for row in rows)


def test_a_fork_that_owns_no_turn_took_nothing_and_is_compared_with_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(home) as store:
        found = explain(store, store.run(SUBJECT))
    why_text.show(replace(found, turns=0, amount=found.amount * 0), {"show"})
    said = capsys.readouterr().out
    assert "took nothing of its own: its " in said
    assert "fewer" not in said
    assert "cause" not in said


def test_beside_its_title_a_long_title_does_not_push_the_figures_away(home: Path) -> None:
    with open_store(home) as store:
        found = explain(store, store.run(SUBJECT))
    long = replace(found, run=replace(found.run, name="a title that nobody can read at a glance"))
    assert "".join(str(getattr(p, "text", p)) for p in why_text.headline(long, short=True)[0]).startswith(
        "this run took $"
    )
