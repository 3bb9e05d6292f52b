"""Copying: the program that has the clipboard, else the terminal, else a file; always said which, never waited for."""

from __future__ import annotations

import base64
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from looptape.tui.outside import clipboard

SMALL = "x" * 200
HUGE = "é" * 150_000


def program(folder: Path, name: str, text: str) -> None:
    """A program of the user's PATH."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def payload(sequence: str) -> bytes:
    found = re.search(r"52;c;([A-Za-z0-9+/=]*)", sequence)
    assert found
    return base64.b64decode(found[1])


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(clipboard, "PATIENCE", 60.0)  # a shell may take long to start on a busy machine
    return folder


@pytest.mark.parametrize(
    ("name", "display"),
    [("wl-copy", "WAYLAND_DISPLAY"), ("xclip", "DISPLAY"), ("xsel", "DISPLAY")],
    ids=["wayland", "xclip", "xsel"],
)
def test_the_program_of_the_display_gets_the_text_byte_for_byte(
    path: Path, tmp_path: Path, name: str, display: str
) -> None:
    program(path, name, f"cat > {tmp_path}/taken")
    text = "tab\there \x1b[31m\r\n漢字 \ud83e"
    sent = clipboard.put(text, tmp_path, {"PATH": str(path), display: ":0"}, run=clipboard._run)
    assert (sent.way, sent.sequence) == ("tool", "")
    assert name in sent.said
    assert (tmp_path / "taken").read_bytes() == text.encode("utf-8", "surrogatepass")


def test_a_program_without_its_display_is_not_asked(path: Path, tmp_path: Path) -> None:
    for name in ("wl-copy", "xclip", "xsel"):
        program(path, name, "exit 0")
    assert clipboard.put(SMALL, tmp_path, {"PATH": str(path)}).way == "terminal"


def test_without_a_program_the_terminal_is_asked_and_nothing_is_claimed(tmp_path: Path) -> None:
    sent = clipboard.put(SMALL, tmp_path, {"PATH": ""})
    assert sent.sequence == f"\x1b]52;c;{base64.b64encode(SMALL.encode()).decode()}\x07"
    assert "does not answer" in sent.said
    assert "copied" not in sent.said


def test_inside_tmux_the_sequence_is_wrapped_and_tmux_keeps_the_text_too(path: Path, tmp_path: Path) -> None:
    program(path, "tmux", f'echo "$@" > {tmp_path}/asked; cat > {tmp_path}/kept')
    sent = clipboard.put(SMALL, tmp_path, {"PATH": str(path), "TMUX": "/tmp/tmux-0/default,1,0"})
    assert sent.sequence.startswith("\x1bPtmux;\x1b\x1b]52;c;")
    assert sent.sequence.endswith("\x07\x1b\\")
    assert payload(sent.sequence) == SMALL.encode()
    assert "through tmux" in sent.said
    assert (tmp_path / "kept").read_text() == SMALL
    assert (tmp_path / "asked").read_text().startswith("load-buffer")


def test_inside_screen_the_sequence_goes_in_pieces_that_screen_passes_on(tmp_path: Path) -> None:
    sent = clipboard.put("y" * 3000, tmp_path, {"PATH": "", "STY": "1.pts"})
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", sent.sequence, re.DOTALL)
    assert all(len(piece) <= 760 for piece in pieces)
    assert payload("".join(pieces)) == b"y" * 3000


@pytest.mark.parametrize("home", [True, False], ids=["in-the-store", "without-a-store"])
def test_what_no_terminal_takes_stands_in_a_private_file_whose_path_is_said(tmp_path: Path, home: bool) -> None:
    sent = clipboard.put(HUGE, tmp_path if home else None, {"PATH": ""})
    assert (sent.way, sent.sequence) == ("file", "")
    file = Path(sent.said.rpartition(" ")[2])
    assert file.read_text("utf-8") == HUGE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "300 kB" in sent.said
    file.unlink()


def test_the_next_long_copy_takes_the_place_of_the_last_one_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / clipboard.FILE).symlink_to(tmp_path / "mine")
    clipboard.put(HUGE, tmp_path, {"PATH": ""})
    assert (tmp_path / "mine").read_text() == "precious"
    clipboard.put(HUGE + "2", tmp_path, {"PATH": ""})
    assert (tmp_path / clipboard.FILE).read_text("utf-8") == HUGE + "2"


def test_of_two_long_copies_at_once_one_stands_there_whole(tmp_path: Path) -> None:
    texts = [letter * 150_000 for letter in "abcd"]
    with ThreadPoolExecutor(len(texts)) as together:
        for _ in range(25):
            sent = list(together.map(lambda text: clipboard.put(text, tmp_path, {"PATH": ""}), texts))
            assert {one.way for one in sent} == {"file"}
            assert (tmp_path / clipboard.FILE).read_text() in texts
    assert [file.name for file in tmp_path.iterdir()] == [clipboard.FILE]


def test_a_program_that_hangs_or_fails_is_left_and_said(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard, "PATIENCE", 0.1)
    program(path, "xclip", "exec sleep 60")  # it would end well: were it waited for, it had taken the text
    sent = clipboard.put(SMALL, tmp_path, {"PATH": str(path), "DISPLAY": ":0"})
    assert sent.way == "terminal"
    assert sent.said.startswith("xclip did not take it; ")


def test_over_ssh_the_far_machines_own_clipboard_is_not_the_users(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    program(path, "pbcopy", "cat > /dev/null")
    here = {"PATH": str(path)}
    assert clipboard.clipboard_tool(here) == ("pbcopy",)
    assert clipboard.clipboard_tool({**here, "SSH_CONNECTION": "1 2 3 4"}) is None
