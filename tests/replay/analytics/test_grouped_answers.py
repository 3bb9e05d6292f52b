"""Cost, turns, time and errors by model, day, task and tool: the same figures as plain Python finds in the tape."""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from composed import START, Composed, Step, healthy
from looptape.replay import analytics
from looptape.replay.analytics.zone import offsets
from looptape.tracer.errors import UsageError
from looptape.tracer.store import Filter, Store, memory_store

DAY_US = 86400 * 1_000_000
PRICES = {  # dollars a million tokens: input, cache read, cache write, output
    "claude-sonnet-4-5": ("3", "0.3", "3.75", "15"),
    "claude-haiku-4-5": ("1", "0.1", "1.25", "5"),
}
CHILD = "c" * 16


def random_runs(seed: int = 7, count: int = 24) -> list[Composed]:
    """Runs of four tasks over ten days: some unpriced, some with errors, retries and streams."""
    pick = random.Random(seed)
    runs = []
    for number in range(count):
        steps = [random_step(pick, number, i) for i in range(pick.randint(2, 6))]
        steps = [replace(s, tool=None) if i == len(steps) - 1 or s.status != "ok" else s for i, s in enumerate(steps)]
        runs.append(
            Composed(
                f"{number + 1:016x}", steps, name=f"job{number % 4}", task=pick.choice([None, "refund", "search"]),
                start=START + pick.randint(0, 10 * DAY_US), outcome=pick.choice([None, "pass", "pass", "fail"]),
                more={"tags": {"customer": str(number % 3), "team": "a"}, "project": f"/p{number % 2}"},
            )
        )  # fmt: skip
    parent = {"run": runs[0].run, "turn": 1, "call": "t1", "kind": "sub-agent"}
    runs.append(Composed(CHILD, [random_step(pick, 99, i) for i in range(3)], name="research", parent=parent))
    return runs


def random_step(pick: random.Random, run: int, number: int) -> Step:
    status = pick.choice(["ok"] * 8 + ["error"])
    return Step(
        input=None if status == "error" else pick.randint(10, 5000), cache_read=pick.choice([None, 0, 4000]),
        cache_write=pick.choice([None, 300]), output=None if status == "error" else pick.randint(1, 900),
        model=pick.choice([*PRICES, *PRICES, "unheard-of-1"]), status=status, tool=pick.choice(["read", "bash", "grep"]),
        arguments={"q": f"{run}.{number}"}, is_error=pick.random() < 0.2, seconds=pick.randint(1, 40) / 10,
        first_chunk=pick.choice([None, 0.5, 0.7]), tool_seconds=pick.choice([None, 0.2, 1.5]), tools=("read", "bash", "grep", "idle"),
        attempts=({"status": 429, "wait_ms": 0}, {"status": 200, "wait_ms": 900}) if pick.random() < 0.2 else ({"status": 200, "wait_ms": 0},),
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs() -> list[Composed]:
    return random_runs()


@pytest.fixture(scope="module")
def store(runs: list[Composed]) -> Iterator[Store]:
    with memory_store() as made:
        made.ingest(record for run in runs for record in run.records())
        yield made


def turns(runs: list[Composed]) -> list[dict[str, Any]]:
    """Every turn as the tape's records tell it."""
    found = []
    for run in runs:
        starts: dict[int, Any] = {}
        for record in run.records():
            if record["kind"] == "turn_start":
                starts[record["turn"]] = record
            if record["kind"] == "turn_end":
                begun = starts[record["turn"]]
                found.append(
                    {**begun, **record, "at": begun["at"], "end": record["at"], "composed": run, "run": run.run}
                )
    return found


def usd(turn: dict[str, Any]) -> Decimal | None:
    usage = turn["usage"]
    if turn["model"] not in PRICES or (usage["input"] is None and usage["output"] is None):
        return None
    counts = (usage["input"], usage["cache_read"], usage["cache_write_5m"], usage["output"])
    return sum(
        (Decimal(p) * (n or 0) / 1_000_000 for p, n in zip(PRICES[turn["model"]], counts, strict=True)), Decimal(0)
    )


def billed(turn: dict[str, Any]) -> bool:
    return turn["usage"]["input"] is not None or turn["status"] == "ok"


def quantile(values: list[float], share: float) -> float | None:
    """Linear between the two nearest."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def head(run: Composed, runs: list[Composed]) -> Composed:
    return next((r for r in runs if run.parent and r.run == run.parent["run"]), run)


KEYS = {
    "model": lambda t, runs: t["model"],
    "run": lambda t, runs: t["run"],
    "task": lambda t, runs: head(t["composed"], runs).task or head(t["composed"], runs).name,
    "outcome": lambda t, runs: head(t["composed"], runs).outcome,
    "project": lambda t, runs: head(t["composed"], runs).more.get("project", "/work"),
    "tag.customer": lambda t, runs: head(t["composed"], runs).more.get("tags", {}).get("customer"),
    "day": lambda t, runs: datetime.fromtimestamp(t["at"] / 1e6).date(),
}


def check(rows: list[dict[str, Any]], name: str, expected: dict[Any, list[dict[str, Any]]]) -> None:
    assert {r[name] for r in rows} == set(expected)
    for row in rows:
        mine = expected[row[name]]
        known = [c for t in mine if (c := usd(t)) is not None]
        assert row["turns"] == len(mine)
        assert row["cost_usd"] == (sum(known) if known else None)
        assert row["unpriced_turns"] == sum(billed(t) and usd(t) is None for t in mine)
        if "runs" not in row:
            continue
        assert row["runs"] == len({t["run"] for t in mine})
        for bucket in ("input", "cache_read", "cache_write_5m", "output"):
            counts = [t["usage"][bucket] for t in mine if t["usage"][bucket] is not None]
            assert row[bucket] == (sum(counts) if counts else None), bucket
        read = sum(t["usage"][b] or 0 for t in mine for b in ("input", "cache_read", "cache_write_5m"))
        cached = sum(t["usage"]["cache_read"] or 0 for t in mine)
        assert row["cache_hit_rate"] == pytest.approx(cached / read) if row["cache_read"] is not None else True
        spans = [(t["end"] - t["at"]) / 1000 for t in mine]
        firsts = [(t["first_chunk_at"] - t["at"]) / 1000 for t in mine if t["stream"]]
        for share in (50, 95):
            assert row[f"generate_ms_p{share}"] == pytest.approx(quantile(spans, share / 100))
            assert row[f"first_token_ms_p{share}"] == (pytest.approx(quantile(firsts, share / 100)) if firsts else None)
        assert row["error_rate"] == pytest.approx(sum(t["status"] == "error" for t in mine) / len(mine))
        assert row["retry_rate"] == pytest.approx(sum(len(t["attempts"]) > 1 for t in mine) / len(mine))


@pytest.mark.parametrize("name", KEYS)
def test_groups_say_what_the_tape_says(store: Store, runs: list[Composed], name: str) -> None:
    expected = defaultdict(list)
    for turn in turns(runs):
        expected[KEYS[name](turn, runs)].append(turn)
    check(list(analytics.stats(store, (name,))), name, expected)


def test_cost_by_model_and_day_says_what_the_tape_says(store: Store, runs: list[Composed]) -> None:
    expected = defaultdict(Decimal)
    for turn in turns(runs):
        expected[turn["model"], datetime.fromtimestamp(turn["at"] / 1e6).date()] += usd(turn) or 0
    found = {(r["model"], r["day"]): r["cost_usd"] or 0 for r in analytics.costs(store)}
    assert found == expected


def test_several_tags_stand_in_several_rows_and_it_is_said(store: Store, runs: list[Composed]) -> None:
    table = analytics.stats(store, ("tag",))
    assert {r["tag"] for r in table} == {"customer=0", "customer=1", "customer=2", "team=a"}
    assert any("several tags" in n for n in table.notes)


def test_unpriced_turns_are_counted_and_said(store: Store) -> None:
    assert any("cannot be priced" in n for n in analytics.stats(store, ("model",)).notes)


@pytest.mark.parametrize(
    "given",
    [Filter(task="refund"), Filter(model="claude-haiku*"), Filter(tags=(("customer", "0"),)), Filter(error=True), Filter(ids=("1".zfill(16),))],
    ids=["task", "model", "tag", "error", "ids"],
)  # fmt: skip
def test_a_filter_picks_runs_with_their_sub_agents(store: Store, runs: list[Composed], given: Filter) -> None:
    picked = {r.id for r in store.runs(replace(given, limit=0))}
    family = [r for r in runs if r.run in picked or head(r, runs).run in picked]
    expected = defaultdict(list)
    for turn in turns(family):
        expected[turn["model"]].append(turn)
    check(list(analytics.stats(store, ("model",), given)), "model", expected)


def test_since_counts_the_turns_that_began_since_then(store: Store, runs: list[Composed]) -> None:
    middle = START + 5 * DAY_US
    expected = defaultdict(list)
    for turn in turns(runs):
        if turn["at"] >= middle:
            expected[turn["model"]].append(turn)
    check(list(analytics.stats(store, ("model",), Filter(since=middle))), "model", expected)


def test_tasks_say_what_a_run_and_a_success_cost(store: Store, runs: list[Composed]) -> None:
    jobs = defaultdict(list)
    for run in runs:
        if run.parent is None:
            mine = turns([run, *(r for r in runs if r.parent and r.parent["run"] == run.run)])
            costs = [c for t in mine if (c := usd(t)) is not None]
            whole = not any(billed(t) and usd(t) is None for t in mine)
            jobs[run.task or run.name].append((len(run.steps), sum(costs) if costs else None, whole, run.outcome))
    rows = {r["task"]: r for r in analytics.tasks(store)}
    assert set(rows) == set(jobs)
    for task, mine in jobs.items():
        row, good = rows[task], [j for j in mine if j[3] == "pass"]
        assert (row["runs"], row["successes"]) == (len(mine), len(good))
        for prefix, of in (("", mine), ("success_", good)):
            priced = [float(j[1]) for j in of if j[2] and j[1] is not None]
            for share in (50, 95):
                assert row[f"{prefix}turns_p{share}"] == pytest.approx(quantile([j[0] for j in of], share / 100))
                expected = quantile(priced, share / 100)
                assert row[f"{prefix}cost_p{share}"] == (None if expected is None else pytest.approx(expected))
        known = [j[1] for j in mine if j[1] is not None]
        assert row["cost_usd"] == (sum(known) if known else None)
        if good and known:
            assert row["cost_per_success"] == pytest.approx(float(sum(known)) / len(good))


def test_the_history_of_a_task_is_in_the_order_of_time(store: Store, runs: list[Composed]) -> None:
    mine = sorted((r for r in runs if r.task == "refund"), key=lambda r: r.start)
    table = analytics.history(store, "refund")
    assert table.column("run") == [r.run for r in mine]
    assert table.column("turns") == [len(r.steps) for r in mine]
    middle = statistics.median(len(r.steps) for r in mine)
    assert f"median of {len(mine)}: {middle:g} turns" in table.notes[0]


def test_tools_say_calls_errors_and_times(store: Store, runs: list[Composed]) -> None:
    calls = defaultdict(list)
    for run in runs:
        for step in run.steps:
            if step.tool and step.status == "ok":
                calls[step.tool].append(step)
    rows = {r["tool"]: r for r in analytics.tools(store)}
    assert {t: r["calls"] for t, r in rows.items()} == {t: len(c) for t, c in calls.items()}
    assert sum(r["errors"] for r in rows.values()) == sum(
        s.is_error for r in runs for i, s in enumerate(r.steps) if s.tool and s.status == "ok" and (i + 1 < len(r.steps) or s.tool_seconds)
    )  # fmt: skip


def test_tools_that_are_offered_and_never_called(store: Store, runs: list[Composed]) -> None:
    (row,) = analytics.never_called(store)
    assert (row["tool"], row["turns"], row["runs"]) == ("idle", sum(len(r.steps) for r in runs), len(runs))


def test_a_tool_taken_for_another_is_a_pair() -> None:
    bad = Step(tool="read_file", arguments={"path": "src"}, is_error=True, result="is a folder")
    good = Step(tool="list_dir", arguments={"folder": "src"})
    other = Step(tool="list_dir", arguments={"folder": "elsewhere"})
    with memory_store() as store:
        store.ingest(Composed("a" * 16, [bad, good, Step(tool=None)]).records())
        store.ingest(Composed("b" * 16, [bad, other, replace(bad, is_error=False, result="text"), good]).records())
        (row,) = analytics.confused(store)
    assert (row["tool"], row["then_called"], row["times"], row["example"]) == (
        "read_file",
        "list_dir",
        1,
        f"{'a' * 16}:1",
    )


def test_cycles_are_looked_for_once_and_kept() -> None:
    looping = [Step(arguments={"path": "a"}, result="same", input=1000, output=100)] * 6
    with memory_store() as store:
        store.ingest(Composed("a" * 16, [*looping, Step(tool=None)]).records())
        store.ingest(Composed("b" * 16, [Step(), Step(), Step(), Step(tool=None)]).records())
        assert analytics.wasted(store).rows == ()
        assert analytics.keep_cycles(store) == 0
        assert analytics.keep_cycles(store, seconds=0) == 0  # nothing is left to look at
        (row,) = analytics.wasted(store)
        assert store.runs(Filter(sort="wasted"))[0].id == "a" * 16
        store.ingest(Composed("c" * 16, [*looping, Step(tool=None)]).records())
        assert analytics.keep_cycles(store, seconds=-1) == 1
    assert (row["run"], row["cycles"], row["turns"]) == ("a" * 16, 1, 5)
    assert row["usd"] == pytest.approx(5 * (1000 * 3 + 100 * 15) / 1e6)


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1e6)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def choose(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield choose
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("Europe/Berlin", {"2026-03-28T22:59:59+00:00": "2026-03-28", "2026-03-28T23:00:00+00:00": "2026-03-29",
                           "2026-03-29T21:59:59+00:00": "2026-03-29", "2026-03-29T22:00:00+00:00": "2026-03-30"}),
        ("America/New_York", {"2025-11-02T03:59:59+00:00": "2025-11-01", "2025-11-02T04:00:00+00:00": "2025-11-02",
                              "2025-11-03T04:59:59+00:00": "2025-11-02", "2025-11-03T05:00:00+00:00": "2025-11-03"}),
        ("Asia/Kolkata", {"2026-01-01T18:29:59+00:00": "2026-01-01", "2026-01-01T18:30:00+00:00": "2026-01-02"}),
        ("UTC", {"2026-01-01T23:59:59+00:00": "2026-01-01"}),
    ],
)  # fmt: skip
def test_days_are_the_users_also_when_clocks_change(zone: Any, name: str, moments: dict[str, str]) -> None:
    zone(name)
    with memory_store() as store:
        for number, moment in enumerate(moments):
            store.ingest(Composed(f"{number:016x}", [Step(tool=None)], start=micros(moment)).records())
        found = {r["day"]: r["turns"] for r in analytics.costs(store, ("day",))}
    expected: dict[date, int] = defaultdict(int)
    for day in moments.values():
        expected[date.fromisoformat(day)] += 1
    assert found == expected


def test_offsets_name_every_change_of_the_clocks(zone: Any) -> None:
    zone("Europe/Berlin")
    found = offsets(micros("2025-01-01T00:00:00+00:00"), micros("2026-12-31T00:00:00+00:00"))
    changes = [datetime.fromtimestamp(at / 1e6, UTC).isoformat() for at, _ in found if at is not None]
    assert changes == [f"{day}T01:00:00+00:00" for day in ("2025-03-30", "2025-10-26", "2026-03-29", "2026-10-25")]
    assert [o // 3_600_000_000 for _, o in found] == [1, 2, 1, 2, 1]


def test_what_cannot_be_counted_by_is_refused(store: Store) -> None:
    for name in ("nonsense", "t.run); drop table runs --", "tag."):
        with pytest.raises(UsageError, match="nothing can be counted by"):
            analytics.stats(store, (name,))
    assert analytics.stats(store, ('tag.it\'s "odd" \\',)).rows


def test_a_forks_past_and_a_copied_answer_count_once() -> None:
    steps = [Step(), Step(), Step(tool=None)]
    forked = list(Composed("b" * 16, steps, parent={"run": "a" * 16, "turn": 3, "kind": "fork"}).records())
    for record in forked:
        if record["kind"] in ("turn_start", "turn_end") and record["turn"] < 3:
            record["inherited"] = True
    with memory_store() as store:
        store.ingest([*Composed("a" * 16, steps).records(), *forked])
        (row,) = analytics.costs(store, ("model",))
        (named,) = analytics.tasks(store)
        calls = sum(analytics.tools(store).column("calls"))
    assert (row["turns"], row["cost_usd"]) == (4, 4 * (Decimal(100) * 3 + Decimal(50) * 15) / 1_000_000)
    assert (named["runs"], named["turns_p50"], calls) == (2, 3, 2)


def test_a_fork_and_a_replay_of_a_job_do_not_bend_its_median() -> None:
    past = {"run": "1" * 16, "turn": 7, "call": None, "kind": "fork"}
    runs = [
        *(Composed(str(n) * 16, healthy(8), name="p", task="t", outcome="pass") for n in (1, 2)),
        Composed("3" * 16, healthy(1), name="p", task="t", parent=past),
        Composed("4" * 16, healthy(2), name="p", task="t", more={"source": "replay"}),
    ]
    with memory_store() as store:
        store.ingest(r for run in runs for r in run.records())
        (row,) = analytics.tasks(store)
        table = analytics.tasks(store)
        own = sum(r.cost_usd or 0 for r in store.runs(Filter(limit=0)))
    assert (row["runs"], row["turns_p50"], row["turns_p95"]) == (4, 8, 8)
    assert row["cost_p50"] == pytest.approx(0.100656)
    assert float(row["cost_usd"]) == pytest.approx(own)
    assert any("not in the quantiles" in n for n in table.notes)
