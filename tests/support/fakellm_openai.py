"""OpenAI Chat Completions as the fake server speaks it, and the errors both OpenAI APIs share."""

from fakellm_steps import pieces


def error_body(kind, message):
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def whole(step, body, ids):
    """The completion for a step."""
    u = step.tokens()
    message = {"role": "assistant", "content": step.text or None, "refusal": None, "annotations": []}
    if step.stop == "refusal":
        message.update(content=None, refusal=step.text)
    if step.calls:
        message["tool_calls"] = [
            {"id": c.id or ids.new("call_"), "type": "function", "function": {"name": c.name, "arguments": c.raw}}
            for c in step.calls
        ]
    stop = "stop" if step.stop == "refusal" else step.stop or ("tool_calls" if step.calls else "stop")
    return {
        "id": ids.new("chatcmpl-"),
        "object": "chat.completion",
        "created": ids.now(),
        "model": body.get("model", "fake") + "-2026-01-01",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stop}],
        "usage": {
            "prompt_tokens": u["prompt"],
            "completion_tokens": u["output"],
            "total_tokens": u["prompt"] + u["output"],
            "prompt_tokens_details": {
                "cached_tokens": u["cache_read"],
                "cache_write_tokens": u["cache_write"],
                "audio_tokens": 0,
            },
            "completion_tokens_details": {"reasoning_tokens": u["reasoning"], "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def events(completion, body):
    """The stream of a completion; its usage only when asked for, as in the real API."""
    told = bool((body.get("stream_options") or {}).get("include_usage"))
    base = {k: v for k, v in completion.items() if k not in ("choices", "usage")}
    base["object"] = "chat.completion.chunk"
    if told:
        base["usage"] = None
    choice = completion["choices"][0]
    for delta in _deltas(choice["message"]):
        part = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        yield None, {**base, "choices": [part]}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}
    yield None, {**base, "choices": [last]}
    if told:
        yield None, {**base, "choices": [], "usage": completion["usage"]}
    yield None, "[DONE]"


def check(body):
    """What the real API would refuse, or None."""
    want = []
    for message in body.get("messages", []):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in want:
                return f"tool_call_id {message.get('tool_call_id')} not expected"
            want.remove(message["tool_call_id"])
        elif want:
            told = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            return f"{told} 'tool_call_id': {', '.join(want)}"
        else:
            want = [t["id"] for t in message.get("tool_calls") or []]
    return None


def _deltas(message):
    yield {"role": "assistant", "content": "" if message["content"] else None, "refusal": None}
    for key in ("content", "refusal"):
        for piece in pieces(message[key] or ""):
            yield {key: piece}
    for i, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": i, "function": {"name": function["name"], "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": i, "function": {"arguments": piece}}]}
