"""One fork run several times: how the outcomes spread, and that they share what they must."""

from __future__ import annotations

import itertools
import sys

import pytest

from crowd import Crowd
from engine_runs import call, calls, says, start
from looptape.replay.engine import Hooks, Policy
from looptape.replay.engine.models.scripted import Scripted
from looptape.replay.engine.outcome import Outcome
from looptape.replay.engine.samples import samples, spread
from looptape.replay.engine.tools.registry import Registry
from looptape.tracer.errors import UsageError

USAGE = {"input_tokens": 100, "output_tokens": 10}  # $0.00045 with claude-sonnet-4-5


class Varied(Scripted):
    """A model whose k-th sample takes k turns and says 84 in all but the first."""

    made = itertools.count(1)

    def __init__(self) -> None:
        super().__init__([])

    def fresh(self, turns_made: int = 0):
        number = next(self.made)
        script = [calls(call("search", f"c{n}", q=str(n)), usage=USAGE) for n in range(number - 1)]
        return Scripted([*script, says("no idea" if number == 1 else "It is  84\n", usage=USAGE)])


@pytest.fixture
def varied():
    Varied.made = itertools.count(1)
    return Varied()


TOOLS = Registry({"search": lambda q: q})


def test_the_spread_tells_reasons_turns_cost_texts_and_passes(engine, varied):
    check = f"{sys.executable} -c 'import sys; sys.exit(\"84\" not in sys.stdin.read())'"
    found = samples(start(), 4, varied, TOOLS, Policy(max_turns=3), check=check, at_once=1)
    assert dict(found.reasons) == {"model": 3, "turns": 1}
    assert found.turns == (1, 2.5, 3)
    assert found.cost_usd == pytest.approx((0.00045, 0.001125, 0.00135))
    assert [(text, len(runs)) for text, runs in found.texts] == [("It is  84", 2), ("", 1), ("no idea", 1)]
    assert (found.passed, found.checked, found.pass_rate) == (2, 4, 0.5)
    runs = {r.id: r for r in engine.runs()}
    assert len(runs) == 4
    assert sorted(r.outcome["verdict"] for r in runs.values()) == ["fail", "fail", "pass", "pass"]
    assert found.as_json()["turns"] == {"least": 1, "median": 2.5, "most": 3}


def test_samples_run_at_the_same_time_up_to_the_given_number(engine):
    crowd = Crowd(2)

    def work(q: str) -> str:
        with crowd.inside():
            return q

    model = Scripted([calls(call("work", q="a")), says("ok")])
    found = samples(start(), 6, model, Registry([work]), at_once=2)
    assert crowd.most == 2
    assert [o.turns for o in found.outcomes] == [2] * 6
    for run in engine.runs():
        assert [c.result for c in run.turns[0].tool_calls] == ["a"], "each result is in its own run"


def test_a_sample_that_breaks_costs_the_others_nothing(engine):
    def observer(turn):
        if next(count) == 1:
            raise ZeroDivisionError("guard")

    count = itertools.count(1)
    found = samples(start(), 3, Scripted([says("ok")]), TOOLS, hooks=Hooks(observer=observer), at_once=1)
    assert found.failures == ("sample 1: ZeroDivisionError: guard",)
    assert len(found.outcomes) == 2


@pytest.mark.parametrize("trouble", [BrokenPipeError("nobody reads"), SystemExit(3)], ids=["told", "check"])
def test_what_breaks_a_worker_itself_ends_the_others_and_is_raised_nobody_waits_for_ever(engine, trouble):
    def breaks(*_):
        raise trouble

    how = {"told": breaks} if isinstance(trouble, Exception) else {"check": breaks}
    hooks = Hooks()
    with pytest.raises(type(trouble)):
        samples(start(), 9, Scripted([says("ok")]), TOOLS, hooks=hooks, at_once=2, **how)
    assert hooks.stop.is_set()


def test_a_run_without_a_price_leaves_no_cost_range(engine):
    found = samples(start(model="nobody-prices-me"), 2, Scripted([says("ok")]), TOOLS)
    assert found.cost_usd is None
    assert found.pass_rate is None


def test_stop_ends_all_of_them(engine):
    hooks = Hooks()

    def stop_it(q: str) -> str:
        hooks.stop.set()
        return q

    model = Scripted(lambda body: calls(call("search", q="a"), usage=USAGE))
    found = samples(start(), 50, model, Registry({"search": stop_it}), hooks=hooks, at_once=2)
    assert len(found.outcomes) <= 2
    assert {o.reason for o in found.outcomes} == {"user"}


def test_fewer_than_one_sample_is_refused(engine):
    with pytest.raises(UsageError, match="0 samples"):
        samples(start(), 0, Scripted([]), TOOLS)


def test_texts_are_one_group_whatever_their_white_space():
    def one(run, text):
        return Outcome(run, "model", "completed", "", 1, 0, 1, 0.1, text)

    found = spread([one("a", "x  y"), one("b", "x y\n"), one("c", "z")])
    assert [(t, ids) for t, ids in found.texts] == [("x  y", ("a", "b")), ("z", ("c",))]
