"""`looptape replay RUN -- COMMAND` where the program is answered through the proxy: not Python, or asked for."""

import pytest

from fakellm import FakeLLM, Scenario
from launched import CLI, Launcher
from replayed import OUTSIDE_MAIN, PYTHON, REPLAY, ran, recorded, replay, steps


@pytest.fixture
def server():
    with FakeLLM({"a": Scenario(steps())}) as running:
        yield running


@pytest.fixture
def here(tmp_path, server):
    (tmp_path / "work").mkdir()
    return Launcher(tmp_path / "work", tmp_path / "home", server.url("a"))


def outside(here, server, text=OUTSIDE_MAIN):
    here.write("agent.py", text)
    here.write("agent", f'#!/bin/sh\nexec "{PYTHON}" -I agent.py\n', 0o755)
    code, out, err = here.run("./agent", by=CLI)
    assert (code, err.count("\n")) == (7, 1), err
    server.log.clear()
    (here.work / "ran").unlink(missing_ok=True)
    return out


def test_a_program_that_is_not_python_is_answered_by_the_proxy(here, server):
    out = outside(here, server)
    code, again, err = here.run("--unwrapped", "run", "--", "./agent", by=[*REPLAY, "last"])
    assert (code, again) == (7, out), err
    assert "replaying through a proxy" in err
    assert "4 of 4" in err
    assert server.log == []


def test_its_tools_cannot_be_wrapped_so_it_stops_unless_they_may_run(here, server):
    outside(here, server)
    code, out, err = here.run("--", "./agent", by=[*REPLAY, "last"])
    assert (code, out, ran(here)) == (2, "", []), err
    assert "search" in err


def test_a_miss_behind_the_proxy_is_an_error_that_names_it_and_the_verdict(here, server):
    outside(here, server)
    code, out, err = here.run("--unwrapped", "run", "--", "./agent", by=[*REPLAY, "last"], PROMPT="What is the profit?")
    assert (code, out) == (1, ""), err
    assert "HTTP 400" in err
    assert err.count("messages[0].content") >= 2  # in the program's own error, and in the verdict
    assert server.log == []


def test_proxy_is_used_when_it_is_asked_for(here, server):
    out = recorded(here, server)
    here.write("agent.py", OUTSIDE_MAIN)
    code, again, err = replay(here, "--proxy", "--unwrapped", "run")
    assert (code, again) == (7, out), err
    assert "asked for with --proxy" in err
    assert server.log == []


def test_a_python_under_a_shell_script_answers_itself(here, server):
    recorded(here, server)
    here.write("start.sh", f'#!/bin/sh\n"{PYTHON}" agent.py > out.json; exit $?\n', 0o755)
    code, _, err = here.run("--", "./start.sh", by=[*REPLAY, "last"])
    assert code == 7, err
    assert (server.log, ran(here)) == ([], [])
