"""Which conversation does a request go on? Messages as atoms: who said what, whatever the dialect made of it.

A conversation is flattened to its texts, calls and results. Thinking, ids, system prompts and the way blocks
are packed into messages are left out, because producers lose and rearrange just these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...canonical import canonical
from ...providers import openai_chat, openai_responses
from ...providers.answer import mapping, objects

Atom = tuple[str, str, str]

_TEXTS = ("text", "input_text", "output_text", "refusal")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call")


def atoms(message: Any) -> list[Atom]:
    """What one message says: ``(kind, who or name, content)``; nothing for a system message."""
    if isinstance(message, str):
        return [("text", "user", message.strip())]
    body = mapping(message)
    role = body.get("role")
    kind = body.get("type")
    if role in ("system", "developer") or kind == "reasoning":
        return []
    if kind in _CALLS:
        return [_call(body)]
    if isinstance(kind, str) and kind.endswith("_output"):
        return [("result", "", plain(body.get("output")))]
    if role in ("tool", "function"):
        return [("result", "", plain(body.get("content")))]
    who = "assistant" if role in ("assistant", "model", "ai") else "user"
    found = _content(body.get("content"), who)
    found += [_call(c) for c in objects(body.get("tool_calls"))]
    return found


class Known:
    """The atoms of messages that several calls share as one object, while those calls keep it."""

    def __init__(self) -> None:
        self._atoms: dict[int, list[Atom]] = {}

    def atoms(self, message: Any) -> list[Atom]:
        """What the message says; not to be changed."""
        found = self._atoms.get(id(message))
        if found is None:
            found = self._atoms[id(message)] = atoms(message)
        return found


def answer_atoms(api: str, response: Any) -> list[Atom] | None:
    """What an answer says, None when there is none to look at."""
    found = [a for m in replies(api, response) for a in atoms(m)]
    return found or None


def replies(api: str, response: Any) -> list[Any]:
    """The messages that an answer adds to the conversation, as the next request would hold them."""
    body = mapping(response)
    if api == openai_responses.API:
        return objects(body.get("output"))
    if api == openai_chat.API:
        return [mapping(c).get("message") for c in objects(body.get("choices"))[:1]]
    return [{"role": "assistant", "content": body.get("content")}] if body.get("content") else []


def rolled(found: Iterable[Atom], start: int = 0) -> Iterator[int]:
    """A hash of each leading part of the atoms."""
    value = start
    for atom in found:
        value = hash((value, atom))
        yield value


def plain(content: Any) -> str:
    """A result's text without the shape a producer gave it."""
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, list):
        texts = [p if isinstance(p, str) else mapping(p).get("text") for p in content]
        if all(isinstance(t, str) for t in texts):
            return "\n".join(t for t in texts if isinstance(t, str)).strip()
    return "" if content is None else canonical(content)


def _content(content: Any, who: str) -> list[Atom]:
    if isinstance(content, str):
        return [("text", who, content.strip())] if content.strip() else []
    found: list[Atom] = []
    for block in content if isinstance(content, list) else []:
        body = {"type": "text", "text": block} if isinstance(block, str) else mapping(block)
        kind = body.get("type")
        if kind in _TEXTS or (kind is None and isinstance(body.get("text"), str)):
            text = str(body.get("text") or body.get("refusal") or "").strip()
            found += [("text", who, text)] if text else []
        elif kind in _CALLS:
            found.append(_call(body))
        elif kind == "tool_result":
            found.append(("result", "", plain(body.get("content"))))
        elif kind not in ("thinking", "redacted_thinking", "reasoning"):
            found.append(("part", who, canonical({k: v for k, v in body.items() if k != "cache_control"})))
    return found


def _call(body: Mapping[str, Any]) -> Atom:
    function = mapping(body.get("function"))
    name = body.get("name") or function.get("name") or ""
    given = (body.get(k) for k in ("input", "partial_json", "arguments"))
    arguments = next((g for g in given if g is not None), function.get("arguments"))
    return ("call", str(name), _arguments(arguments))


def _arguments(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value).strip()
    return canonical(value if value is not None else {})
