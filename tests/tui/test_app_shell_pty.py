"""The shell on a real terminal: pager and editor get it and give it back, tmux, no colour, and no terminal at all."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import small_tape
from looptape.tracer.store import open_store
from pty_terminal import LOOPTAPE, Terminal, program, terminal

NOTES = """#!/bin/sh
printf '%s\\n' "$@" > {out}.words
for last in "$@"; do :; done
cat "$last" > {out}.text
printf 'MINE NOW\\r\\n'
sleep 0.2
"""
SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of one run that was called from line 12 of agent.py, and a pager and an editor that note what they get."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "agent.py").write_text("# here\n" * 20)
    with open_store(tmp_path / "home") as store:
        store.ingest(small_tape.records(result="a\x1b[31mred\x07", project=str(tmp_path / "work")))
    for name in ("pager", "vim"):
        (tmp_path / name).write_text(NOTES.format(out=tmp_path / name))
        (tmp_path / name).chmod(0o755)
    return tmp_path


def environment(home: Path, **more: str) -> dict[str, str]:
    return {
        "LOOPTAPE_HOME": str(home / "home"),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PAGER": str(home / "pager"),
        "EDITOR": str(home / "vim"),
        "VISUAL": "",
        **more,
    }


@pytest.fixture
def screen(home: Path) -> Iterator[Terminal]:
    with terminal((*LOOPTAPE, "tui"), environment=environment(home)) as made:
        made.until("revenue")
        made.quiet(0.3)
        yield made


def told_to_be(text: str) -> tuple[str, ...]:
    """The screen of the command line, after this Python text."""
    return program(f"{text}\nfrom looptape.tui.cli import main\nsys.argv = ['looptape', 'tui']\nmain()")


def given_over(made: Terminal, key: str) -> None:
    """Open another program from the menu of o, and wait until the screen is back from it."""
    assert made.wait(lambda grid: "in the pager" not in grid.text), made.grid.text
    before = len(made.seen)
    made.send("o")
    made.until("in the pager")
    made.quiet(0.3)  # the menu is painted just before it has the keys
    made.send(key)
    assert made.wait(lambda _: b"MINE NOW" in made.seen[before:] and b"\x1b[?1049h" in made.seen[before:]), (
        made.grid.text
    )
    made.quiet(0.3)
    assert made.seen.rfind(b"\x1b[?1049l", before) < made.seen.rfind(b"MINE NOW")


def test_pager_and_editor_get_the_terminal_and_the_text_and_give_the_terminal_back(
    screen: Terminal, home: Path
) -> None:
    given_over(screen, "o")
    paged = (home / "pager.text").read_text("utf-8")
    assert paged.startswith("# revenue")
    assert "\x1b" not in paged
    given_over(screen, "e")
    assert (home / "vim.text").read_text("utf-8").startswith("# revenue")
    file = Path((home / "vim.words").read_text().strip())
    assert screen.wait(lambda _: not file.exists())  # the screen is back a moment before
    screen.until("revenue")
    screen.send("q")
    assert screen.status() == 0


@pytest.mark.parametrize("last", ["sleep 0.2", "exit"])
def test_an_interrupt_in_the_pager_is_the_pagers(home: Path, last: str) -> None:
    (home / "pager").write_text(f"#!/bin/sh\nprintf 'MINE NOW\\r\\n'\nkill -INT $PPID\n{last}\n")
    with terminal((*LOOPTAPE, "tui"), environment=environment(home)) as made:
        made.until("revenue")
        made.quiet(0.3)
        given_over(made, "o")
        made.rest(0.6)
        made.send("?")
        made.until("keys valid here")


def test_an_interrupt_after_the_pager_ends_the_screen(home: Path) -> None:
    with terminal((*LOOPTAPE, "tui"), environment=environment(home)) as made:
        made.until("revenue")
        made.quiet(0.3)
        given_over(made, "o")
        made.send("?")
        made.until("keys valid here")  # it is back
        os.kill(made.pid, signal.SIGINT)
        assert made.status() == 130


def test_the_editor_opens_the_caller_at_its_line(screen: Terminal, home: Path) -> None:
    screen.send("\r")
    screen.until("GENERATE")
    screen.quiet(0.5)
    given_over(screen, "c")
    assert (home / "vim.words").read_text().splitlines() == ["+12", str(home / "work" / "agent.py")]


def test_a_copy_reaches_the_terminal_as_one_sequence_and_nothing_recorded_does(screen: Terminal) -> None:
    screen.send("y")
    screen.until("where it is")
    screen.send("y")
    screen.until("OSC 52")
    assert screen.seen.count(b"\x1b]52;c;") == 1
    assert b"\x1b]0;" not in screen.seen
    assert b"\x1b]2;" not in screen.seen


def colours(seen: bytes) -> set[str]:
    """What SGR sequences ask for that is a colour."""
    found = set()
    for match in SGR.finditer(seen):
        words = match[1].decode().replace(":", ";").split(";")
        found |= {w for w in words if w in ("38", "48") or re.fullmatch("3[0-7]|4[0-7]|9[0-7]|10[0-7]", w)}
    return found


@pytest.mark.parametrize(
    ("setting", "value", "coloured"),
    [
        ("NO_COLOR", "1", False),
        ("NO_COLOR", "", True),
        ("TEXTUAL_COLOR_SYSTEM", "none", False),
        ("TEXTUAL_COLOR_SYSTEM", "rainbow", True),
    ],
    ids=["no-color", "empty-no-color", "system-none", "system-unknown"],
)
def test_colour_is_forbidden_only_by_who_forbids_it(home: Path, setting: str, value: str, coloured: bool) -> None:
    with terminal((*LOOPTAPE, "tui"), environment=environment(home, **{setting: value})) as made:
        made.until("revenue", "✓")
        made.quiet(0.3)
        made.send("q")
        assert made.status() == 0
        assert bool(colours(made.seen)) is coloured


@pytest.mark.parametrize("command", [("tui",), ("tui", "last")], ids=" ".join)
@pytest.mark.parametrize("how", ["pipe", "dumb"])
def test_without_a_terminal_the_plain_command_is_named_and_nothing_else_is_written(
    home: Path, command: tuple[str, ...], how: str
) -> None:
    if how == "dumb":
        with terminal((*LOOPTAPE, *command), environment=environment(home, TERM="dumb")) as made:
            code, wrote = made.status(), made.seen
    else:
        env = {**os.environ, **environment(home)}
        ran = subprocess.run((*LOOPTAPE, *command), stdin=subprocess.DEVNULL, capture_output=True, env=env, check=False)
        code, wrote = ran.returncode, ran.stdout + ran.stderr
    assert code == 2
    assert f"looptape {'show last' if 'last' in command else 'runs'}".encode() in wrote
    assert b"\x1b" not in wrote


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")
def test_it_works_in_tmux_and_a_copy_stands_in_tmuxs_buffer(home: Path) -> None:
    server = f"looptape-test-{os.getpid()}"
    env = {**os.environ, **environment(home), "TMUX_TMPDIR": str(home)}

    def tmux(*words: str) -> str:
        done = subprocess.run(("tmux", "-L", server, *words), env=env, capture_output=True, text=True, check=False)
        return done.stdout

    def until(words: str) -> None:
        end = time.monotonic() + 60
        while words not in tmux("capture-pane", "-p"):
            assert time.monotonic() < end, tmux("capture-pane", "-p")
            time.sleep(0.1)

    patient = told_to_be("from looptape.tui.outside import clipboard\nclipboard.PATIENCE = 60.0")
    try:
        tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", *patient)
        until("revenue")
        tmux("send-keys", "y")
        until("where it is")
        tmux("send-keys", "y")
        until("tmux")
        assert tmux("show-buffer") == small_tape.RUN
        assert "tmux's own buffer" in " ".join(tmux("capture-pane", "-p").split())
        tmux("send-keys", "?")
        until("keys valid here")
    finally:
        tmux("kill-server")
