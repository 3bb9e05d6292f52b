"""Claude Code's and Codex's own telemetry, logfire's pairs, Traceloop's and LangChain's old words: small inputs."""

from __future__ import annotations

import json

from imported import read
from looptape.tracer.importers import otlp
from otlp_spans import START, TRACE, chat, request, said, span, words


def told(*requests):
    return read(otlp, "\n".join(json.dumps(r) for r in requests) + "\n")


def log(name, attributes, *, at=0, number=None):
    made = {"timeUnixNano": str((START + at * 1000) * 1000), "body": {"stringValue": name}}
    made["attributes"] = span(1, {**attributes, "event.name": name})["attributes"]
    if number:
        made |= {"traceId": TRACE, "spanId": f"{number:016x}"}
    return made


def codex_logs():
    talk = {"conversation.id": "conv-1", "model": "acme-codex"}
    return [
        log("codex.user_prompt", {**talk, "prompt": "count the files"}),
        log("codex.api_request", {**talk, "duration_ms": 30, "http.response.status_code": 500}, at=100),
        log("codex.api_request", {**talk, "duration_ms": 50, "http.response.status_code": 200}, at=200),
        log("codex.sse_event", {**talk, "event.kind": "response.completed", "input_token_count": 100, "cached_token_count": 40, "output_token_count": 9, "reasoning_token_count": 4}, at=400),
        log("codex.tool_decision", {**talk, "tool_name": "shell", "call_id": "k1", "decision": "approved"}, at=410),
        log("codex.tool_result", {**talk, "tool_name": "shell", "call_id": "k1", "arguments": '{"command":["ls"]}', "output": "a b", "duration_ms": 20, "success": "true"}, at=450),
        log("codex.api_request", {**talk, "duration_ms": 10, "http.response.status_code": 200}, at=500),
        log("codex.sse_event", {**talk, "event.kind": "response.completed", "input_token_count": 150, "cached_token_count": 100, "output_token_count": 5}, at=600),
    ]  # fmt: skip


def test_codex_log_records_are_turns_with_their_tools_and_attempts():
    found = told(request(logs=codex_logs(), scope="codex_otel"))
    ends = found.of("turn_end")
    assert [(e["usage"]["input"], e["usage"]["cache_read"], e["usage"]["output"]) for e in ends] == [
        (60, 40, 9),
        (50, 100, 5),
    ]
    assert [a.get("status") for a in ends[0]["attempts"]] == [500, 200]
    assert [(c["id"], c["name"], c["arguments_raw"]) for c in ends[0]["calls"]] == [
        ("k1", "shell", '{"command": ["ls"]}')
    ]
    (ran,) = found.of("call_end")
    assert (ran["result"], ran.get("is_error")) == ("a b", None)
    assert found.request(2)[0] == {"role": "user", "content": "count the files"}
    assert all("assistant_text_not_kept" in s["flags"] for s in found.of("turn_start"))
    (start,) = found.of("run_start")
    assert (start["session"], start["agent"]) == ("conv-1", "codex")


BODY = {"model": "claude-x", "max_tokens": 9, "system": "be brief", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "text", "text": "yo"}],
    "stop_reason": "end_turn",
}
USED = {"input_tokens": 5, "output_tokens": 2, "cache_read_tokens": 3, "cache_creation_tokens": 4}


def claude_logs():
    mine = {"session.id": "s1"}
    return [
        log("claude_code.api_request_body", {**mine, "body": json.dumps(BODY), "request_body_id": "b1"}, number=0xF),
        log("claude_code.api_response_body", {**mine, "body": json.dumps(ANSWER), "request_body_id": "b1", "request_id": "req_1"}, at=90, number=0xF),
        log("claude_code.api_request", {**mine, **USED, "cache_creation_1h_tokens": 4, "cost_usd": 0.25, "speed": "fast", "model": "claude-x", "request_id": "req_1", "duration_ms": 80}, at=95, number=0xF),
    ]  # fmt: skip


def test_claude_code_bodies_in_log_records_make_the_turn_lossless():
    facts = chat(
        **{
            "span.type": "llm_request",
            "request_id": "req_1",
            "gen_ai.response.id": "req_1",
            "stop_reason": "end_turn",
            "success": True,
            **USED,
        }
    )
    made = request(
        span(1, facts, name="claude_code.llm_request", ms=90),
        logs=claude_logs(),
        scope="com.anthropic.claude_code.tracing",
    )
    for logs in made["resourceLogs"][0]["scopeLogs"]:
        logs["scope"]["name"] = "com.anthropic.claude_code.events"
    found = told(made)
    (end,) = found.of("turn_end")
    assert (end["response_id"], end["request_id"]) == ("msg_1", "req_1")
    assert (end["reported_cost_usd"], end["usage_raw"]["speed"]) == (0.25, "fast")
    usage = end["usage"]
    assert [usage[n] for n in ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")] == [5, 3, 0, 4, 2]
    assert found.request(1) == BODY["messages"]
    assert found.response(1) == ANSWER


def test_claude_code_log_records_alone_give_the_turn_too():
    found = told(request(logs=claude_logs(), scope="com.anthropic.claude_code.events"))
    (start,), (end,) = found.of("turn_start"), found.of("turn_end")
    assert found.request(1) == BODY["messages"]
    assert (end["usage"]["input"], end["status"], start["flags"]) == (5, "ok", [])


def test_a_logfire_stream_is_one_turn_from_its_request_to_the_end_of_its_answer():
    asked = {"gen_ai.input.messages": said(("user", words("hi"))), "request_data": '{"model":"m"}'}
    answer = {
        "gen_ai.output.messages": said(("assistant", words("yo"))),
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.input_tokens": 4,
    }
    first = span(1, chat(**asked, **{"logfire.span_type": "span", "logfire.msg": "Message with 'm'"}), ms=5)
    second = span(2, chat(**asked, **answer, **{"logfire.span_type": "log"}), at=80, ms=0, trace="2" * 32)
    found = told(request(first, second, scope="logfire.anthropic"))
    (start,), (end,) = found.of("turn_start"), found.of("turn_end")
    assert (end["at"] - start["at"], end["usage"]["output"], start["stream"]) == (80_000, 3, True)
    assert found.response(1)["content"] == [{"type": "text", "text": "yo"}]


def test_traceloops_spread_out_prompts_and_completions_are_put_together():
    facts = {
        "llm.request.type": "chat", "gen_ai.system": "Anthropic", "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "be brief",
        "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "hi",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_use",
        "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "look",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"page": 1}',
    }  # fmt: skip
    found = told(request(span(1, facts)))
    (start,), (end,) = found.of("turn_start"), found.of("turn_end")
    assert found.request(1) == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert json.loads(found.blobs[start["system"]]) == "be brief"
    assert [(c["id"], c["arguments_raw"]) for c in end["calls"]] == [("c1", '{"page": 1}')]
    assert (start["provider"], end["stop_reason"]) == ("anthropic", "tool_use")


def test_raw_bodies_of_openinference_are_kept_as_they_were_sent():
    asked = {
        "model": "m",
        "max_tokens": 5,
        "system": "s",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ],
    }
    facts = {
        "openinference.span.kind": "LLM",
        "llm.provider": "anthropic",
        "input.value": json.dumps(asked),
        "output.value": json.dumps(ANSWER),
    }
    found = told(request(span(1, facts)))
    assert found.of("turn_start")[0]["api"] == "anthropic.messages"
    assert found.request(1) == asked["messages"]
    assert found.response(1) == ANSWER


def test_mcp_spans_time_a_call_and_add_none():
    calls = said(("assistant", {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}))
    one = chat(**{"gen_ai.input.messages": said(("user", words("hi"))), "gen_ai.output.messages": calls})
    client = span(
        5, {"mcp.method.name": "tools/call", "gen_ai.tool.name": "look"}, at=20, ms=30, name="MCP send tools/call look"
    )
    server = span(
        6, {"mcp.method.name": "tools/call", "gen_ai.tool.name": "look"}, at=22, ms=10, parent=5, name="tools/call look"
    )
    found = told(request(span(1, one), client, server))
    assert found.notes.tool_calls == 1
    (begun,), (ended,) = found.of("call_start"), found.of("call_end")
    assert (begun["call"], ended["at"] - begun["at"]) == ("c1", 30_000)


def codex_spans():
    """Rust's own spans: only handle_responses tells of tokens."""
    made = [span(1, {"thread.id": 1}, name="session_task.turn", ms=700)]
    for number, (at, ms, tokens) in enumerate(((100, 300, (100, 40, 9)), (500, 100, (150, 100, 5)))):
        names = (f"gen_ai.usage.{n}" for n in ("input_tokens", "cache_read.input_tokens", "output_tokens"))
        facts = {**dict(zip(names, tokens, strict=True)), "gen_ai.request.model": "acme-codex"}
        made.append(span(16 + number, facts, name="handle_responses", parent=1, at=at, ms=ms))
        made.append(span(32 + number, {"busy_ns": 1}, name="poll", parent=16 + number, at=at, ms=1))
    return [{**s, "events": [], "links": [], "traceState": None} for s in made]


def test_codex_spans_and_log_records_of_the_same_calls_are_counted_once():
    logs = [{**e, "timeUnixNano": "0", "observedTimeUnixNano": e["timeUnixNano"]} for e in codex_logs()]
    for found in (
        told(request(*codex_spans(), logs=logs, scope="codex_otel")),
        told(request(logs=logs, scope="codex_otel"), request(*codex_spans(), scope="codex_otel")),
    ):
        usage = [e["usage"] for e in found.of("turn_end")]
        assert [(u["input"], u["cache_read"], u["output"]) for u in usage] == [(60, 40, 9), (50, 100, 5)]
        assert (len(found.notes.runs), found.notes.turns, found.notes.tool_calls) == (1, 2, 1)
        assert found.of("run_start")[0]["session"] == "conv-1"


def gemini_span(number, messages, answer, tokens, *, at):
    facts = {
        "gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gem",
        "gen_ai.input.messages": said(*messages), "gen_ai.output.messages": said(answer),
        "gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1],
    }  # fmt: skip
    return span(number, facts, name="generate_content gem", at=at, trace=f"{number:032x}")


def test_gemini_calls_without_ids_and_each_in_a_trace_of_its_own_are_one_run():
    hi = ("user", words("hi"))
    look = {"type": "tool_call", "id": None, "name": "look", "arguments": {"page": 1}}
    page = ("user", {"type": "tool_call_response", "id": None, "response": "page"})
    first = gemini_span(1, [hi], ("model", look), (100, 5), at=0)
    second = gemini_span(2, [hi, ("model", look), page], ("model", words("done")), (150, 6), at=100)
    found = told(request(first, second, scope="opentelemetry.instrumentation.google_genai"))
    assert (len(found.notes.runs), found.notes.turns, found.notes.tool_calls) == (1, 2, 1)
    assert found.notes.warnings == {}, "nothing was lost: Gemini's calls have no ids"
    ends = found.turns()
    assert [(e["usage"]["input"], e["usage"]["output"]) for e in ends.values()] == [(100, 5), (150, 6)]
    assert [s["provider"] for s in found.of("turn_start")] == ["google"] * 2
    (seen,) = found.of("call_seen")
    assert seen["call"] == ends[1]["calls"][0]["id"]
    assert found.response(2)["content"] == [{"type": "text", "text": "done"}]


def openinference_gemini(number, contents, answer, tokens, *, at):
    """Google's SDK as OpenInference tells it: raw bodies beside flattened messages."""
    body = {"contents": contents, "config": {"system_instruction": "be brief"}, "model": "gem"}
    prompt, output, thoughts = tokens
    used = {"prompt_token_count": prompt, "candidates_token_count": output, "thoughts_token_count": thoughts}
    facts = {
        "openinference.span.kind": "LLM", "llm.provider": "google", "llm.model_name": "gem",
        "input.value": json.dumps(body), "output.value": json.dumps({"candidates": [{"content": answer}], "usage_metadata": used}),
        "llm.token_count.prompt": prompt, "llm.token_count.completion": output + thoughts,
        "llm.token_count.completion_details.reasoning": thoughts,
    }  # fmt: skip
    for place, said_by in [*enumerate(contents), (0, answer)]:
        head = f"llm.{'output' if said_by is answer else 'input'}_messages.{place}.message."
        facts[f"{head}role"] = said_by["role"]
        for part in said_by["parts"]:
            if "text" in part:
                facts[f"{head}content"] = part["text"]
            elif "function_call" in part:
                facts[f"{head}tool_calls.0.tool_call.function.name"] = part["function_call"]["name"]
                facts[f"{head}tool_calls.0.tool_call.function.arguments"] = json.dumps(part["function_call"]["args"])
            else:
                facts |= {f"{head}role": "tool", f"{head}name": "look", f"{head}content": "page"}
    return span(number, facts, name="GenerateContent", at=at, trace=f"{number:032x}")


def test_google_genai_through_openinference_counts_thoughts_inside_the_output():
    hi = {"role": "user", "parts": [{"text": "hi"}]}
    look = {"role": "model", "parts": [{"function_call": {"name": "look", "args": {"page": 1}}}]}
    page = {"role": "user", "parts": [{"function_response": {"name": "look", "response": {"result": "page"}}}]}
    done = {"role": "model", "parts": [{"text": "done"}]}
    first = openinference_gemini(1, [hi], look, (100, 5, 7), at=0)
    second = openinference_gemini(2, [hi, look, page], done, (150, 6, 0), at=100)
    found = told(request(first, second, scope="openinference.instrumentation.google_genai"))
    assert (len(found.notes.runs), found.notes.turns, found.notes.tool_calls) == (1, 2, 1)
    usage = [e["usage"] for e in found.of("turn_end")]
    assert [(u["input"], u["output"], u["reasoning"]) for u in usage] == [(100, 12, 7), (150, 6, 0)]
    assert [c["name"] for c in found.turns()[1]["calls"]] == ["look"]
    assert found.response(2)["content"] == [{"type": "text", "text": "done"}]
