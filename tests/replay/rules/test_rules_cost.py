"""L08, T02, T03, T04, T05: what is counted, what is counted twice, what is not there to be counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from looptape.replay.rules import l08_cost, t02_counted_twice, t03_usage_above_leaves, t04_truncated, t05_stream_usage
from looptape.replay.rules.facts import RunFacts, ToolSet
from looptape.tracer.model import Event, Turn, Usage
from rule_runs import SECOND, START, call, found, run_of, turn, unknown, work

DONE = turn(text="That is all.")
NO_USAGE = Usage()


def cached(read: int, fresh: int, **more: Any) -> Turn:
    """A turn of which so many tokens came from the cache."""
    usage = Usage(input=fresh, cache_read=read, cache_write_5m=0, output=50, origin="recorded")
    return turn(call("read_page", {"page": f"{read}-{fresh}"}, f"page {read}-{fresh}"), usage=usage, **more)


# -- L08 -----------------------------------------------------------------------------------------------------


def test_turns_without_usage_make_the_cost_unknown() -> None:
    turns = [*work(17), *[replace(t, usage=NO_USAGE, cost_usd=None) for t in work(3)]]
    (one,) = found(l08_cost, run_of(*turns))
    assert (one.severity, one.first_turn, one.last_turn) == ("warning", 18, 20)
    assert "3 of 20 turns have no usage" in one.message


def test_one_turn_in_twenty_may_lack_it_and_a_stream_is_another_rules() -> None:
    bare = replace(work(1)[0], usage=NO_USAGE, cost_usd=None)
    assert found(l08_cost, run_of(*work(19), bare)) == []
    assert found(l08_cost, run_of(*work(2), replace(bare, stream=True))) == []


def test_in_a_file_of_another_tool_missing_usage_is_unknown() -> None:
    facts = run_of(*[replace(t, usage=NO_USAGE, cost_usd=None) for t in work(5)], source="swe-agent")
    assert found(l08_cost, facts) == []
    assert [u.missing for u in unknown(l08_cost, facts)] == [("turns.usage",)]


def test_a_model_that_no_list_knows_is_named() -> None:
    turns = [replace(t, model="acme-9", cost_usd=None) for t in work(4)]
    (one,) = found(l08_cost, run_of(*turns))
    assert one.message == "4 of 4 turns cannot be priced: no list knows acme-9"
    assert found(l08_cost, run_of(*[replace(t, reported_cost_usd=0.1) for t in turns])) == []
    assert [u.missing for u in unknown(l08_cost, run_of(*turns, source="otlp"))] == [("price of acme-9",)]


def test_usage_without_its_cache_fields_is_a_remark_where_the_provider_has_them() -> None:
    turns = [replace(t, usage=Usage(input=2_000, output=9, origin="recorded")) for t in work(3)]
    (one,) = found(l08_cost, run_of(*turns))
    assert (one.severity, "says nothing of the cache" in one.message) == ("info", True)
    small = [replace(t, usage=Usage(input=200, output=9, origin="recorded")) for t in work(3)]
    assert found(l08_cost, run_of(*small)) == []
    assert found(l08_cost, run_of(*[replace(t, provider="hardcoded") for t in turns])) == []


def test_a_lost_cache_is_told_with_the_tokens_read_again() -> None:
    (one,) = found(l08_cost, run_of(cached(40_000, 2_000), cached(3_000, 41_000), cached(44_000, 500)))
    assert (one.first_turn, one.wasted.tokens) == (2, 37_000)
    assert "95% of the prompt came from it before, 7% now; nothing recorded explains it" in one.message


def test_a_shorter_or_edited_prompt_is_named_as_the_cause() -> None:
    (shorter,) = found(l08_cost, run_of(cached(40_000, 2_000), cached(3_000, 30_000)))
    assert "9,000 tokens shorter, so earlier messages were changed" in shorter.message
    (edited,) = found(l08_cost, run_of(cached(40_000, 2_000), cached(3_000, 41_000, flags=("edited",))))
    assert "earlier messages were changed" in edited.message


SET_A = ToolSet(("a",), 400, 1)
SET_B = ToolSet(("a", "b"), 800, 2)


@pytest.mark.parametrize(
    ("second", "more"),
    [
        (cached(3_000, 41_000, flags=("compaction",)), {}),
        (cached(3_000, 41_000), {"toolsets": {1: SET_A, 2: SET_B}}),
        (cached(3_000, 41_000), {"systems": {1: 11, 2: 12}}),
        (cached(3_000, 41_000, started_at=START + 400 * SECOND), {}),
        (cached(3_000, 41_000, model="claude-haiku-4-5"), {}),
        (cached(3_000, 41_000, agent="helper"), {}),
        (cached(40_000, 60_000), {}),
    ],
    ids=["compaction", "other tools", "other system prompt", "it had expired", "other model", "other agent", "a large new part"],
)  # fmt: skip
def test_a_lower_share_that_is_nobodys_fault_is_no_finding(second: Turn, more: dict[str, Any]) -> None:
    assert found(l08_cost, run_of(cached(40_000, 2_000), second, more=more)) == []


def test_an_hour_was_paid_for_so_twenty_minutes_are_no_excuse() -> None:
    first = cached(40_000, 2_000)
    first = replace(first, usage=replace(first.usage, cache_write_5m=0, cache_write_1h=900))
    (one,) = found(l08_cost, run_of(first, cached(3_000, 41_000, started_at=START + 1_200 * SECOND)))
    assert one.first_turn == 2


def test_without_times_nobody_knows_whether_the_cache_had_expired() -> None:
    facts = run_of(cached(40_000, 2_000), cached(3_000, 41_000))
    facts = replace(facts, turns=tuple(replace(t, started_at=None) for t in facts.turns), recording=None)
    assert [u.missing for u in unknown(l08_cost, facts)] == [("turns.started_at",)]
    assert found(l08_cost, facts) == []


def test_thresholds_are_the_users() -> None:
    turns = [*work(4), replace(work(1)[0], usage=NO_USAGE, cost_usd=None)]
    assert len(found(l08_cost, run_of(*turns))) == 1
    assert found(l08_cost, run_of(*turns, more={"overrides": {"L08": {"missing": 0.3}}})) == []


# -- T02, T03 ------------------------------------------------------------------------------------------------


def wrapper(number: int, scope: str = "acme.instrumentation", inner: str | None = "sdk", **more: Any) -> Event:
    told = {"span_name": "chat", "scope": scope, "inner_scope": inner, "input_total": 1_000, "output": 50, **more}
    return Event("wrapper", turn=number, detail={k: v for k, v in told.items() if v is not None})


def spans(*events: Event, turns: list[Turn] | None = None) -> RunFacts:
    return run_of(*(turns or work(3)), events=events, source="otlp")


def test_calls_that_two_instrumentations_told_of_are_counted_with_what_a_sum_would_add() -> None:
    (one,) = found(t02_counted_twice, spans(wrapper(1), wrapper(2)))
    assert (one.severity, one.first_turn, one.last_turn) == ("info", 1, 2)
    assert (
        "2 model calls told of twice, by acme.instrumentation beside sdk: 2,000 tokens read and 100 written"
        in one.message
    )


def test_one_instrumentation_alone_counts_once() -> None:
    assert found(t02_counted_twice, spans()) == []
    assert found(t02_counted_twice, spans(wrapper(1, scope="sdk"))) == []


def test_an_answer_that_stands_in_two_turns_at_once_is_counted_twice_here() -> None:
    first = turn(text="It is 84.", response_id="msg_1", started_at=START, ended_at=START + 4 * SECOND)
    (one,) = found(t02_counted_twice, run_of(first, replace(first, started_at=START + SECOND)))
    assert (one.severity, one.last_turn) == ("warning", 2)
    later = replace(first, started_at=START + 9 * SECOND, ended_at=START + 9 * SECOND)  # served again out of a cache
    assert found(t02_counted_twice, run_of(first, later)) == []


def test_spans_without_ids_that_look_alike_are_unknown() -> None:
    first = turn(text="It is 84.", started_at=START, ended_at=START + 4 * SECOND)
    assert [u.missing for u in unknown(t02_counted_twice, spans(turns=[first, first]))] == [("turns.response_id",)]
    assert unknown(t02_counted_twice, spans(turns=[first, replace(first, text="It is 85.")])) == []


def test_a_sum_on_the_agents_span_is_told() -> None:
    agent = Event(
        "span_usage", turn=3, detail={"span_name": "agent", "scope": "lib", "input_total": 3_000, "output": 150}
    )
    (one,) = found(t03_usage_above_leaves, spans(agent))
    assert (one.severity, "3,000 tokens read, 150 written" in one.message) == ("info", True)
    assert "counts them twice" in one.message


def test_a_sum_that_stands_on_the_agents_span_alone_leaves_the_turns_unknown() -> None:
    agent = Event("span_usage", turn=3, detail={"span_name": "agent", "input_total": 3_000})
    bare = [replace(t, usage=NO_USAGE) for t in work(3)]
    (one,) = found(t03_usage_above_leaves, spans(agent, turns=bare))
    assert (one.severity, "what each turn took is not known" in one.message) == ("warning", True)


def test_a_wrapper_of_the_same_instrumentation_is_no_leaf_and_one_without_figures_is_harmless() -> None:
    (one,) = found(t03_usage_above_leaves, spans(wrapper(1, scope="sdk")))
    assert "The span chat carries usage" in one.message
    assert found(t03_usage_above_leaves, spans(wrapper(1, scope="sdk", input_total=None, output=None))) == []
    assert found(t03_usage_above_leaves, spans(wrapper(1))) == []


def test_with_parent_spans_missing_sums_above_are_unknown() -> None:
    turns = [replace(t, flags=("parent 00ab not received",)) for t in work(2)]
    assert [u.missing for u in unknown(t03_usage_above_leaves, spans(turns=turns))] == [("parent spans",)]
    assert unknown(t03_usage_above_leaves, spans()) == []


# -- T04, T05 ------------------------------------------------------------------------------------------------


def test_cut_turns_are_named_and_many_are_a_warning() -> None:
    turns = work(4)
    turns[1] = replace(turns[1], flags=("truncated_at_source",))
    (one,) = found(t04_truncated, run_of(*turns, source="otlp"))
    assert (one.severity, one.first_turn, one.message.split(" cut ")[0]) == ("info", 2, "1 of 4 turns")
    (one,) = found(t04_truncated, run_of(*[replace(t, flags=("truncated_at_source",)) for t in turns], source="otlp"))
    assert one.severity == "warning"
    assert found(t04_truncated, run_of(*work(4), source="otlp")) == []


def test_content_left_out_on_purpose_leaves_truncation_unknown() -> None:
    facts = run_of(*[replace(t, flags=("content_not_kept",)) for t in work(2)], source="otlp")
    assert [u.missing for u in unknown(t04_truncated, facts)] == [("messages",)]


def test_streams_without_usage_are_told_with_what_to_ask_for() -> None:
    bare = replace(work(1)[0], stream=True, usage=NO_USAGE, cost_usd=None, provider="openai", api="openai.chat")
    (one,) = found(t05_stream_usage, run_of(*[replace(t, stream=True) for t in work(2)], bare))
    assert (one.severity, one.first_turn) == ("warning", 3)
    assert "1 of 3 streamed answers" in one.message
    assert "include_usage" in one.fix


@pytest.mark.parametrize(
    "made",
    [
        replace(work(1)[0], stream=True),
        replace(work(1)[0], usage=NO_USAGE),
        replace(work(1)[0], stream=True, usage=NO_USAGE, status="interrupted"),
        replace(work(1)[0], stream=True, usage=Usage(input=9, origin="recorded", partial=True)),
    ],
    ids=["with usage", "no stream", "cut", "lower bounds"],
)
def test_other_turns_are_none_of_it(made: Turn) -> None:
    assert found(t05_stream_usage, run_of(made, DONE)) == []


def test_a_file_that_tells_neither_usage_nor_streams_is_unknown() -> None:
    facts = run_of(*[replace(t, usage=NO_USAGE) for t in work(2)], source="otlp")
    assert [u.missing for u in unknown(t05_stream_usage, facts)] == [("turns.stream", "turns.usage")]
