"""Langfuse exports: generations as turns, tool observations as what ran, usage in disjoint buckets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import read
from looptape.tracer.importers import import_path
from looptape.tracer.importers.platforms import langfuse
from looptape.tracer.store import memory_store

CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"q":"x"}'}}
PROMPT: list[dict[str, Any]] = [{"role": "system", "content": "S"}, {"role": "user", "content": "how much?"}]
ANSWER = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}


def _observation(number: int, kind: str, name: str, parent: str | None = "o1", **more: Any) -> dict[str, Any]:
    times = {"startTime": f"2026-03-01T09:00:0{number}.000Z", "endTime": f"2026-03-01T09:00:0{number}.900Z"}
    return {
        "id": f"o{number}",
        "traceId": "t1",
        "type": kind,
        "name": name,
        "parentObservationId": parent,
        **times,
        **more,
    }


USAGE = {"input": 40, "input_cached_tokens": 60, "output": 7, "total": 107}
OBSERVATIONS = [
    _observation(1, "AGENT", "researcher", None, input="how much?", output="42 it is", level="DEFAULT"),
    _observation(
        2, "GENERATION", "chat", input=PROMPT, output=ANSWER, model="gpt-4o", modelParameters={"temperature": 0},
        usageDetails=USAGE, costDetails={"input": 0.001, "output": 0.002, "total": 0.003}, completionStartTime="2026-03-01T09:00:02.200Z",
    ),
    _observation(3, "TOOL", "look_up", input={"q": "x"}, output="42", level="ERROR", statusMessage="slow"),
    _observation(4, "GENERATION", "chat", input={"messages": [*PROMPT, ANSWER, RESULT]}, output="42 it is", model="gpt-4o"),
]  # fmt: skip
TRACE = {
    "id": "t1", "timestamp": "2026-03-01T09:00:01.000Z", "name": "ask", "sessionId": "s1", "htmlPath": "/x",
    "observations": OBSERVATIONS, "scores": [{"name": "good", "value": 1}],
}  # fmt: skip


def _rows() -> str:
    """The same observations as the blob storage export writes them: snake_case, JSON as text."""
    rows = []
    for one in OBSERVATIONS:
        row: dict[str, Any] = {}
        for key, value in one.items():
            name = "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
            packed = name in ("input", "output", "model_parameters") and not isinstance(value, str)
            row[name] = json.dumps(value) if packed else value
        row["provided_model_name"] = row.pop("model", "")
        row["start_time"] = row["start_time"].replace("T", " ").replace("Z", "000")
        row["end_time"] = row["end_time"].replace("T", " ").replace("Z", "000")
        rows.append(
            json.dumps({**row, "session_id": "s1", "parent_observation_id": row["parent_observation_id"] or ""})
        )
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("shape", ["trace", "wrapped", "page", "rows"])
def test_every_documented_shape_gives_the_same_run(shape: str, tmp_path: Path) -> None:
    document = {
        "trace": json.dumps(TRACE, indent=1),
        "wrapped": json.dumps({"trace": {k: v for k, v in TRACE.items() if k != "observations"}, "observations": OBSERVATIONS}),
        "page": json.dumps({"data": [{**o, "sessionId": "s1"} for o in OBSERVATIONS], "meta": {"page": 1}}),
        "rows": _rows(),
    }[shape]  # fmt: skip
    (tmp_path / "export.json").write_text(document)
    with memory_store() as store:
        (report,) = import_path(store, tmp_path / "export.json")
        import_path(store, tmp_path / "export.json")
        (run,) = store.runs()
        first, second = store.turns(run.id)
        request = store.request(run.id, 2)

    assert (report.format, report.turns, report.tool_calls) == ("langfuse", 2, 1)
    assert (run.name, run.agent, run.session, run.status) == ("researcher", "researcher", "s1", "completed")
    usage = first.usage
    assert (usage.input, usage.cache_read, usage.output, usage.origin) == (40, 60, 7, "recorded")
    assert second.usage.origin == "missing"
    assert (first.model, first.reported_cost_usd, second.reported_cost_usd) == ("gpt-4o", 0.003, None)
    assert first.generate_ms == 900.0
    assert first.first_chunk_at is not None
    (call,) = first.tool_calls
    assert (call.id, call.name, call.arguments, call.result) == ("c1", "look_up", {"q": "x"}, "42")
    assert (call.is_error, call.timing, call.ms) == (True, "measured", 900.0)
    assert [m["role"] for m in request.messages] == ["system", "user", "assistant", "tool"]
    assert second.text == "42 it is"


@pytest.mark.parametrize(
    ("given_usage", "buckets"),
    [
        ({"input": 100, "input_cached_tokens": 60, "output": 7, "total": 107}, (40, 60, None, 7)),
        ({"input": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 8, "output": 7}, (5, 60, 8, 7)),
        ({"input": 9, "output": 7, "output_reasoning_tokens": 3, "total": 19}, (9, None, None, 10)),
        ({"input": 9, "output": 7, "output_reasoning_tokens": 3, "total": 16}, (9, None, None, 7)),
        ({"unit": "TOKENS"}, (None, None, None, None)),
    ],
)
def test_usage_types_end_in_disjoint_buckets_whatever_the_total_counts(
    given_usage: Any, buckets: tuple[Any, ...]
) -> None:
    one = {**OBSERVATIONS[1], "usageDetails": given_usage}
    usage = read(langfuse, json.dumps([one])).turns()[1]["usage"]

    assert tuple(usage.get(n) for n in ("input", "cache_read", "cache_write_5m", "output")) == buckets


def test_a_trace_without_its_observations_says_so() -> None:
    got = read(langfuse, json.dumps({**TRACE, "observations": []}))
    assert got.records == []
    assert any("no observations" in w for w in got.notes.warnings)


def test_other_documents_with_a_type_are_not_taken_for_observations() -> None:
    assert not langfuse.recognise(b'[{"type": "GENERATION", "id": "x"}]')
    assert not langfuse.recognise(b'{"data": [{"id": "x"}]}')


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(TRACE))
def test_damaged_exports_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(langfuse, data)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(TRACE))
def test_damaged_exports_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(langfuse, data)
