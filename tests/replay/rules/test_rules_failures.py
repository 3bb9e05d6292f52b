"""L11, L12, L13, L14: limits, retries, rate limits, and runs that begin again from nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from looptape.replay.rules import l11_one_limit, l12_all_alike, l13_rate_limits, l14_memory_only
from looptape.replay.rules.facts import RunFacts
from looptape.replay.rules.group import FirstCall, Group, RunLight
from looptape.replay.rules.rule import Finding, Unknown
from looptape.tracer.model import Attempt, Parent, Run, Turn
from rule_runs import SECOND, START, call, found, run_of, turn, unknown, work

DONE = turn(text="That is all.")


# -- L11 -----------------------------------------------------------------------------------------------------


def runs(task: str, turns: list[int], cap: int | None = 50) -> list[RunLight]:
    """Runs of a task that took so many turns; those that reach the cap end by it."""
    limits = {} if cap is None else {"turns": cap}
    return [
        RunLight(Run(f"{task}-{n}", task=task, turns=t, limits=limits, status="limit" if t == cap else "completed"))
        for n, t in enumerate(turns)
    ]


def said(*lights: list[RunLight]) -> list[Finding | Unknown]:
    return list(l11_one_limit.check_group(Group(tuple(r for group in lights for r in group))))


LONG, SHORT, MIDDLE = [50, 50, 40, 38, 45, 50, 41], [3, 4, 5, 4, 3, 6, 5], [20, 22, 19, 25, 30, 28, 21]


def test_one_cap_for_tasks_that_need_very_different_numbers_is_told_with_better_ones() -> None:
    (one,) = said(runs("refactor", LONG), runs("lookup", SHORT), runs("report", MIDDLE))
    assert isinstance(one, Finding)
    assert (one.severity, one.run) == ("warning", "refactor-5")
    assert "refactor runs into it in 3 of 7 runs, lookup needs 6 in 95 of 100" in one.message
    assert "lookup: 9" in one.fix


def test_a_few_runs_are_a_remark_and_fewer_are_nothing() -> None:
    (one,) = said(runs("refactor", LONG[:4]), runs("lookup", SHORT[:4]))
    assert isinstance(one, Finding)
    assert one.severity == "info"
    assert said(runs("refactor", LONG[:3]), runs("lookup", SHORT[:3])) == []


@pytest.mark.parametrize(
    "groups",
    [
        (runs("refactor", LONG), runs("lookup", SHORT, cap=8), runs("report", MIDDLE)),
        (runs("refactor", MIDDLE), runs("lookup", SHORT), runs("report", MIDDLE)),
        (runs("refactor", LONG), runs("lookup", MIDDLE), runs("report", MIDDLE)),
    ],
    ids=["own limits", "nobody at the cap", "nobody far below"],
)
def test_limits_that_fit_are_no_finding(groups: tuple[list[RunLight], ...]) -> None:
    assert said(*groups) == []


def test_without_recorded_limits_it_is_unknown() -> None:
    (one,) = said(runs("refactor", LONG, cap=None), runs("lookup", SHORT, cap=None), runs("report", MIDDLE, cap=None))
    assert isinstance(one, Unknown)
    assert one.missing == ("run.limits.turns",)


# -- L12 -----------------------------------------------------------------------------------------------------

GONE = "404: no such page"


def fails(text: str = GONE, **arguments: Any) -> Turn:
    return turn(call("fetch", arguments or {"url": "https://example.com/a"}, text, error=True))


def test_a_failure_for_good_that_is_tried_again_twice_is_an_error() -> None:
    (one,) = found(
        l12_all_alike, run_of(fails(), turn(call("read_file", {"path": "a"}, "text")), fails(), fails(), DONE)
    )
    assert (one.severity, one.first_turn, one.last_turn, one.wasted.turns) == ("error", 1, 4, 2)
    assert "made again 2 times, unchanged (turns 1, 3 and 4)" in one.message


@pytest.mark.parametrize(
    "turns",
    [
        [fails(), fails()],
        [fails(url="a"), fails(url="b"), fails(url="c"), fails(url="d")],
        [fails(), turn(call("create_page", {"url": "a"}, "created")), fails(), turn(call("create_page", {"url": "b"}, "created")), fails()],
        [fails(), replace(fails(), user_turn=True), replace(fails(), user_turn=True)],
        [fails("timed out after 30 s")] * 4,
        [fails("409 conflict: already exists")] * 4,
        [fails("2 tests failed: expected 3, got 4")] * 4,
    ],
    ids=["once more", "enumeration", "something was changed between", "a person asked again", "it may pass", "done before",
         "the work itself"],
)  # fmt: skip
def test_what_may_end_otherwise_is_no_stubbornness(turns: list[Turn]) -> None:
    assert found(l12_all_alike, run_of(*turns, DONE)) == []


def attempt(status: int | None, at: float, error: str | None = None, wait: float | None = None, **more: Any) -> Attempt:
    """An attempt that takes a second, so many seconds after the beginning."""
    begin = START + int(at * SECOND)
    waited = None if wait is None else wait * 1000
    return Attempt(status, error, wait_ms=waited, started_at=begin, ended_at=begin + SECOND, **more)


def refused(status: int, *attempts: Attempt, **more: Any) -> Turn:
    return turn(
        status="error",
        error=f"Error code: {status}",
        attempts=attempts or (attempt(status, 0),),
        stop_reason=None,
        **more,
    )


def test_a_request_that_was_refused_for_good_and_sent_again_is_an_error() -> None:
    (one,) = found(l12_all_alike, run_of(refused(400), refused(400), refused(400), status="failed"))
    assert (one.severity, "sent again 2 times" in one.message) == ("error", True)
    assert found(l12_all_alike, run_of(refused(400), status="failed")) == []


def test_a_passing_failure_that_ends_the_run_at_once_is_told() -> None:
    (one,) = found(l12_all_alike, run_of(*work(4), refused(503), status="failed", reason="503"))
    assert (one.severity, one.first_turn, one.wasted.turns) == ("warning", 5, 5)
    retried = refused(503, attempt(503, 0), attempt(503, 2, wait=1), attempt(503, 6, wait=3))
    assert found(l12_all_alike, run_of(*work(4), retried, status="failed")) == []
    assert found(l12_all_alike, run_of(*work(4), refused(503), refused(503), status="failed")) == []


def test_a_tool_that_timed_out_once_and_took_the_run_with_it_is_told() -> None:
    facts = run_of(*work(2), fails("timed out after 30 s"), status="failed", reason="TimeoutError")
    assert [f.first_turn for f in found(l12_all_alike, facts)] == [3]


def test_retries_at_one_gap_are_told_and_growing_ones_are_fine() -> None:
    def tried(*waits: float) -> RunFacts:
        fallen = [attempt(503, 0), *(attempt(503, 10 * n, wait=w) for n, w in enumerate(waits, 1))]
        return run_of(turn(text="Done.", attempts=(*fallen[:-1], replace(fallen[-1], status=200))))

    (one,) = found(l12_all_alike, tried(1.0, 1.0, 1.0))
    assert "tried again 3 times without growing gaps (1.0 s, 1.0 s, 1.0 s)" in one.message
    assert found(l12_all_alike, tried(1.0, 2.1, 3.9)) == []
    assert found(l12_all_alike, tried(1.0, 1.0)) == []


def test_calls_of_which_nothing_came_back_leave_failures_unknown() -> None:
    facts = run_of(turn(call("fetch", {}, None, state="done", is_error=None)), DONE, source="otlp")
    assert [u.missing for u in unknown(l12_all_alike, facts)] == [("tool_calls.result", "tool_calls.is_error")]


# -- L13 -----------------------------------------------------------------------------------------------------


def limited(at: float, after: str | None = None, name: str = "retry-after") -> Attempt:
    return attempt(429, at, "rate limited", headers={} if after is None else {name: after})


def answered(*attempts: Attempt, end: float = 100) -> Turn:
    return turn(text="Done.", attempts=(*attempts, attempt(200, end)))


@pytest.mark.parametrize(
    ("refusal", "wanted"),
    [
        (limited(0, "11"), "11 s"),
        (limited(0, "11000", "Retry-After-Ms"), "11 s"),
        (limited(0, format_datetime(datetime.fromtimestamp(START // SECOND + 12, UTC), usegmt=True)), "11 s"),
    ],
    ids=["seconds", "milliseconds", "a date"],
)
def test_a_request_sooner_than_allowed_is_an_error(refusal: Attempt, wanted: str) -> None:
    (one,) = found(l13_rate_limits, run_of(answered(refusal, end=3)))
    assert (one.severity, one.message) == ("error", f"Told to wait {wanted}, the loop tried again after 2.0 s (turn 1)")
    assert found(l13_rate_limits, run_of(answered(refusal, end=12))) == []


def test_a_program_that_asks_again_in_its_next_turn_is_seen_too() -> None:
    first = refused(429, limited(0, "30"))
    (one,) = found(l13_rate_limits, run_of(first, answered(end=5)))
    assert (one.severity, one.first_turn) == ("error", 1)


def test_gaps_that_do_not_grow_are_told_and_doubled_ones_are_fine() -> None:
    (one,) = found(l13_rate_limits, run_of(answered(limited(0), limited(2), limited(4), limited(6), end=8)))
    assert (one.severity, "Told 4 times to slow down" in one.message) == ("warning", True)
    assert found(l13_rate_limits, run_of(answered(limited(0), limited(2), limited(5), limited(10), end=19))) == []
    assert found(l13_rate_limits, run_of(answered(limited(0), end=2))) == []


def test_waits_that_the_server_named_and_that_were_kept_need_not_grow() -> None:
    assert found(l13_rate_limits, run_of(answered(limited(0, "1"), limited(2, "1"), limited(4, "1"), end=6))) == []


def test_workers_that_come_back_at_one_moment_are_a_burst() -> None:
    def workers(*ends: float) -> RunFacts:
        return run_of(*[replace(answered(limited(0), end=e), agent=f"w{n}") for n, e in enumerate(ends)])

    (one,) = found(l13_rate_limits, workers(3.0, 3.01, 3.02))
    assert "3 parallel model calls tried again within 50 ms of each other" in one.message
    assert found(l13_rate_limits, workers(3.0, 3.4, 4.1)) == []


def slow_down(text: str, at: float, error: bool = True) -> Turn:
    begin = START + int(at * SECOND)
    return turn(call("search", {"q": str(at)}, text, error=error, started_at=begin, ended_at=begin + SECOND))


def test_a_tool_that_names_its_wait_is_a_rate_limit_as_well() -> None:
    told = "429 too many requests, retry after 20 seconds"
    (one,) = found(l13_rate_limits, run_of(slow_down(told, 0), slow_down("3 hits", 4, error=False), DONE))
    assert (one.severity, "Told to wait 20 s, the loop tried again after 3.0 s" in one.message) == ("error", True)
    assert found(l13_rate_limits, run_of(slow_down(told, 0), slow_down("3 hits", 22, error=False), DONE)) == []


def test_words_about_rate_limits_in_a_result_that_worked_are_no_refusal() -> None:
    page = "How to handle 429 too many requests: retry after 20 seconds"
    assert found(l13_rate_limits, run_of(slow_down(page, 0, error=False), slow_down(page, 1, error=False), DONE)) == []


def test_without_times_or_attempts_it_is_unknown() -> None:
    untimed = [replace(limited(0), started_at=None, ended_at=None), Attempt(200)]
    facts = run_of(turn(text="Done.", attempts=tuple(untimed)))
    assert [u.missing for u in unknown(l13_rate_limits, facts)] == [("attempts.started_at", "tool_calls.started_at")]
    assert [u.missing for u in unknown(l13_rate_limits, run_of(*work(2), source="claude-code"))] == [("attempts",)]
    assert unknown(l13_rate_limits, run_of(*work(2))) == []


# -- L14 -----------------------------------------------------------------------------------------------------

FIRST = tuple(FirstCall(n, "read_page", f"read_page\x1f{n}", "read") for n in range(1, 6))


def later(first: tuple[FirstCall, ...] = FIRST, after: float = 600, **more: Any) -> RunLight:
    fields: dict[str, Any] = {"id": "feedbeeffeedbeef", "name": "job", "started_at": START + int(after * SECOND)}
    return RunLight(Run(**{**fields, **more}), first)


def broken_off(*others: RunLight, own: tuple[FirstCall, ...] = FIRST, **run: Any) -> RunFacts:
    told = {
        "status": "interrupted",
        "reason": "the process ended without a word (killed?)",
        "ended_at": START + 90 * SECOND,
        **run,
    }
    facts = run_of(*work(5), **told)
    return replace(facts, group=Group((RunLight(facts.run, own), *others)))


def test_a_run_begun_again_from_nothing_after_it_broke_off_is_told() -> None:
    (one,) = found(l14_memory_only, broken_off(later()))
    assert (one.severity, one.wasted.turns) == ("warning", 5)
    assert "run feedbeeffeedbeef made its first 5 calls again from the beginning" in one.message


def test_it_is_an_error_when_something_was_changed_twice() -> None:
    booked = (*FIRST[:3], FirstCall(4, "book_flight", "book_flight\x1fA", "mutate"))
    (one,) = found(l14_memory_only, broken_off(later(booked), own=booked))
    assert (one.severity, "book_flight changes something each time" in one.message) == ("error", True)


@pytest.mark.parametrize(
    "facts",
    [
        broken_off(),
        broken_off(later(parent=Parent("0123456789abcdef", kind="resume"))),
        broken_off(later(tuple(FirstCall(n, "read_page", f"read_page\x1f{n + 40}", "read") for n in range(5)))),
        broken_off(later(name="another job")),
        broken_off(later(after=-600)),
        broken_off(later(after=200_000)),
        broken_off(later(source="replay")),
        broken_off(later(), status="completed", reason="end_turn"),
        broken_off(later(), reason="KeyboardInterrupt"),
    ],
    ids=["never again", "resumed", "other calls", "another job", "before it", "days later", "a replay", "it had ended", "by a person"],
)  # fmt: skip
def test_other_runs_are_no_repetition(facts: RunFacts) -> None:
    assert found(l14_memory_only, facts) == []


def test_of_a_long_run_nothing_tells_whether_it_could_go_on() -> None:
    assert [u.missing for u in unknown(l14_memory_only, run_of(*work(31)))] == [("checkpoint events",)]
    assert unknown(l14_memory_only, run_of(*work(31), source="claude-code")) == []
    assert unknown(l14_memory_only, run_of(*work(5))) == []
