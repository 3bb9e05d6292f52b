"""A loop that goes round in circles: the same call, the same error, a thought between, until the cap ends it."""

from __future__ import annotations

import time
from collections.abc import Callable

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply

TOOLS: list[ToolParam] = [
    {
        "name": "find_order",
        "description": "Find an order by its number",
        "input_schema": {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]},
    },
    {
        "name": "think",
        "description": "Write down a thought. Changes nothing.",
        "input_schema": {"type": "object", "properties": {"thought": {"type": "string"}}, "required": ["thought"]},
    },
]
SYSTEM = "You answer customers of a small ceramics shop. Look things up before you answer."
LIMITS = looptape.Limits(turns=8)
ORDERS = {"A-10042": "2 x mug 'Fjord', paid, handed to the parcel service on September 4"}

# the customer typed the letter O for a zero, and nothing in the error says so
model = looptape.wrap(
    client(
        reply("Let me look that up.", call("find_order", number="A-1OO42"), seconds=0.9),
        reply(call("think", thought="Not found. Perhaps the index is a little behind."), seconds=0.7),
        reply(call("find_order", number="A-1OO42"), seconds=0.8),
        reply(call("think", thought="Still not found. The customer is sure of it, so I try once more."), seconds=0.7),
        reply("I will try again.", call("find_order", number="A-1OO42"), seconds=0.9),
        reply(call("think", thought="Strange. Maybe the order system is being updated."), seconds=0.7),
        reply(call("find_order", number="A-1OO42"), seconds=0.8),
        reply(call("think", thought="I should give it another try in a moment."), seconds=0.8),
    )
)


@looptape.tool(side_effect="read")
def find_order(number: str) -> str:
    """Looks an order up; raises LookupError when there is none."""
    time.sleep(0.21)
    if number not in ORDERS:
        raise LookupError(f"no order {number}")
    return ORDERS[number]


@looptape.tool(side_effect="bookkeeping")
def think(thought: str) -> str:
    """Gives the model room to think."""
    return "noted"


RUN: dict[str, Callable[..., str]] = {"find_order": find_order, "think": think}


def agent(question: str) -> str | None:
    """The loop; None when the cap is reached without an answer."""
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    for _ in range(LIMITS.turns or 1):
        answer = model.messages.create(
            model="claude-haiku-4-5", max_tokens=512, system=SYSTEM, tools=TOOLS, messages=messages
        )
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results: list[ToolResultBlockParam] = []
        for block in calls:
            try:
                out, is_error = RUN[block.name](**block.input), False
            except LookupError as error:
                out, is_error = f"Error: {error}", True
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": out, "is_error": is_error})
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    return None


def main() -> str | None:
    """Where is the parcel? The loop never finds out."""
    with looptape.run("where-is-my-parcel", session="shop", tags={"channel": "mail"}, limits=LIMITS) as run:
        answer = agent("Where is my parcel? The order number is A-1OO42. Kind regards, Maren")
        if answer is None:
            run.outcome("fail", "no answer within eight turns")
    return answer


if __name__ == "__main__":
    print(main())
