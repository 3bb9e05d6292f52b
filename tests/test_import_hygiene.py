"""What an import costs the user's program: `import looptape` and the commands load nothing heavy before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import looptape

HEAVY = (
    "anthropic",
    "openai",
    "duckdb",
    "textual",
    "rich",
    "click",
    "opentelemetry.sdk",
    "httpx",
    "httpx2",
    "pydantic",
)


def loaded_by(code: str) -> set[str]:
    """The names of sys.modules after `code` has run in a fresh interpreter."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def heavy(modules: set[str], *allowed: str) -> set[str]:
    return {name for name in HEAVY if name in modules and name not in allowed}


@pytest.mark.smoke
def test_the_tests_test_what_they_mean_to() -> None:
    """The clone, or in the smoke run the installed wheel: never the one where the other was meant."""
    here = Path(looptape.__file__).resolve().parent
    meant = os.environ.get("LOOPTAPE_UNDER_TEST")
    assert here == (Path(meant).resolve() if meant else Path(__file__).resolve().parents[1])


@pytest.mark.smoke
def test_importing_looptape_loads_nothing_heavy() -> None:
    assert heavy(loaded_by("import looptape")) == set()


@pytest.mark.smoke
def test_every_public_name_is_there_and_none_of_them_loads_a_reader_or_an_sdk() -> None:
    """The recording half runs where duckdb, textual and click are not installed."""
    assert looptape.__all__
    modules = loaded_by("import looptape\nfor name in looptape.__all__: getattr(looptape, name)")
    assert heavy(modules, "opentelemetry.sdk") == set()


def test_a_name_that_does_not_exist_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="warp"):
        looptape.warp  # noqa: B018


def test_an_editor_sees_the_public_names() -> None:
    assert set(looptape.__all__) <= set(dir(looptape))


@pytest.mark.smoke
def test_the_help_of_the_command_line_loads_neither_screen_nor_store_nor_sdk() -> None:
    code = "import looptape.tui.cli as cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass"
    assert heavy(loaded_by(code), "click") == set()
