"""The pytest plugin in processes of its own: under xdist, in async tests, and beside suites that do not use it."""

import os
import subprocess
import sys

import pytest

from plugin_project import AGENT, TEST

ASYNC = """
import asyncio, os
import anthropic
import pytest
from agent import PROMPT, request

async def ask(client, text):
    async with client.messages.stream(**request([{"role": "user", "content": text}])) as stream:
        return (await stream.get_final_message()).content[0].text

@pytest.mark.looptape
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_async(anyio_backend):
    async with anthropic.AsyncAnthropic(base_url=os.environ.get("FAKE_URL")) as client:
        assert "look" in await ask(client, PROMPT)

@pytest.mark.looptape
def test_gathered(tape):
    async def both():
        async with anthropic.AsyncAnthropic(base_url=os.environ.get("FAKE_URL")) as client:
            return await asyncio.gather(ask(client, "one"), ask(client, "two"))
    asyncio.run(both())
"""
QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-W", "ignore::DeprecationWarning"]


def run(folder, *arguments, **environment):
    """Exit code and what pytest printed, in a process without any key."""
    free = {
        k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "OPENAI", "LOOPTAPE", "PYTEST", "FAKE"))
    }
    given = {**free, "LOOPTAPE_HOME": str(folder / "users-home"), "PYTHONPATH": str(folder), **environment}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *QUIET, *arguments],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project that was recorded under two workers."""
    made = tmp_path_factory.mktemp("project")
    (made / "agent.py").write_text(AGENT)
    (made / "tests").mkdir()
    (made / "tests/test_agent.py").write_text(TEST)
    (made / "tests/test_async.py").write_text(ASYNC)
    from fakellm import FakeLLM, Scenario, Step

    with FakeLLM({"a": Scenario([Step(text="I will look at 412")] * 4)}) as running:
        key = "sk-ant-" + "test-0123456789"
        code, said = run(made, "--looptape=record", "-n", "2", FAKE_URL=running.url("a"), ANTHROPIC_API_KEY=key)
    assert code == 0, said
    assert said.count("recorded tests/tapes/") == 3
    return made


def test_without_key_and_network_it_passes(folder):
    code, said = run(folder)
    assert code == 0, said
    assert "3 passed" in said
    assert "looptape ==" not in said  # nothing to tell


def test_under_workers_a_changed_prompt_fails_by_its_miss_and_stale_tapes_are_told_once(folder):
    lost = folder / "tests/tapes/test_agent/test_gone.tape.jsonl"
    lost.write_bytes(b"")
    try:
        code, said = run(folder, "-n", "2", PROMPT="What is the cost?")
    finally:
        lost.unlink()
    assert code == 1
    assert "2 failed, 1 passed" in said
    for part in (
        "messages[0].content",
        "nearest   turn 1",
        "pytest --looptape=record tests/test_agent.py::test_revenue",
    ):
        assert part in said
    assert "Connection error" not in said
    assert said.count("stale tape: no test is bound to tests/tapes/test_agent/test_gone.tape.jsonl") == 1


def test_a_suite_that_does_not_use_it_loads_nothing_of_it_and_looks_the_same(tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "import sys\n"
        "def test_plain(capsys):\n"
        "    ours = sorted(m for m in sys.modules if m.startswith('looptape'))\n"
        "    assert ours == ['looptape', 'looptape.replay', 'looptape.replay.plugin', 'looptape.tracer', 'looptape.tracer.version'], ours\n"
        "    assert not {'duckdb', 'httpx', 'httpx2', 'opentelemetry', 'click', 'textual'} & set(sys.modules)\n"
        "def test_own_tape(tape):\n"
        "    assert tape == 'my own'\n"
    )
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef tape():\n    return 'my own'\n")
    code, with_it = run(tmp_path)
    assert code == 0, with_it
    code, without = run(tmp_path, "-p", "no:looptape", "--deselect", "test_plain.py::test_plain")
    assert code == 0, without
    assert "looptape" not in with_it
    assert not (tmp_path / "users-home").exists()


def test_a_failure_in_such_a_suite_shows_no_line_of_ours(tmp_path):
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef broken():\n    raise ValueError('no')\n")
    (tmp_path / "test_plain.py").write_text("def test_setup(broken):\n    pass\ndef test_call():\n    assert 1 == 2\n")
    code, said = run(tmp_path)
    assert code == 1
    assert "1 failed, 1 error" in said
    assert "plugin.py" not in said
    assert "looptape" not in said
