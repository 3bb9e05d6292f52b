"""Loops for guard tests: a real SDK client whose model goes round in circles, a wrapped tool, what was recorded."""

import looptape
from scripted import anthropic_client


def answer_of(body, calls=(), text="I will look once more.", usage=None):
    """An Anthropic answer with these calls (name, input)."""
    turn = sum(1 for m in body["messages"] if m["role"] == "assistant")
    content = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{turn:04d}_{i}", "name": name, "input": given}
        for i, (name, given) in enumerate(calls)
    ]
    return {
        "id": f"msg_{turn:06d}", "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": usage or {"input_tokens": 100, "output_tokens": 10},
    }  # fmt: skip


class Model:
    """Answers with what `plan(turn, body)` gives: calls, or a text for the last word. Keeps every request."""

    def __init__(self, plan):
        self.plan = plan
        self.requests = []

    def __call__(self, body):
        self.requests.append(body)
        said = self.plan(len(self.requests), body)
        return answer_of(body, text=said) if isinstance(said, str) else answer_of(body, said)

    def client(self, **options):
        return looptape.wrap(anthropic_client(self, **options))

    def results(self):
        """The tool results that the model saw last, in order."""
        return [
            b["content"]
            for m in self.requests[-1]["messages"]
            if isinstance(m["content"], list)
            for b in m["content"]
            if b["type"] == "tool_result"
        ]


def circling(name="search", given=None, turns=30):
    """A model that asks for the same again and again."""
    call = (name, given or {"query": "revenue"})
    return Model(lambda turn, body: [call] if turn <= turns else "I give up.")


def drive(client, tools, prompt="Find the revenue.", offered=("search", "read_file")):
    """The plain loop: every call goes through `tools[name](**input)`, an exception is told as an error."""
    messages = [{"role": "user", "content": prompt}]
    listed = [{"name": n, "description": n, "input_schema": {"type": "object"}} for n in offered]
    while True:
        answer = client.messages.create(model="claude-test-1", max_tokens=100, tools=listed, messages=messages)
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return answer.content[0].text
        messages.append({"role": "user", "content": [told(tools, c) for c in calls]})


def told(tools, call):
    """A call's result block."""
    try:
        return {"type": "tool_result", "tool_use_id": call.id, "content": tools[call.name](**call.input)}
    except Exception as error:
        return {"type": "tool_result", "tool_use_id": call.id, "content": str(error), "is_error": True}


class Counted:
    """A wrapped tool that counts how often its body ran."""

    def __init__(self, result="Nothing about that here.", name="search", **options):
        self.ran = 0

        @looptape.tool(name=name, **options)
        def run(**arguments):
            self.ran += 1
            found = result(self.ran, arguments) if callable(result) else result
            if isinstance(found, Exception):
                raise found
            return found

        self.tool = run


def acts(home, rung=None):
    """What the guard recorded that it did."""
    found = [r["detail"] for r in home.records() if r["kind"] == "event" and r["event"] == "guard"]
    return [d for d in found if rung is None or d["rung"] == rung]
