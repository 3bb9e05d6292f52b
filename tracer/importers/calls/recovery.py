"""Answers that a producer lost, from the next request of the conversation: the client sent them back to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...providers import openai_chat, openai_responses
from ...providers.answer import mapping, objects
from .chains import Chain, Link
from .likeness import Known

FLAG = "answer_from_next_request"


def recovered(chain: Chain, known: Known) -> None:
    """Puts calls (with their ids) that only the next request knows into the answers of a chain."""
    for link, follower in zip(chain.links, chain.links[1:], strict=False):
        if link.call.status != "ok" or follower.call.mode != "full" or link.call.api != follower.call.api:
            continue
        sent = _sent_back(link, follower)
        if sent and _knows_more(link, sent, known):
            link.call = replace(link.call, response=_answer(link, sent))
            link.flags.append(FLAG)


def _sent_back(link: Link, follower: Link) -> list[Any]:
    """The messages after the request's own that are the model's."""
    kept = 0
    for old, new in zip(link.call.messages, follower.call.messages, strict=False):
        if old is not new and old != new:
            break
        kept += 1
    if kept < len(link.call.messages) or not kept:
        return []
    sent = []
    for message in follower.call.messages[kept:]:
        body = mapping(message)
        own = body.get("role") == "assistant" or body.get("type") in ("function_call", "reasoning", "custom_tool_call")
        if not own:
            break
        sent.append(message)
    return sent


def _knows_more(link: Link, sent: Sequence[Any], known: Known) -> bool:
    """More calls than the answer has, or ids where it has none."""
    said = [a for m in sent for a in known.atoms(m)]
    calls = [a for a in said if a[0] == "call"]
    if not calls:
        return link.call.response is None and bool(said)
    own = link.answer.calls
    if len(own) > len(calls) or (own and len(own) == len(calls) and (all(c.id for c in own) or not _with_ids(sent))):
        return False
    return all(a in calls for a in link.told or () if a[0] == "call")


def _with_ids(sent: Sequence[Any]) -> bool:
    """Do its calls have ids? Gemini's have none."""
    messages = [mapping(m) for m in sent]
    blocks = [b for m in messages for name in ("content", "tool_calls") for b in objects(m.get(name))]
    return any(b.get("call_id") or b.get("id") for b in [*messages, *blocks])


def _answer(link: Link, sent: Sequence[Any]) -> dict[str, Any]:
    """A response body in the api's shape, with the facts of the one that was kept."""
    api, old = link.call.api, mapping(link.call.response)
    if api == openai_responses.API:
        return {"object": "response", **old, "output": list(sent)}
    if api == openai_chat.API:
        finish = mapping(next(iter(old.get("choices") or ()), None)).get("finish_reason") or link.call.stop_reason
        choice = {"index": 0, "message": sent[0], "finish_reason": finish}
        return {"object": "chat.completion", **old, "choices": [choice]}
    blocks: list[Any] = []
    for message in sent:
        content = mapping(message).get("content")
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    stop = {"stop_reason": link.call.stop_reason} if link.call.stop_reason else {}
    return {"type": "message", "role": "assistant", **stop, **old, "content": blocks}
