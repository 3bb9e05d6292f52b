"""Real SDK clients on a scripted transport: no socket, no server, every answer made by a function of the request."""

import json
import random

WORDS = [
    "def",
    "return",
    "self",
    "value",
    "index",
    "result",
    "config",
    "import",
    "None",
    "True",
    "error",
    "path",
    "buffer",
    "request",
    "stream",
    "assert",
    "lambda",
    "yield",
    "class",
    "state",
]
TOOLS = [
    {
        "name": name,
        "description": f"{name} tool",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
    for name in ("read_file", "search", "run_cmd")
]
SYSTEM = "You are a scripted test agent. " * 40


def code_like(seed: str, size: int = 4096) -> str:
    """Text of this size, different for each seed, about as compressible as source code."""
    chance = random.Random(seed)
    lines, length = [], 0
    while length < size:
        words = " ".join(chance.choice(WORDS) + str(chance.randint(0, 999)) for _ in range(chance.randint(3, 9)))
        lines.append("    " * chance.randint(0, 3) + words)
        length += len(lines[-1]) + 1
    return "\n".join(lines)[:size]


def loop_answer(turns: int):
    """An answer function: one tool call a turn for ``turns`` turns, then a final text."""

    def answer(body: dict) -> dict:
        turn = sum(1 for m in body["messages"] if m["role"] == "assistant")
        usage = {
            "input_tokens": 12,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 900,
            "output_tokens": 60,
        }
        content = [{"type": "text", "text": f"Turn {turn}: I will look at part {turn} of the problem first."}]
        stop = "end_turn"
        if turn < turns:
            stop = "tool_use"
            name = ("read_file", "search", "run_cmd")[turn % 3]
            content.append(
                {"type": "tool_use", "id": f"toolu_{turn:020d}", "name": name, "input": {"path": f"src/m{turn}.py"}}
            )
        return {
            "id": f"msg_{turn:020d}", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": stop, "stop_sequence": None, "usage": usage,
        }  # fmt: skip

    return answer


def anthropic_client(answer, **options):
    """A real `anthropic.Anthropic` whose transport answers from ``answer(body)``."""
    import anthropic
    import httpx2

    def respond(request):
        return httpx2.Response(200, json=answer(json.loads(request.content)), headers={"request-id": "req_scripted"})

    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(respond))
    return anthropic.Anthropic(api_key="sk-ant-" + "scripted-0123456789", http_client=http, **options)


def run_loop(
    client, *, on_turn=lambda turn: None, result=lambda path: code_like(path), messages=None, model="claude-test-1"
):
    """The plain tool loop over the Messages API, to its end; returns the message list."""
    messages = messages if messages is not None else [{"role": "user", "content": "Find the needle."}]
    turn = 0
    while True:
        answer = client.messages.create(model=model, max_tokens=1024, system=SYSTEM, tools=TOOLS, messages=messages)
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
        calls = [b for b in answer.content if b.type == "tool_use"]
        if calls:
            messages.append(
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": c.id, "content": result(c.input["path"])} for c in calls
                    ],
                }
            )
        turn += 1
        on_turn(turn)
        if not calls:
            return messages
