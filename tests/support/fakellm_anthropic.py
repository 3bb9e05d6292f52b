"""Anthropic Messages as the fake server speaks it: a whole message, its stream, errors, strict checks."""

from fakellm_steps import Call, pieces, signature


def error_body(kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}


def whole(step, body, ids):
    """The message for a step."""
    u = step.tokens()
    return {
        "id": ids.new("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "fake"),
        "content": _blocks(step, body, ids),
        "stop_reason": step.stop or ("tool_use" if step.calls else "end_turn"),
        "stop_sequence": "END" if step.stop == "stop_sequence" else None,
        "usage": {
            "input_tokens": u["input"],
            "cache_creation_input_tokens": u["cache_write"],
            "cache_read_input_tokens": u["cache_read"],
            "cache_creation": {"ephemeral_5m_input_tokens": u["cache_write"], "ephemeral_1h_input_tokens": 0},
            "output_tokens": u["output"],
            "service_tier": "standard",
        },
    }


def events(message, body):
    """The stream of a message: (event, data) pairs."""
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    start["usage"] = {**message["usage"], "output_tokens": 1}
    yield _event("message_start", message=start)
    yield _event("ping")
    for i, block in enumerate(message["content"]):
        first, deltas = _deltas(block)
        yield _event("content_block_start", index=i, content_block=first)
        for delta in deltas:
            yield _event("content_block_delta", index=i, delta=delta)
        yield _event("content_block_stop", index=i)
    stop = {k: message[k] for k in ("stop_reason", "stop_sequence")}
    usage = {k: v for k, v in message["usage"].items() if k.endswith("_tokens")}
    yield _event("message_delta", delta=stop, usage=usage)
    yield _event("message_stop")


def history(message):
    """What the next request of a server-held thread continues."""
    return [{"role": "assistant", "content": message["content"]}]


def check(body):
    """What the real API would refuse, or None."""
    if "max_tokens" not in body:
        return "max_tokens: Field required"
    want = []
    for k, message in enumerate(body.get("messages", [])):
        blocks = message["content"] if isinstance(message["content"], list) else []
        got = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        if missing := [w for w in want if w not in got]:
            told = "`tool_use` ids were found without `tool_result` blocks immediately after"
            return f"messages.{k}: {told}: {', '.join(missing)}"
        if odd := [g for g in got if g not in want]:
            return f"messages.{k}: unexpected `tool_use_id` found in `tool_result` blocks: {odd[0]}"
        called = [b["id"] for b in blocks if b.get("type") == "tool_use"]
        want = called if message["role"] == "assistant" else []
    return None


def _blocks(step, body, ids):
    blocks = []
    if step.thinking and (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        blocks.append({"type": "thinking", "thinking": step.thinking, "signature": signature(step.thinking)})
    blocks += step.extra_blocks
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    for c in step.calls:
        blocks.append({"type": "tool_use", "id": c.id or ids.new("toolu_"), "name": c.name, "input": c.args})
    return blocks


def _deltas(block):
    """The block as it starts, and what makes it whole. Kinds that come in one piece have no deltas."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(block["text"])]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        text = Call("", block["input"]).raw
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in ["", *pieces(text)]]
        return {**block, "input": {}}, deltas
    return block, []


def _event(kind, **more):
    return kind, {"type": kind, **more}
