"""A tool that runs a loop of its own with a smaller model: each of its runs is a child of the call that started it."""

from __future__ import annotations

import time

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply

LEAD_TOOLS: list[ToolParam] = [
    {
        "name": "research",
        "description": "Let an assistant find out about one supplier",
        "input_schema": {"type": "object", "properties": {"supplier": {"type": "string"}}, "required": ["supplier"]},
    }
]
SEARCH_TOOLS: list[ToolParam] = [
    {
        "name": "search_web",
        "description": "Search the web",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    }
]
QUESTION = "We need 500 kg of stoneware clay. Nordlera or Kiln & Co: who is cheaper, freight included?"
PAGES = {
    "Nordlera": "Nordlera price list 2026: stoneware SW-12, 0.92 EUR/kg from 500 kg. Freight 65 EUR a pallet.",
    "Kiln & Co": "Kiln & Co: stoneware 'Basalt' 1.04 EUR/kg, free delivery above 400 EUR.",
}

# one client serves both loops, in the order in which they ask
model = looptape.wrap(
    client(
        reply(
            "I have both looked up.",
            call("research", supplier="Nordlera"),
            call("research", supplier="Kiln & Co"),
            seconds=2.0,
        ),
        reply(call("search_web", query="Nordlera stoneware price 500 kg"), seconds=0.8),
        reply("Nordlera: 0.92 EUR/kg from 500 kg, freight 65 EUR. Together 525 EUR.", seconds=0.9),
        reply(call("search_web", query="Kiln & Co stoneware price 500 kg"), seconds=0.7),
        reply("Kiln & Co: 1.04 EUR/kg, delivery free. Together 520 EUR.", seconds=0.9),
        reply("**Kiln & Co** by 5 EUR: 520 EUR against 525 EUR at Nordlera, freight included.", seconds=2.3),
    )
)


@looptape.tool(side_effect="read")
def search_web(query: str) -> str:
    """The page that fits."""
    time.sleep(0.42)
    return next(page for name, page in PAGES.items() if query.startswith(name))


@looptape.tool
def research(supplier: str) -> str:
    """The sub-agent: a loop like any other. That it runs inside a tool is all that makes its run a child."""
    messages: list[MessageParam] = [{"role": "user", "content": f"What do 500 kg of stoneware cost at {supplier}?"}]
    while True:
        answer = model.messages.create(model="claude-haiku-4-5", max_tokens=512, tools=SEARCH_TOOLS, messages=messages)
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": b.id, "content": search_web(str(b.input["query"]))} for b in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def agent(question: str) -> str:
    """The loop of the lead."""
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    while True:
        answer = model.messages.create(model="claude-sonnet-4-6", max_tokens=1024, tools=LEAD_TOOLS, messages=messages)
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": b.id, "content": research(str(b.input["supplier"]))} for b in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def main() -> str:
    """Compares two suppliers."""
    with looptape.run("suppliers", session="purchasing", agent="lead", task="compare-suppliers") as run:
        answer = agent(QUESTION)
        run.outcome("pass" if "Kiln & Co" in answer else "fail")
    return answer


if __name__ == "__main__":
    print(main())
