"""The machine runs out of memory in the third turn, while a tool runs: what was recorded until then is there."""

from __future__ import annotations

import time
from collections.abc import Callable

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply
from looptape.sample_traces.stage import kill

TOOLS: list[ToolParam] = [
    {
        "name": "list_photos",
        "description": "Photos of an article that are not in the shop yet",
        "input_schema": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
    },
    {
        "name": "resize",
        "description": "Write a photo again with this width in pixels",
        "input_schema": {
            "type": "object",
            "properties": {"file": {"type": "string"}, "width": {"type": "integer"}},
            "required": ["file", "width"],
        },
    },
]
TASK = "Make the photos of BOWL-REEF-28 ready for the shop: 1600 pixels wide."

model = looptape.wrap(
    client(
        reply(call("list_photos", sku="BOWL-REEF-28"), seconds=1.0),
        reply("Two photos. The first:", call("resize", file="reef-front.tif", width=1600), seconds=1.2),
        reply(call("resize", file="reef-kiln-panorama.tif", width=1600), seconds=1.1),
    )
)


@looptape.tool(side_effect="read")
def list_photos(sku: str) -> str:
    """Photos of an article."""
    time.sleep(0.05)
    return "reef-front.tif (38 MB)\nreef-kiln-panorama.tif (2.1 GB)"


@looptape.tool(side_effect="mutate")
def resize(file: str, width: int) -> str:
    """Loads the whole photo, which is one too many for this machine."""
    time.sleep(1.4)
    if "panorama" in file:
        kill()
    return f"{file.removesuffix('.tif')}-{width}.webp (212 KB)"


RUN: dict[str, Callable[..., str]] = {"list_photos": list_photos, "resize": resize}


def agent(task: str) -> str:
    """The loop."""
    messages: list[MessageParam] = [{"role": "user", "content": task}]
    while True:
        answer = model.messages.create(model="claude-haiku-4-5", max_tokens=512, tools=TOOLS, messages=messages)
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": b.id, "content": RUN[b.name](**b.input)} for b in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def main() -> str:
    """Never returns."""
    with looptape.run("photos", session="stock", task="photos", limits=looptape.Limits(turns=20)):
        return agent(TASK)


if __name__ == "__main__":
    print(main())
