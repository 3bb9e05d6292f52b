"""A fork as it is ordered: what will run live, what it may cost, what came of it beside its parent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import talking
from looptape.replay.engine.forks import beside, costs, order, telling
from looptape.replay.engine.forks.forking import carry_out, plan
from looptape.replay.engine.forks.order import Order
from looptape.replay.engine.policy import Hooks
from looptape.replay.engine.toolbox import Definition
from looptape.replay.fork.edits import edit
from looptape.tracer import process
from looptape.tracer.errors import UsageError
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder

SEARCH = Definition("search", side_effect="mutate")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    former = process.replace(Recorder(Journal(tmp_path)))
    yield tmp_path
    process.replace(former)


def ready(home: Path, wanted: Order, number: int = 2, **loop: Any) -> order.Ready:
    run = talking.record(home, talking.ANTHROPIC, talking.loop(**loop))
    with talking.stored(home) as store:
        return order.ready(wanted, plan(store, run, number))


def played(home: Path, wanted: Order, number: int = 2) -> beside.ForkVerdict:
    fork = ready(home, wanted, number)
    came: list[beside.Said] = []
    tools = order.tools(fork, ())
    with talking.stored(home) as store:
        model, runs = order.begun(store, fork)
    hooks = Hooks(observer=lambda done: came.append(beside.of_done(done)))
    spread = carry_out(fork.start, runs, model, tools.box, wanted.policy(), hooks=hooks)
    return beside.judge(fork, tools.live, came, spread.outcomes[0])


def test_nothing_is_live_unless_it_is_asked_for(home: Path) -> None:
    fork = ready(home, Order())
    facts = telling.tool_facts(fork.plan, fork.order, [SEARCH])
    assert telling.will_run(fork, facts).words() == (
        "Will run live: nothing. Will not run: the model (recorded), search (recorded)."
    )
    assert costs.estimate(fork) is None


def test_what_is_live_is_named_with_the_server_it_goes_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = ready(home, Order(model="live", named={"search": "live"}))
    facts = telling.tool_facts(fork.plan, fork.order, [SEARCH])
    words = telling.will_run(fork, facts).words()
    assert words == "Will run live: the model claude-sonnet-4-5 (api.anthropic.com), search. Will not run: nothing."
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/x")
    assert "(127.0.0.1:9)" in telling.will_run(fork, facts).words()
    fork = ready(home, Order(model="openai:http://localhost:8000/v1", named={"search": "error:no"}))
    words = telling.will_run(fork, telling.tool_facts(fork.plan, fork.order)).words()
    assert "(localhost:8000)" in words
    assert "Will not run: search (stub error)." in words


def test_the_cost_grows_with_the_context_and_stops_at_the_limit(home: Path) -> None:
    one = costs.estimate(ready(home, Order(model="live", max_turns=1)))
    ten = costs.estimate(ready(home, Order(model="live", max_turns=10)))
    assert one is not None
    assert ten is not None
    assert one.turn == ten.turn == pytest.approx((200 * 3 + 20 * 15) / 1e6)
    assert one.most == pytest.approx(one.turn)
    assert ten.most == pytest.approx((sum(200 + 100 * i for i in range(10)) * 3 + 10 * 20 * 15) / 1e6)
    capped = costs.estimate(ready(home, Order(model="live", max_turns=10, max_cost_usd=0.002)))
    assert capped is not None
    assert capped.words() == "about $0.0009 a turn, stops at 10 turns or $0.0020; at worst about $0.0029"


def test_a_model_without_a_price_is_said_to_have_none(home: Path) -> None:
    found = costs.estimate(ready(home, Order(model="openai:http://localhost:8000/v1", edits=(edit("model=qwen3"),))))
    assert found is not None
    assert found.turn is None
    assert "no price known" in found.words()


def test_a_fork_without_changes_is_the_same_to_the_end(home: Path) -> None:
    verdict = played(home, Order())
    assert verdict.as_json() == {
        "recorded": {"model": 3, "tools": 2},
        "served": {"model": 3, "tools": 2},
        "unconsumed": {"model": 0, "tools": 0},
        "live": {"model": 0, "tools": 0},
        "stubbed": 0,
        "diverged": None,
    }
    assert verdict.lines()[0] == "the same as its parent to the end"


def test_a_stub_is_where_it_parts_and_the_miss_is_told(home: Path) -> None:
    verdict = played(home, Order(named={"search": "error:@@gone"}))
    assert verdict.outcome.reason == "miss"
    assert verdict.stubbed == 1
    assert verdict.served.model == 1
    assert verdict.unconsumed.as_json() == {"model": 2, "tools": 0}
    assert verdict.diverged == "turn 2 gets other results"
    assert verdict.live.model == 0


def test_an_edited_request_is_where_it_parts_before_any_turn(home: Path) -> None:
    wanted = Order(edits=(edit("system=Be brief."),))
    assert "ends the fork there" in telling.hindered(ready(home, wanted))
    verdict = played(home, wanted)
    assert verdict.served.model == 0
    assert verdict.diverged is not None
    assert "system was 'You look things up.'" in verdict.diverged


def test_an_order_that_cannot_be_says_why(home: Path) -> None:
    with pytest.raises(UsageError, match="no source has a live tool search"):
        order.tools(ready(home, Order(named={"search": "live"})), ())
    with pytest.raises(UsageError, match="asks no server"):
        ready(home, Order(base_url="http://localhost"))
