"""The filter language: pairs that must all hold, stars, quotes, tags; and errors that name the nearest."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import small_tape
from looptape.replay.filters import KEYS, moment, parse, ready, written
from looptape.tracer.errors import UsageError
from looptape.tracer.store import Filter, Store, memory_store

NOW = 1_800_000_000_000_000


def test_pairs_words_quotes_and_tags() -> None:
    found = parse('model:claude* error:yes since:7d tag.customer:4711 text:"a \\"b\\" c" task:x', NOW)
    assert found == Filter(
        model="claude*", error=True, since=NOW - 7 * 86400 * 1_000_000, tags=(("customer", "4711"),), text='a "b" c', task="x",
        limit=0,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["refund order", '"refund order"', "  refund\n order ", 'text:"refund order"'])
def test_bare_words_are_looked_for_together(text: str) -> None:
    assert parse(text) == Filter(text="refund order", limit=0)


def test_nothing_given_is_everything() -> None:
    assert parse("   ") == Filter(limit=0)


def test_a_value_may_hold_colons() -> None:
    assert parse("project:/home/kim/a:b name:x:1").project == "/home/kim/a:b"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("modle:claude*", "Did you mean model:claude*?"),
        ("Model:x", "Did you mean model:x?"),
        ("tag:4711", "tag.NAME:4711"),
        ("nonsense_at_all:1", "The keys are project, model"),
        ("model:a model:b", "model: stands twice"),
        ("model:", "model: has no value"),
        ('task:""', "task: has no value"),
        ("error:perhaps", "neither yes nor no"),
        ("since:yesterday", "is no time"),
        ('task:"open', "quote"),
        ('"open words', "quote"),
        ('task:"a"b', "quote"),
    ],
)
def test_what_is_wrong_is_said_with_the_cure(text: str, part: str) -> None:
    with pytest.raises(UsageError) as trouble:
        parse(text)
    assert part in str(trouble.value)


@given(st.text(max_size=40))
def test_no_text_does_worse_than_a_usage_error(text: str) -> None:
    refused: UsageError | None = None
    try:
        parse(text, NOW)
    except UsageError as trouble:
        refused = trouble
    assert refused is None or (bool(refused.what) and refused.exit_code == 2)


@given(st.text(min_size=1, max_size=20))
def test_any_value_can_be_quoted(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'task:"{quoted}"').task == value


@pytest.mark.parametrize("text", ["9" * 40 + "d", "0s", "2026-11-29", "2026-11-29T10:00:00Z"])
def test_moments(text: str) -> None:
    assert isinstance(moment(text, NOW), int)


@pytest.fixture(scope="module")
def store() -> Store:
    store = memory_store()
    few = {"tags": {"customer": "4711", "a.b": "x y"}, "task": "refund_a", "agent": "clerk", "session": "s*1"}
    store.ingest(small_tape.records("a" * 16, name="first", model="claude-sonnet-4-5", **few))
    other = {"tags": {"customer": "4712"}, "task": "refund%", "project": "/other"}
    store.ingest(small_tape.records("b" * 16, name="second", model="gpt-4o", tool="bash", is_error=True, **other))
    store.ingest([{"kind": "run_update", "run": "b" * 16, "at": small_tape.START, "outcome": {"verdict": "fail"}}])
    return store


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "ab"), ("model:claude*", "a"), ("model:*o", "b"), ("model:claude", ""), ("model:CLAUDE*", ""),
        ("tool:bash", "b"), ("tool:*a*", "ab"), ("error:yes", "b"), ("error:no", "a"), ("status:completed", "ab"),
        ("task:refund_a", "a"), ("task:refund*", "ab"), ("task:refund_*", "a"), ("task:refund%", "b"), ("task:refund%*", "b"),
        ("outcome:fail", "b"), ("name:first", "a"), ("session:s*1", "a"), ("project:/work", "a"), ("text:FIRST", "a"),
        ("clerk", "a"), ("tag.customer:4711", "a"), ("tag.customer:471*", "ab"), ('tag.a.b:"x y"', "a"), ("tag.other:1", ""),
        ("tool:bash model:claude*", ""), ("since:2020-01-01", "ab"), ("since:2100-01-01", ""), ("since:" + "9" * 30 + "w", "ab"),
        ("task:'", ""), ("task:\\*", ""), ("tag.x'y:1", ""),
    ],
)  # fmt: skip
def test_the_store_gives_the_runs_that_are_meant(store: Store, text: str, expected: str) -> None:
    given = parse(text)
    assert "".join(sorted(r.id[0] for r in store.runs(given))) == expected
    assert store.count(given) == len(expected)


def test_every_key_names_a_field_of_the_filter() -> None:
    assert {k.field for k in KEYS.values()} <= set(Filter.__dataclass_fields__)


def test_since_counts_from_now() -> None:
    before = time.time_ns() // 1000
    since = parse("since:1h").since
    after = time.time_ns() // 1000
    assert since is not None
    assert before <= since + 3_600_000_000 <= after


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("turns:>20", (("turns", ">", 20.0),)),
        ("cost:<=1.5", (("cost", "<=", 1.5),)),
        ("cost:>$1", (("cost", ">", 1.0),)),
        ("errors:0", (("errors", "=", 0.0),)),
        ("calls:5..10", (("calls", ">=", 5.0), ("calls", "<=", 10.0))),
        ("turns:>1 turns:<9", (("turns", ">", 1.0), ("turns", "<", 9.0))),
    ],
)
def test_numbers_have_bounds(text: str, bounds: tuple[tuple[str, str, float], ...]) -> None:
    assert parse(text).numbers == bounds


@pytest.mark.parametrize("text", ["turns:many", "cost:>", "calls:1..", "seconds:-5"])
def test_what_is_no_number_is_said_with_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageError, match="Write"):
        parse(text)


def test_quotes_that_a_shell_took_away_are_put_back() -> None:
    found = parse(written(["task:refund an order", 'name:say "x" now', "word", "model:plain"]))
    assert found == Filter(task="refund an order", name='say "x" now', text="word", model="plain", limit=0)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("turns:>3", ["long"]),
        ("turns:<=3", ["short"]),
        ("cycle:yes", ["long"]),
        ("cycle:no", ["short"]),
        ("calls:2..9", ["long"]),
        ("source:sdk turns:1..99 cycle:yes", ["long"]),
        ("source:otlp", []),
    ],
)
def test_bounds_and_cycles_pick_runs(text: str, ids: list[str]) -> None:
    store = memory_store()
    store.ingest(small_tape.records("short"))
    store.ingest(circling("long", 6))
    wanted = parse(text)
    ready(store, wanted)
    assert [run.id for run in store.runs(wanted)] == ids


def circling(run: str, turns: int) -> list[dict]:
    """A run that makes the same call with the same result in every turn."""
    out: list[dict] = [{"kind": "run_start", "run": run, "at": 1, "source": "sdk"}]
    for n in range(1, turns + 1):
        call = {"id": f"c{n}", "name": "read", "arguments_raw": '{"f": "a"}', "valid": True}
        out += [
            {
                "kind": "turn_start",
                "run": run,
                "turn": n,
                "at": n,
                "keep": 0,
                "append": [],
                "api": "anthropic.messages",
            },
            {
                "kind": "turn_end",
                "run": run,
                "turn": n,
                "at": n,
                "status": "ok",
                "stop_reason": "tool_use",
                "calls": [call],
            },
            {"kind": "call_start", "run": run, "turn": n, "call": f"c{n}", "name": "read", "at": n},
            {"kind": "call_end", "run": run, "turn": n, "call": f"c{n}", "at": n, "result": "same", "state": "done"},
        ]
    return out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["turns:>5 cost:>0.01"], "turns:>5 cost:>0.01"),
        (["model:claude* tag.customer:4711 refund"], "model:claude* tag.customer:4711 refund"),
        (["text:a b"], 'text:"a b"'),
        (["text:it says error:yes"], 'text:"it says error:yes"'),
        (["task:pick a city"], 'task:"pick a city"'),
    ],
    ids=["bounds", "tag", "words", "a-text-with-a-key", "task"],
)
def test_a_whole_filter_in_one_pair_of_quotes_is_the_filter(words: list[str], text: str) -> None:
    assert written(words) == text
