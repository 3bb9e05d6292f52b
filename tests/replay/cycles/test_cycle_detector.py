"""The detector's laws: a prefix tells what the whole tells up to there, no exception, one finding a stretch, state that resumes."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from loop_turns import Loud, call, findings, labelled, numbered, turn
from looptape.replay.cycles import CycleDetector, TurnSeen
from testdata import require

NAMES = st.sampled_from(
    ["read", "bash", "edit", "think", "web_search", "job_status", "transfer_to_b", "task", "weird-tool"]
)
RESULTS = st.sampled_from(
    ["", "ok", "Error: not found", "a\nb\nc" * 30, "429 too many requests", None, "{}", "x" * 9000]
)
ARGUMENTS = st.sampled_from(
    [
        {},
        {"f": "a"},
        {"command": "pytest -q"},
        {"command": "sed -i s/a/b/ f"},
        "not json",
        None,
        [1, 2],
        {"q": "é\ud800"},
    ]
)
CALLS = st.builds(lambda n, a, r, e: call(n, a, r, error=e), NAMES, ARGUMENTS, RESULTS, st.booleans())
TURNS = st.lists(
    st.builds(
        lambda calls, text, user, agent, compaction: turn(
            *calls, text=text, user=user, agent=agent, compaction=compaction
        ),
        st.lists(CALLS, max_size=3),
        st.sampled_from(["", "I will look. " * 20, "done", "the same words as before, at some length"]),
        st.sampled_from([None, None, None, "go on", "run it 10 times"]),
        st.sampled_from([None, "b"]),
        st.booleans(),
    ),
    max_size=40,
)


@given(TURNS)
@settings(max_examples=examples(60), deadline=None)
def test_alerts_on_a_prefix_are_the_alerts_of_the_whole_run_up_to_there(turns):
    turns = numbered(turns)
    whole = Loud("r")
    told = [whole.feed(t) for t in turns]
    for cut in range(0, len(turns), 7):
        part = Loud("r")
        assert [part.feed(t) for t in turns[:cut]] == told[:cut]


@given(TURNS)
@settings(max_examples=examples(40), deadline=None)
def test_a_finding_lies_in_the_run_and_its_waste_in_its_turns(turns):
    turns = numbered(turns)
    detector = Loud("r")
    for one in turns:
        detector.feed(one)
    for found in detector.findings():
        assert 1 <= found.first_turn <= found.detected_turn <= found.last_turn <= len(turns)
        assert found.wasted.turns <= len(found.turns)
        assert 0 < found.confidence <= 1
        assert found.sentence
        json.dumps(found.as_json())


@pytest.mark.parametrize(
    "odd", [TurnSeen(1, calls=(call("x", object()),)), TurnSeen(-5, text="\ud800" * 500)], ids=["object", "surrogates"]
)
def test_nothing_it_is_fed_makes_it_raise(odd):
    detector = CycleDetector()
    detector.feed(odd)
    detector.feed("no turn at all")
    assert detector.findings() == ()


def test_a_poll_of_1535_turns_is_one_finding_with_what_the_whole_stretch_cost():
    usage = (("input", 5), ("cache_read", 187_000), ("output", 20))
    poll = turn(
        call("process", {"action": "poll", "id": "p1"}, "(no new output)\n\nProcess still running."),
        usage=usage,
        tokens=187_025,
        cost_usd=0.1,
    )
    found = findings([poll] * 1535)
    assert len(found) == 1
    assert (found[0].period, found[0].laps, found[0].first_turn, found[0].last_turn) == (1, 1535, 1, 1535)
    assert {k: found[0].stretch[k] for k in ("cache_read", "input", "output")} == {
        "cache_read": 287_045_000,
        "input": 7_675,
        "output": 30_700,
    }
    assert math.isclose(found[0].stretch["usd"], 153.5)
    assert found[0].wasted.turns == 1534
    assert found[0].wasted.seconds == 5 * 1534


def test_a_stretch_is_told_when_known_and_at_each_step_of_the_ladder_not_at_every_turn():
    detector = Loud("r", level="note")
    told = [f.level for t in numbered([turn(call("read", {"f": "a"}, "same"))] * 30) for f in detector.feed(t)]
    assert told == ["note", "warn", "intervene", "stop"]


def test_two_stretches_of_one_run_are_two_findings():
    work = [turn(call("read", {"f": f"f{n}"}, f"other {n}")) for n in range(20)]
    found = findings([*[turn(call("ls", {"d": "."}, "a"))] * 4, *work, *[turn(call("get", {"id": 1}, "b"))] * 4])
    assert [(f.first_turn, f.last_turn) for f in found] == [(1, 4), (25, 28)]


def test_what_a_call_would_lengthen_is_known_before_it_runs():
    detector = Loud("r")
    for one in numbered([turn(call("read", {"f": "a"}, "same"))] * 4):
        detector.feed(one)
    standing = detector.standing("read", {"f": "a"})
    assert standing is not None
    assert standing.laps == 4
    assert detector.standing("read", {"f": "b"}) is None


def test_saved_state_goes_on_where_it_was():
    first, second = Loud("r"), Loud("r")
    turns = numbered([turn(call("read", {"f": "a"}, "same"), user=None)] * 6)
    for one in turns[:2]:
        first.feed(one)
    second.resume(json.loads(json.dumps(first.state())))
    told = [f for one in turns[2:] for f in second.feed(one)]
    assert told[0].detected_turn == 3
    assert told[0].laps == 3


def test_state_that_cannot_be_read_is_left():
    detector = CycleDetector()
    detector.resume({"rounds": [{"number": "x"}]})
    detector.resume({"rounds": 7})
    assert detector.findings() == ()


def test_its_own_notices_are_not_counted():
    looped = turn(call("read", {"f": "a"}, "same"), injected=True)
    assert not findings([looped] * 9)


def test_memory_stays_bounded_over_a_long_run():
    detector = CycleDetector()
    for number in range(1, 6001):
        detector.feed(TurnSeen(number, calls=(call("read", {"f": f"f{number}"}, f"text {number}\nmore {number}"),)))
    agent = detector._agents[""]
    assert len(agent.stretches) <= 64
    assert all(len(getattr(agent.rules[0], name)) <= 2000 for name in ("streaks", "last"))


def test_labelled_runs_reach_the_bars():
    """Precision .97, recall .95, median delay 3, waste avoided .70; a run counts as found when an alert lies in it."""
    hits = misses = false = saved = waste = 0
    delays = []
    for name, turns, episodes in labelled(require("loops")):
        detector = Loud(name)
        alerts = [t.number for t in turns for _ in detector.feed(t)]
        inside = [[a for a in alerts if first <= a <= last] for _, first, last in episodes]
        hits += any(inside)
        misses += bool(episodes) and not any(inside)
        false += bool(alerts) and not episodes
        for (_, first, last), at in zip(episodes, inside, strict=True):
            waste += last - first + 1
            if at:
                delays.append(at[0] - first + 1)
                saved += last - at[0]
    assert hits / (hits + false) >= 0.97
    assert hits / (hits + misses) >= 0.95
    assert sorted(delays)[len(delays) // 2] <= 3
    assert saved / waste >= 0.70
