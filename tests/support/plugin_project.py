"""A small project whose tests are bound to tapes: an agent over the real Anthropic SDK, and a fake server to record from."""

import os
import sys

# pytester forgets what its runs have loaded, but not what was loaded before: the patched HTTP library and we must agree
import anthropic
import duckdb  # noqa: F401

import looptape.replay.ci.assertions
import looptape.replay.ci.bound
import looptape.replay.cycles
import looptape.replay.player.player
import looptape.tracer.loop
import looptape.tracer.store.export
import looptape.tracer.tools
import looptape.tracer.wrap  # noqa: F401
from fakellm import Call, FakeLLM, Scenario, Step

assert anthropic.Anthropic(api_key="none").messages  # loads what the SDK loads late

AGENT = """
import os
import anthropic
import looptape

PROMPT = os.environ.get("PROMPT", "What is the revenue?")
ran = []

@looptape.tool
def search(q: str) -> str:
    ran.append(q)
    return f"found {q}"

TOOLS = [{"name": "search", "description": "d", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}]

def request(messages):
    return {"model": "claude-sonnet-5", "max_tokens": 100, "tools": TOOLS, "messages": messages}

def answer(prompt=PROMPT):
    client = anthropic.Anthropic(base_url=os.environ.get("FAKE_URL"), max_retries=2)
    messages = [{"role": "user", "content": prompt}]
    while True:
        said = client.messages.create(**request(messages))
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in said.content]})
        calls = [b for b in said.content if b.type == "tool_use"]
        if not calls:
            return said.content[0].text
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": search(**c.input)} for c in calls]
        messages.append({"role": "user", "content": results})
"""
TEST = """
import pytest
from agent import answer, ran

@pytest.mark.looptape
def test_revenue():
    assert "412" in answer()
"""


def steps(times=1):
    """A loop of three turns with two tool calls, so many times."""
    one = [
        Step(text="I will look.", calls=[Call("search", {"q": "revenue"})]),
        Step(calls=[Call("search", {"q": "2025"})]),
        Step(text="412 million"),
    ]
    return [step for _ in range(times) for step in one]


def server(times=1):
    """The fake server with that loop as scenario `a`, and one answer as `b`."""
    return FakeLLM({"a": Scenario(steps(times)), "b": Scenario([Step(text="Hello, said in some words.")])})


_tapes = {}


class Project:
    """A folder with an agent and its tests; pytest runs in it, in this process."""

    def __init__(self, pytester, monkeypatch, test=TEST):
        self.pytester, self.monkeypatch = pytester, monkeypatch
        # compiled files are told apart by their source's size and second: a test written anew at once would be the old one
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        self.path = pytester.path
        (self.path / "tests").mkdir()
        (self.path / "agent.py").write_text(AGENT)
        self.write(test)
        monkeypatch.setenv("LOOPTAPE_HOME", str(self.path / "users-home"))
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FAKE_URL", "PROMPT", "ANTHROPIC_BASE_URL"):
            monkeypatch.delenv(name, raising=False)

    def write(self, text, name="tests/test_agent.py"):
        (self.path / name).write_text(text)

    def pytest(self, *arguments, **environment):
        """What pytest says; `PROMPT=` and the like hold for this call."""
        with self.monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.syspath_prepend(str(self.path))
            return self.pytester.runpytest_inprocess(
                "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-Wignore::DeprecationWarning", *arguments
            )

    def record(self, *arguments, times=1, **environment):
        """Records with a server; the exchanges that reached it beside what pytest says."""
        with server(times) as running:
            key = "sk-ant-" + "test-0123456789"
            given = {"FAKE_URL": running.url("a"), "ANTHROPIC_API_KEY": key, **environment}
            result = self.pytest("--looptape=record", *arguments, **given)
            return result, list(running.log)

    def recorded(self, test=TEST):
        """These tests with their tapes where recording puts them; recorded once for all that ask."""
        self.write(test)
        if test not in _tapes:
            self.record()[0].assert_outcomes(passed=1)
            _tapes[test] = self.tapes()
        for name, content in _tapes[test].items():
            file = self.path / "tests" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def tapes(self):
        """Path below `tests` to bytes of every file in the tapes' folders."""
        root = self.path / "tests"
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("tapes/**/*")) if p.is_file()}

    def users_home(self):
        """The files in the user's own store directory."""
        home = self.path / "users-home"
        return sorted(os.listdir(home)) if home.exists() else []
