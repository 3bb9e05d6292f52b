"""Streams with extended thinking: every chunk with its time, and signatures that go back as they came.

Only the client is wrapped. Nothing else is needed: the run begins with the first request, ends with the last answer,
and the tool, which looptape does not know, is seen in the request that carries its result.
"""

from __future__ import annotations

import time

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply, thinking

TOOLS: list[ToolParam] = [
    {
        "name": "delivery_days",
        "description": "Working days that a parcel takes to a country",
        "input_schema": {"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]},
    }
]
SYSTEM = "You advise customers of a ceramics shop. Today is Thursday, 2026-09-17."
QUESTION = "My sister in Lisbon turns 40 on September 26. Will a vase still arrive in time if I order today?"

model = looptape.wrap(
    client(
        reply(
            thinking(
                "The birthday is on Saturday, September 26. Today is Thursday, September 17. I need the delivery time to "
                "Portugal; glaze and packing are done the same day if the order comes before noon, which I cannot know."
            ),
            "Let me check how long a parcel to Portugal takes.",
            call("delivery_days", country="PT"),
            seconds=1.1,
        ),
        reply(
            thinking(
                "Five working days, sent tomorrow, Friday 18: Monday 21 is one, Tuesday two, Wednesday three, Thursday "
                "four, Friday 25 five. So it arrives on Friday, one day before the birthday. That is tight but it works; "
                "Saturday deliveries do not count. I should say that it is tight."
            ),
            "Yes, just: ordered today, the vase leaves us tomorrow and arrives on **Friday, September 25**, one day before "
            "the birthday. If you want to be safe, choose express for 9 EUR; it then arrives on Tuesday.",
            seconds=0.8,
        ),
    )
)


def delivery_days(country: str) -> str:
    """How long parcels take."""
    time.sleep(0.15)
    return f"{country}: 5 working days after dispatch (express: 2). Next dispatch: tomorrow, Friday."


def agent(question: str) -> str:
    """The loop over `messages.stream()`, which shows the text as it comes."""
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    while True:
        with model.messages.stream(
            model="claude-sonnet-4-6",
            max_tokens=4096,
            thinking={"type": "enabled", "budget_tokens": 2048},
            system=SYSTEM,
            tools=TOOLS,
            messages=messages,
        ) as stream:
            shown = "".join(stream.text_stream)
            answer = stream.get_final_message()
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return shown
        results: list[ToolResultBlockParam] = []
        for b in calls:
            country = str(b.input["country"])
            results.append({"type": "tool_result", "tool_use_id": b.id, "content": delivery_days(country)})
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def main() -> str:
    """One customer's question."""
    return agent(QUESTION)


if __name__ == "__main__":
    print(main())
