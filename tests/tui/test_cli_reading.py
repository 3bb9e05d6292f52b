"""runs, show, sql, export over a store: what people and scripts get."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path

import pytest

import small_tape
from commandline import looptape
from looptape.tracer.outgoing import without_content
from looptape.tracer.store import open_store

OLD, NEW = "aaaa000000000001", "bbbb000000000002"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with open_store(folder) as store:
        store.ingest(small_tape.records(OLD))
        later = small_tape.START + 3600 * small_tape.SECOND
        bad = small_tape.records(
            NEW,
            name="refund",
            is_error=True,
            result="no such order\n" + "x" * 4000,
            start=later,
            thinking="hm",
            model="unheard-of",
        )
        store.ingest(bad)
    return folder


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)


def test_runs_lists_the_newest_first_with_totals() -> None:
    ran = looptape("runs")
    head, first, second, totals = ran.out.splitlines()
    assert ran.code == 0
    assert re.split(r"\s{2,}", head.strip())[:6] == ["run", "id", "when", "turns", "calls", "err"]
    assert first.startswith("✓  refund ")
    assert second.startswith("✓  revenue ")
    assert "unpriced" in first
    assert "unpriced" not in second
    assert totals.split()[:2] == ["2", "runs"]
    assert "partial: 2 turns not priced" in totals
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", ran.out)


def test_a_cut_list_says_so() -> None:
    ran = looptape("runs", "--limit", "1")
    assert len(ran.out.splitlines()) == 2
    assert "1 of 2 runs: --limit 0 for all" in ran.err


def test_runs_as_json_has_the_promised_fields() -> None:
    ran = looptape("runs", "--json", "--error")
    assert (ran.json["version"], ran.err) == (1, "")
    (run,) = ran.json["runs"]
    promised = (
        "id name title agent project session task outcome source status reason started_at ended_at turns tool_calls errors "
        "models limits usage cost_usd unpriced_turns inclusive parent tags warnings"
    )
    assert not set(promised.split()) - set(run)
    assert (run["id"], run["status"], run["turns"], run["errors"]) == (NEW, "completed", 2, 1)
    assert run["started_at"] == "2025-11-29T15:02:03.000000+00:00"
    assert run["usage"]["input"] == 2700
    assert run["cost_usd"] is None


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], [NEW, OLD]),
        (["--error"], [NEW]),
        (["--model", "unheard-of"], [NEW]),
        (["--text", "REV"], [OLD]),
        (["--since", "2025-11-29T14:30:00+00:00"], [NEW]),
        (["--status", "failed"], []),
        (["--sort", "cost"], [OLD, NEW]),
        (["--project", "/work"], [NEW, OLD]),
        (["--project", "."], []),
        (["--tool", "search"], [NEW, OLD]),
    ],
)
def test_filters(options: list[str], ids: list[str]) -> None:
    assert [r["id"] for r in looptape("runs", "--json", *options).json["runs"]] == ids


def test_nothing_found_is_said_and_fine() -> None:
    ran = looptape("runs", "--status", "failed")
    assert (ran.code, ran.out, ran.err) == (0, "", "no run matches\n")


def test_show_is_a_transcript_in_order() -> None:
    ran = looptape("show", "revenue")
    parts = [OLD, "✓ completed", "2 turns · 1 call · no errors", "1  claude-sonnet-4-5 · tool_use", "agent.py:12",
             "> What is 7%", "I look it up.", '→ search {"q": "revenue"}', "= revenue: 1200", "2  claude-sonnet-4-5 · end_turn", "It is 84."]  # fmt: skip
    places = [ran.out.index(part) for part in parts]
    assert places == sorted(places)


def test_show_marks_errors_and_says_how_much_it_left_out() -> None:
    out = looptape("show", NEW).out
    assert "✗ no such order" in out
    assert "… 3,714 more characters: " in out
    assert "~ hm" in out


def test_one_turn_is_whole() -> None:
    out = looptape("show", f"{NEW}:1").out
    assert "x" * 4000 in out
    assert "more characters" not in out
    assert "tokens: input 1,200, cache read 100, cache write 5 m 0, output 300 (recorded)" in out
    assert looptape("show", f"{NEW}:1-2").out.count("no price for unheard-of") == 2


def test_show_as_json_has_the_promised_fields() -> None:
    shown = looptape("show", OLD, "--json").json
    assert (shown["version"], shown["run"]["id"], [t["number"] for t in shown["turns"]]) == (1, OLD, [1, 2])
    turn = shown["turns"][0]
    promised = (
        "number agent user_turn inherited flags model stop_reason status error error_type request_id span_id caller started_at "
        "generate_ms parse_ms execute_ms resume_ms usage cost_usd text thinking attempts tool_calls"
    )
    assert not set(promised.split()) - set(turn)
    (call,) = turn["tool_calls"]
    of_call = "id name arguments valid result is_error error_class state started_at ms side_effect origin child_run"
    assert not set(of_call.split()) - set(call)
    assert (call["arguments"], call["result"]) == ({"q": "revenue"}, "revenue: 1200")
    assert [t["number"] for t in looptape("show", f"{OLD}:2", "--json").json["turns"]] == [2]


def test_the_request_is_numbered_and_marked_against_the_turn_before() -> None:
    out = looptape("show", f"{OLD}:2", "--request").out
    assert "≡ [1] user" in out
    assert "+ [2] assistant" in out
    assert "+ [3] user" in out
    assert "system ≡ unchanged" in out
    assert "You are a careful analyst." in out
    assert "= result of c1" in out
    assert "max_tokens: 100" in out
    as_json = looptape("show", f"{OLD}:2", "--request", "--json").json["request"]
    assert (len(as_json["messages"]), as_json["kept"]) == (3, 1)


def test_the_wire_is_exact_in_a_pipe() -> None:
    ran = looptape("show", f"{OLD}:1", "--raw")
    request, response = ran.out.splitlines()
    assert json.loads(request)["messages"][0]["content"].startswith("What is 7%")
    assert json.loads(response)["stop_reason"] == "tool_use"
    assert ran.err == "request:\nresponse:\n"


def test_what_a_recording_without_content_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    records = [
        {"kind": "blob", "hash": r["hash"], "length": len(r["text"])} if r["kind"] == "blob" else without_content(r)
        for r in small_tape.records(OLD)
    ]
    with open_store(tmp_path) as store:
        store.ingest(records)
    assert "→ search arguments not recorded" in looptape("show", OLD).out
    asked = looptape("show", f"{OLD}:2", "--request").out
    assert re.search(r"^≡ \[1\] not recorded \(\d+ characters\)$", asked, re.MULTILINE), asked
    wire = looptape("show", f"{OLD}:2", "--raw")
    assert (wire.out, wire.err) == ("", "no request was recorded\nno response was recorded\n")


def test_request_and_raw_need_one_turn() -> None:
    ran = looptape("show", OLD, "--raw")
    assert (ran.code, ran.err) == (2, f"looptape: --raw shows one turn. Say which: looptape show {OLD}:2 --raw\n")


def test_unknown_run_and_turn_name_the_nearest() -> None:
    ran = looptape("show", "refnd")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"looptape: there is no run 'refnd'. Nearest: {NEW} (refund)\n"
    assert "no turn 9" in looptape("show", "refund:9").err


def test_sql_in_every_format(tmp_path: Path) -> None:
    query = "select name, turns, cost_usd is null as unpriced, null as nothing from runs order by name"
    table = looptape("sql", query).out.splitlines()
    assert table[0].split() == ["name", "turns", "unpriced", "nothing"]
    assert table[1].split() == ["refund", "2", "True", "NULL"]
    as_json = looptape("sql", query, "--format", "json").json
    assert looptape("sql", query, "--json").json == as_json
    assert as_json["rows"][1] == {"name": "revenue", "turns": 2, "unpriced": False, "nothing": None}
    rows = list(csv.reader(io.StringIO(looptape("sql", query, "--format", "csv").out)))
    assert rows == [
        ["name", "turns", "unpriced", "nothing"],
        ["refund", "2", "True", ""],
        ["revenue", "2", "False", ""],
    ]
    import duckdb

    file = tmp_path / "it's.parquet"
    assert looptape("sql", query, "--format", "parquet", "-o", str(file)).code == 0
    assert duckdb.sql("select turns from read_parquet(?)", params=[str(file)]).fetchall() == [(2,), (2,)]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("selec 1", "syntax error"),
        ("select nope from runs", "nope"),
        ("delete from runs", "read-only"),
        ("select * from read_csv('/etc/passwd')", "cannot be read here"),
        ("select * from base.runs", "cannot be read here"),
        ("select * from '/etc/passwd'", "cannot be read here"),
        ("", "no statement"),
    ],
)
def test_bad_sql_is_exit_2_with_one_line(query: str, part: str) -> None:
    ran = looptape("sql", query)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert part in ran.err


def test_sql_says_when_a_table_is_cut() -> None:
    ran = looptape("sql", "select * from range(2000)")
    assert len(ran.out.splitlines()) == 1001
    assert "only the first 1,000 rows" in ran.err
    assert len(looptape("sql", "select * from range(2000)", "--format", "csv").out.splitlines()) == 2001


def test_a_tape_goes_out_and_comes_back_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.jsonl"
    assert looptape("export", OLD, "-o", str(file)).code == 0
    before = looptape("show", OLD, "--json").json
    assert looptape("show", str(file), "--json").json["turns"] == before["turns"]
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "other"))
    ran = looptape("import", str(file), "--json")
    assert ran.code == 0
    assert [(f["format"], f["runs"], f["turns"], f["tool_calls"]) for f in ran.json["files"]] == [("tape", [OLD], 2, 1)]
    after = looptape("show", OLD, "--json").json
    assert after["turns"] == before["turns"]
    assert after["run"] == before["run"]


def test_export_as_markdown_and_of_everything(tmp_path: Path) -> None:
    ran = looptape("export", f"{OLD}:2", "--to", "markdown")
    assert ran.out.startswith("# revenue\n")
    assert "## Turn 2" in ran.out
    assert "## Turn 1" not in ran.out
    for form, ending in (("tape", ".tape.jsonl"), ("markdown", ".md")):
        assert looptape("export", "--all", "--to", form, "-o", str(tmp_path / form)).code == 0
        assert sorted(p.name for p in (tmp_path / form).iterdir()) == [f"{OLD}{ending}", f"{NEW}{ending}"]


def test_an_output_that_cannot_be_written_is_exit_2(tmp_path: Path) -> None:
    ran = looptape("export", OLD, "-o", str(tmp_path / "no" / "x.jsonl"))
    assert ran.code == 2
    assert "No such file" in ran.err
    assert "Traceback" not in ran.err
    assert "a tape holds whole runs" in looptape("export", f"{OLD}:1").err


def test_bare_in_a_pipe_prints_runs_and_how_to_get_more() -> None:
    ran = looptape()
    assert ran.out == looptape("runs").out
    assert "looptape --help" in ran.err


def test_a_run_whose_begin_nobody_knows_stands_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    begins = ("run_start", "turn_start", "call_start")
    later = small_tape.START + 86400 * small_tape.SECOND
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records(OLD))
        cassette = small_tape.records(NEW, name="cassette", start=later)
        store.ingest([{k: v for k, v in r.items() if k != "at" or r["kind"] not in begins} for r in cassette])
        assert store.run(NEW).started_at is None
    _, first, second, _ = looptape("runs").out.splitlines()
    day = datetime.fromtimestamp(later / 1_000_000).date().isoformat()  # as people here call it
    assert re.split(r"\s{2,}", first)[1:4] == ["cassette", NEW[:8], day]
    assert OLD[:8] in second
    only = looptape("runs", "--since", day).out
    assert (NEW[:8] in only, OLD[:8] in only) == (True, False)
