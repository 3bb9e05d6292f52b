"""Importers of other distributions: the one that CONTRIBUTING.md shows, and those that fail in every place where one can."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import small_tape
from commandline import looptape
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.importers import import_path, plugins
from looptape.tracer.store import Store, memory_store
from testdata import REPOSITORY

LOG = [
    {"acme_log": 1, "id": "log-7"},
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Which files? token ghp_" + "a1B2" * 9, "time": "2026-01-02T03:04:05Z"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
        "time": "2026-01-02T03:04:06Z",
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt", "time": "2026-01-02T03:04:07Z"},
    {"role": "narrator", "content": "meanwhile"},
    {"role": "assistant", "content": "One file.", "time": "2026-01-02T03:04:09Z"},
]
WORKS = "FORMAT, TITLE = 'broken', 'x'\ndef recognise(head): return b'acme_log' in head\n"

Install = Callable[..., None]


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution with one importer on the path, as pip would."""
    before = set(sys.modules)

    def put(name: str, code: str) -> None:
        site = tmp_path / f"site-{name}"
        info = site / f"{name}_looptape-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-looptape\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{name} = {name}_importer_for_test\n")
        (site / f"{name}_importer_for_test.py").write_text(code)
        monkeypatch.syspath_prepend(str(site))
        plugins.forget()

    yield put
    monkeypatch.undo()
    plugins.forget()
    for module in set(sys.modules) - before:
        if module.endswith("_importer_for_test"):
            del sys.modules[module]


def shown() -> str:
    """The importer that CONTRIBUTING.md shows."""
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?FORMAT.*?)```", page, re.DOTALL)
    return str(code)


def log(folder: Path) -> Path:
    path = folder / "acme.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in LOG))
    return path


def test_the_importer_that_contributing_shows_imports_a_file(store: Store, install: Install, tmp_path: Path) -> None:
    with pytest.raises(LooptapeError, match="no format that looptape knows"):
        import_path(store, log(tmp_path))
    install("acme", shown())
    (report,) = import_path(store, log(tmp_path))
    assert (report.format, report.turns, report.tool_calls) == ("acme", 2, 1)
    assert (report.unknown, report.warnings) == ({"role narrator": 1}, ("no usage in Acme logs",))
    assert (report.secrets, report.tools) == ({"github-token": 1}, {"ls": 1})
    (run,) = store.runs()
    assert (run.source, run.status, run.turns, run.usage.input) == ("acme", "completed", 2, None)
    first, second = store.turns(run.id)
    assert [(c.name, c.result, c.state) for c in first.tool_calls] == [("ls", "a.txt", "done")]
    assert second.text == "One file."
    assert [m["role"] for m in store.request(run.id, 2).messages] == ["system", "user", "assistant", "tool"]
    assert "ghp_" not in json.dumps(store.request(run.id, 2).messages)
    before = store.turns(run.id)
    import_path(store, log(tmp_path), format="acme")
    assert store.turns(run.id) == before, "the same file again changes nothing"


def test_a_plug_in_is_not_loaded_for_what_we_know_ourselves(store: Store, install: Install, tmp_path: Path) -> None:
    install("broken", "raise RuntimeError('loaded')")
    (report,) = import_path(store, small_tape.write(tmp_path / "t.jsonl", small_tape.records()))
    assert (report.format, report.warnings, plugins.troubles()) == ("tape", (), ())
    assert "broken_importer_for_test" not in sys.modules


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("raise SystemExit(4)", "SystemExit: 4"),
        ("FORMAT = TITLE = 'x'", "it has no recognise, records"),
        ("FORMAT = TITLE = 'x'\nrecords = 1\ndef recognise(head): return 1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_broken_plug_in_is_one_line_with_its_distribution(
    install: Install, tmp_path: Path, code: str, said: str
) -> None:
    install("broken", code)
    folder = tmp_path / "logs"
    folder.mkdir()
    small_tape.write(folder / "good.jsonl", small_tape.records())
    for number in range(3):
        (folder / f"notes{number}.txt").write_text("nothing of ours")
    ran = looptape("import", str(folder))
    (line,) = [row for row in ran.err.splitlines() if "broken-looptape" in row]
    assert said in line
    assert (ran.code, ran.out.count("1 run, 2 turns, 1 call")) == (0, 1)
    alone = looptape("import", str(folder / "notes0.txt"))
    assert (alone.code, alone.err.count("\n")) == (3, 1)
    assert "broken-looptape" in alone.err


def test_a_broken_plug_in_does_not_hide_the_one_that_works(store: Store, install: Install, tmp_path: Path) -> None:
    install("acme", shown())
    install("broken", "raise RuntimeError('no')")  # stands before the other on the path
    (report,) = import_path(store, log(tmp_path))
    assert report.format == "acme"
    assert "the importer broken of broken-looptape does not work: RuntimeError: no" in report.warnings


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("yield {'kind': 'run_start', 'run': 'r1'}; raise KeyError('id')", "KeyError: 'id'"),
        ("yield 'no record'", "it yields what is no tape record"),
        ("return 1", "TypeError"),
    ],
)
def test_a_plug_in_that_fails_in_the_middle_keeps_nothing(
    store: Store, install: Install, tmp_path: Path, body: str, said: str
) -> None:
    install("broken", f"{WORKS}def records(source, notes, context):\n    notes.counts['objects'] = 1\n    {body}\n")
    with pytest.raises(LooptapeError) as refused:
        import_path(store, log(tmp_path))
    assert refused.value.slug == "broken-importer"
    assert "broken-looptape" in refused.value.what
    assert said in refused.value.what
    assert store.sql("select count(*) from runs")[2] == [(0,)]


def test_format_names_a_plug_in_and_says_why_it_does_not_load(store: Store, install: Install, tmp_path: Path) -> None:
    install("broken", "raise RuntimeError('no')")
    with pytest.raises(UsageError, match="no format is called broken; the importer broken of broken-looptape"):
        import_path(store, log(tmp_path), format="broken")
    with pytest.raises(UsageError) as refused:
        import_path(store, log(tmp_path), format="nobodys")
    assert "broken" in str(refused.value.cure)
