"""What fills a window, recomputed in plain Python over the tape: totals exact, shares where they were recorded exact."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

import conversation_tape as talk
from looptape.replay.context import Context, context
from looptape.replay.context.estimate import image_tokens, text_tokens
from looptape.tracer.errors import UsageError
from looptape.tracer.store import memory_store
from looptape.tracer.tape import Record

RUN = "c" * 16
TOOLS = [{"name": "read", "description": "reads a file", "input_schema": {"type": "object"}}]


def ask(records: list[Record], number: int) -> Context:
    store = memory_store()
    store.ingest(records)
    return context(store, RUN, number)


def of(answer: Context) -> dict[tuple[str, str | None], tuple[int, str]]:
    return {(s.origin, s.tool): (s.tokens, s.how) for s in answer.shares}


def loop(*usages: tuple[int, int]) -> list[talk.Said]:
    """A loop that reads a file a turn; (context, output) tokens of each."""
    steps = [
        (
            [talk.text(f"step {n}"), talk.call("read", f"t{n}", path=f"f{n}")],
            [talk.result(f"t{n}", f"line {n}\n" * 40 * n)],
        )
        for n in range(1, len(usages) + 1)
    ]
    turns = talk.grown(steps, tools=TOOLS)
    for turn, (read, wrote) in zip(turns, usages, strict=True):
        turn.usage = {"input": read, "output": wrote}
    return turns


def messages_at(records: list[Record], number: int) -> list[Any]:
    """The request of a turn, by the rules of docs/tape-format.md."""
    texts = {r["hash"]: r["text"] for r in records if r["kind"] == "blob"}
    lists: dict[int, list[str]] = {}
    for record in records:
        if record["kind"] == "turn_start":
            base = lists.get(record["base"], [])[: record["keep"]]
            lists[record["turn"]] = [*base, *record["append"]]
    return [json.loads(texts[name]) for name in lists[number]]


def test_shares_sum_to_the_recorded_total() -> None:
    records = talk.records(loop((500, 30), (900, 40), (1700, 20)))
    answer = ask(records, 3)
    assert (answer.tokens, answer.how) == (1700, "recorded")
    assert sum(s.tokens for s in answer.shares) == 1700
    assert {s.origin for s in answer.shares} == {"system", "tools", "user", "assistant", "arguments", "result"}
    assert answer.messages == len(messages_at(records, 3))


def test_a_result_is_exactly_what_the_window_grew_by_without_the_answer() -> None:
    answer = ask(talk.records(loop((500, 30), (900, 40), (1700, 20))), 3)
    results = (900 - 500 - 30) + (1700 - 900 - 40)
    assert of(answer)["result", "read"] == (results, "recorded")
    said = of(answer)["assistant", None][0] + of(answer)["arguments", "read"][0]
    assert said == 30 + 40
    assert sum(of(answer)[key][0] for key in (("system", None), ("tools", "read"), ("user", None))) == 500


def test_without_usage_the_figures_are_the_documented_estimate() -> None:
    turns = loop((0, 0), (0, 0))
    for turn in turns:
        turn.usage = None
    records = talk.records(turns)
    answer = ask(records, 2)
    seen = messages_at(records, 2)
    result = seen[-1]["content"][0]["content"]
    assert answer.how == "estimated"
    assert of(answer)["result", "read"] == (round(len(result) / 4), "estimated")
    assert of(answer)["system", None][0] == round(len("You are an agent.") / 4)
    schema = json.dumps(TOOLS[0])
    assert abs(of(answer)["tools", "read"][0] - len(schema) / 3) <= 1


def test_what_no_one_recorded_of_the_first_request_is_called_so() -> None:
    turns = loop((9000, 30), (9400, 40))
    for turn in turns:
        turn.system = turn.tools = None
    answer = ask(talk.records(turns), 2)
    assert of(answer)["unrecorded", None][0] >= 8900
    assert of(answer)["user", None][0] <= 10
    assert sum(s.tokens for s in answer.shares) == 9400


def test_an_output_that_cannot_be_the_whole_answer_is_not_believed() -> None:
    turns = loop((500, 1), (900, 1))
    turns[0].answer[0]["text"] = turns[1].messages[1]["content"][0]["text"] = "a long answer " * 30
    shares = of(ask(talk.records(turns), 2))
    assert shares["assistant", None][0] > 50
    assert shares["result", "read"][1] == "apportioned"


def test_growth_has_every_turn_with_its_recorded_total() -> None:
    answer = ask(talk.records(loop((500, 30), (900, 40), (1700, 20))), 3)
    assert [(g.turn, g.tokens, g.messages, g.added, g.dropped) for g in answer.growth] == [
        (1, 500, 1, 1, 0), (2, 900, 3, 2, 0), (3, 1700, 5, 2, 0),
    ]  # fmt: skip
    assert all(sum(g.shares.values()) == g.tokens for g in answer.growth)


def test_an_earlier_turn_is_asked_as_it_was_then() -> None:
    records = talk.records(loop((500, 30), (900, 40), (1700, 20)))
    answer = ask(records, 2)
    assert (answer.tokens, len(answer.growth)) == (900, 2)


def test_what_a_compaction_removed_is_told_with_what_stands_in_its_place() -> None:
    turns = loop((500, 30), (900, 40), (1700, 20))
    short = [talk.user("go on. So far: nothing found."), *turns[2].messages[-2:]]
    turns.append(talk.Said(short, [talk.text("done")], {"input": 1000, "output": 5}, tools=TOOLS, flags=["compaction"]))
    answer = ask(talk.records(turns), 4)
    (removed,) = answer.removed
    assert (removed.turn, removed.kind, removed.messages) == (4, "compaction", 3)
    assert removed.shares["result"] == 900 - 500 - 30
    assert removed.tokens == sum(removed.shares.values())
    assert answer.messages == 3
    assert sum(s.tokens for s in answer.shares) == 1000


def test_a_moved_cache_mark_removes_nothing() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    turns = loop((500, 30), (900, 40))
    first = {"role": "user", "content": [{**talk.text("go"), **mark}]}
    turns[0].messages = [first]
    turns[1].messages[-1]["content"][0].update(mark)
    answer = ask(talk.records(turns), 2)
    assert answer.removed == ()
    assert of(answer)["result", "read"] == (900 - 500 - 30, "recorded")


def test_images_weigh_by_their_size_not_by_their_letters() -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + struct.pack(">II", 750, 200) + b"\0" * 50_000
    block = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png).decode()},
    }
    turn = talk.Said([{"role": "user", "content": [talk.text("x" * 400), block]}], [talk.text("a cat")], system=None)
    answer = ask(talk.records([turn]), 1)
    assert image_tokens(block) == 200
    assert of(answer)["image", None][0] == 200
    assert of(answer)["user", None][0] == 100


@pytest.mark.parametrize(
    ("text", "tokens"), [("abcd" * 10, 10), ("日本語", 3), ("", 0)], ids=["ascii", "other", "empty"]
)
def test_the_estimator_is_the_documented_one(text: str, tokens: float) -> None:
    assert text_tokens(text) == tokens


def test_content_that_was_not_kept_is_counted_by_its_length() -> None:
    records = talk.records(loop((500, 30), (900, 40)))
    bare = [
        {"kind": "blob", "hash": r["hash"], "length": len(r["text"])} if r["kind"] == "blob" else r for r in records
    ]
    answer = ask(bare, 2)
    assert answer.tokens == 900
    assert sum(s.tokens for s in answer.shares) == 900


def test_usage_without_any_content_is_told_as_not_recorded() -> None:
    kept = ("run_start", "turn_end", "run_end", "turn_start")
    records = [dict(r) for r in talk.records(loop((500, 30))) if r["kind"] in kept]
    for record in records:
        if record["kind"] == "turn_start":
            record |= {"mode": "none", "append": [], "keep": 0}
            record.pop("system", None), record.pop("tools", None)
    answer = ask(records, 1)
    assert answer.tokens == 500
    assert [(s.origin, s.tokens) for s in answer.shares] == [("unrecorded", 500)]


def test_a_turn_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="no turn 9"):
        ask(talk.records(loop((500, 30))), 9)


@pytest.mark.parametrize("sample", ["compaction", "parallel", "streaming", "sub_agent", "tool_errors"])
def test_every_turn_of_a_sample_sums_to_what_was_recorded(sample: str) -> None:
    from looptape.tracer.importers import import_path

    store = memory_store()
    file = Path(__file__).parents[3] / "sample_traces" / f"{sample}.jsonl"
    for run in [r for report in import_path(store, file) for r in report.runs]:
        for turn in store.turns(run):
            answer = context(store, run, turn.number)
            assert sum(s.tokens for s in answer.shares) == answer.tokens
            assert turn.usage.context is None or answer.tokens == turn.usage.context


def test_tokens_by_message_are_those_of_the_whole_without_system_and_tools() -> None:
    given = talk.grown(
        [([talk.call("read", f"t{n}", n=n)], [talk.result(f"t{n}", "word " * 50 * n)]) for n in range(1, 5)]
    )
    for turn, tokens in zip(given, (100, 300, 600, 1000), strict=True):
        turn.usage = {"input": tokens, "output": 20}
    store = memory_store()
    store.ingest(talk.records(given))
    found = context(store, "c" * 16, 4)
    assert len(found.by_message) == found.messages == 7
    heads = sum(s.tokens for s in found.shares if s.origin in ("system", "tools"))
    assert sum(found.by_message) == pytest.approx(found.tokens - heads, abs=7)
    assert found.by_message[6] > found.by_message[2]
