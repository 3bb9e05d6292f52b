"""The ways a loop calls a model and its tools: one small agent in seven modes over the real SDKs, and its scripts.

`history` runs the agent and gives the whole conversation; `ran` counts the tool bodies that really ran.
"""

import asyncio
import json

import looptape
from fakellm import Call, Scenario, Step

MODES = ("plain", "streamed", "async", "async streamed", "parallel", "sub-agents", "retries")
SDKS = ("anthropic", "openai")
KEY = "sk-" + "test-0123456789abcdef"
SYSTEM = "Be brief."
NAMES = ("search", "fetch", "add")
ran = []


def _body(name, value):
    ran.append(name)
    return f"{name} says {value * 3}"


@looptape.tool
def search(value: int) -> str:
    return _body("search", value)


@looptape.tool
def fetch(value: int) -> str:
    return _body("fetch", value)


@looptape.tool
def add(value: int) -> str:
    return _body("add", value)


def _slowly(name, pause):
    async def tool(value: int) -> str:
        await asyncio.sleep(pause * (3 - value % 3))  # the later call is done earlier
        return _body(name, value)

    tool.__name__ = name
    return looptape.tool(tool)


TOOLS = {"search": search, "fetch": fetch, "add": add}
ASYNC_TOOLS = {name: _slowly(name, 0.004) for name in NAMES}


def script(mode):
    """Scenario name to steps, fresh."""
    if mode == "sub-agents":
        return {"a": Scenario(_steps(3, "a")), "b": Scenario(_steps(5, "b"))}
    steps = _steps(4, "m", width=3 if mode == "parallel" else 1)
    if mode == "retries":
        steps[1].errors = [{"kind": "overloaded"}, {"kind": "rate_limit"}]
        steps[2].errors = [{"kind": "server"}]
        steps[3].errors = [{"disconnect": True}]
    return {"m": Scenario(steps)}


def _steps(count, tag, width=1):
    steps = []
    for turn in range(1, count):
        names = NAMES if width == 3 else (NAMES[turn % 3],)
        calls = [Call(n, {"value": turn * 10 + i}, f"call_{tag}{turn}{i}") for i, n in enumerate(names)]
        steps.append(Step(text=f"Turn {turn} of {tag}: I will look at it.", calls=calls))
    return [*steps, Step(text=f"Done, says {tag}: 412 million.")]


def history(mode, sdk, url, prompt="What is the revenue?"):
    """The conversation as the program has it at its end.

    Args:
        url: Scenario name to base URL.
    """
    api = _Anthropic if sdk == "anthropic" else _OpenAI
    streamed = mode.endswith("streamed")
    with looptape.run("modes"):
        if mode == "sub-agents":
            return asyncio.run(_both(api, url, prompt))
        if mode.startswith("async") or mode == "parallel":
            return asyncio.run(_loop_async(api(url("m")), streamed, prompt))
        return _loop(api(url("m")), streamed, prompt)


async def _both(api, url, prompt):
    async def one(name):
        with looptape.run(name):
            return await _loop_async(api(url(name)), name == "b", f"{prompt} ({name})")

    return list(await asyncio.gather(one("a"), one("b")))


def _loop(api, streamed, prompt):
    client, messages = api.client(), api.begin(prompt)
    while True:
        said, calls = api.taken(api.streamed(client, messages) if streamed else api.plain(client, messages))
        messages.append(said)
        if not calls:
            return messages
        messages += api.results([(c, TOOLS[name](**args)) for c, name, args in calls])


async def _loop_async(api, streamed, prompt):
    messages = api.begin(prompt)
    async with api.client_async() as client:
        while True:
            asking = api.streamed_async if streamed else api.plain
            said, calls = api.taken(await asking(client, messages))
            messages.append(said)
            if not calls:
                return messages
            outs = await asyncio.gather(*(ASYNC_TOOLS[name](**args) for _, name, args in calls))
            messages += api.results([(c, out) for (c, _, _), out in zip(calls, outs, strict=True)])


class _Anthropic:
    def __init__(self, url):
        self.options = {"base_url": url, "api_key": KEY, "max_retries": 4}

    def client(self):
        import anthropic

        return looptape.wrap(anthropic.Anthropic(**self.options))

    def client_async(self):
        import anthropic

        return looptape.wrap(anthropic.AsyncAnthropic(**self.options))

    def begin(self, prompt):
        return [{"role": "user", "content": prompt}]

    def request(self, messages):
        schema = {"type": "object", "properties": {"value": {"type": "integer"}}}
        tools = [{"name": n, "description": n, "input_schema": schema} for n in NAMES]
        return {"model": "acme-1", "max_tokens": 100, "system": SYSTEM, "tools": tools, "messages": messages}

    def plain(self, client, messages):
        return client.messages.create(**self.request(messages))

    def streamed(self, client, messages):
        with client.messages.stream(**self.request(messages)) as stream:
            for _ in stream.text_stream:
                pass
            return stream.get_final_message()

    async def streamed_async(self, client, messages):
        async with client.messages.stream(**self.request(messages)) as stream:
            async for _ in stream.text_stream:
                pass
            return await stream.get_final_message()

    def taken(self, answer):
        said = {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]}
        return said, [(b.id, b.name, b.input) for b in answer.content if b.type == "tool_use"]

    def results(self, pairs):
        content = [{"type": "tool_result", "tool_use_id": c, "content": out} for c, out in pairs]
        return [{"role": "user", "content": content}]


class _OpenAI:
    def __init__(self, url):
        self.options = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 4}

    def client(self):
        import openai

        return looptape.wrap(openai.OpenAI(**self.options))

    def client_async(self):
        import openai

        return looptape.wrap(openai.AsyncOpenAI(**self.options))

    def begin(self, prompt):
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]

    def request(self, messages):
        schema = {"type": "object", "properties": {"value": {"type": "integer"}}}
        tools = [{"type": "function", "function": {"name": n, "description": n, "parameters": schema}} for n in NAMES]
        return {"model": "acme-1", "tools": tools, "messages": messages}

    def plain(self, client, messages):
        return client.chat.completions.create(**self.request(messages))

    def streamed(self, client, messages):
        return _joined(list(client.chat.completions.create(**self.request(messages), stream=True)))

    async def streamed_async(self, client, messages):
        stream = await client.chat.completions.create(**self.request(messages), stream=True)
        return _joined([chunk async for chunk in stream])

    def taken(self, answer):
        message = answer if isinstance(answer, dict) else answer.choices[0].message.model_dump(exclude_none=True)
        said = {k: v for k, v in message.items() if k in ("role", "content", "tool_calls")}
        found = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in said.get("tool_calls", [])]
        return said, [(c, name, json.loads(raw)) for c, name, raw in found]

    def results(self, pairs):
        return [{"role": "tool", "tool_call_id": c, "content": out} for c, out in pairs]


def _joined(chunks):
    """A streamed chat answer as one message."""
    text, calls = "", {}
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(
                    part.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += part.id or ""
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    said = {"role": "assistant", "content": text}
    return {**said, "tool_calls": [calls[i] for i in sorted(calls)]} if calls else said
