"""Where calls, results and words stand inside a message of any provider: found by shape, to be read or changed in place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...tracer.providers import gemini
from ..message_parts import role

_OWN_CALLS = ("tool_use",)  # the others are steps that the provider runs itself
_ITEM_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_ITEM_RESULTS = ("function_call_output", "custom_tool_call_output")
_TEXTS = ("text", "input_text", "output_text")


@dataclass(frozen=True, slots=True, eq=False)
class CallAt:
    """A tool call in a message: ``holder[key]`` are its arguments, as JSON text when ``as_text``."""

    id: str
    name: str
    holder: dict[str, Any]
    key: str
    as_text: bool
    named: dict[str, Any]

    @property
    def raw(self) -> str:
        """The arguments as JSON text."""
        value = self.holder.get("partial_json", self.holder.get(self.key))
        return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)

    def put(self, arguments: Any) -> None:
        """Other arguments, in the form that this provider has them."""
        self.holder.pop("partial_json", None)
        if self.as_text and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        self.holder[self.key] = arguments

    def rename(self, name: str) -> None:
        """Another tool."""
        self.named["name"] = name


@dataclass(frozen=True, slots=True, eq=False)
class ResultAt:
    """A tool result in a message: ``holder[key]`` is what the model was told."""

    call: str
    holder: dict[str, Any]
    key: str

    @property
    def is_error(self) -> bool:
        """True where the provider has a mark for failed results and it is set."""
        return self.holder.get("is_error") is True


def calls_of(message: Any) -> Iterator[CallAt]:
    """The calls that the client is asked to run, in their order."""
    if not isinstance(message, dict):
        return
    key = _ITEM_CALLS.get(str(message.get("type")))
    if key is not None:
        yield CallAt(_id(message.get("call_id") or message.get("id")), _id(message.get("name")), message, key, True, message)  # fmt: skip
    for block in _dicts(message.get("content")):
        if block.get("type") in _OWN_CALLS:
            yield CallAt(_id(block.get("id")), _id(block.get("name")), block, "input", False, block)
    for call in _dicts(message.get("tool_calls")):
        for named, key in ((call.get("function"), "arguments"), (call.get("custom"), "input")):
            if isinstance(named, dict):
                yield CallAt(_id(call.get("id")), _id(named.get("name")), named, key, True, named)
    for part in _dicts(message.get("parts")):
        named = part.get("functionCall", part.get("function_call"))
        if isinstance(named, dict):
            yield CallAt(_id(named.get("id") or named.get("name")), _id(named.get("name")), named, "args", False, named)


def results_of(message: Any) -> Iterator[ResultAt]:
    """The tool results that a message carries, in their order."""
    if not isinstance(message, dict):
        return
    if message.get("role") == "tool" and "tool_call_id" in message:
        yield ResultAt(_id(message["tool_call_id"]), message, "content")
        return
    if message.get("type") in _ITEM_RESULTS:
        yield ResultAt(_id(message.get("call_id")), message, "output")
        return
    for block in _dicts(message.get("content")):
        if block.get("type") == "tool_result":
            yield ResultAt(_id(block.get("tool_use_id")), block, "content")
    for part in _dicts(message.get("parts")):
        for key in ("functionResponse", "function_response"):
            if isinstance(part.get(key), dict):
                yield ResultAt(_id(part[key].get("id") or part[key].get("name")), part[key], "response")


def text_of(message: Any) -> str:
    """The words of a message, without thinking, calls and results."""
    if not isinstance(message, dict):
        return message if isinstance(message, str) else ""
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content
    return "\n\n".join(b["text"] for b in _dicts(content) if _is_text(b) and b["text"])


def put_text(message: dict[str, Any], text: str) -> None:
    """Other words for a message: its first text is replaced, its further ones go."""
    key = "parts" if "parts" in message and "content" not in message else "content"
    content = message.get(key)
    if not isinstance(content, list):
        message[key] = text
        return
    first = next((b for b in content if isinstance(b, dict) and _is_text(b)), None)
    if first is not None:
        first["text"] = text
        message[key] = [b for b in content if b is first or not (isinstance(b, dict) and _is_text(b))]
        return
    place = next(
        (i for i, b in enumerate(content) if isinstance(b, dict) and b.get("type") in _OWN_CALLS), len(content)
    )
    content.insert(place, {"text": text} if key == "parts" else {"type": _text_type(message), "text": text})


def is_answer(message: Any) -> bool:
    """True for what the model said: an assistant's message, or an item of a Responses output."""
    return role(message) == "assistant"


def answer_messages(response: Any) -> list[Any]:
    """A response body as the messages that the next request carries for it; the same objects, not copies."""
    from ...tracer.store.requests import answer_messages as of

    if isinstance(response, dict) and isinstance(response.get("candidates"), list):
        found = response["candidates"]
        content = found[0].get("content") if found and isinstance(found[0], dict) else None
        return [content] if isinstance(content, dict) else []
    return of(None, response)


def result_messages(api: str, results: list[tuple[str, str, Any, bool]]) -> list[dict[str, Any]]:
    """The messages that bring results (call id, tool's name, content, is_error) to the model, in a provider's shape."""
    if api == "openai.chat":
        return [{"role": "tool", "tool_call_id": i, "content": _plain(c)} for i, _, c, _ in results]
    if api == "openai.responses":
        return [{"type": "function_call_output", "call_id": i, "output": _plain(c)} for i, _, c, _ in results]
    if api == gemini.API:
        parts = [{"functionResponse": {"id": i, "name": n, "response": c if isinstance(c, dict) else {"output": c}}}
                 for i, n, c, _ in results]  # fmt: skip
        return [{"role": "user", "parts": parts}]
    blocks = [
        {"type": "tool_result", "tool_use_id": i, "content": c, **({"is_error": True} if failed else {})}
        for i, _, c, failed in results
    ]
    return [{"role": "user", "content": blocks}]


def _plain(content: Any) -> Any:
    if isinstance(content, (str, list)):
        return content
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def _is_text(block: dict[str, Any]) -> bool:
    typed = block.get("type") in _TEXTS or ("type" not in block and block.get("thought") is not True)
    return typed and isinstance(block.get("text"), str)


def _text_type(message: dict[str, Any]) -> str:
    """An item of a Responses output has type message too; Anthropic's whole answer is told by its stop reason."""
    item = message.get("type") == "message" and "stop_reason" not in message and "usage" not in message
    return "output_text" if item else "text"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _id(value: Any) -> str:
    return value if isinstance(value, str) else ""
