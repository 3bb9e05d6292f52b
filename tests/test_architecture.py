"""The house rules that a tool does not know: who may import what, who may print, how a file begins, how long it gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from testdata import REPOSITORY

FOLDERS = ("tracer", "replay", "tui", "sample_traces")
VENDOR_SDKS = {"anthropic", "openai"}

# Programs that a user would write: they may import an SDK at the top, print, and import looptape by its name.
PROGRAMS = ("sample_traces/", "tui/cli/probe.py", "tracer/inject/sitecustomize.py")

# The Textual app; the rest of tui/ serves the command line too.
APP = (
    "tui/app.py",
    "tui/ending.py",
    "tui/keymap.py",
    "tui/messages.py",
    "tui/themes.py",
    "tui/picture.py",
    "tui/screens/",
    "tui/widgets/",
    "tui/web/driver.py",
)


def sources() -> list[Path]:
    """Every Python file that ships."""
    return [REPOSITORY / "__init__.py", *(file for folder in FOLDERS for file in (REPOSITORY / folder).rglob("*.py"))]


def name(file: Path) -> str:
    """The path as one says it: tracer/store/schema.py."""
    return file.relative_to(REPOSITORY).as_posix()


def house() -> list[Path]:
    """The files that are no programs of a user."""
    return [file for file in sources() if not name(file).startswith(PROGRAMS)]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name(file): ast.parse(file.read_text(encoding="utf-8")) for file in sources()}


def imports(nodes: Iterator[ast.AST]) -> set[str]:
    """The absolute modules that these nodes import: `import a.b` is a.b."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return found


def tops(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What the interpreter runs on import: not the inside of functions, not what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            yield from (inner for other in child.orelse for inner in (other, *run_at_import(other)))
            continue
        yield child
        yield from run_at_import(child)


def test_there_is_something_to_look_at(trees: dict[str, ast.Module]) -> None:
    """Were the folders renamed, every test below would be green for want of files."""
    assert all(any(path.startswith(f"{folder}/") for path in trees) for folder in FOLDERS)


def test_only_the_store_imports_duckdb(trees: dict[str, ast.Module]) -> None:
    users = {path for path, tree in trees.items() if "duckdb" in tops(imports(ast.walk(tree)))}
    assert {path for path in users if not path.startswith("tracer/store/")} == set()


def test_only_the_app_and_its_screens_import_textual(trees: dict[str, ast.Module]) -> None:
    """A command without a screen must not pay for one: 0.3 s."""
    users = {path for path, tree in trees.items() if "textual" in tops(imports(ast.walk(tree)))}
    assert {path for path in users if not path.startswith(APP)} == set()


def test_outside_the_app_rich_is_imported_only_inside_functions(trees: dict[str, ast.Module]) -> None:
    users = {path for path, tree in trees.items() if "rich" in tops(imports(run_at_import(tree)))}
    assert {path for path in users if not path.startswith(APP)} == set()


def test_no_vendor_sdk_is_imported_before_someone_asks_for_it(trees: dict[str, ast.Module]) -> None:
    """Importing anthropic costs seconds: `looptape runs` and the user's own start must not pay them."""
    users = {path for path, tree in trees.items() if VENDOR_SDKS & tops(imports(run_at_import(tree)))}
    assert {path for path in users if not path.startswith(PROGRAMS)} == set()


def test_the_house_imports_itself_relatively(trees: dict[str, ast.Module]) -> None:
    """With absolute imports a clone on sys.path gives two classes of the same name."""
    users = {path for path, tree in trees.items() if "looptape" in tops(imports(ast.walk(tree)))}
    assert {path for path in users if not path.startswith(PROGRAMS)} == set()


def test_only_the_report_prints_and_the_tracer_speaks_on_stderr_alone(trees: dict[str, ast.Module]) -> None:
    """stdout is a command's data, and the agent's own while it runs; one line on stderr says when recording fails."""

    def speaks(path: str, tree: ast.Module) -> bool:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout.write":
                return True
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                target = [ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg == "file"]
                if not path.startswith("tracer/") or target != ["sys.stderr"]:
                    return True
        return False

    voices = {path for path, tree in trees.items() if speaks(path, tree) and not path.startswith(PROGRAMS)}
    assert voices - {"tui/report.py"} == set()


def test_every_file_begins_with_one_sentence_that_says_what_it_is_for(trees: dict[str, ast.Module]) -> None:
    without = {path for path, tree in trees.items() if len((ast.get_docstring(tree) or "").split()) < 2}
    assert without == set()


def test_no_file_is_past_500_lines_and_no_function_past_60(trees: dict[str, ast.Module]) -> None:
    """Look again at 400 and at 30; these are the ends."""
    long: list[str] = []
    for file in house():
        lines = file.read_bytes().count(b"\n")
        if lines > 500:
            long.append(f"{name(file)}: {lines} lines")
        for node in ast.walk(trees[name(file)]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 60:
                    long.append(f"{name(file)}: {node.name} has {length} lines")
    assert long == []
