"""Through a real terminal: nothing recorded acts on it; without one, no control codes; a closed pipe is quiet."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import small_tape
from looptape.tracer.store import open_store

RUN = "eeee00000000000e"
EVIL = (
    "\x1b]52;c;ZXZpbA==\x07" "\x1b]0;owned\x07" "\x1b]8;;http://evil\x1b\\link" "\x1b[2J\x1b[H" "\x9b31m\x9d0;c1\x9c" "\x00\x08\x0b\x0e\x7f"
    "\u202edcba\u2066" "\u200b" "\r\noverwritten\rx" "\u2028" "[/ [b [bold]x[/bold] [@click=app.quit]go[/]" "\ud83e"
)  # fmt: skip
SGR = re.compile(rb"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with open_store(folder) as store:
        records = small_tape.records(
            RUN, name=f"n{EVIL}", question=f"q{EVIL}", tool=f"t{EVIL}", arguments={f"k{EVIL}": f"v{EVIL}"}, result=f"r{EVIL}",
            answer=f"a{EVIL}", thinking=f"th{EVIL}", model=f"m{EVIL}", title=f"ti{EVIL}", agent=f"ag{EVIL}",
            tags={f"tag{EVIL}": EVIL}, task=EVIL, session=EVIL, is_error=True, git_commit=EVIL, limits={"turns": 3},
        )  # fmt: skip
        for record in records:
            if record["kind"] == "turn_start":
                record |= {"caller": f"c{EVIL}", "step": f"s{EVIL}", "flags": [f"f{EVIL}"], "agent": f"ag{EVIL}"}
            elif record["kind"] == "turn_end":
                record |= {
                    "error": f"e{EVIL}",
                    "error_type": f"et{EVIL}",
                    "stop_reason": f"st{EVIL}",
                    "request_id": EVIL,
                }
                record["attempts"] = [{"status": 429, "error": EVIL, "error_type": EVIL, "wait_ms": 5}] * 2
            elif record["kind"] == "run_end":
                record["reason"] = f"re{EVIL}"
        records.append(
            {"kind": "event", "run": RUN, "turn": 1, "at": small_tape.START, "event": EVIL, "detail": {EVIL: EVIL}}
        )
        records.append(
            {"kind": "run_update", "run": RUN, "at": small_tape.START, "warnings": [EVIL], "outcome": {"verdict": EVIL}}
        )
        store.ingest(records)
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS")}
    return kept | {"LOOPTAPE_HOME": str(home), "TERM": "xterm-256color"} | more


def on_terminal(home: Path, *arguments: str, **more: str) -> tuple[int, bytes]:
    """Runs a command with stdin, stdout and stderr on a terminal of its own: exit code and what arrived."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "looptape.tui.cli", *arguments]
    ran = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(home, **more), cwd=home)
    os.close(theirs)
    arrived = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        arrived += piece
    os.close(ours)
    return ran.wait(60), arrived


COMMANDS = [
    ["runs"],
    ["runs", "--json"],
    ["show", RUN],
    ["show", f"{RUN}:1"],
    ["show", f"{RUN}:2", "--request"],
    ["show", f"{RUN}:1", "--raw"],
    ["show", RUN, "--json"],
    ["show", f"no{EVIL}".replace("\x00", "").encode("utf-8", "ignore").decode()],
    ["sql", "select * from runs"],
    ["sql", "select * from tool_calls", "--format", "csv"],
    ["sql", "select message from messages", "--format", "json"],
    ["export", RUN, "--to", "markdown"],
    ["export", RUN],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda a: " ".join(a)[:40].encode("ascii", "replace").decode())
def test_nothing_recorded_acts_on_the_terminal(home: Path, arguments: list[str]) -> None:
    _, arrived = on_terminal(home, *arguments)
    plain = SGR.sub(b"", arrived).replace(b"\r\x1b[K", b"").replace(b"\r\n", b"\n")
    assert len(plain) > 20
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", plain)
    text = plain.decode("utf-8")
    assert not re.search("[\x80-\x9f\u200b\u2028\u202e\u2066]", text)
    assert b"Traceback" not in plain
    assert b"something went wrong" not in plain


def test_markup_of_screen_libraries_is_only_text(home: Path) -> None:
    _, arrived = on_terminal(home, "show", f"{RUN}:1", NO_COLOR="1")
    assert b"[/ [b [bold]x[/bold] [@click=app.quit]go[/]" in arrived
    assert b"\x1b[1m" not in arrived


def test_colour_is_there_on_a_terminal_and_not_when_forbidden(home: Path) -> None:
    assert b"\x1b[" in on_terminal(home, "runs")[1]
    assert b"\x1b[" not in on_terminal(home, "runs", NO_COLOR="1")[1].replace(b"\r\x1b[K", b"")
    assert b"\x1b" not in on_terminal(home, "runs", TERM="dumb")[1]


def test_a_dumb_terminal_gets_the_list_instead_of_the_screen(home: Path) -> None:
    code, arrived = on_terminal(home, TERM="dumb")
    assert code == 0
    assert b"looptape --help" in arrived
    assert b"\x1b" not in arrived
    assert on_terminal(home, "tui", TERM="dumb")[0] == 2


def test_a_pipe_gets_no_control_codes(home: Path) -> None:
    command = [sys.executable, "-m", "looptape.tui.cli", "show", RUN]
    ran = subprocess.run(command, capture_output=True, env=environment(home), check=False, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", ran.stdout + ran.stderr)


def test_a_closed_pipe_is_quiet(home: Path) -> None:
    command = [sys.executable, "-m", "looptape.tui.cli", "sql", "select * from range(200000)", "--format", "csv"]
    ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home))
    assert ran.stdout
    assert ran.stderr
    ran.stdout.read(10)
    ran.stdout.close()
    assert ran.stderr.read() == b""
    assert ran.wait(60) == 0


def test_an_interrupt_is_130_without_a_word(home: Path) -> None:
    command = [sys.executable, "-m", "looptape.tui.cli", "sync", "--watch"]
    ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home))
    assert ran.stderr
    assert b"watching" in ran.stderr.readline()
    ran.send_signal(signal.SIGINT)
    _, said = ran.communicate(timeout=60)
    assert (ran.returncode, said.strip()) == (130, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_old_encoding_is_no_crash(home: Path, encoding: str) -> None:
    command = [sys.executable, "-m", "looptape.tui.cli", "show", RUN]
    env = environment(home, PYTHONIOENCODING=encoding, LC_ALL="C")
    ran = subprocess.run(command, capture_output=True, env=env, check=False, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0
    assert b"went wrong" not in ran.stderr


def test_where_an_interrupt_would_leave_things_half_done_it_ends_the_process_there_and_then() -> None:
    code = (
        "import os, signal\nfrom looptape.tracer.interrupts import at_once\nwith at_once():\n"
        "    try: signal.raise_signal(signal.SIGINT)\n    except BaseException: pass\nprint('still here')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")
