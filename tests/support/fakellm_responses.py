"""OpenAI Responses as the fake server speaks it: a whole response, its stream, strict checks."""

from fakellm_openai import error_body
from fakellm_steps import pieces

__all__ = ["check", "error_body", "events", "history", "input_list", "whole"]


def whole(step, body, ids):
    """The response for a step. ``stop``: "failed", or the reason of an incomplete response."""
    u = step.tokens()
    status = {"": "completed", "completed": "completed", "failed": "failed"}.get(step.stop, "incomplete")
    failure = {"code": "server_error", "message": "fake failure"} if status == "failed" else None
    return {
        "id": ids.new("resp_"),
        "object": "response",
        "created_at": ids.now(),
        "status": status,
        "error": failure,
        "incomplete_details": {"reason": step.stop} if status == "incomplete" else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": body.get("model", "fake") + "-2026-01-01",
        "output": _items(step, body, ids),
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": u["prompt"],
            "input_tokens_details": {"cached_tokens": u["cache_read"], "cache_write_tokens": u["cache_write"]},
            "output_tokens": u["output"],
            "output_tokens_details": {"reasoning_tokens": u["reasoning"]},
            "total_tokens": u["prompt"] + u["output"],
        },
        "user": None,
        "metadata": {},
    }


def events(response, body):
    """The stream of a response: numbered ``response.*`` events."""
    start = {**response, "status": "in_progress", "output": [], "usage": None, "error": None}
    start["incomplete_details"] = None
    parts = [("response.created", {"response": start}), ("response.in_progress", {"response": start})]
    for i, item in enumerate(response["output"]):
        first, middle = _item_events(item)
        parts.append(("response.output_item.added", {"output_index": i, "item": first}))
        parts += [(kind, {"item_id": item["id"], "output_index": i, **more}) for kind, more in middle]
        parts.append(("response.output_item.done", {"output_index": i, "item": item}))
    parts.append((f"response.{response['status']}", {"response": response}))
    for number, (kind, more) in enumerate(parts):
        yield kind, {"type": kind, "sequence_number": number, **more}


def history(response):
    """What a request that names this response continues."""
    return response["output"]


def input_list(body):
    """The input as a list, also when it is a plain string."""
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def check(body):
    """What the real API would refuse, or None. ``body["input"]`` holds the whole history by now."""
    items = input_list(body)
    calls = {i["call_id"] for i in items if i.get("type") == "function_call"}
    outputs = {i["call_id"] for i in items if i.get("type") == "function_call_output"}
    if calls - outputs:
        return f"No tool output found for function call {min(calls - outputs)}."
    if outputs - calls:
        return f"No tool call found for function call output with call_id {min(outputs - calls)}."
    return None


def _items(step, body, ids):
    items = []
    if step.thinking and body.get("reasoning"):
        summary = [{"type": "summary_text", "text": step.thinking}]
        items.append({"id": ids.new("rs_"), "type": "reasoning", "summary": summary, "encrypted_content": "ZW5j"})
    items += step.extra_blocks
    if step.text:
        part = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
        message = {"id": ids.new("msg_"), "type": "message", "status": "completed", "role": "assistant"}
        items.append({**message, "content": [part]})
    for c in step.calls:
        call = {"id": ids.new("fc_"), "type": "function_call", "status": "completed", "name": c.name}
        items.append({**call, "call_id": c.id or ids.new("call_"), "arguments": c.raw})
    return items


def _item_events(item):
    """The item as it starts, and the events between its start and its end."""
    kind = item["type"]
    if kind == "message":
        return {**item, "status": "in_progress", "content": []}, _message_events(item["content"][0])
    if kind == "function_call":
        stem, text = "response.function_call_arguments", item["arguments"]
        deltas = [(f"{stem}.delta", {"delta": p}) for p in pieces(text)]
        return {**item, "status": "in_progress", "arguments": ""}, [*deltas, (f"{stem}.done", {"arguments": text})]
    if kind == "reasoning":
        return {**item, "summary": []}, _summary_events(item["summary"][0])
    return {**item, "status": "in_progress"}, []


def _message_events(part):
    at = {"content_index": 0}
    text = {**at, "logprobs": []}
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**text, "delta": piece}
    yield "response.output_text.done", {**text, "text": part["text"]}
    yield "response.content_part.done", {**at, "part": part}


def _summary_events(part):
    at = {"summary_index": 0}
    yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
    yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**at, "part": part}
