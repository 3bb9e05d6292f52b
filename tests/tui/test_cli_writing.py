"""import, sync, record, doctor, info, demo: what comes in, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

import codex_rollout
import small_tape
from claude_session import SessionLines
from commandline import looptape
from looptape.tracer import paths, tape
from looptape.tracer.store import open_store
from looptape.tui.cli import doctor
from people import newcomer

OTHER = "bbbb000000000002"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return newcomer(tmp_path, monkeypatch)


def session(folder: Path, name: str, question: str = "fix it") -> Path:
    """A Claude Code session of one question and one answer."""
    sid = f"{name:0>8}-0000-4000-8000-000000000000"
    shared = {"sessionId": sid, "cwd": "/work", "version": "2.0.0", "isSidechain": False, "userType": "external"}
    usage = {"input_tokens": 3, "output_tokens": 40, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage,
               "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}  # fmt: skip
    rows = [
        {**shared, "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-01-01T10:00:00.000Z",
         "message": {"role": "user", "content": question}},
        {**shared, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": "2026-01-01T10:00:05.000Z",
         "requestId": f"req_{name}", "message": message},
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sid}.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@contextmanager
def held(home: Path, *, read_only: bool = False) -> Iterator[int]:
    """Another process has the store open: its id."""
    code = (
        f"import duckdb, sys\nc = duckdb.connect({str(home / 'store.duckdb')!r}, read_only={read_only})\n"
        "print('open', flush=True)\nsys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout
    assert holder.stdout.readline() == b"open\n"
    try:
        yield holder.pid
    finally:
        holder.communicate()


def test_a_good_file_beside_a_bad_one_comes_in(tmp_path: Path) -> None:
    good = small_tape.write(tmp_path / "good.jsonl", small_tape.records())
    bad = tmp_path / "bad.jsonl"
    bad.write_text("this is no json\n")
    ran = looptape("import", str(bad), str(good))
    assert ran.code == 3
    assert str(good) in ran.out
    assert "1 run, 2 turns, 1 call" in ran.out
    (line,) = [row for row in ran.err.splitlines() if row.startswith("looptape: ")]
    assert f"{bad}: line 1" in line
    assert [r["id"] for r in looptape("runs", "--json").json["runs"]] == [small_tape.RUN]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["nowhere.jsonl"], 2, "nowhere.jsonl: No such file"),
        (["--format", "tap", "x"], 2, "no format is called tap"),
        (["--claude-code"], 2, "CLAUDE_CONFIG_DIR"),
    ],
)
def test_what_cannot_be_imported_is_one_line(arguments: list[str], code: int, part: str) -> None:
    ran = looptape("import", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert part in ran.err


def test_a_folder_is_walked_and_many_strange_files_are_not_many_lines(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    small_tape.write(folder / "good.jsonl", small_tape.records())
    for number in range(9):
        (folder / f"notes{number}.txt").write_text("nothing of ours")
    ran = looptape("import", str(folder))
    assert (ran.code, len(ran.out.splitlines())) == (0, 1)
    assert "9 files of no known format passed over: notes0.txt, notes1.txt, notes2.txt, …" in ran.err
    assert looptape("import", str(folder), "--strict").code == 3


def test_stdin_is_a_file_named_dash(tmp_path: Path) -> None:
    data = small_tape.write(tmp_path / "t.jsonl", small_tape.records()).read_bytes()
    ran = subprocess.run(
        [sys.executable, "-m", "looptape.tui.cli", "import", "-", "--json"],
        input=data,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [(f["path"], f["runs"]) for f in json.loads(ran.stdout)["files"]] == [("-", [small_tape.RUN])]


def test_skipped_lines_are_named_and_strict_refuses_them(tmp_path: Path) -> None:
    path = small_tape.write(tmp_path / "t.jsonl", small_tape.records())
    path.write_bytes(path.read_bytes() + b"{broken\n")
    ran = looptape("import", str(path), "--strict")
    assert ran.code == 3
    assert "lines that cannot be read" in ran.err
    assert looptape("runs", "--json").json["total"] == 0
    ran = looptape("import", str(path), "--json")
    (file,) = ran.json["files"]
    assert (ran.code, len(file["skipped"])) == (0, 1)
    promised = "path format runs turns tool_calls skipped unknown warnings"
    assert not set(promised.split()) - set(file)
    assert set(file["skipped"][0]) == {"line", "reason"}


def test_the_claude_code_folder_is_found_and_kept_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = tmp_path / "people" / ".claude" / "projects" / "-work"
    session(projects, "1")
    ran = looptape("import", "--claude-code", "--json")
    assert (ran.code, len(ran.json["files"])) == (0, 1)
    session(projects, "2", "and this")
    ran = looptape("runs", "--json")
    assert [r["title"] for r in ran.json["runs"]] == ["and this", "fix it"] or ran.json["total"] == 2
    assert looptape("sync", "--json").json["files"] == []


def test_the_codex_folders_are_found_and_kept_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "codex home"
    monkeypatch.setenv("CODEX_HOME", str(root))
    refused = looptape("import", "--codex")
    assert (refused.code, "Set CODEX_HOME" in refused.err) == (2, True)
    rollout = codex_rollout.Rollout()
    rollout.user("fix it")
    place = rollout.write(root / "sessions" / "2026" / "11" / "02" / "rollout-1.jsonl")
    old = codex_rollout.Rollout("old")
    old.user("long ago")
    old.write(root / "archived_sessions" / "rollout-0.jsonl")
    for asked in ((), ("runs",)):
        assert "looptape import --codex brings them in" in looptape(*asked).err
    ran = looptape("import", "--codex", "--json")
    assert (ran.code, {f["format"] for f in ran.json["files"]}) == (0, {"codex"})
    rollout.says("done")
    rollout.write(place)
    ran = looptape("runs", "--json", "--all")
    assert sorted((r["title"], r["turns"], r["status"]) for r in ran.json["runs"]) == [
        ("fix it", 1, "completed"),
        ("long ago", 0, "interrupted"),
    ]
    assert looptape("sync", "--json").json["files"] == []


def test_both_clients_are_asked_for_and_one_that_is_not_here_is_only_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex home"))
    refused = looptape("import", "--claude-code", "--codex")
    assert (refused.code, refused.out) == (2, "")
    assert "no Claude Code sessions in ~/.claude/projects and no Codex sessions" in refused.err
    assert "Set CLAUDE_CONFIG_DIR and CODEX_HOME" in refused.err
    rollout = codex_rollout.Rollout()
    rollout.user("fix it")
    rollout.write(tmp_path / "codex home" / "sessions" / "2026" / "11" / "02" / "rollout-1.jsonl")
    ran = looptape("import", "--claude-code", "--codex", "--json")
    assert (ran.code, [f["format"] for f in ran.json["files"]]) == (0, ["codex"])
    assert ran.err.startswith(
        "no Claude Code sessions in ~/.claude/projects (is it another folder? Set CLAUDE_CONFIG_DIR)"
    )


def test_large_changes_wait_for_sync_and_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = tmp_path / "people" / ".claude" / "projects" / "-work"
    session(projects, "1")
    looptape("import", "--claude-code")
    session(projects, "2")
    monkeypatch.setattr("looptape.tui.data.sessions.QUICK_BYTES", 10)
    ran = looptape("runs", "--json")
    assert ran.json["total"] == 1
    assert "1 session file has changed: looptape sync brings it in" in ran.err
    assert len(looptape("sync", "--json").json["files"]) == 1
    assert looptape("runs", "--json").json["total"] == 2


def test_a_running_session_is_followed_however_long_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = tmp_path / "people" / ".claude" / "projects" / "-work"
    path = session(projects, "1")
    looptape("import", "--claude-code")
    monkeypatch.setattr("looptape.tui.data.sessions.QUICK_BYTES", path.stat().st_size)  # the file is longer from now on
    lines = SessionLines(path.stem)
    lines._second = 100
    lines.user("and on")
    lines.answer("m9", "done", stop="end_turn")
    with path.open("a") as file:
        file.write(lines.text())
    ran = looptape("runs", "--json")
    assert ([r["turns"] for r in ran.json["runs"]], "sync" in ran.err) == ([2], False)
    with path.open("a") as file:
        lines.lines.clear()
        lines.user("thanks")
        file.write(lines.text())
    (file_report,) = looptape("sync", "--json").json["files"]
    assert file_report["counts"]["lines"] == 1


def test_session_files_wait_while_the_store_is_held_and_come_in_later(tmp_path: Path, home: Path) -> None:
    projects = tmp_path / "people" / ".claude" / "projects" / "-work"
    session(projects, "1")
    looptape("import", "--claude-code")
    session(projects, "2")
    with held(home, read_only=True):
        ran = looptape("runs", "--json")
        assert (ran.code, ran.json["total"]) == (0, 1), ran.err
        assert "session files wait" in ran.err
    assert looptape("runs", "--json").json["total"] == 2


def test_sync_moves_journals_and_says_how_much(home: Path) -> None:
    journal = paths.make_private(home / "journal") and home / "journal" / ("a" * 32 + ".jsonl")
    head = tape.header(writer="test", started_at=small_tape.START, journal="a" * 32, pid=1)
    journal.write_bytes(b"".join(map(tape.line, [head, *small_tape.records()])))
    said = looptape("sync", "--json").json
    assert (said["version"], said["runs"], said["turns"], said["waiting"]) == (1, 1, 2, 0)
    assert looptape("show", "last", "--json").json["run"]["id"] == small_tape.RUN


def test_bare_on_an_empty_store_says_what_was_found(tmp_path: Path) -> None:
    for number in range(3):
        session(tmp_path / "people" / ".claude" / "projects" / "-work", str(number))
    codex = tmp_path / "people" / ".codex" / "sessions" / "2026"
    codex.mkdir(parents=True)
    (codex / "rollout.jsonl").write_text("{}\n")
    ran = looptape()
    assert (ran.code, ran.out) == (0, "")
    assert "3 Claude Code session files" in ran.err
    assert "1 Codex session file in" in ran.err
    assert "kB" in ran.err
    assert "looptape import --claude-code" in ran.err
    assert "looptape demo" in ran.err


def test_info_prints_each_setting_with_its_source(tmp_path: Path, home: Path) -> None:
    (tmp_path / "people" / "looptape.toml").write_text("limit = 7\n")
    facts = looptape("info", "--json").json
    of = {s["name"]: (s["value"], s["source"]) for s in facts["settings"]}
    assert of["limit"] == (7, "project")
    assert of["home"] == (str(home), "environment")
    assert of["content"] == ("full", "default")
    assert facts["paths"]["store"] == str(home / "store.duckdb")
    out = looptape("info").out
    assert "LOOPTAPE_LIMIT" in out
    assert str(tmp_path / "people" / "looptape.toml") in out


def test_a_wrong_settings_file_stops_commands_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "people" / "looptape.toml").write_text("limit = 'many'\n")
    ran = looptape("runs")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "looptape.toml: limit is 'many'" in ran.err


def test_doctor_records_a_turn_for_real_and_reads_it_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the list that is installed grows old by itself
    monkeypatch.setattr("looptape.tracer.prices.listed.newest_date", lambda: datetime.now(tz=UTC).date())
    ran = looptape("doctor", "--json")
    of = {c["name"]: c for c in ran.json["checks"]}
    assert of["anthropic"]["state"] == "ok", of["anthropic"]
    assert of["openai"]["state"] in ("ok", "info"), of["openai"]
    assert of["prices"]["state"] == "ok"
    assert of["disk"]["state"] in ("ok", "warn")
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert not (home / "journal").exists()


def test_doctor_says_when_recording_is_off_or_an_sdk_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE", "off")
    monkeypatch.setattr(doctor, "SDKS", ("anthropic",))
    monkeypatch.setattr(doctor, "ANY_PYTHON", "/bin/false")
    ran = looptape("doctor")
    assert ran.code == 1
    assert "a test recording failed" in ran.out
    assert "unset it to record" in ran.out


def test_doctor_counts_the_journals_that_are_there_when_one_goes_meanwhile(home: Path) -> None:
    folder = paths.make_private(home / "journal")
    (folder / "there.jsonl").write_bytes(b"x" * 640)
    (folder / "gone.jsonl").symlink_to("moved away between the look at the folder and the look at the file")
    check = doctor._journals()
    assert (check.state, check.said) == ("ok", "1 live or waiting, 640 B")


def test_a_held_store_is_exit_3_naming_the_holder(home: Path) -> None:
    small = small_tape.write(home.parent / "t.jsonl", small_tape.records())
    looptape("import", str(small))
    with held(home) as pid:
        ran = looptape("runs")
    assert (ran.code, ran.out) == (3, "")
    assert str(pid) in ran.err
    assert "Traceback" not in ran.err


def test_record_passes_arguments_and_exit_code_on(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    command = [
        sys.executable,
        "-m",
        "looptape.tui.cli",
        "record",
        "--",
        sys.executable,
        str(script),
        "--proxy",
        "-x",
        "a b",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert (ran.returncode, ran.stdout) == (7, "['--proxy', '-x', 'a b']\n")


def test_a_program_that_is_not_there_is_exit_2() -> None:
    ran = looptape("record", "--", "no-such-program-here")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no-such-program-here" in ran.err


def test_the_demo_shows_the_list_then_a_run_then_what_to_try(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from looptape import sample_traces

    recorded = []

    def record(at: Path) -> None:
        recorded.append(at)
        with open_store(at) as store:
            store.ingest(small_tape.records())

    monkeypatch.setattr(
        sample_traces, "demo", types.SimpleNamespace(record=record, tapes=lambda but: [], LIVE=()), raising=False
    )
    ran = looptape("demo", "--no-tui")
    assert ran.code == 0, ran.err
    assert recorded == [home / "demo"]
    assert f"LOOPTAPE_HOME={home / 'demo'} looptape" in ran.err
    assert looptape("runs", "--json").json["runs"] == [], "the user's own store is left alone"
    parts = [
        "$ looptape runs",
        "revenue",
        "$ looptape show ",
        "> What is 7%",
        "→ search",
        "next",
        "--request",
        "looptape replay",
        "looptape stats",
        "the screen",
    ]
    places = [ran.out.index(part) for part in parts]
    assert places == sorted(places)
    again = looptape("demo")
    assert again.code == 0
    monkeypatch.setenv("LOOPTAPE_HOME", str(home / "demo"))
    assert looptape("runs", "--json").json["total"] == 1, "made fresh each time"
    assert looptape("demo").code == 0, "also from where the demo is looked at"
    assert recorded == [home / "demo"] * 3
    tried = [
        line.strip().split("   ")[0].split()[1:] for line in ran.out.splitlines() if line.startswith("  looptape show")
    ]
    assert looptape(*tried[0]).code == 0


def test_the_demo_never_removes_a_folder_that_it_did_not_make(home: Path) -> None:
    kept = home / "demo" / "thesis.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("years of work")
    ran = looptape("demo")
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert kept.read_text() == "years of work"


@pytest.mark.parametrize("arguments", [[], ["runs"], ["show", "last"], ["sql", "select 1"], ["sync"], ["demo"],
                                       ["import", "x"], ["export", "last"], ["record", "--", "true"], ["receive"]])  # fmt: skip
@pytest.mark.parametrize("place", ["file", "file/below", "/proc", "/proc/below"])
def test_a_home_that_cannot_be_one_is_a_line_with_a_cure(
    arguments: list[str], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / place))
    if place.startswith("/proc") and not Path("/proc").is_dir():
        pytest.skip("there is no /proc here")
    ran = looptape(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1), ran.err
    assert "Set LOOPTAPE_HOME to a folder that you can write" in ran.err
    assert looptape("runs", "--help").code == 0


def test_doctor_says_that_the_home_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SDKS", ("anthropic",))
    monkeypatch.setattr(doctor, "ANY_PYTHON", "/bin/true")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "file"))
    (bad,) = [c for c in looptape("doctor", "--json").json["checks"] if c["name"] == "store"]
    assert (bad["state"], "is a file" in bad["said"]) == ("bad", True)


def test_another_recording_under_the_same_id_changes_nothing_and_is_told(tmp_path: Path) -> None:
    good = small_tape.write(tmp_path / "good.jsonl", small_tape.records())
    other = small_tape.records(answer="It is 9.")
    for record in other:
        if record["kind"] == "turn_end":
            record["usage"] = {"input": 999_999, "output": 9}
            record["response_id"] = "msg_other"
    looptape("import", str(good))
    before = looptape("show", small_tape.RUN, "--json").json
    ran = looptape("import", str(small_tape.write(tmp_path / "other.jsonl", other)))
    assert ran.code == 0
    told = f"run {small_tape.RUN} is here already and differs at turn 1: kept what was there"
    assert ran.err.count(told) == 1
    assert looptape("show", small_tape.RUN, "--json").json == before
    assert "is here already" not in looptape("import", str(good)).err


def test_a_record_that_cannot_be_stored_is_named_by_its_line(tmp_path: Path) -> None:
    records = small_tape.records()
    path = small_tape.write(tmp_path / "t.jsonl", records)
    bad = {"kind": "turn_start", "run": small_tape.RUN, "turn": 2**40, "at": 1}
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\n", tape.line(bad), *lines[2:]]))
    ran = looptape("import", str(path), "--strict")
    assert (ran.code, "line 4: turn_start: turn is no whole number in range" in ran.err) == (3, True), ran.err
    assert looptape("runs", "--json").json["total"] == 0
    (skipped,) = looptape("import", str(path), "--json").json["files"][0]["skipped"]
    assert skipped["line"] == 4


def test_a_device_and_a_stream_without_an_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = looptape("import", "/dev/zero")
    assert (ran.code, "is a device" in ran.err) == (3, True)
    monkeypatch.setattr("looptape.tracer.importers.files.STREAM_BYTES", 3_000_000)
    with Path("/dev/zero").open("rb") as endless:
        piped = subprocess.Popen(["head", "-c", "9000000"], stdin=endless, stdout=subprocess.PIPE)
    assert piped.stdout
    ran = looptape("import", f"/dev/fd/{piped.stdout.fileno()}")
    piped.stdout.close()
    piped.wait()
    assert (ran.code, "more than 0.003 GB came" in ran.err) == (3, True), ran.err
