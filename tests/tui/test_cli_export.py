"""export: every format of a run, of some turns and of all that a filter picks; what cannot be combined is said."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import small_tape
from commandline import looptape
from looptape.tracer.importers import import_path
from looptape.tracer.store import memory_store, open_store
from looptape.tui.outside.export_forms import FORMS

FIRST, SECOND = "a" * 16, "b" * 16
TEXTS = [form for form, made in FORMS.items() if made.texts is not None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs, made once: a good one, and an hour later one with an error."""
    home = tmp_path_factory.mktemp("made") / "home"
    with open_store(home) as store:
        store.ingest(small_tape.records(FIRST, name="first", tags={"customer": "4711"}))
        later = small_tape.START + 3600 * small_tape.SECOND
        store.ingest(small_tape.records(SECOND, name="second", model="gpt-4o", tool="bash", is_error=True, start=later))
    return home


@pytest.fixture(autouse=True)
def home(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("form", TEXTS)
def test_a_run_goes_to_stdout_or_into_a_private_file_the_same(form: str, tmp_path: Path) -> None:
    printed = looptape("export", "first", "--to", form)
    assert (printed.code, printed.err) == (0, "")
    file = tmp_path / "out"
    assert looptape("export", "first", "--to", form, "-o", str(file)).err == f"wrote {file}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.new"))
    if form != "tape":  # its header holds the time of writing
        assert file.read_text() == printed.out


def test_messages_are_the_request_of_the_last_turn_or_of_the_one_named() -> None:
    assert len(looptape("export", "first", "--to", "messages").json["messages"]) == 3
    assert len(looptape("export", "first:1", "--to", "messages").json["messages"]) == 1


def test_html_of_a_range_holds_those_turns() -> None:
    text = looptape("export", "first:2", "--to", "html").out
    assert text.startswith("<!DOCTYPE html>")
    assert "Turn 2" in text
    assert "Turn 1" not in text


def test_hostile_texts_reach_no_format_as_markup(home: Path) -> None:
    """sec-04, through the whole road: a session file in, the files out."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    with open_store() as store:
        store.ingest(small_tape.records("c" * 16, name=evil, question=evil, result=evil, answer=evil, tool=evil))
    for form in ("html", "markdown"):
        text = looptape("export", "c" * 16, "--to", form).out
        if form == "html":
            assert "<script" not in text
            assert "<img" not in text
        assert "&lt;script&gt;" in text or "```" in text


def test_otlp_lines_are_export_requests() -> None:
    lines = [json.loads(row) for row in looptape("export", "first", "--to", "otlp").out.splitlines()]
    assert len(lines) == 3
    assert all(list(line) == ["resourceSpans"] for line in lines)


def test_otlp_as_protobuf_says_the_same(tmp_path: Path) -> None:
    pb = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    file = tmp_path / "run.pb"
    assert looptape("export", "first", "--to", "otlp", "-o", str(file)).code == 0
    found = pb.ExportTraceServiceRequest.FromString(file.read_bytes())
    spans = [s for r in found.resource_spans for c in r.scope_spans for s in c.spans]
    lines = looptape("export", "first", "--to", "otlp").out.splitlines()
    wanted = [s for row in lines for r in json.loads(row)["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]
    assert [(s.name, s.span_id.hex(), s.trace_id.hex(), s.start_time_unix_nano) for s in spans] == [
        (s["name"], s["spanId"], s["traceId"], int(s["startTimeUnixNano"])) for s in wanted
    ]


def test_protobuf_without_its_package_names_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    ran = looptape("export", "first", "--to", "otlp", "-o", str(tmp_path / "run.pb"))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "looptape[server]" in ran.err
    assert not list(tmp_path.glob("run*"))


@pytest.mark.parametrize(
    ("table", "count", "columns"),
    [("turns", 2, {"run", "number", "model", "cost_usd"}), ("runs", 1, {"id", "name", "tags"}),
     ("tool_calls", 1, {"turn", "name", "arguments", "result"}), ("messages", 3, {"position", "message"})],
)  # fmt: skip
def test_csv_and_parquet_hold_the_rows_of_a_table(table: str, count: int, columns: set[str], tmp_path: Path) -> None:
    found = rows(looptape("export", "first", "--to", "csv", "--table", table).out)
    assert len(found) == count
    assert columns <= set(found[0])
    file = tmp_path / "rows.parquet"
    ran = looptape("export", "first", "--to", "parquet", "--table", table, "-o", str(file))
    assert (ran.code, ran.err) == (0, f"wrote {count} row{'s' if count > 1 else ''} to {file}\n")
    assert (file.stat().st_mode & 0o777, list(tmp_path.glob("*.new"))) == (0o600, [])
    import duckdb

    with duckdb.connect() as con:
        read = con.execute(f"select * from '{file}'")
        assert [d[0] for d in read.description] == list(found[0])
        assert len(read.fetchall()) == count


def test_rows_of_a_range_are_those_of_its_turns() -> None:
    assert [r["number"] for r in rows(looptape("export", "first:2", "--to", "csv").out)] == ["2"]
    assert rows(looptape("export", "first:2", "--to", "csv", "--table", "tool_calls").out) == []
    assert len(rows(looptape("export", "first:1", "--to", "csv", "--table", "messages").out)) == 1
    ran = looptape("export", "first:1", "--to", "csv", "--table", "runs")
    assert (ran.code, "a row of runs is a whole run" in ran.err) == (2, True)


def test_all_rows_by_filter_go_into_one_file(tmp_path: Path) -> None:
    assert {r["run"] for r in rows(looptape("export", "--all", "--to", "csv").out)} == {FIRST, SECOND}
    assert {r["run"] for r in rows(looptape("export", "--all", "--error", "--to", "csv").out)} == {SECOND}
    file = tmp_path / "x.parquet"
    assert looptape("export", "--all", "--to", "parquet", "--model", "claude*", "-o", str(file)).err.startswith(
        "wrote 2 rows"
    )


@pytest.mark.parametrize("form", TEXTS)
def test_all_runs_by_filter_get_a_file_each(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ran = looptape("export", "--all", "--to", form, "--tool", "bash", "-o", str(folder))
    assert (ran.code, ran.err) == (0, f"wrote 1 file to {folder}\n")
    beside = {f"{SECOND}.tape.md"} if form == "ci-tape" else set()  # a tape for CI has its transcript beside it
    assert {p.name for p in folder.iterdir()} == {SECOND + FORMS[form].ending} | beside


def test_no_id_of_a_foreign_tape_leads_out_of_the_folder(tmp_path: Path) -> None:
    with open_store() as store:
        store.ingest(small_tape.records("../../evil"))
    folder = tmp_path / "deep" / "er" / "out"
    assert looptape("export", "--all", "--to", "markdown", "-o", str(folder)).code == 0
    assert len(list(folder.iterdir())) == 3
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["first", "--model", "x"], "--model picks runs, but one is named. Leave the run out and add --all"),
        (["--model", "x"], "no run was named. Add --all"),
        (["first", "--all"], "name one run, or --all"),
        (["first", "--table", "runs"], "--table is for parquet and csv, not tape"),
        (["first", "--to", "html", "--endpoint", "http://localhost:1"], "--endpoint is for otlp, not html"),
        (["first", "--to", "otlp", "--endpoint", "http://localhost:1", "-o", "x"], "cannot be combined"),
        (["first", "--to", "parquet"], "parquet needs a file"),
        (["--all", "--to", "csv", "-o", "."], "All rows go into one file: -o ./turns.csv"),
        (["--all", "--since", "soon", "--to", "csv"], "'soon' is no time"),
        (["first", "--to", "csv", "-o", "no/x.csv"], "no/x.csv: No such file"),
        (["first", "--to", "parquet", "-o", "no/x.parquet"], "no/x.parquet"),
        (["first:9", "--to", "messages"], "no turn 9"),
        (["first:1-2", "--to", "messages"], f"the request of one turn. Name it: {FIRST}:2"),
        (["first", "--to", "parquet", "-o", "/dev/null"], "/dev/null is no file"),
    ],
)
def test_what_does_not_go_together_is_one_line(arguments: list[str], part: str) -> None:
    ran = looptape("export", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert part in ran.err


def test_what_is_no_file_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as beside:
        read = beside.submit(pipe.read_text)
        assert looptape("export", "first", "--to", "messages", "-o", str(pipe)).code == 0
        assert read.result() == looptape("export", "first", "--to", "messages").out
    assert pipe.is_fifo()


def test_a_link_is_followed_and_files_beside_stay(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    link, real, beside = (folder / name for name in ("run.md", "real.md", "run.md.new"))
    link.symlink_to(real)
    beside.write_text("somebody's")
    assert looptape("export", "first", "--to", "markdown", "-o", str(link)).code == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert beside.read_text() == "somebody's"
    assert set(folder.iterdir()) == {link, real, beside}


def test_every_text_format_of_a_tape_file_needs_no_store(tmp_path: Path, home: Path) -> None:
    tape = small_tape.write(tmp_path / "t.jsonl", small_tape.records())
    for form in TEXTS:
        assert looptape("export", str(tape), "--to", form).code == 0
    assert len(rows(looptape("export", str(tape), "--to", "csv").out)) == 2


def test_a_tape_of_a_run_comes_back_the_same(tmp_path: Path) -> None:
    looptape("export", "first", "-o", str(tmp_path / "t.jsonl"))
    with memory_store() as store, open_store() as original:
        import_path(store, tmp_path / "t.jsonl")
        assert store.run(FIRST) == original.run(FIRST)
        assert store.turns(FIRST) == original.turns(FIRST)


def test_a_reader_that_stops_reading_is_no_trouble() -> None:
    command = [sys.executable, "-m", "looptape.tui.cli", "export", "--all", "--to", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout
        assert ran.stderr
        ran.stdout.close()
        assert ran.stderr.read() == ""
        assert ran.wait() in (0, 141)
