"""`looptape search`, and the filter language beside other commands: what people and scripts get."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import small_tape
from commandline import looptape
from looptape.tracer.store import open_store

OLD, NEW, BARE = "aaaa000000000001", "bbbb000000000002", "cccc000000000003"
HOUR = 3600 * small_tape.SECOND


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with open_store(folder) as store:
        store.ingest(small_tape.records(OLD, result="a Zebra\x1b[31m crossed\nthe road", answer="No zebra here."))
        store.ingest(
            small_tape.records(NEW, name="refund", question="Where is the zebra?", start=small_tape.START + HOUR)
        )
        bare = small_tape.records(BARE, question="a zebra nobody kept", start=small_tape.START - HOUR)
        store.ingest({k: v for k, v in r.items() if k != "text"} if r["kind"] == "blob" else r for r in bare)
    return folder


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)


def test_hits_stand_under_their_run_newest_first_with_turn_place_and_marked_match() -> None:
    ran = looptape("search", "zebra")
    rows = [re.sub(r" {2,}", "  ", row.strip()) for row in ran.out.splitlines()]
    assert ran.code == 0
    assert rows[0].startswith("✓  refund  bbbb0000  ")
    assert (
        rows[1] == "1  prompts user  Where is the «zebra»?  until turn 1"
        or rows[1] == "1  prompts user  Where is the «zebra»?"
    )
    assert rows[3].startswith("✓  revenue  aaaa0000  ")
    assert rows[4] == "1  results search  a «Zebra»␛[31m crossed↵the road"
    assert rows[5] == "2  answers  No «zebra» here."
    assert "3 hits in 2 of 3 runs" in ran.err
    assert "1 run was recorded without content" in ran.err


def test_capitals_in_the_text_are_meant() -> None:
    assert looptape("search", "Zebra").out.count("«") == 1


def test_json_is_one_object_with_the_exact_text() -> None:
    ran = looptape("search", "zebra", "--json", "--in", "results,answers")
    told = json.loads(ran.out)
    assert told["version"] == 1
    assert (told["hits"], told["looked_at"], told["total"], told["complete"], told["without_content"]) == (
        2,
        3,
        3,
        True,
        1,
    )
    (run,) = told["runs"]
    assert run["run"] == OLD
    assert (
        run["hits"][0]["before"] + run["hits"][0]["match"] + run["hits"][0]["after"]
        == "a Zebra\x1b[31m crossed\nthe road"
    )
    assert (run["hits"][0]["turn"], run["hits"][0]["where"], run["hits"][0]["what"], run["hits"][0]["call"]) == (
        1,
        "results",
        "search",
        "c1",
    )


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["name:refund"], [NEW]),
        (["--text", "revenue"], [OLD]),
        (["turns:>5"], []),
        (["--sort", "name"], [NEW, OLD]),
        (["since:2026-01-01"], []),
        (["cycle:no", "refund"], [NEW]),
    ],
)
def test_filters_pick_the_runs_as_in_the_list(words: list[str], runs: list[str]) -> None:
    told = json.loads(looptape("search", "zebra", *words, "--json").out)
    assert [r["run"] for r in told["runs"]] == runs


def test_what_the_limit_leaves_out_is_told() -> None:
    ran = looptape("search", "zebra", "--limit", "1")
    assert ran.out.count("«") == 1
    assert "the first 1 hit, 1 of 3 runs looked at: --limit 0 for all" in ran.err
    assert json.loads(looptape("search", "zebra", "--limit", "2", "--json").out)["complete"] is False


def test_many_hits_of_one_run_are_cut_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records(OLD))
        store.ingest(_talkative())
    ran = looptape("search", "zebra")
    assert ran.out.count("«") == 10
    assert f"… 5 more in this run: add the filter text:{NEW}" in ran.out
    assert looptape("search", "zebra", f"text:{NEW}").out.count("«") == 15


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a(", "--regex"], "the regular expression cannot be read (missing )"),
        (["x", "--in", "bodies"], "nothing is called 'bodies'. --in takes prompts"),
        (["x", "modell:y"], "Did you mean model:y?"),
        ([""], "there is nothing to look for"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(words: list[str], says: str) -> None:
    ran = looptape("search", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_nothing_found_and_nothing_to_look_in_are_told_apart() -> None:
    assert "not found in 3 runs" in looptape("search", "giraffe").err
    assert "no run matches" in looptape("search", "giraffe", "name:nobody").err


@pytest.mark.parametrize(
    ("words", "runs"),
    [(["name:refund"], 1), (["name:re*"], 3), (["turns:>5"], 0)],
)
def test_stats_lint_and_export_take_the_same_filters(words: list[str], runs: int, tmp_path: Path) -> None:
    stats = json.loads(looptape("stats", "--by", "run", *words, "--json").out)
    assert len(stats["rows"]) == runs
    lint = json.loads(looptape("lint", "--all", *words, "--json", "--fail-on", "never").out)
    assert len(lint["runs"]) == runs
    assert looptape("export", "--all", *words, "--to", "tape", "-o", str(tmp_path / "out")).code == 0
    assert len(list((tmp_path / "out").iterdir())) == runs


@pytest.mark.parametrize(
    "words", [["export", "last", "--all", "-o", "x"], ["lint", "last", "--all"], ["export", "last", "name:x"]]
)
def test_a_run_and_filters_together_are_refused(words: list[str]) -> None:
    assert looptape(*words).code == 2


def _talkative() -> list[dict[str, object]]:
    """A run whose first request holds fifteen messages that are all told apart."""
    records = small_tape.records(NEW, name="talk")
    made = [small_tape.blob(json.dumps({"role": "user", "content": f"zebra {n}"})) for n in range(15)]
    first = next(r for r in records if r["kind"] == "turn_start")
    first["append"] = [*(m["hash"] for m in made), *first["append"]]
    second = [r for r in records if r["kind"] == "turn_start"][1]
    second["keep"] = 16
    return [*made, *records]


def test_stats_are_sorted_by_any_column_what_is_not_known_last() -> None:
    rows = json.loads(looptape("stats", "--by", "run", "--sort", "run", "--json").out)["rows"]
    assert [r["run"] for r in rows] == [OLD, NEW, BARE]
    costs = [
        r["cost_usd"] for r in json.loads(looptape("stats", "--by", "run", "--sort", "cost_usd", "--json").out)["rows"]
    ]
    assert costs == sorted(costs, reverse=True)
    assert looptape("stats", "--by", "run", "--sort", "price").code == 2
    assert looptape("stats", "--sort", "cost_usd").code == 2
