"""The wheel is the tree: all of it, nothing beside it, and it works where only the wheel is."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import built_wheel
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.tracer import store
from testdata import REPOSITORY

FOLDERS = ("tracer", "replay", "tui", "sample_traces")
SHIPPED = {".html", ".css", ".js", ".py", ".tcss", ".sql", ".jsonl"}
PAGES = "docs/rules"  # what `looptape lint --explain` prints
NOT_SHIPPED = {".md"}  # a folder may explain itself to a reader of the tree


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built once, also for several test processes."""
    base = tmp_path_factory.getbasetemp()
    dist = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "wheel-of-this-tree"
    dist.mkdir(exist_ok=True)
    with (dist / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return next(dist.glob("*.whl"), None) or built_wheel.build(dist)


def tree() -> set[str]:
    """Every file of the packages, as the wheel should name it."""
    files = [file for folder in FOLDERS for file in (REPOSITORY / folder).rglob("*") if file.is_file()]
    kept = [file for file in files if "__pycache__" not in file.parts and file.suffix not in NOT_SHIPPED]
    inside = {f"looptape/{file.relative_to(REPOSITORY).as_posix()}" for file in kept}
    pages = {f"looptape/{PAGES}/{file.name}" for file in (REPOSITORY / PAGES).glob("*.md")}
    return inside | pages | {"looptape/__init__.py", "looptape/py.typed"}


def test_the_wheel_holds_what_the_tree_holds_and_nothing_else(wheel: Path) -> None:
    inside, meant = built_wheel.contents(wheel), tree()
    assert {"missing": meant - inside, "too much": inside - meant} == {"missing": set(), "too much": set()}


def test_every_folder_of_python_files_is_listed_as_a_package() -> None:
    """A folder that is not listed works in the editable install and is silently absent from the wheel."""
    listed = set(built_wheel.project()["tool"]["setuptools"]["packages"])
    folders = {file.parent for top in FOLDERS for file in (REPOSITORY / top).rglob("*.py")}
    meant = {".".join(["looptape", *folder.relative_to(REPOSITORY).parts]) for folder in folders}
    assert listed == meant | {"looptape", "looptape.docs.rules"}
    assert {str(folder) for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_every_file_in_a_package_is_of_a_kind_that_ships() -> None:
    """A new kind of data file must be named in package-data (and here), or the installed program lacks it."""
    kinds = {Path(name).suffix for name in tree() if PAGES not in name} - {""}
    assert kinds - {".typed"} <= SHIPPED


def test_the_root_holds_one_python_file() -> None:
    """Any other, a conftest.py or noxfile.py, would ship as looptape.conftest."""
    assert [file.name for file in REPOSITORY.glob("*.py")] == ["__init__.py"]


def test_the_tests_are_no_packages() -> None:
    """With an __init__.py below tests/ pytest would import the root as a package of another name."""
    assert list((REPOSITORY / "tests").rglob("__init__.py")) == []


def test_the_links_for_type_checkers_lead_to_every_folder() -> None:
    links = {link.name: link.resolve() for link in (REPOSITORY / ".src" / "looptape").iterdir()}
    assert links == {name: (REPOSITORY / name).resolve() for name in (*FOLDERS, "__init__.py")}


def test_what_earlier_builds_left_is_not_built_again(tmp_path: Path) -> None:
    """A stale build/ would bring a deleted module back into the wheel."""
    root = tmp_path / "clone"
    leftovers = ["build/lib/looptape/ghost.py", "dist/old.whl", "looptape.egg-info/SOURCES.txt", ".venv/pyvenv.cfg"]
    leftovers += ["env/pyvenv.cfg", "env/lib/six.py", "tracer/__pycache__/ghost.cpython-311.pyc", ".git/HEAD"]
    for name in [*leftovers, "tracer/model.py", "pyproject.toml"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    copied = built_wheel.clean_copy(root, tmp_path / "copy")
    assert {file.relative_to(copied).as_posix() for file in copied.rglob("*") if file.is_file()} == {
        "tracer/model.py",
        "pyproject.toml",
    }


def test_the_wheel_names_its_licence_its_typing_and_its_command(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path, "zip")
    (info,) = tmp_path.glob("*.dist-info")
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    assert "License-Expression: MIT" in metadata
    assert "looptape contributors" in (info / "licenses" / "LICENSE").read_text(encoding="utf-8")
    assert "looptape = looptape.tui.cli:main" in (info / "entry_points.txt").read_text(encoding="utf-8")
    assert {f"Provides-Extra: {extra}" for extra in ("openai", "server", "dev")} <= set(metadata.splitlines())


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python where only `folder` and the standard library can be imported."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LOOPTAPE", "OTEL"))}
    return subprocess.run(
        [sys.executable, "-S", *command],
        cwd=folder.parent,
        env={**clean, "PYTHONPATH": str(folder), "LOOPTAPE_HOME": str(folder.parent / "home"), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_command_works_from_the_wheel_beside_what_it_declares_and_no_more(wheel: Path, tmp_path: Path) -> None:
    """A dependency that is used but only there because a development tool brought it shows here."""
    declared = built_wheel.project()["project"]["dependencies"]
    site = built_wheel.room(wheel, tmp_path / "site", beside=declared)
    version = run(site, str(site / "bin" / "looptape"), "--version")
    assert (version.returncode, version.stdout.split()[-1:]) == (0, [wheel.name.split("-")[1]]), version.stderr
    runs = run(site, str(site / "bin" / "looptape"), "runs")
    assert runs.returncode == 0, runs.stderr


def test_every_dependency_has_its_reason_in_contributing() -> None:
    declared = built_wheel.project()["project"]
    lines = declared["dependencies"] + [line for extra in declared["optional-dependencies"].values() for line in extra]
    names = {re.split(r"[<>=!~;\[ ]", line)[0] for line in lines}
    table = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {name for name in names if f"| {name} |" not in table} == set()


AGENT = """
import sys, anthropic, looptape

client = looptape.wrap(anthropic.Anthropic(api_key="sk-ant-api03-canary-canary-canary", base_url=sys.argv[1]))
tools = [{"name": "search", "description": "", "input_schema": {"type": "object"}}]
messages = [{"role": "user", "content": "What is the revenue?"}]
while True:
    answer = client.messages.create(model="a-model", max_tokens=99, tools=tools, messages=messages)
    messages.append({"role": "assistant", "content": answer.content})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "200 MEUR"} for call in calls]
    messages.append({"role": "user", "content": results})
for name in ("duckdb", "textual", "click", "platformdirs", "genai_prices"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(name + " is here, so this proves nothing")
"""


def test_the_wheel_without_its_dependencies_records_beside_only_the_sdk(wheel: Path, tmp_path: Path) -> None:
    """An agent's container need not carry DuckDB and Textual; its journals are read where they are."""
    site = built_wheel.room(wheel, tmp_path / "site", beside=["anthropic", "opentelemetry-api", "opentelemetry-sdk"])
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    steps = [Step(calls=[Call("search", {"q": "revenue"})]), Step(text="It is 200 MEUR.")]
    with FakeLLM({"revenue": Scenario(steps)}) as server:
        done = run(site, str(tmp_path / "agent.py"), server.url("revenue"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (journal,) = (tmp_path / "home" / "journal").glob("*.jsonl")
    text = journal.read_text(encoding="utf-8")
    assert "canary" not in text
    kinds = [json.loads(line)["kind"] for line in text.splitlines()]
    assert (kinds[0], kinds.count("turn_start"), kinds.count("call_seen")) == ("header", 2, 1)
    with store.open_store(tmp_path / "home") as opened:
        (seen,) = opened.runs(store.Filter())
    assert (seen.turns, seen.tool_calls, seen.status) == (2, 1, "completed")
