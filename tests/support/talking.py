"""A run recorded from requests and responses that a test writes down, by this process's own recorder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from looptape.tracer.clock import new_id
from looptape.tracer.journal import Journal
from looptape.tracer.live import OpenRun, Where
from looptape.tracer.providers import by_api
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import Filter, Store, open_store

ANTHROPIC, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"


def record(home: Path, api: str, talk: Sequence[tuple[dict[str, Any], dict[str, Any] | None]], **run: Any) -> str:
    """Records (request body, response body) pairs as one run that ends well; gives its id."""
    active = Recorder(Journal(home))
    opened = OpenRun(id=new_id(), explicit=True, name="talk")
    active.open_run(opened, **run)
    for body, response in talk:
        turn = active.request(by_api(api), compact(body), place=Where(opened))
        assert turn is not None
        if response is not None:
            active.answered(turn, json.dumps(response), by_api(api).answer(response))
    active.end_run(opened, "completed", "the test is over")
    active.at_exit()
    return opened.id


def compact(body: Any) -> bytes:
    """A body as the SDKs send it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


@contextmanager
def stored(home: Path) -> Iterator[Store]:
    """The store of a home, everything drained."""
    with open_store(home) as store:
        yield store


def newest(store: Store) -> str:
    """The id of the run that began last."""
    return store.runs(Filter(limit=1, sort="time"))[0].id


def loop(
    *,
    system: str | None = "You look things up.",
    laps: int = 3,
    model: str = "claude-sonnet-4-5",
    text: str = "It is 84.",
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """A loop in Anthropic's format: one ``search`` call a turn (ids c1, c2, ...), then an answer."""
    tools = [
        {
            "name": "search",
            "description": "looks up",
            "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
        }
    ]
    shared: dict[str, Any] = {
        "model": model,
        "max_tokens": 500,
        "tools": tools,
        **({"system": system} if system else {}),
    }
    messages: list[Any] = [{"role": "user", "content": "What is 7% of the revenue?"}]
    talk = []
    for lap in range(1, laps + 1):
        said = [
            {"type": "text", "text": f"I look it up, {lap}."},
            {"type": "tool_use", "id": f"c{lap}", "name": "search", "input": {"q": f"revenue {lap}"}},
        ]
        talk.append(({**shared, "messages": list(messages)}, answer(said, "tool_use", lap, model)))
        messages = [*messages, {"role": "assistant", "content": said}, _result(f"c{lap}", f"revenue {lap}: 1200")]
    last = answer([{"type": "text", "text": text}], "end_turn", laps + 1, model)
    return [*talk, ({**shared, "messages": list(messages)}, last)]


def answer(content: list[Any], stop: str, number: int = 1, model: str = "claude-sonnet-4-5") -> dict[str, Any]:
    """A Message of Anthropic's API."""
    usage = {"input_tokens": 100 * number, "output_tokens": 20}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "usage": usage,
    }


def _result(call: str, content: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": content}]}
