"""A run as a test of its own: pytest runs it offline, and it fails when the program asks for something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import small_tape
from launched import CLI
from looptape.replay.ci import as_test
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import Filter, memory_store, open_store
from plugin_project import AGENT, server

MAIN = "\nif __name__ == '__main__':\n    print(answer())\n"


def run(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    kept |= {"LOOPTAPE_HOME": str(folder / "home"), **env}
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)


def test_a_recorded_program_becomes_a_test_that_holds_until_the_program_changes(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT + MAIN)
    with server() as fake:
        done = run(tmp_path, *CLI, sys.executable, "agent.py", FAKE_URL=fake.url("a"), ANTHROPIC_API_KEY="none")
    assert "412" in done.stdout, done.stderr
    with open_store(tmp_path / "home") as store:
        (one,) = store.runs(Filter(limit=0))
        files = as_test.plan(one, tmp_path / "tests")
        as_test.write(store, one, files)
    assert files.module == tmp_path / "tests" / "test_agent.py"
    assert 'tape.assert_tools(["search", "search"])' in files.module.read_text().replace("'", '"')
    assert files.transcript.read_text().startswith("# ")
    pytest_again = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    held = run(tmp_path, *pytest_again)
    assert held.returncode == 0, held.stdout + held.stderr
    (tmp_path / "agent.py").write_text(AGENT.replace("What is the revenue?", "What is the loss?") + MAIN)
    assert run(tmp_path, *pytest_again).returncode == 1


@pytest.fixture
def written(tmp_path: Path) -> as_test.Plan:
    """The test of a run whose program is not on this machine."""
    with memory_store() as store:
        store.ingest(small_tape.records(name="Order: 7%/../x", tool="search"))
        one = store.run(small_tape.RUN)
        files = as_test.plan(one, tmp_path)
        as_test.write(store, one, files)
    return files


def test_without_its_program_the_test_says_what_to_put_in_and_fails_until_then(
    written: as_test.Plan, tmp_path: Path
) -> None:
    assert written.module == tmp_path / "test_order_7_x.py"
    assert written.tape == tmp_path / "tapes" / "test_order_7_x" / "test_order_7_x.tape.jsonl"
    done = run(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert done.returncode == 1
    assert "call your agent here" in done.stdout


def test_nothing_that_is_there_is_replaced_unless_it_is_asked_for(written: as_test.Plan) -> None:
    written.module.write_text("# mine\n")
    with memory_store() as store:
        store.ingest(small_tape.records(name="Order: 7%/../x"))
        one = store.run(small_tape.RUN)
        with pytest.raises(LooptapeError, match="is there already"):
            as_test.write(store, one, written)
        assert written.module.read_text() == "# mine\n"
        as_test.write(store, one, written, replace=True)
    assert "looptape" in written.module.read_text()
