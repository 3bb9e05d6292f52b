"""A streamed call whose arguments are no JSON, then one of a wrong type, then the right one.

The loop reads the raw events, as one does for tools that take long arguments: nobody but it parses them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from anthropic.types import MessageParam, RawMessageStreamEvent, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, call_raw, client, reply

TOOLS: list[ToolParam] = [
    {
        "name": "reorder",
        "description": "Order an article from its maker",
        "input_schema": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["sku", "quantity"],
        },
    }
]
TASK = "Blue mugs (MUG-330-BLUE) are down to 4. Bring them back to 40, and ask for the new packaging."
NOTE = 'new packaging please ("Fjord 2", no plastic)'

model = looptape.wrap(
    client(
        reply(
            "I order 36 mugs.",
            call_raw("reorder", '{"sku": "MUG-330-BLUE", "quantity": 36, "note": "new packaging please ("Fjord 2"'),
            seconds=1.2,
        ),
        reply(
            "The quotes were not escaped. Again:",
            call("reorder", sku="MUG-330-BLUE", quantity="thirty-six", note=NOTE),
            seconds=0.9,
        ),
        reply(call("reorder", sku="MUG-330-BLUE", quantity=36, note=NOTE), seconds=1.0),
        reply("36 blue mugs are ordered; they come on September 21 in the new packaging.", seconds=0.8),
    )
)


@looptape.tool(side_effect="mutate")
def reorder(sku: str, quantity: int, note: str = "") -> str:
    """Orders an article; raises TypeError and ValueError on arguments that make no sense."""
    if not isinstance(quantity, int):
        raise TypeError(f"quantity must be a whole number, not {quantity!r}")
    if not 0 < quantity <= 500:
        raise ValueError("quantity must be from 1 to 500")
    time.sleep(0.4)
    return f"order PO-2291: {quantity} x {sku}, arrives 2026-09-21"


def collect(events: Iterable[RawMessageStreamEvent]) -> tuple[list[Any], str | None]:
    """Blocks and stop reason of a streamed message. A call's input stays the text that came."""
    blocks: list[Any] = []
    stop = None
    for event in events:
        if event.type == "content_block_start":
            blocks.append(event.content_block.to_dict())
            if event.content_block.type == "tool_use":
                blocks[-1]["input"] = ""
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            blocks[-1]["text"] += event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            blocks[-1]["input"] += event.delta.partial_json
        elif event.type == "message_delta":
            stop = event.delta.stop_reason
    return blocks, stop


def execute(block: dict[str, Any]) -> ToolResultBlockParam:
    """The result of a call. What is no JSON goes back as it came, so that the model sees what it wrote."""
    raw = block["input"]
    try:
        block["input"] = json.loads(raw)
    except ValueError as error:
        block["input"] = {"INVALID_JSON": raw}
        text = f"The arguments are not JSON: {error}"
        return {"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": True}
    try:
        out, is_error = reorder(**block["input"]), False
    except (TypeError, ValueError) as error:
        out, is_error = f"{type(error).__name__}: {error}", True
    return {"type": "tool_result", "tool_use_id": block["id"], "content": out, "is_error": is_error}


def agent(task: str) -> str:
    """The loop over raw streams."""
    messages: list[MessageParam] = [{"role": "user", "content": task}]
    while True:
        stream = model.messages.create(
            model="claude-haiku-4-5", max_tokens=1024, tools=TOOLS, messages=messages, stream=True
        )
        blocks, stop = collect(stream)
        if stop != "tool_use":
            return "".join(b["text"] for b in blocks if b["type"] == "text")
        results = [execute(b) for b in blocks if b["type"] == "tool_use"]
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


def main() -> str:
    """Fills up the stock."""
    with looptape.run("reorder-mugs", session="stock", agent="buyer", limits=looptape.Limits(turns=10)) as run:
        answer = agent(TASK)
        run.outcome("pass")
    return answer


if __name__ == "__main__":
    print(main())
