"""Google's generateContent: what its bodies and chunks say, and that it is recorded on the wire."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damaged_json import damaged
from examples import examples
from looptape.replay.message_parts import parts, role
from looptape.tracer.providers import by_path, gemini, openai_responses

CALLS = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Let me look.", "thought": True},
                    {"functionCall": {"name": "read", "args": {"p": "a"}}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"name": "read", "args": {"p": "b"}}},
                    {"functionCall": {"id": "x1", "name": "list"}},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "totalTokenCount": 107,
    },
    "modelVersion": "gem-demo-3",
    "responseId": "r1",
}


def test_thoughts_are_outside_the_count_of_gemini_and_inside_that_of_openai() -> None:  # cst-07
    raw = {"promptTokenCount": 15, "candidatesTokenCount": 359, "thoughtsTokenCount": 661, "totalTokenCount": 1035}
    one = gemini.answer({"modelVersion": "gem-demo-3", "usageMetadata": raw}).usage
    details = {"output_tokens_details": {"reasoning_tokens": 661}}
    other = openai_responses.answer(
        {"usage": {"input_tokens": 15, "output_tokens": 1020, "total_tokens": 1035, **details}}
    ).usage
    for usage in (one, other):
        assert (usage.input, usage.output, usage.reasoning) == (15, 1020, 661)
    costs = [Decimal(u.input or 0) * a + Decimal(u.output or 0) * b for u, a, b in ((one, 2, 12), (other, 10, 50))]
    assert [cost / 1_000_000 for cost in costs] == [Decimal("0.01227"), Decimal("0.05115")]


def test_an_answer_with_calls() -> None:
    said = gemini.answer(CALLS)
    assert (said.id, said.model, said.stop_reason, said.end) == ("r1", "gem-demo-3", "STOP", None)
    assert (said.text, said.thinking) == (None, "Let me look.")
    assert [(c.id, c.name, c.arguments_raw) for c in said.calls] == [
        ("read", "read", '{"p": "a"}'),
        ("read#2", "read", '{"p": "b"}'),
        ("x1", "list", "{}"),
    ]
    assert (said.usage.input, said.usage.cache_read, said.usage.output, said.usage.reasoning) == (40, 60, 7, None)


def test_results_find_their_calls_with_and_without_ids() -> None:
    given = [{"name": "read", "response": {"output": "A"}}, {"name": "read", "response": {"error": "no"}}, {"id": "x1"}]
    message = {"role": "user", "parts": [{"text": "here"}, *({"functionResponse": g} for g in given)]}
    seen = gemini.results(message)
    assert [(s.call, s.is_error, s.path) for s in seen] == [
        ("read", False, "$.parts[1].functionResponse.response"),
        ("read#2", True, "$.parts[2].functionResponse.response"),
        ("x1", False, "$.parts[3].functionResponse.response"),
    ]
    assert gemini.is_prompt(message)
    assert not gemini.is_prompt({"role": "user", "parts": message["parts"][1:]})
    assert [(p.kind, p.call, p.is_error) for p in parts(message)][1:3] == [
        ("result", "read", False),
        ("result", "read", True),
    ]


@pytest.mark.parametrize(
    ("body", "end", "stop"),
    [
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "limit", "MAX_TOKENS"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "completed", "SAFETY"),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "completed", "PROHIBITED_CONTENT"),
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "failed", "MALFORMED_FUNCTION_CALL"),
        ({}, None, None),
    ],
)
def test_why_it_stopped(body: dict[str, Any], end: str | None, stop: str | None) -> None:
    said = gemini.answer(body)
    assert (said.end, said.stop_reason) == (end, stop)


def test_an_error_body() -> None:
    said = gemini.answer({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}})
    assert (said.error, said.error_type) == ("slow down", "RESOURCE_EXHAUSTED")


def _chunks() -> list[dict[str, Any]]:
    def chunk(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": list(given)}, "index": 0, **more}]}

    return [
        {**chunk({"text": "Th", "thought": True}), "usageMetadata": {"promptTokenCount": 5}},
        chunk({"text": "ink", "thought": True}),
        chunk({"text": "Hel"}),
        chunk({"text": "lo"}),
        chunk({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"}),
        {**chunk(finishReason="STOP"), "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 9}},
    ]


def test_a_stream_equals_the_plain_answer_and_a_cut_one_says_so() -> None:
    events = [(None, json.dumps(chunk)) for chunk in _chunks()]
    body, whole = gemini.assemble(events)
    said = gemini.answer(body)
    assert whole
    assert body["candidates"][0]["content"]["parts"] == [
        {"text": "Think", "thought": True},
        {"text": "Hello"},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
    ]
    assert (said.text, said.thinking, said.usage.output, said.usage.partial) == ("Hello", "Think", 9, False)
    assert gemini.answer(_chunks()) == said, "a stream without SSE is a list of the same chunks"
    cut, whole = gemini.assemble(events[:3])
    assert (whole, gemini.answer(cut).text, gemini.answer(cut).usage.partial) == (False, "Hel", True)
    assert gemini.assemble([]) == (None, False)


ODD: st.SearchStrategy[Any] = st.sampled_from([None, True, -1, 10**30, 0.5, "", [], [None], {}, {"type": []}, [[]]])


@settings(max_examples=examples(200), deadline=None)
@given(damaged([CALLS, *_chunks()]), ODD)
def test_odd_bodies_chunks_and_messages_never_raise(data: bytes, odd: Any) -> None:
    try:
        values = json.loads(data)
    except ValueError:
        values = [odd]
    for value in [odd, values, *(values if isinstance(values, list) else [])]:
        said = gemini.answer(value)
        assert said.end in (None, "completed", "limit", "failed")
        gemini.assemble([(None, json.dumps(value)), (None, "torn {")])
        for message in (value, {"parts": value}, {"role": "user", "parts": [odd, {"functionResponse": odd}]}):
            gemini.results(message)
            gemini.is_prompt(message)
            parts(message)
        if isinstance(value, dict):
            gemini.request(value)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1beta/models/gem-demo-3:generateContent", True),
        ("/v1/projects/p/locations/l/publishers/google/models/gem-demo-3:streamGenerateContent", True),
        ("/v1beta/models/gem-demo-3:countTokens", False),
        ("/v1beta/models/gem-demo-3:embedContent", False),
    ],
)
def test_paths_of_model_calls(path: str, known: bool) -> None:
    assert (by_path(path) is gemini) == known


def test_a_loop_over_httpx_is_recorded_with_its_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import looptape
    from looptape.tracer.store import Filter, open_store

    httpx = pytest.importorskip("httpx")
    from looptape.tracer.transport import RecordingTransport

    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    key = "AIza" + "Sy0_" * 9
    stream = "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in _chunks())

    def serve(request: Any) -> Any:
        if request.url.path.endswith(":streamGenerateContent"):
            return httpx.Response(200, text=stream, headers={"content-type": "text/event-stream"})
        return httpx.Response(200, json=CALLS)

    first = {"role": "user", "parts": [{"text": "read a and b"}]}
    given = [{"functionResponse": {"name": "read", "response": {"output": text}}} for text in "AB"]
    request = {
        "contents": [first],
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": []}],
    }
    with looptape.run("gemini loop"), httpx.Client(transport=RecordingTransport(httpx.MockTransport(serve))) as client:
        base = "https://example.test/v1beta/models/gem-demo-3"
        client.post(f"{base}:generateContent?key={key}", json=request, headers={"x-goog-api-key": key})
        request["contents"] += [CALLS["candidates"][0]["content"], {"role": "user", "parts": given}]
        with client.stream("POST", f"{base}:streamGenerateContent?alt=sse&key={key}", json=request) as response:
            assert "Hel" in response.read().decode()
    with open_store(tmp_path) as store:
        (run,) = store.runs(Filter(limit=0))
        one, two = store.turns(run.id)
        messages = store.request(run.id, 2).messages
        system = store.request(run.id, 1).system
    assert (run.name, one.provider, one.model, two.text, two.thinking) == (
        "gemini loop", "google", "gem-demo-3", "Hello", "Think",
    )  # fmt: skip
    assert [(c.id, c.result) for c in one.tool_calls][:2] == [("read", {"output": "A"}), ("read#2", {"output": "B"})]
    assert (one.usage.cache_read, two.usage.output, two.user_turn, system) == (
        60,
        9,
        False,
        {"parts": [{"text": "be brief"}]},
    )
    assert [role(m) for m in messages] == ["user", "assistant", "user"]
    assert all(key.encode() not in f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())
