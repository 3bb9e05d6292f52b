"""The tutorial loop and a good run of it: the model searches, calculates and answers."""

from __future__ import annotations

import operator
import time
from typing import Any

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply

TOOLS: list[ToolParam] = [
    {
        "name": "search",
        "description": "Search the company wiki",
        "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    },
    {
        "name": "calculator",
        "description": "Multiply two numbers",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
]
QUESTION = "What is 7% of last year's revenue?"

# in a program of yours: looptape.wrap(anthropic.Anthropic())
model = looptape.wrap(
    client(
        reply("I need last year's revenue first.", call("search", q="annual revenue 2025"), seconds=1.8),
        reply(call("calculator", a=412_000_000, b=0.07), seconds=1.1),
        reply("7% of last year's revenue ($412.0M) is about **$28.84M**.", seconds=1.4),
    )
)


@looptape.tools
def run_tool(name: str, args: dict[str, Any]) -> str:
    """Runs a tool by its name. The decorator gives exact times and makes the tools replayable."""
    if name == "search":
        if set(args) != {"q"} or not isinstance(args["q"], str):
            raise ValueError("search requires a string q")
        time.sleep(0.34)
        return "Revenue 2025: $412.0M (audited, annual report p. 12)"
    if name == "calculator":
        if set(args) != {"a", "b"} or any(type(args[k]) not in (int, float) for k in ("a", "b")):
            raise ValueError("calculator requires two numbers")
        return f"{operator.mul(args['a'], args['b']):.0f}"
    raise ValueError(f"unknown tool: {name}")


def agent(prompt: str, max_turns: int = 8) -> str:
    """The loop: GENERATE, PARSE, EXECUTE, RESUME."""
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    for _ in range(max_turns):
        answer = model.messages.create(model="claude-sonnet-4-6", max_tokens=1024, tools=TOOLS, messages=messages)
        if answer.stop_reason == "end_turn":
            return "".join(b.text for b in answer.content if b.type == "text")
        if answer.stop_reason != "tool_use":
            raise RuntimeError(f"incomplete turn: {answer.stop_reason}")
        messages.append({"role": "assistant", "content": answer.content})
        results: list[ToolResultBlockParam] = []
        for block in answer.content:
            if block.type == "tool_use":
                try:
                    out, is_error = run_tool(block.name, block.input), False
                except ValueError as error:
                    out, is_error = str(error), True
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": out, "is_error": is_error})
        messages.append({"role": "user", "content": results})
    return "[stopped: max_turns reached]"


def main() -> str:
    """Asks the question, and checks the answer."""
    limits = looptape.Limits(turns=8)
    with looptape.run(
        "revenue", session="finance-desk", task="revenue", tags={"team": "finance"}, limits=limits
    ) as run:
        answer = agent(QUESTION)
        run.outcome("pass" if "28.84" in answer else "fail", "compared with the annual report")
    return answer


if __name__ == "__main__":
    print(main())
