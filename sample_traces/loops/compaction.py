"""A context that grows with every page read, until the loop lets it be summarised and begins anew with the summary."""

from __future__ import annotations

import random
import time

from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply

TOOLS: list[ToolParam] = [
    {
        "name": "read_returns",
        "description": "The list of returned parcels of one month of 2026 (1 to 12)",
        "input_schema": {"type": "object", "properties": {"month": {"type": "integer"}}, "required": ["month"]},
    }
]
SYSTEM = "You are an analyst of a ceramics shop. Read what you need, month by month, and keep count."
TASK = "Which article came back broken most often from January to June, and since when?"
BUDGET = 5_500
"""Tokens of context at which the loop has it summarised."""
LIMITS = looptape.Limits(turns=20)
SUMMARISE = "The context is nearly full. Write down what you know so far and what is left to do; nothing else is kept."
SUMMARY = """So far (January to April, returns marked broken):
- bowl 'Reef': 2, 10, 17, 21
- vase 'Dune': 8, 6, 6, 9
- mug 'Fjord': 4, 10, 6, 7
Bowl 'Reef' rises steadily; from March on it leads. Left to do: May, June; then answer."""
ARTICLES = ("mug 'Fjord'", "bowl 'Reef'", "vase 'Dune'", "plate 'Moor'", "jug 'Skerry'")
REASONS = ("broken", "wrong colour", "too late", "changed my mind", "gift, not wanted")

model = looptape.wrap(
    client(
        *(reply(call("read_returns", month=month), seconds=1.4 + 0.2 * month) for month in (1, 2, 3, 4)),
        reply(SUMMARY, seconds=4.2),
        reply("Two months are left.", call("read_returns", month=5), seconds=1.5),
        reply(call("read_returns", month=6), seconds=1.8),
        reply(
            "**Bowl 'Reef'** came back broken most often, 107 times; since March it stands out. "
            "Vase 'Dune' is next with 43, spread evenly over the months.",
            seconds=3.1,
        ),
    )
)


@looptape.tool(side_effect="read")
def read_returns(month: int) -> str:
    """A month's returns, a line each."""
    time.sleep(0.25)
    chance = random.Random(month)
    lines = [f"returns 2026-{month:02}", "day  order    article         reason"]
    for row in range(150):
        day, order = 1 + row * 30 // 150, f"A-{10_000 + month * 450 + row * 3}"
        article, reason = chance.choice(ARTICLES), chance.choice(REASONS)
        if article == "bowl 'Reef'" and month > 2 and reason != "too late":
            reason = "broken"  # a new kiln shelf, as it will turn out
        lines.append(f"{day:02}   {order}  {article:14}  {reason}")
    return "\n".join(lines)


def ask(messages: list[MessageParam]) -> Message:
    """One call of the model. What was sent before is read from the API's cache."""
    return model.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=2048,
        system=SYSTEM,
        tools=TOOLS,
        messages=messages,
        cache_control={"type": "ephemeral"},
    )


def text(answer: Message) -> str:
    """The text of an answer."""
    return "".join(b.text for b in answer.content if b.type == "text")


def context(answer: Message) -> int:
    """Tokens that the request had, cached or not."""
    usage = answer.usage
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


def agent(task: str) -> str:
    """The loop, with a check of the context's size after every turn."""
    messages: list[MessageParam] = [{"role": "user", "content": task}]
    for _ in range(LIMITS.turns or 1):
        answer = ask(messages)
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return text(answer)
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": b.id, "content": read_returns(int(str(b.input["month"])))}
            for b in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
        if context(answer) > BUDGET:
            summary = text(ask([*messages, {"role": "user", "content": SUMMARISE}]))
            messages = [{"role": "user", "content": f"{task}\n\nYour notes from before:\n{summary}"}]
    return "not read to the end"


def main() -> str:
    """Reads half a year."""
    with looptape.run(
        "broken-returns", session="analysis", task="returns", tags={"team": "quality"}, limits=LIMITS
    ) as run:
        answer = agent(TASK)
        run.outcome("pass" if "Reef" in answer else "fail")
    return answer


if __name__ == "__main__":
    print(main())
