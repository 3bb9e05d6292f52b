"""The API refuses twice (too many requests, then overloaded); the SDK waits and tries again, and the loop never knows."""

from __future__ import annotations

import time

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, refusal, reply

TOOLS: list[ToolParam] = [
    {
        "name": "search_docs",
        "description": "Search the handbook of the shop software",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    }
]
SYSTEM = "You answer questions about the shop software from its handbook, and name the page."
QUESTION = "How do I print parcel labels for all orders of today at once?"
TOO_MANY = "This request would exceed your organization's rate limit of 50,000 input tokens per minute."

model = looptape.wrap(
    client(
        refusal(429, "rate_limit_error", TOO_MANY, retry_after=11),
        refusal(529, "overloaded_error", "Overloaded", retry_after=3),
        reply(call("search_docs", query="print labels in bulk"), seconds=1.6),
        reply("Orders > Today > Select all > **Print labels** (handbook p. 48).", seconds=1.3),
    )
)


@looptape.tool(side_effect="read")
def search_docs(query: str) -> str:
    """Pages of the handbook that fit."""
    time.sleep(0.18)
    return "p. 48, Labels: open Orders > Today, choose Select all, then Print labels. One PDF, four labels a page."


def agent(question: str) -> str:
    """The loop. The SDK's own retries (two by default) need no line here."""
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    while True:
        answer = model.messages.create(
            model="claude-haiku-4-5", max_tokens=512, system=SYSTEM, tools=TOOLS, messages=messages
        )
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": b.id, "content": search_docs(str(b.input["query"]))} for b in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def main() -> str:
    """One question, answered late."""
    with looptape.run("handbook", session="support", task="docs-question") as run:
        answer = agent(QUESTION)
        run.outcome("pass")
    return answer


if __name__ == "__main__":
    print(main())
