"""The wire formats as the loop writes them: the answer, the results, a prompt and the tools of a next request."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...tracer.errors import UsageError
from ...tracer.providers import by_api
from ...tracer.providers.answer import mapping, text_of
from ..fork.shapes import answer_messages, result_messages
from .toolbox import Definition
from .tools.execution import Done, Wanted

CHAT, RESPONSES, ANTHROPIC, MANUAL = "openai.chat", "openai.responses", "anthropic.messages", "manual"
APIS = (ANTHROPIC, CHAT, RESPONSES, MANUAL)


def supported(api: str) -> None:
    """Raises UsageError ``wire-format`` for a format in which the loop cannot write."""
    if api not in APIS:
        raise UsageError("wire-format", f"the built-in loop does not write {api}", f"It writes {', '.join(APIS)}")


def said(api: str, response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that a next request carries for an answer, as it was: signed blocks stay untouched."""
    messages = answer_messages(dict(response))
    if api in (ANTHROPIC, MANUAL):
        return [
            {**m, "content": [_sendable(b) for b in m["content"]]} if isinstance(m.get("content"), list) else m
            for m in messages
        ]
    if api != CHAT:
        return messages
    return [{k: v for k, v in m.items() if v is not None or k == "content"} for m in messages]


def results(api: str, done: Sequence[Done], response: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The messages that tell the results of calls, each with its call, in the order of the calls."""
    if not done:
        return []
    made = result_messages(api, [(d.call.id, d.call.name, d.result.content, d.result.is_error) for d in done])
    if api == RESPONSES:  # a custom tool's result has a type of its own
        kinds = {i.get("call_id"): i.get("type") for i in (response or {}).get("output") or () if isinstance(i, dict)}
        return [{**m, "type": f"{kinds.get(m['call_id']) or 'function_call'}_output"} for m in made]
    if api == CHAT:  # calls of old have no id: the tool's name ties the result to it
        return [
            {"role": "function", "name": d.call.name, "content": m["content"]}
            if d.call.id.startswith("function:")
            else m
            for d, m in zip(done, made, strict=True)
        ]
    return made


def prompt(api: str, text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


def definitions(api: str, tools: Any) -> list[Definition]:
    """The client's tools of a request; those that the provider runs itself are none."""
    found = []
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        part = mapping(tool.get("function")) or tool
        name = part.get("name")
        schema = part.get("input_schema") or part.get("parameters")
        ours = tool.get("type") in (None, "custom", "function")
        if isinstance(name, str) and ours:
            found.append(
                Definition(name, str(part.get("description") or ""), schema if isinstance(schema, dict) else None)
            )
    return found


def tool_objects(api: str, found: Sequence[Definition]) -> list[dict[str, Any]]:
    """Definitions as a request of this format holds them."""
    made = []
    for d in found:
        schema = dict(d.schema) if d.schema is not None else {"type": "object"}
        if api == CHAT:
            made.append(
                {"type": "function", "function": {"name": d.name, "description": d.description, "parameters": schema}}
            )
        elif api == RESPONSES:
            made.append({"type": "function", "name": d.name, "description": d.description, "parameters": schema})
        else:
            made.append({"name": d.name, "description": d.description, "input_schema": schema})
    return made


def only(api: str, tools: Any, names: Collection[str]) -> list[Any]:
    """The tools of a request without the client's own that are not named."""
    ours = {d.name for d in definitions(api, tools)}
    return [t for t in tools if _name(t) not in ours or _name(t) in names]


def wanted(api: str, response: Any) -> tuple[list[Wanted], list[str]]:
    """The calls of an answer that are for us, and the ids of those that were cut (never run)."""
    calls = [c for c in by_api(api).answer(response).calls if not c.provider_side]
    whole = [Wanted(c.id, c.name, c.arguments_raw) for c in calls if c.state != "incomplete"]
    return whole, [c.id for c in calls if c.state == "incomplete"]


def with_ids(api: str, response: dict[str, Any], turn: int) -> tuple[dict[str, Any], list[str]]:
    """The answer with an id for every call: some servers give none, or the same twice, and no result could be paired.

    Returns the answer (the same object when nothing was missing) and the ids that were made.
    """
    if api != CHAT:
        return response, []
    calls = [
        c
        for choice in (response.get("choices") or ())[:1]
        for c in (choice.get("message") or {}).get("tool_calls") or ()
    ]
    ids = [c.get("id") if isinstance(c, dict) else None for c in calls]
    if all(ids) and len(set(ids)) == len(ids):
        return response, []
    copy: dict[str, Any] = json.loads(json.dumps(response))
    seen: set[str] = set()
    made: list[str] = []
    for index, call in enumerate(copy["choices"][0]["message"]["tool_calls"], 1):
        if not call.get("id") or call["id"] in seen:
            call["id"] = f"call_{turn}_{index}"
            made.append(call["id"])
        seen.add(call["id"])
    return copy, made


def asking(api: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A request body as the loop sends it: whole, not streamed."""
    sent = {k: v for k, v in body.items() if k not in ("stream", "stream_options")}
    if api == RESPONSES and isinstance(sent.get("input"), str):
        sent["input"] = [{"role": "user", "content": sent["input"]}]
    return sent


def response_body(
    api: str,
    *,
    text: str | None,
    calls: Sequence[Mapping[str, Any]],
    turn: int,
    usage: Any,
    model: Any,
    stop: str | None,
) -> dict[str, Any]:
    """An answer in this format, from its parts: what a script says in short."""
    made = [
        (str(c.get("id") or f"call_{turn}_{i}"), str(c.get("name")), c.get("arguments", c.get("input", {})))
        for i, c in enumerate(calls, 1)
    ]
    if api == CHAT:
        listed = [{"id": i, "type": "function", "function": {"name": n, "arguments": _raw(a)}} for i, n, a in made]
        message = {"role": "assistant", "content": text, **({"tool_calls": listed} if listed else {})}
        choice = {"index": 0, "message": message, "finish_reason": stop or ("tool_calls" if listed else "stop")}
        return _with(usage, {"id": f"script_{turn}", "object": "chat.completion", "model": model, "choices": [choice]})
    if api == RESPONSES:
        words: list[Any] = [{"type": "output_text", "text": text, "annotations": []}]
        output = [{"type": "message", "role": "assistant", "status": "completed", "content": words}] if text else []
        output += [{"type": "function_call", "call_id": i, "name": n, "arguments": _raw(a)} for i, n, a in made]
        head = {"id": f"script_{turn}", "object": "response", "status": stop or "completed", "model": model}
        return _with(usage, {**head, "output": output})
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for i, n, a in made:
        blocks.append(
            {
                "type": "tool_use",
                "id": i,
                "name": n,
                **({"input": a} if not isinstance(a, str) else {"partial_json": a}),
            }
        )
    head = {"id": f"script_{turn}", "type": "message", "role": "assistant", "model": model, "content": blocks}
    return _with(usage, {**head, "stop_reason": stop or ("tool_use" if made else "end_turn")})


def _sendable(block: Any) -> Any:
    """A block as it may be sent: arguments that are no JSON object stand in one, as the provider asks for."""
    if not isinstance(block, dict) or ("partial_json" not in block and "incomplete" not in block):
        return block
    kept = {k: v for k, v in block.items() if k not in ("partial_json", "incomplete")}
    return {**kept, "input": {"INVALID_JSON": block["partial_json"]}} if "partial_json" in block else kept


def _name(tool: Any) -> str | None:
    part = mapping(mapping(tool).get("function")) or mapping(tool)
    return text_of(part.get("name"))


def _raw(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _with(usage: Any, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "usage": usage} if usage is not None else body
