"""`looptape fork` with real clients against a server, real tools, a real MCP server, and a run that is really killed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mcp_server
from fakellm import Call, FakeLLM, Scenario, Step
from launched import Launcher
from looptape.tracer.store import Filter, open_store
from replayed import AGENT, PYTHON, recorded

FORK = [sys.executable, "-P", "-m", "looptape.tui.cli", "fork"]
LOOPTAPE = FORK[:-1]
TOOLS = """
import os, time

def search(q: str) -> str:
    with open("really", "a") as file: file.write(q + "\\n")
    if os.environ.get("SLOW") == q: time.sleep(60)
    return f"really {q}"

TOOLS = [{"name": "search", "function": search, "side_effect": os.environ.get("EFFECT", "read")}]
"""
KEYS = {"ANTHROPIC_API_KEY": "k-" + "test-1", "OPENAI_API_KEY": "k-" + "test-2"}


def rest():
    return [Step(text="Next", calls=[Call("search", {"q": "new"}, "toolu_new1")]), Step(text="It is 90.")]


@pytest.fixture
def server():
    first = [Step(text="Turn 1", calls=[Call("search", {"q": "part 1"}, "toolu_0001")]), Step(text="It is 84.")]
    with FakeLLM({"a": Scenario(first)}) as running:
        yield running


@pytest.fixture
def here(tmp_path, server):
    (tmp_path / "work").mkdir()
    made = Launcher(tmp_path / "work", tmp_path / "home", server.url("a"))
    recorded(made, server, 0, text=AGENT + "print(json.dumps(loop('hi')))\n")
    server.scenarios["a"] = Scenario(rest())
    made.write("forktools.py", TOOLS)
    return made


def known(here):
    with open_store(here.home) as store:
        return sorted(store.runs(Filter(limit=0)), key=lambda r: r.started_at)


def really(here):
    file = here.work / "really"
    return file.read_text().split() if file.exists() else []


def test_the_anthropic_sdk_answers_a_fork_and_its_tools_really_run(here, server):
    code, out, err = here.run(
        "last:2", "--system", "Be long.", "--model", "anthropic", "--tools-from", "forktools:TOOLS", "--tools", "live",
        "--yes", by=FORK, **KEYS,
    )  # fmt: skip
    assert code == 0, err
    assert "It is 90." in out
    assert [e["path"] for e in server.log] == ["/v1/messages"] * 2
    assert [e["body"]["system"] for e in server.log] == ["Be long."] * 2
    assert server.log[1]["body"]["messages"][-1]["content"][0]["content"] == "really new"
    assert really(here) == ["new"]
    original, fork = known(here)
    assert (fork.parent.run, fork.parent.turn, fork.parent.kind, fork.status) == (original.id, 2, "fork", "completed")


@pytest.mark.parametrize("given", ["option", "environment"])
def test_an_openai_compatible_server_answers_a_fork_of_a_claude_run(here, server, given):
    base = server.url("a") + "/v1"
    model = f"openai:{base}" if given == "option" else "openai"
    code, out, err = here.run(
        "last:2", "--model", model, "--edit", "model=qwen3", "--tool", "search=stub:nothing", "--yes",
        by=FORK, **KEYS, OPENAI_BASE_URL=base,
    )  # fmt: skip
    assert code == 0, err
    assert "It is 90." in out
    assert "sent as openai.chat" in err
    assert [(e["path"], e["status"], e["body"]["model"]) for e in server.log] == [
        ("/v1/chat/completions", 200, "qwen3")
    ] * 2
    assert [m["role"] for m in server.log[1]["body"]["messages"]][-2:] == ["assistant", "tool"]


def test_nothing_is_sent_without_a_yes(here, server):
    code, _, err = here.run("last:2", "--model", "anthropic", by=FORK, **KEYS)
    assert code == 2
    assert "--yes" in err
    assert server.log == []


def test_an_mcp_server_gives_the_tools(here, server):
    command = f"{PYTHON} {Path(mcp_server.__file__)}"
    server.scenarios["a"] = Scenario(
        [Step(calls=[Call("add", {"a": 2, "b": 3}, "toolu_new1")]), Step(text="It is 90.")]
    )
    code, _, err = here.run(
        "last:2", "--model", "anthropic", "--mcp", command, "--tool", "add=live", "--yes", by=FORK, **KEYS
    )
    assert code == 0, err
    assert "5" in json.dumps(server.log[1]["body"]["messages"][-1])


@pytest.mark.parametrize(("effect", "ran"), [("read", 2), ("mutate", 1)])
def test_a_fork_that_was_killed_in_a_tool_goes_on_where_it_was(here, server, effect, ran):
    words = ["last:2", "--model", "anthropic", "--tools-from", "forktools:TOOLS", "--tool", "search=live", "--yes"]
    environment = {**here.environment(), **KEYS, "EFFECT": effect}
    process = subprocess.Popen(
        [*FORK, *words],
        cwd=here.work,
        env={**environment, "SLOW": "new"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while not really(here) and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert (len(server.log), really(here)) == (1, ["new"])
    run = known(here)[-1].id
    code, out, err = here.run("replay", run, "--resume", by=LOOPTAPE, **KEYS, EFFECT=effect)
    assert code == 0, err
    assert "It is 90." in out
    assert (len(server.log), really(here)) == (2, ["new"] * ran)
    told = json.dumps(server.log[-1]["body"]["messages"][-1])
    assert ("really new" if effect == "read" else "may have done its work") in told
    _, fork = known(here)
    assert (fork.id, fork.status, fork.turns) == (run, "completed", 3)


def test_a_fork_that_met_its_limit_goes_on_with_a_higher_one(here, server):
    words = ["last:2", "--model", "anthropic", "--tool", "search=stub:x", "--yes", "--max-turns", "1"]
    code, _, err = here.run(*words, by=FORK, **KEYS)
    assert code == 0, err
    run = known(here)[-1]
    assert (run.status, len(server.log)) == ("limit", 1)
    assert here.run("replay", run.id, "--resume", by=LOOPTAPE, **KEYS)[0] == 0
    assert len(server.log) == 1
    code, out, err = here.run("replay", run.id, "--resume", "--max-turns", "5", by=LOOPTAPE, **KEYS)
    assert (code, "It is 90." in out) == (0, True), err
    assert (known(here)[-1].id, known(here)[-1].status, len(server.log)) == (run.id, "completed", 2)
