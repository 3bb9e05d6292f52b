"""A common fault of loops: two calls, one result. The API refuses the next request, and the run fails.

(The loop runs the first tool_use block it finds and forgets that there may be more.)
"""

from __future__ import annotations

import time

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, refusal, reply

TOOLS: list[ToolParam] = [
    {
        "name": "stock",
        "description": "How many pieces of an article are in store",
        "input_schema": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
    }
]
QUESTION = "Do we have more blue mugs (MUG-330-BLUE) or more green ones (MUG-330-MOSS)?"
REFUSED = (
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)

model = looptape.wrap(
    client(
        reply(call("stock", sku="MUG-330-BLUE"), call("stock", sku="MUG-330-MOSS"), seconds=1.2),
        refusal(400, "invalid_request_error", REFUSED),
    )
)


@looptape.tool(side_effect="read")
def stock(sku: str) -> str:
    """Pieces in store."""
    time.sleep(0.09)
    return f"{sku}: 40"


def agent(question: str) -> str:
    """The loop with the fault."""
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    while True:
        answer = model.messages.create(model="claude-haiku-4-5", max_tokens=512, tools=TOOLS, messages=messages)
        first = next((b for b in answer.content if b.type == "tool_use"), None)
        if first is None:
            return "".join(b.text for b in answer.content if b.type == "text")
        out = stock(str(first.input["sku"]))
        result: ToolResultBlockParam = {"type": "tool_result", "tool_use_id": first.id, "content": out}
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]


def main() -> str:
    """Raises anthropic.BadRequestError."""
    with looptape.run("mugs-in-store", session="stock", task="stock-question"):
        return agent(QUESTION)


if __name__ == "__main__":
    print(main())
