"""`looptape budget RUN... --file F`: what may not grow unseen, and what cannot be known never passes in silence."""

import json

import pytest

from commandline import looptape
from small_tape import RUN, records, write


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    write(tmp_path / "a.tape.jsonl", records())
    return tmp_path


def changed(here, **figures):
    """The baseline with other figures for the tape."""
    file = here / "base.json"
    given = json.loads(file.read_text())
    given["runs"]["a.tape.jsonl"] |= figures
    file.write_text(json.dumps(given))


def test_update_writes_the_baseline_and_the_same_run_holds(here):
    assert looptape("budget", "a.tape.jsonl", "--file", "base.json", "--update").code == 0
    given = json.loads((here / "base.json").read_text())
    assert given["version"] == 1
    # 2 turns of 1200 + 100 + 300 and 1500 + 100 + 20 tokens, cached ones included
    assert given["runs"]["a.tape.jsonl"] == {"turns": 2, "tokens": 3220, "usd": pytest.approx(0.01296)}
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("  ok\n") == 3


@pytest.mark.parametrize("figure", ["turns", "tokens", "usd"])
def test_a_figure_beyond_the_tolerance_fails_and_one_within_does_not(here, figure):
    looptape("budget", "a.tape.jsonl", "--file", "base.json", "--update")
    now = json.loads((here / "base.json").read_text())["runs"]["a.tape.jsonl"][figure]
    changed(here, **{figure: now / 1.09})
    assert looptape("budget", "a.tape.jsonl", "--file", "base.json").code == 0
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json", "--tolerance", "5%", "--json")
    assert ran.code == 1
    (found,) = ran.json["runs"]
    assert [n for n, line in found["figures"].items() if line["verdict"] == "over"] == [figure]
    assert ran.json["version"] == 1
    assert ran.json["ok"] is False


def test_a_model_without_a_price_fails_a_budget_that_has_a_cost_and_warns_where_it_has_none(here):
    looptape("budget", "a.tape.jsonl", "--file", "base.json", "--update")
    write(here / "a.tape.jsonl", records(model="acme-large-1"))
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json")
    assert ran.code == 1
    assert "error: a.tape.jsonl: usd cannot be checked: 2 of 2 turns cannot be priced (acme-large-1)" in ran.err
    assert "not priced" in ran.out
    assert "$0.00" not in ran.out.partition("usd")[2].partition("$0.01")[0]
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json", "--update")
    assert "warning: a.tape.jsonl: usd is not in the baseline" in ran.err
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json")
    assert ran.code == 0
    assert "warning: a.tape.jsonl: usd was not checked" in ran.err


def test_a_turn_without_usage_makes_tokens_unknown(here):
    looptape("budget", "a.tape.jsonl", "--file", "base.json", "--update")
    without = [
        {**r, "usage": {"origin": "missing", "partial": False}, "usage_raw": None} if r["kind"] == "turn_end" else r
        for r in records()
    ]
    write(here / "a.tape.jsonl", without)
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json")
    assert ran.code == 1
    assert "tokens cannot be checked: 2 of 2 turns say no usage" in ran.err


def test_a_run_that_the_baseline_does_not_know_fails(here):
    looptape("budget", "a.tape.jsonl", "--file", "base.json", "--update")
    write(here / "b.tape.jsonl", records(run="b" * 16))
    ran = looptape("budget", "a.tape.jsonl", "b.tape.jsonl", "--file", "base.json")
    assert ran.code == 1
    assert "b.tape.jsonl is not in base.json: add it with --update" in ran.err
    looptape("budget", "b.tape.jsonl", "--file", "base.json", "--update")
    assert looptape("budget", "a.tape.jsonl", "b.tape.jsonl", "--file", "base.json").code == 0  # a was kept


def test_runs_of_the_store_are_known_by_task_or_name_and_count_their_sub_agents(here):
    child = records(run="c" * 16, name="helper", parent={"run": RUN, "turn": 1, "call": "c1", "kind": "sub-agent"})
    write(here / "both.tape.jsonl", records(), child)
    assert looptape("import", "both.tape.jsonl").code == 0
    assert looptape("budget", RUN, "--file", "base.json", "--update").code == 0
    assert json.loads((here / "base.json").read_text())["runs"]["revenue"]["turns"] == 4
    assert looptape("budget", RUN, "--file", "base.json").code == 0


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (None, 2, "there is no baseline base.json. Make it: add --update"),
        ("{", 3, "base.json: "),
        ('{"version": 1, "runs": {"a": {"turns": "3"}}}', 3, "is no baseline of this looptape"),
        ('{"version": 2, "runs": {}}', 3, "is no baseline of this looptape"),
    ],
    ids=["absent", "no-json", "other-shape", "other-version"],
)
def test_a_baseline_that_cannot_be_used_is_one_line(here, content, code, says):
    if content is not None:
        (here / "base.json").write_text(content)
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json")
    assert ran.code == code
    assert says in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("given", ["ten", "-1%", "nan", "%"])
def test_a_tolerance_that_is_none_is_a_usage_error(here, given):
    ran = looptape("budget", "a.tape.jsonl", "--file", "base.json", f"--tolerance={given}")
    assert ran.code == 2
    assert "Write 10% or 0.1" in ran.err
