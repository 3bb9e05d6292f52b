"""Three calls of one turn at once, with asyncio: two come back, one times out and is tried again."""

from __future__ import annotations

import asyncio

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

import looptape
from looptape.sample_traces.scripted import async_client, call, reply

TOOLS: list[ToolParam] = [
    {
        "name": "weather",
        "description": "Tomorrow's weather in a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
FORECAST = {"Bergen": "rain, 11 °C, wind 9 m/s", "Porto": "sun, 24 °C, wind 4 m/s", "Tartu": "fog, 8 °C, wind 2 m/s"}
TIMEOUT = 3.0

model = looptape.wrap(
    async_client(
        reply(
            "I ask for all three at once.",
            call("weather", city="Bergen"),
            call("weather", city="Porto"),
            call("weather", city="Tartu"),
            seconds=1.7,
        ),
        reply("Tartu did not answer; I try it once more.", call("weather", city="Tartu"), seconds=1.2),
        reply("Paint the fence in **Porto**: sun and little wind. Bergen has rain, Tartu fog.", seconds=1.9),
    )
)
asked: list[str] = []


@looptape.tool(side_effect="read")
async def weather(city: str) -> str:
    """A forecast. The station of Tartu is asleep at the first question."""
    asked.append(city)
    await asyncio.sleep(30 if asked.count(city) == 1 and city == "Tartu" else 0.3 + 0.11 * len(city))
    return FORECAST[city]


async def execute(block: ToolUseBlock) -> ToolResultBlockParam:
    """One call, for which the loop does not wait for ever."""
    try:
        async with asyncio.timeout(TIMEOUT):
            out = await weather(str(block.input["city"]))
        return {"type": "tool_result", "tool_use_id": block.id, "content": out}
    except TimeoutError:
        text = f"no answer within {TIMEOUT:.0f} s"
        return {"type": "tool_result", "tool_use_id": block.id, "content": text, "is_error": True}


async def agent(question: str) -> str:
    """The loop; all calls of a turn run together and are answered in one message."""
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    while True:
        answer = await model.messages.create(model="claude-sonnet-4-6", max_tokens=1024, tools=TOOLS, messages=messages)
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results = await asyncio.gather(*(execute(block) for block in calls))
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


async def main() -> str:
    """Where to paint tomorrow."""
    with looptape.run("weather", session="painters", task="pick-a-city") as run:
        answer = await agent("In which city can we paint the fence tomorrow: Bergen, Porto or Tartu?")
        run.outcome("pass" if "Porto" in answer else "fail")
    return answer


if __name__ == "__main__":
    print(asyncio.run(main()))
