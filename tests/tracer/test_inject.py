"""`looptape record -- COMMAND`: the program is itself, as it was without us, and its model calls are recorded."""

import json
import os
import signal
import sys
import venv

import pytest

from commandline import looptape
from fakellm import FakeLLM, Scenario, Step
from launched import BESIDE, CLI, INSIDE, Launcher
from looptape.tracer.command import understand
from looptape.tracer.errors import UsageError
from looptape.tracer.inject import injected, launch

PYTHON = sys.executable
TELL = INSIDE + "print(json.dumps([sys.argv, os.getcwd(), sys.stdin.read(), ask(os.environ['ANTHROPIC_BASE_URL'])]))\n"


@pytest.fixture(scope="module")
def server():
    with FakeLLM({"a": Scenario([Step(text="hello")])}) as running:
        yield running


@pytest.fixture
def here(tmp_path, server):
    (tmp_path / "work dir").mkdir()
    return Launcher(tmp_path / "work dir", tmp_path / "home", server.url("a"))


def test_arguments_folder_stdin_and_exit_code_are_the_programs_own(here):
    here.write("agent.py", TELL + "sys.exit(7)\n")
    odd = ["two words", 'it\'s "quoted"', "-n", "--proxy", "--", "", "--help", "é*$HOME"]
    code, out, err = here.run(PYTHON, "agent.py", *odd, stdin="piped\ndata", by=CLI)
    assert (code, err) == (7, "")
    assert json.loads(out) == [["agent.py", *odd], str(here.work), "piped\ndata", "hello"]
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


@pytest.mark.parametrize("way", ["-m", "-c", "shebang", "pytest"])
def test_modules_code_scripts_and_pytest_are_recorded(here, way):
    here.write("pack/__init__.py", "")
    here.write("pack/__main__.py", TELL)
    here.write("tool", f"#!{PYTHON}\n{TELL}", 0o755)
    here.write("test_agent.py", INSIDE + "def test_it(): assert ask(os.environ['ANTHROPIC_BASE_URL']) == 'hello'\n")
    command, name = {
        "-m": ([PYTHON, "-m", "pack"], "pack"),
        "-c": ([PYTHON, "-c", TELL], "python"),
        "shebang": (["./tool"], "tool"),
        "pytest": ([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider"], "pytest"),
    }[way]
    code, out, err = here.run(*command)
    assert (code, err) == (0, ""), out
    assert here.recorded() == [(name, "sdk", "completed", 1)]


def test_the_users_own_sitecustomize_still_runs_and_our_folder_is_not_on_the_path(here):
    here.write("own/sitecustomize.py", "import sys; sys.greeting = 'from the user'\n")
    here.write("own/helper.py", "")
    here.write(
        "agent.py",
        INSIDE + "import helper, sitecustomize; ask(os.environ['ANTHROPIC_BASE_URL'])\n"
        "print(sys.greeting, sitecustomize.__file__, [p for p in sys.path if 'inject' in p])\n",
    )
    code, out, err = here.run(PYTHON, "agent.py", PYTHONPATH=f"{here.work / 'own'}{os.pathsep}")
    assert (code, err) == (0, "")
    assert out == f"from the user {here.work / 'own' / 'sitecustomize.py'} []\n"
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


def test_a_sitecustomize_that_fails_does_so_as_without_us(here):
    here.write("own/sitecustomize.py", "raise ValueError('mine')\n")
    here.write("agent.py", INSIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    code, out, err = here.run(PYTHON, "agent.py", PYTHONPATH=str(here.work / "own"))
    assert (code, out) == (0, "hello\n")
    assert "ValueError: mine" in err
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


def test_an_empty_entry_of_pythonpath_keeps_its_meaning():
    path = injected({"PYTHONPATH": f"{os.pathsep}src"})["PYTHONPATH"].split(os.pathsep)
    assert path[1:] == ["", "src"]
    assert injected(injected({"PYTHONPATH": "src"}))["PYTHONPATH"].split(os.pathsep)[1:] == ["src"]
    assert len(injected({})["PYTHONPATH"].split(os.pathsep)) == 1


def test_modules_of_the_program_are_not_shadowed_by_ours(here):
    names = ["tracer", "replay", "tui", "command", "wrap", "model", "transport", "proxy", "inject"]
    for name in names:
        here.write(f"{name}.py", "MINE = True\n")
    here.write(
        "agent.py", INSIDE + f"import {', '.join(names)}\nassert tracer.MINE and command.MINE and inject.MINE\n"
        "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n",
    )  # fmt: skip
    assert here.run(PYTHON, "agent.py") == (0, "hello\n", "")
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


def test_a_program_with_a_looptape_module_of_its_own_gets_that_one_and_the_proxy(here):
    here.write("looptape.py", "MINE = True\n")
    here.write("agent.py", BESIDE + "import looptape; print(looptape.MINE, ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    code, out, err = here.run(PYTHON, "agent.py")
    assert (code, out) == (0, "True hello\n")
    assert err.count("\n") == 1
    assert "looptape.py has the name of looptape" in err
    assert here.recorded() == [("agent", "proxy", "completed", 1)]


def test_processes_that_the_program_starts_are_recorded_too(here):
    here.write("worker.py", INSIDE + "ask(os.environ['ANTHROPIC_BASE_URL'], 'from the worker')\n")
    here.write(
        "agent.py",
        INSIDE + "import subprocess\nask(os.environ['ANTHROPIC_BASE_URL'])\n"
        "subprocess.run([sys.executable, 'worker.py'], check=True)\n",
    )
    assert here.run(PYTHON, "agent.py") == (0, "", "")
    assert here.recorded() == [("agent", "sdk", "completed", 1), ("worker", "sdk", "completed", 1)]


@pytest.mark.parametrize(
    ("number", "isolated"), [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGINT, True)]
)
def test_a_signal_reaches_the_program(here, number, isolated):
    here.write(
        "agent.py",
        "import os, signal, sys, time\ndef stop(n, f): os.write(1, b'got %d' % n); sys.exit(5)\n"
        f"signal.signal({int(number)}, stop)\nprint('ready', flush=True)\nfor _ in range(900): time.sleep(0.1)\n",
    )
    process = here.start(PYTHON, *(["-I"] if isolated else []), "agent.py")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (5, f"got {int(number)}"), err


def test_a_signal_that_another_thread_takes_reaches_the_program_too(here):
    here.write("agent.py", "import time\nprint('ready', flush=True)\nfor _ in range(900): time.sleep(0.1)\n")
    code = (
        "import os, signal, sys, threading\nfrom looptape.tracer.inject import launch\n"
        "def send():\n    sys.stdin.readline(); signal.pthread_kill(threading.get_ident(), signal.SIGTERM)\n"
        "threading.Thread(target=send, daemon=True).start()\nsys.exit(launch(sys.argv[1:]))\n"
    )
    process = here.start(PYTHON, "-I", "agent.py", by=[PYTHON, "-P", "-c", code])
    assert process.stdout.readline() == "ready\n"
    _, err = process.communicate("now\n", timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, err


@pytest.mark.parametrize("option", ["-I", "-S", "-uE"])
def test_a_python_that_ignores_our_path_is_recorded_by_the_proxy(here, option):
    here.write("agent.py", BESIDE + "print(sys.stdin.read(), ask(os.environ['ANTHROPIC_BASE_URL'])); sys.exit(3)\n")
    code, out, err = here.run(PYTHON, option, "agent.py", "x", stdin="piped")
    assert (code, out) == (3, "piped hello\n")
    assert err.count("\n") == 1
    assert f"its options {option} switch" in err
    assert here.recorded() == [("agent", "proxy", "completed", 1)]


def test_a_python_without_looptape_is_recorded_by_the_proxy(here, tmp_path):
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    here.write("agent.py", BESIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    code, out, err = here.run(tmp_path / "other" / "bin" / "python", "agent.py")
    assert (code, out) == (0, "hello\n")
    assert err.count("\n") == 1
    assert "cannot import looptape" in err
    assert here.recorded() == [("agent", "proxy", "completed", 1)]


def test_a_program_that_is_no_python_is_recorded_by_the_proxy_and_its_death_is_told_as_a_shell_does(here):
    here.write("ask.py", BESIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    here.write("agent.sh", f"#!/bin/sh\n'{PYTHON}' ask.py\nkill -9 $$\n", 0o755)
    code, out, err = here.run("./agent.sh")
    assert (code, out) == (137, "hello\n")
    assert err == "looptape: recording through a proxy on 127.0.0.1 (agent.sh is no Python program)\n"
    assert here.recorded() == [("agent", "proxy", "completed", 1)]


def test_a_program_that_records_itself_behind_the_proxy_is_recorded_once(here):
    wrapped = INSIDE.replace("library.post", "looptape.wrap(library.Client()).post")
    here.write("agent.py", wrapped + "import looptape; print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    code, out, _ = here.run(PYTHON, "-I", "agent.py")
    assert (code, out) == (0, "hello\n")
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


def test_a_python_that_a_launcher_starts_records_itself_and_only_once(here):
    here.write("agent.py", INSIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    code, out, err = here.run("sh", "-c", f"'{PYTHON}' agent.py")
    assert (code, out, err.count("\n")) == (0, "hello\n", 1)
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


def test_a_program_of_which_nothing_was_seen_is_told_with_the_cure(here):
    here.write("agent.py", BESIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    inside = "looptape: nothing was recorded: no model call of the program was seen. A client of its own, or another HTTP library? Try: looptape record --proxy -- COMMAND\n"
    assert here.run(PYTHON, "agent.py") == (0, "hello\n", inside)
    code, out, err = here.run("sh", "-c", "echo hello")
    assert (code, out) == (0, "hello\n")
    assert "nothing was recorded" in err
    assert "ANTHROPIC_BASE_URL" in err
    here.write("parent.py", f"import subprocess; subprocess.run([{PYTHON!r}, 'child.py'])\n")
    here.write("child.py", INSIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    assert here.run(PYTHON, "parent.py") == (0, "hello\n", ""), "a process that it starts was seen"


def test_nothing_is_recorded_when_recording_is_off(here):
    here.write("agent.py", INSIDE + "print(ask(os.environ['ANTHROPIC_BASE_URL']))\n")
    assert here.run(PYTHON, "agent.py", LOOPTAPE="off") == (0, "hello\n", "")
    assert here.run(PYTHON, "-I", "agent.py", LOOPTAPE="off") == (0, "hello\n", "")
    assert not here.home.exists()


def test_a_missing_command_is_one_line_and_exit_2(tmp_path, monkeypatch):
    ran = looptape("record", "--", "no-such-program-anywhere", "x")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "no-such-program-anywhere: no such command" in ran.err
    (tmp_path / "agent.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"looptape record -- python agent.py"):
        launch(["agent.py"])
    (tmp_path / "plain").write_text("no first line\n")
    (tmp_path / "plain").chmod(0o755)
    with pytest.raises(UsageError, match="cannot be started"):
        launch(["./plain"])


@pytest.mark.parametrize(
    ("argv", "name", "isolation"),
    [
        (["python", "-W", "error", "-X", "dev", "dir/agent.py", "-I"], "agent", ()),
        (["python3.12", "-Im", "pack.agent", "x"], "pack.agent", ("-I",)),
        (["python", "-c", "code", "agent.py"], "python", ()),
        (["python", "-"], "python", ()),
        (["python", "--check-hash-based-pycs", "always", "-s", "agent.py"], "agent", ()),
        (["node", "--inspect", "dist/agent.js"], "agent", ()),
        (["bash", "-c", "true"], "bash", ()),
        (["claude", "-p", "hello"], "claude", ()),
    ],
)
def test_a_command_line_is_understood(argv, name, isolation):
    found = understand(f"/somewhere/{argv[0]}", argv)
    assert (found.name, found.isolation) == (name, isolation)
