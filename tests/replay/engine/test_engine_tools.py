"""Where tools come from: a Python module, a recording, an MCP server, stubs, and all of them by name."""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from engine_runs import bench, call, calls, says, start, told
from looptape.replay.engine import Hooks, Policy
from looptape.replay.engine.toolbox import Stub, ToolAsked, TooLate, ToolError, ToolMiss
from looptape.replay.engine.tools import mcp
from looptape.replay.engine.tools.mixed import Mixed, Namespaced, mixed
from looptape.replay.engine.tools.recorded import RecordedTools
from looptape.replay.engine.tools.registry import Registry, load
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.model import ToolCall, Turn

SERVER = f"{sys.executable} {Path(__file__).parents[2] / 'support' / 'mcp_server.py'}"


def search(q: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{q}: 1200"


def asked(tool: str, /, occurrence: int = 1, timeout: float = 60.0, **arguments: Any) -> ToolAsked:
    return ToolAsked("c1", tool, arguments, 1, occurrence, "key", timeout)


# -- a Python module -----------------------------------------------------------------------------------------


def test_a_functions_signature_and_docstring_tell_its_schema():
    def book(
        hotel: str, nights: int, stars: Literal[3, 4, 5] = 3, extras: list[str] | None = None,
        note: Annotated[str, "for the desk"] = "", idempotency_key: str = "",
    ) -> str:  # fmt: skip
        """Books a room."""
        return hotel

    (found,) = Registry([book]).definitions()
    assert (found.name, found.description, found.keyed) == ("book", "Books a room.", True)
    assert found.schema["required"] == ["hotel", "nights"]
    assert found.schema["additionalProperties"] is False
    properties = found.schema["properties"]
    assert "idempotency_key" not in properties
    assert properties["stars"] == {"enum": [3, 4, 5]}
    assert properties["extras"] == {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    assert properties["note"] == {"type": "string", "description": "for the desk"}


def test_tools_may_be_a_mapping_a_list_objects_or_descriptions():
    @dataclass
    class Framework:
        name: str
        description: str
        func: Any
        parameters: dict

    described = {"name": "c", "function": search, "schema": {"type": "object"}, "side_effect": "read", "timeout": 5}
    other = Framework("d", "From a framework", search, {"type": "object", "properties": {"q": {"type": "string"}}})
    found = {d.name: d for d in Registry([search, described, other]).definitions()}
    assert set(found) == {"search", "c", "d"}
    assert (found["c"].side_effect, found["c"].timeout) == ("read", 5.0)
    assert found["d"].schema["properties"] == {"q": {"type": "string"}}
    assert [d.name for d in Registry({"x": search}).definitions()] == ["x"]


def test_a_tool_of_looptape_is_recorded_once_with_its_declared_side_effect(engine):
    import looptape

    @looptape.tool(name="find", side_effect="read")
    def lookup(q: str) -> str:
        return q

    assert Registry([lookup]).definitions()[0].repeatable
    engine.play([calls(call("find", "c1", q="a")), says("ok")], [lookup])
    (only,) = engine.run().turns[0].tool_calls
    assert (only.id, only.name, only.result, only.side_effect) == ("c1", "find", "a", "read")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({"a": 1}, '{"a": 1}'),
        (None, ""),
        (7, "7"),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a"}]),
        ([1, 2], "[1, 2]"),
    ],
    ids=["object", "none", "number", "blocks", "list"],
)
def test_what_a_function_returns_is_told_as_text_or_blocks(value, content):
    assert Registry({"t": lambda: value}).call(asked("t")).content == content


def test_a_coroutine_that_took_too_long_is_told_apart_from_one_that_says_so_itself():
    async def slow():
        await asyncio.sleep(600)

    async def own():
        raise TimeoutError("the database gave no answer")

    with pytest.raises(TooLate, match=r"no result after 0\.01 s"):  # as the loop says it, whose limit ends then too
        Registry([slow]).call(asked("slow", timeout=0.01))
    with pytest.raises(TimeoutError, match="the database") as found:
        Registry([own]).call(asked("own"))
    assert not isinstance(found.value, TooLate)


def test_a_registry_is_loaded_from_its_module_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "my_tools_for_a_test.py").write_text(
        "def search(q: str) -> str:\n    return q\n\nTOOLS = {'search': search}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # it is looked in from then on
    found = load("my_tools_for_a_test:TOOLS")
    assert found.call(asked("search", q="a")).content == "a"
    assert found.spec() == {"kind": "registry", "source": "my_tools_for_a_test:TOOLS"}


@pytest.mark.parametrize(
    ("reference", "says_why"),
    [("tools", "names no tools"), ("no_such_module_here:TOOLS", "cannot be loaded"), ("json:nothing", "cannot be loaded"),
     ("string:digits", "is str")],
    ids=["no-name", "no-module", "no-attribute", "no-tools"],
)  # fmt: skip
def test_tools_that_cannot_be_loaded_are_named(reference, says_why):
    with pytest.raises(UsageError, match=says_why):
        load(reference)


# -- the recording -------------------------------------------------------------------------------------------


def recorded(*results: tuple[dict, Any]) -> RecordedTools:
    made = [
        Turn(
            "r", n, tool_calls=(ToolCall(f"c{n}", "search", json.dumps(a), a, result=result, is_error=result == "no"),)
        )
        for n, (a, result) in enumerate(results, 1)
    ]
    return RecordedTools(made, source="run r")


def test_recorded_results_come_by_arguments_and_occurrence_and_never_twice(engine):
    box = recorded(({"q": "a"}, "A"), ({"q": "b"}, "B"), ({"q": "a"}, "C"))
    script = [
        calls(*[call("search", f"c{i}", q=q) for i, q in enumerate("aab")]),
        calls(call("search", "c9", q="a")),
        says("no"),
    ]
    outcome = engine.play(script, box)
    run = engine.run()
    assert [c.result for c in run.turns[0].tool_calls] == ["A", "C", "B"]
    assert {c.origin for c in run.turns[0].tool_calls} == {"recorded"}
    assert (outcome.reason, outcome.status) == ("miss", "halted")
    assert 'has search({"q": "a"}) 2 times, this is call 3 of it' in outcome.detail


def test_equal_arguments_in_another_form_are_the_same_call():
    box = recorded(({"q": "a", "limit": 3}, "A"))
    assert box.served(asked("search", limit=3.0, q="a")).content == "A"


def test_a_miss_names_the_nearest_recorded_call():
    box = recorded(({"q": "revenue 2023"}, "A"), ({"q": "weather"}, "B"))
    with pytest.raises(ToolMiss, match=r'nearest is search\(\{"q": "revenue 2023"\}\) at turn 1'):
        box.call(asked("search", q="revenue 2024"))


def test_a_recorded_failure_stays_one(engine):
    engine.play([calls(call("search", q="a")), says("ok")], recorded(({"q": "a"}, "no")))
    assert engine.run().turns[0].tool_calls[0].is_error is True


def test_a_miss_may_be_told_to_the_model_instead(engine):
    outcome = engine.play(
        [calls(call("search", q="z")), says("ok")], recorded(({"q": "a"}, "A")), Policy(on_tool_miss="tell")
    )
    assert outcome.reason == "model"
    assert told(engine.run(), 1)["error"] == "not_recorded"


# -- several -------------------------------------------------------------------------------------------------


def test_each_name_has_its_own_source_and_the_rest_is_recorded(engine):
    box = mixed(
        Registry({"live": lambda q: f"live {q}"}),
        recorded(({"q": "a"}, "A")),
        {"live": "live", "mail": Stub("mail", "sent")},
    )
    engine.play([calls(call("live", q="x"), call("search", q="a"), call("mail")), says("ok")], box)
    made = engine.run().turns[0].tool_calls
    assert [(c.result, c.origin) for c in made] == [("live x", "live"), ("A", "recorded"), ("sent", "stub")]


def test_a_tool_that_may_change_something_never_runs_live_without_being_named():
    live = Registry([{"function": search, "side_effect": "read"}, {"name": "pay", "function": search}])
    with pytest.raises(UsageError, match="not named to run live: pay") as found:
        mixed(live, recorded(), {}, rest="live")
    assert "--tool pay=live" in str(found.value)
    assert mixed(live, recorded(), {"pay": "live"}, rest="live").call(asked("search", q="a")).content == "a: 1200"


def test_a_name_without_a_source_is_a_miss(engine):
    outcome = engine.play(
        [calls(call("search", q="a"))], Mixed({}), begin=start(tools=[{"name": "search", "input_schema": {}}])
    )
    assert (outcome.reason, "nothing here runs search" in outcome.detail) == ("miss", True)


def test_namespaces_lead_to_their_own_toolboxes(engine):
    box = Mixed({
        "web__*": Namespaced("web", Registry({"find": lambda q: f"web {q}"})),
        "files__*": Namespaced("files", Registry({"find": lambda q: f"files {q}"})),
    })  # fmt: skip
    assert [d.name for d in box.definitions()] == ["web__find", "files__find"]
    engine.play([calls(call("web__find", q="a"), call("files__find", q="b")), says("ok")], box)
    run = engine.run()
    assert [c.result for c in run.turns[0].tool_calls] == ["web a", "files b"]


def test_only_the_named_tools_are_offered_and_others_are_refused(engine):
    tools = {"files__read": search, "files__write": search, "web__find": search}
    engine.play([calls(call("web__find", q="a")), says("ok")], tools, Policy(only=("files__*",)))
    run = engine.run()
    assert [t["name"] for t in run.requests[0].tools] == ["files__read", "files__write"]
    assert "not offered in this turn" in told(run, 1)["cause"]


def test_a_subset_may_be_chosen_for_each_turn_and_the_run_stays_one(engine):
    tools = {"read": search, "write": search}

    def subset(turn, definitions):
        return ["read"] if turn < 3 else [d.name for d in definitions]

    script = [calls(call("read", q="a")), calls(call("write", q="b")), calls(call("write", q="c")), says("ok")]
    engine.play(script, tools, hooks=Hooks(subset=subset))
    run = engine.run()
    assert [[t["name"] for t in r.tools] for r in run.requests] == [
        ["read"],
        ["read"],
        ["read", "write"],
        ["read", "write"],
    ]
    assert told(run, 2)["error"] == "unknown_tool"
    assert told(run, 3) == "c: 1200"


# -- MCP -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    made = mcp.connect(SERVER)
    yield made
    made.close()


def test_tools_of_an_mcp_server_run_in_the_loop(engine, server):
    tools = {d.name: d for d in server.definitions()}
    assert (tools["add"].side_effect, tools["broken"].side_effect) == ("read", "unknown")
    script = [calls(call("add", a=1, b=2), call("add", a="x", b=2), call("broken", q="a")), says("ok")]
    engine.play(script, server)
    run = engine.run()
    assert told(run, 1, 0) == 3
    assert told(run, 1, 1)["argument"] == "a"
    assert run.turns[0].tool_calls[2].is_error is True


def test_an_mcp_call_that_takes_too_long_is_told_as_such(server):
    with pytest.raises(TimeoutError):
        server.call(asked("slow", timeout=0.2))


def test_an_mcp_server_does_not_get_our_keys(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "x" * 30)
    fresh = mcp.connect(SERVER)
    try:
        assert fresh.call(asked("environment", name="ANTHROPIC_API_KEY")).content == "(not set)"
    finally:
        fresh.close()


def test_an_mcp_server_that_ends_is_a_permanent_failure(tmp_path):
    with bench(tmp_path) as engine:
        tools = mcp.connect(SERVER)
        engine.play([calls(call("leave")), calls(call("add", a=1, b=2)), says("ok")], tools)
        run = engine.run()
        assert "has ended" in told(run, 2)["cause"]
        assert run.turns[1].tool_calls[0].error_class == "permanent"
        tools.close()


@pytest.mark.parametrize("command", ["false", "no-such-program-here"])
def test_an_mcp_server_that_does_not_start_is_named(command):
    with pytest.raises(LooptapeError, match=f"MCP server '{command}' did not start"):
        mcp.connect(command)


def test_a_server_whose_loop_has_just_closed_is_named_and_nothing_else_is_raised(monkeypatch):
    def lingering():
        loop = asyncio.SelectorEventLoop()
        monkeypatch.setattr(loop, "close", lambda: (asyncio.SelectorEventLoop.close(loop), time.sleep(0.5)))
        return loop

    monkeypatch.setattr(mcp.asyncio, "new_event_loop", lingering)
    started = mcp.McpTools("false")
    with pytest.raises(LooptapeError, match="'false' did not start"):
        started.wait()
    while not started._loop.is_closed():
        time.sleep(0.01)
    started.close()


def test_a_call_in_the_moment_in_which_the_server_ends_is_told_as_that(monkeypatch):
    fresh = mcp.connect(SERVER)

    def alive_and_then_not():
        fresh.close()
        assert fresh._loop.is_closed()
        return True

    monkeypatch.setattr(fresh._thread, "is_alive", alive_and_then_not)
    with pytest.raises(ToolError, match="has ended"):
        fresh.call(asked("add", a=1, b=2))


def test_a_call_that_the_loop_was_handed_and_has_not_begun_is_told_when_the_server_ends(monkeypatch):
    fresh = mcp.connect(SERVER)
    hand_over = asyncio.run_coroutine_threadsafe

    def last(work, loop):
        loop.call_soon_threadsafe(loop.stop)  # its last round: nothing that comes in after it is begun by itself
        return hand_over(work, loop)

    monkeypatch.setattr(mcp.asyncio, "run_coroutine_threadsafe", last)
    with pytest.raises(ToolError, match="has ended"):
        fresh.call(asked("slow", timeout=60))
    fresh.close()


@pytest.mark.parametrize(("command", "why"), [(" ", "names no command"), ('serve "it', "no closing quotation")])
def test_a_command_that_cannot_be_read_is_refused_before_anything_starts(command, why):
    with pytest.raises(UsageError, match=why):
        mcp.connect(command)


def test_without_the_package_mcp_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def absent(name, *more, **kinds):
        if name == "mcp":
            raise ImportError("No module named 'mcp'")
        return real(name, *more, **kinds)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UsageError, match=r"looptape\[mcp\]"):
        mcp.connect(SERVER)


def test_an_mcp_server_that_breaks_at_its_start_says_its_last_words():
    command = f"{sys.executable} -c 'import no_such_module_here'"
    with pytest.raises(LooptapeError, match="No module named 'no_such_module_here'"):
        mcp.connect(command)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_mcp_server_does_not_outlive_whoever_starts_it(tmp_path, number):
    pid = tmp_path / "pid"
    silent = tmp_path / "silent.py"
    silent.write_text(f"import os, sys, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\nsys.stdin.read()\n"
                      "for _ in range(600): time.sleep(0.1)\n")  # fmt: skip
    code = (
        "from looptape.replay.engine.tools import mcp\nfrom looptape.tracer.interrupts import told_to_end\n"
        f"with told_to_end(): mcp.connect({f'{sys.executable} {silent}'!r})"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    starter.send_signal(number)
    starter.wait(60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
