"""`looptape diff`: the first divergence first, in text, JSON and Markdown; what scripts may rely on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import small_tape
from commandline import looptape
from looptape.tracer.store import open_store
from looptape.tui.format import duration
from looptape.tui.told.diff_text import difference

A, B, C = "aaaa000000000001", "bbbb000000000002", "cccc000000000003"
LONG = " ".join(f"row {n} is fine" for n in range(100))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with open_store(folder) as store:
        store.ingest(small_tape.records(A, name="one", result=LONG))
        store.ingest(small_tape.records(B, name="two", result=LONG.replace("row 50 is fine", "row 50 is \x1b[31mred")))
        store.ingest(
            small_tape.records(
                C, name="three", result=LONG, arguments={"q": "profit"}, model="unheard-of", answer="No."
            )
        )
    return folder


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)


def test_a_run_against_itself_says_that_nothing_differs() -> None:
    ran = looptape("diff", A, A)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "no difference")
    assert looptape("diff", A, A, "--exit-code").code == 0


def test_the_first_divergence_comes_first_with_the_words_that_differ() -> None:
    ran = looptape("diff", A, B)
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[2] == "first divergence: turn 1: calls[1].result edited"
    assert "row 50 is [-fine-]{+␛[31mred+} row 51" in lines[3]
    assert "\x1b" not in ran.out
    assert len(lines[3]) < 200
    assert any(re.fullmatch(r"cost +\$0\.0\d+ +\$0\.0\d+ +=", line) for line in lines)


def test_a_difference_ends_with_1_only_where_a_script_asks_for_it() -> None:
    assert looptape("diff", A, B).code == 0
    assert looptape("diff", A, B, "--exit-code").code == 1


def test_the_json_names_the_divergence_by_turn_path_and_values() -> None:
    found = looptape("diff", A, C, "--json").json
    assert found == looptape("diff", A, C, "--format", "json").json
    assert (found["version"], found["a"], found["same"]) == (1, A, False)
    (one,) = found["diffs"]
    assert (one["kind"], one["b"], one["first"]["a"], one["first"]["change"]["part"]) == ("runs", C, 1, "model")
    act = one["first_act"]["change"]
    assert (act["path"], act["a"], act["b"]) == ("calls[1].arguments.q", "revenue", "profit")
    assert [(t["a"], t["b"], t["same"]) for t in one["turns"]] == [(1, 1, False), (2, 2, False)]
    assert one["totals"]["b"]["unpriced_turns"] == 2
    assert one["totals"]["b"]["cost_usd"] is None


def test_a_difference_too_small_to_tell_has_no_sign() -> None:
    assert [difference(0.2, b, duration) for b in (0.2, 0.3, 0.1, 30.2)] == ["=", "<1 ms", "<1 ms", "+30 ms"]


def test_two_turns_show_their_requests_and_answers() -> None:
    ran = looptape("diff", f"{A}:1", f"{A}:2")
    assert "first divergence: messages[2] appended" in ran.out
    assert "request  messages[3] appended" in ran.out
    assert '→ search {"q": "revenue"}' in ran.out
    assert "answer  text edited" in ran.out


def test_many_runs_are_each_compared_with_the_first() -> None:
    ran = looptape("diff", A, B, C, A)
    rows = {line.split()[0]: line for line in ran.out.splitlines()}
    assert "first divergence: turn 1: calls[1].result edited" in rows[B]
    assert "first divergence: turn 1: model edited" in rows[C]
    assert "no difference" in rows[A]
    assert [d["b"] for d in looptape("diff", A, B, C, A, "--json").json["diffs"]] == [B, C, A]


def test_markdown_cannot_be_left_by_what_was_recorded(home: Path) -> None:
    run = "dddd000000000004"
    with open_store(home) as store:
        store.ingest(small_tape.records(run, name="# [x](y)", result="```\n</details> **bold**\n````"))
    ran = looptape("diff", A, run, "--format", "markdown")
    assert "\\# \\[x\\](y)" in ran.out
    fences = [line for line in ran.out.splitlines() if re.fullmatch(r"`{3,}(diff)?", line)]
    assert len(fences) % 2 == 0
    assert "`````diff" in fences
    assert "| turns | 2 | 2 | = |" in ran.out


def test_a_limit_says_what_it_leaves_out(tmp_path: Path) -> None:
    ran = looptape("diff", A, C, "--limit", "1")
    assert "and 1 more turns: --limit 0 for all" in ran.out
    assert "more turns" not in looptape("diff", A, C, "--limit", "0").out
    file = small_tape.write(tmp_path / "o.jsonl", small_tape.records(A, question="Who?", thinking="hm", answer="Me."))
    assert re.search(r"and \d+ more changes: --limit 0 for all", looptape("diff", A, str(file), "--limit", "1").out)


def test_a_tape_file_is_compared_with_a_run_of_the_store(tmp_path: Path) -> None:
    file = small_tape.write(tmp_path / "other.jsonl", small_tape.records("eeee000000000005", result=LONG))
    assert "no difference" in looptape("diff", A, str(file)).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((A,), "diff compares at least two"),
        ((A, f"{A}:1"), "are a run and a turn"),
        ((A, "nothing-like-it"), "there is no run"),
        ((f"{A}:1", f"{A}:9"), "no turn 9"),
    ],
    ids=["one", "unlike", "unknown", "no-turn"],
)
def test_what_cannot_be_compared_ends_with_2_and_one_line(arguments: tuple[str, ...], says: str) -> None:
    ran = looptape("diff", *arguments)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert says in ran.err
