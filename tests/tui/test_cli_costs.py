"""Cost as people see it, from import to `runs`, `show`, `sync --reprice` and `doctor`: the known faults of other tools."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import codex_rollout
import otlp_spans
import price_files
from claude_session import SessionLines, call, tokens
from commandline import Ran, looptape
from looptape.tui.cli.doctor import Check
from people import newcomer


@pytest.fixture(autouse=True)
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    newcomer(tmp_path, monkeypatch)
    file = price_files.write(tmp_path / "prices.json")
    monkeypatch.setenv("LOOPTAPE_PRICES", str(file))
    return file


def listed() -> dict[str, Any]:
    """`runs --json`."""
    ran = looptape("runs", "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


def only() -> dict[str, Any]:
    """The one run there is."""
    (run,) = listed()["runs"]
    assert isinstance(run, dict)
    return run


def turns() -> list[dict[str, Any]]:
    """The turns of the newest run."""
    found: list[dict[str, Any]] = looptape("show", "last", "--json").json["turns"]
    return found


def session(path: Path, *usages: dict[str, Any], model: str = "acme-large-1") -> Ran:
    """Imports a Claude Code session of one question and answer for each usage."""
    lines = SessionLines()
    for number, usage in enumerate(usages):
        lines.user(f"q{number}")
        lines.answer(f"m{number}", "a", usage=usage, stop="end_turn", model=model)
    ran = looptape("import", str(lines.write(path / "session.jsonl")))
    assert ran.code == 0, ran.err
    return ran


def split(five: int, hour: int) -> dict[str, Any]:
    return {"cache_creation": {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}}


def test_one_hour_cache_writes_have_their_own_rate_and_an_unclear_split_is_marked(tmp_path: Path) -> None:
    """cst-01."""
    session(
        tmp_path,
        tokens(100, 1000, 10000, 344139, **split(0, 344139)),
        tokens(100, 1000, 0, 1000000, **split(400000, 600000)),
        tokens(100, 1000, 0, 5000),
        tokens(100, 1000, 0, 5000, **split(0, 4000)),
    )
    found = turns()
    assert [t["cost_usd"] for t in found] == [3.47189, 8.5255, 0.05675, 0.07175]
    assumed = [" ".join(t["price"]["assumed"]) for t in found]
    assert assumed[:2] == ["", ""]
    assert "how long they live is not told" in assumed[2]
    assert "tells 4,000 of 5,000 tokens" in assumed[3]
    run = only()
    assert (run["cost_usd"], run["assumed_turns"], run["cost_partial"]) == (12.12589, 2, False)
    shown = looptape("show", "last:4").out
    assert "priced $0.07175 as acme-large-1 by prices.json" in shown
    assert "assumed: the split of the cache writes tells 4,000 of 5,000 tokens" in shown
    assert "assumed for 2 turns" in looptape("show", "last").out


def test_a_call_costs_the_same_in_a_session_and_in_a_trace_that_counts_the_cache_inside_the_input(
    tmp_path: Path,
) -> None:
    """cst-02."""
    session(tmp_path, tokens(5, 100, 128955, 1253, **split(1253, 0)))
    trace = otlp_spans.request(
        otlp_spans.span(
            1,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "anthropic",
                "gen_ai.request.model": "acme-large-1",
                "gen_ai.usage.input_tokens": 130213,
                "gen_ai.usage.cache_read.input_tokens": 128955,
                "gen_ai.usage.cache_creation.input_tokens": 1253,
                "gen_ai.usage.output_tokens": 100,
            },
        )
    )
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(trace))
    assert looptape("import", str(file)).code == 0
    runs = listed()["runs"]
    assert len(runs) == 2
    for run in runs:
        usage = run["usage"]
        buckets = (usage["input"], usage["cache_read"], usage["cache_write_5m"], usage["output"])
        assert buckets == (5, 128955, 1253, 100)
        assert run["cost_usd"] == 0.07483375


def test_an_unknown_model_is_not_priced_and_the_sum_says_that_it_is_a_part(tmp_path: Path) -> None:
    """cst-04."""
    lines = SessionLines()
    lines.user("a")
    lines.answer("m1", "b", usage=tokens(1000, 100))
    lines.user("c")
    lines.answer("m2", "d", usage=tokens(2000, 200), model="some-unknown-2027")
    assert looptape("import", str(lines.write(tmp_path / "s.jsonl"))).code == 0
    first, second = turns()
    assert (first["cost_usd"], second["cost_usd"]) == (0.0075, None)
    assert second["price"]["why"] == "no price for some-unknown-2027"
    run = only()
    assert (run["cost_usd"], run["cost_partial"], run["unpriced_turns"]) == (0.0075, True, 1)
    assert run["inclusive"]["unpriced_turns"] == 1
    assert listed()["sum"] == {"cost_usd": 0.0075, "cost_partial": True, "unpriced_turns": 1}
    assert "$0.0075 (list price, partial: 1 of 2 turns not priced)" in looptape("show", "last").out
    assert "not priced: no price for some-unknown-2027" in looptape("show", "last:2").out
    assert "0.0075+" in looptape("runs").out


def _doctor(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """What doctor says of prices: state, text, cure."""
    # the test recordings of the SDKs take long
    monkeypatch.setattr("looptape.tui.cli.doctor._sdk", lambda name: Check(name, "info", "left out"))
    checks = looptape("doctor", "--json").json["checks"]
    return [(c["state"], c["said"], c["cure"]) for c in checks if c["name"] == "prices"]


def test_doctor_names_the_lists_and_the_models_without_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(tmp_path, tokens(1000, 100), model="some-unknown-2027")
    # the list that is installed grows old by itself
    monkeypatch.setattr("looptape.tracer.prices.listed.newest_date", lambda: datetime.now(tz=UTC).date())
    lists, unknown = _doctor(monkeypatch)
    assert lists[0] == "ok"
    assert lists[1].startswith("prices.json ")
    assert "genai-prices 0." in lists[1]
    assert unknown[:2] == ("warn", "no price for some-unknown-2027 (1 turn)")


def test_doctor_warns_of_an_old_list_and_tells_which_figures_are_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path, tokens(1000, 100))
    monkeypatch.delenv("LOOPTAPE_PRICES")
    monkeypatch.setattr("looptape.tracer.prices.listed.newest_date", lambda: date(2025, 1, 1))
    old, other = _doctor(monkeypatch)
    assert (old[0], old[2]) == ("warn", "pip install -U genai-prices")
    assert "prices up to 2025-01-01: that may be too old" in old[1]
    assert other[0] == "info"
    assert other[1].startswith("1 turn priced by prices.json ")
    assert "sync --reprice" in other[2]


def test_doctor_names_what_is_wrong_with_a_price_file(prices: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prices.write_text("{")
    ((state, said, cure),) = _doctor(monkeypatch)
    assert state == "bad"
    assert f"{prices} is not JSON" in said
    assert cure


@pytest.mark.parametrize(
    ("model", "usage", "cost", "matched"),
    [
        ("acme-large-1-2", tokens(0, 0, 1000000), 0.125, "acme-large-1-2"),
        ("acme-opus-4-6", tokens(1000000, 0), None, None),
        ("acme-large-1-20261101", tokens(1000, 0), 0.005, "acme-large-1"),
    ],
)
def test_a_new_model_is_not_priced_as_its_older_neighbour(
    tmp_path: Path, model: str, usage: dict[str, Any], cost: float | None, matched: str | None
) -> None:
    """cst-05."""
    session(tmp_path, usage, model=model)
    (turn,) = turns()
    assert (turn["cost_usd"], turn["price"]["matched"]) == (cost, matched)
    shown = looptape("show", "last:1").out
    assert ("(the model said acme-large-1-20261101)" in shown) is (model == "acme-large-1-20261101")


def test_thoughts_are_outside_the_output_of_one_provider_and_inside_that_of_another(tmp_path: Path) -> None:
    """cst-07, through cassettes."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not here (extra vcr)")
    gemini = {
        "modelVersion": "gem-demo-3",
        "candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 15, "candidatesTokenCount": 359, "thoughtsTokenCount": 661, "totalTokenCount": 1035,
        },
    }  # fmt: skip
    openai = {
        "id": "resp_1",
        "model": "gpt-demo-6",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}],
        "usage": {
            "input_tokens": 15, "output_tokens": 1020, "output_tokens_details": {"reasoning_tokens": 661},
            "total_tokens": 1035,
        },
    }  # fmt: skip
    asked = {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}
    calls = [
        ("https://generativelanguage.googleapis.com/v1beta/models/gem-demo-3:generateContent", asked, gemini),
        ("https://api.openai.com/v1/responses", {"model": "gpt-demo-6", "input": "q"}, openai),
    ]
    for number, (url, request, response) in enumerate(calls):
        interaction = {
            "request": {"body": json.dumps(request), "headers": {}, "method": "POST", "uri": url},
            "response": {"body": {"string": json.dumps(response)}, "headers": {}, "status": {"code": 200}},
        }
        file = tmp_path / f"c{number}.yaml"
        file.write_text(yaml.safe_dump({"interactions": [interaction], "version": 1}))
        assert looptape("import", str(file)).code == 0
    by_model = {run["models"][0]: run for run in listed()["runs"]}
    for run in by_model.values():
        usage = run["usage"]
        assert (usage["input"], usage["output"], usage["reasoning"]) == (15, 1020, 661)
    assert by_model["gem-demo-3"]["cost_usd"] == 0.01227
    assert by_model["gpt-demo-6"]["cost_usd"] == 0.05115


def test_cumulative_counters_that_repeat_and_replay_count_each_request_once(tmp_path: Path) -> None:
    """cst-09. (2,000 x 10 + 1,000 x 1 + 40 x 50) / 1,000,000."""
    rollout = codex_rollout.Rollout()
    rollout.add("turn_context", {"model": "gpt-demo-6"})
    for total, cached, output, last in [
        (1000, 0, 10, (1000, 0, 10)), (1000, 0, 10, (1000, 0, 10)), (2500, 800, 30, (1500, 800, 20)),
        (2500, 800, 30, (1500, 800, 20)), (1000, 0, 10, (1000, 0, 10)), (2500, 800, 30, (1500, 800, 20)),
        (3000, 1000, 40, (500, 200, 10)),
    ]:  # fmt: skip
        info = {"total_token_usage": _counter(total, cached, output), "last_token_usage": _counter(*last)}
        rollout.add("event_msg", {"type": "token_count", "info": info})
    file = tmp_path / "rollout-2026-11-02T09-00-00-x.jsonl"
    file.write_text("\n".join(rollout.lines) + "\n")
    assert looptape("import", str(file)).code == 0
    run = only()
    usage = run["usage"]
    assert (run["turns"], usage["input"] + usage["cache_read"], usage["cache_read"], usage["output"]) == (
        3,
        3000,
        1000,
        40,
    )
    assert run["cost_usd"] == 0.023


def _counter(total: int, cached: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": total, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 0,
        "total_tokens": total + output,
    }  # fmt: skip


def test_a_sub_agent_counts_in_its_parents_inclusive_cost_and_once_in_the_sum_of_all(tmp_path: Path) -> None:
    """cst-11."""
    parent = SessionLines()
    parent.user("explore")
    parent.answer("msg_M", call("toolu_task", "Agent", prompt="look"), usage=tokens(10, 20), stop="tool_use")
    parent.result("toolu_task", "summary")
    parent.answer("msg_N", "fin", usage=tokens(11, 21))
    parent.write(tmp_path / "proj" / "sess.jsonl")
    child = SessionLines()
    about = {"agentId": "a1b2", "isSidechain": True}
    child.user("look", **about)
    child.answer("msg_S1", call("x1", command="ls"), usage=tokens(100, 200), **about)
    child.result("x1", "a", **about)
    child.answer("msg_S2", "summary", usage=tokens(101, 201), **about)
    child.write(tmp_path / "proj" / "sess" / "subagents" / "agent-a1b2.jsonl")
    meta = {"agentType": "Explore", "toolUseId": "toolu_task", "spawnDepth": 1}
    (tmp_path / "proj" / "sess" / "subagents" / "agent-a1b2.meta.json").write_text(json.dumps(meta))
    assert looptape("import", str(tmp_path / "proj")).code == 0
    found = listed()
    own = {bool(run["parent"]): (run["cost_usd"], run["inclusive"]["cost_usd"]) for run in found["runs"]}
    assert own == {False: (0.00113, 0.01216), True: (0.01103, 0.01103)}
    assert found["sum"]["cost_usd"] == 0.01216
    root = next(run["id"] for run in found["runs"] if not run["parent"])
    assert "with inherited turns and sub-agents $0.01" in looptape("show", root).out


def test_a_row_that_the_client_made_of_an_error_costs_nothing_and_makes_nothing_partial(tmp_path: Path) -> None:
    """cst-13."""
    lines = SessionLines()
    lines.user("a")
    lines.answer("syn-1", "API Error: 529", usage=tokens(0, 0), model="<synthetic>", isApiErrorMessage=True)
    lines.user("b")
    lines.answer("m2", "ok", usage=tokens(10, 10))
    assert looptape("import", str(lines.write(tmp_path / "s.jsonl"))).code == 0
    run = only()
    assert (run["turns"], run["cost_usd"], run["cost_partial"]) == (1, 0.0003, False)


def test_subscription_sources_are_headed_list_price(tmp_path: Path) -> None:
    session(tmp_path, tokens(1000, 100))
    assert "list $" in looptape("runs").out
    assert "$0.0075 (list price)" in looptape("show", "last").out
    assert only()["list_price"] is True


def _reported(path: Path, cost: float) -> None:
    """A trace whose producer says what the call cost."""
    usage = {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100, "operation.cost": cost}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "acme-large-1", **usage}
    path.write_text(json.dumps(otlp_spans.request(otlp_spans.span(1, chat))))
    assert looptape("import", str(path)).code == 0


@pytest.mark.parametrize(
    ("reported", "difference", "said"),
    [(0.0075, 0.0, "the same as ours"), (0.0275, -0.02, "ours is $0.02 less"), (0.0025, 0.005, "ours is $0.0050 more")],
)
def test_what_the_source_says_stands_beside_ours_with_the_difference(
    tmp_path: Path, reported: float, difference: float, said: str
) -> None:
    _reported(tmp_path / "t.json", reported)
    run = only()
    assert (run["cost_usd"], run["reported_cost_usd"]) == (0.0075, reported)
    assert run["cost_difference_usd"] == pytest.approx(difference, abs=1e-12)
    assert said in looptape("show", "last").out
    assert said in looptape("show", "last:1").out
    assert (f"reported ${reported}"[:13] in looptape("runs").out) is (abs(difference) >= 0.005)


def test_the_price_of_the_day_it_came_in_stays_until_it_is_repriced(tmp_path: Path, prices: Path) -> None:
    session(tmp_path, tokens(1000, 100), tokens(2000, 0))
    assert only()["cost_usd"] == 0.0175
    price_files.write(prices, {"acme-large-1": {"input": "10", "output": "25"}})
    assert only()["cost_usd"] == 0.0175
    ran = looptape("sync", "--reprice", "--json")
    told = ran.json["repriced"]
    assert (told["turns"], told["changed_turns"], told["before_usd"], told["after_usd"]) == (2, 2, 0.0175, 0.0325)
    assert told["models"] == [
        {
            "model": "acme-large-1",
            "turns": 2,
            "before_usd": 0.0175,
            "after_usd": 0.0325,
            "now_priced": 0,
            "now_unpriced": 0,
        }
    ]
    run = only()
    assert (run["cost_usd"], run["inclusive"]["cost_usd"]) == (0.0325, 0.0325)
    again = looptape("sync", "--reprice").out
    assert "no cost changed: $0.03" in again


def test_repricing_says_what_lost_or_won_a_price(tmp_path: Path, prices: Path) -> None:
    session(tmp_path, tokens(1000, 100), model="acme-new-9")
    assert only()["cost_usd"] is None
    price_files.write(prices, {"acme-new-9": price_files.ACME})
    ran = looptape("sync", "--reprice")
    assert ran.code == 0
    row = next(line for line in ran.out.splitlines() if line.startswith("acme-new-9"))
    assert row.split()[1:4] == ["1", "unpriced", "$0.0075"]
    assert "1 priced now" in row
    assert (only()["cost_usd"], only()["cost_partial"]) == (0.0075, False)


def test_watching_and_repricing_exclude_each_other() -> None:
    ran = looptape("sync", "--reprice", "--watch")
    assert (ran.code, ran.out) == (2, "")


def test_a_broken_price_file_is_one_clear_line_and_nothing_comes_in_half(tmp_path: Path, prices: Path) -> None:
    prices.write_text('{"models": {"m": {"input": "abc"}}}')
    lines = SessionLines()
    lines.user("a")
    lines.answer("m1", "b", usage=tokens(1, 1))
    ran = looptape("import", str(lines.write(tmp_path / "s.jsonl")))
    assert ran.code == 2
    assert "models.m.input is 'abc'" in ran.err
    assert "Traceback" not in ran.err
    price_files.write(prices)
    assert listed()["total"] == 0


def test_sql_tells_source_match_and_what_was_assumed(tmp_path: Path) -> None:
    session(tmp_path, tokens(100, 1000, 0, 5000))
    ran = looptape("sql", "select price_matched, price_source, price_assumed, price_why from turns", "--format", "json")
    assert "how long they live is not told" in ran.out
    assert "prices.json " in ran.out
    ran = looptape("sql", "select cost_partial, assumed_turns, price_sources from runs", "--format", "json")
    assert '"assumed_turns":1' in ran.out.replace(" ", "")
