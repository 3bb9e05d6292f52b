"""Copying, with an answer to where it went: a clipboard program, the terminal (OSC 52), or a file.

Nothing here writes to the terminal: for OSC 52 the sequence is given back and the app sends it. A program is given
less than a second, so call ``put`` in a thread.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..format import size
from .export_files import write_whole

PATIENCE = 0.8
"""Seconds a clipboard program may take: one that waits for a display that is gone must not hold anything up."""
MOST_FOR_TERMINALS = 100_000
"""Bytes of an OSC 52 sequence: what is longer many terminals drop without a word."""
_SCREEN_PIECE = 700
"""GNU screen passes on a string of at most 768 bytes at a time."""
FILE = "copied.txt"

Run = Callable[[tuple[str, ...], bytes], bool]


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a text went.

    Attributes:
        way: ``tool``, ``terminal`` or ``file``.
        said: The rest of the sentence "… ", for a person.
        sequence: What the app must write to the terminal; empty unless the way is ``terminal``.
    """

    way: str
    said: str
    sequence: str = ""


def put(text: str, home: Path | None, env: Mapping[str, str], *, run: Run | None = None) -> Sent:
    """Hand a text to the first clipboard that takes it, byte for byte (UTF-8, lone surrogates as they are).

    Args:
        home: The folder for the file, the last way; a temporary one where it is None.
        run: Starts a program with the text on its stdin; True when it ended well.

    Raises:
        OSError: Not even the file can be written.
    """
    data, run = text.encode("utf-8", "surrogatepass"), run or _run
    tool = clipboard_tool(env)
    failed = ""
    if tool is not None:
        if run(tool, data):
            return Sent("tool", f"copied with {tool[0]}")
        failed = f"{tool[0]} did not take it; "
    sequence = osc52(data, env)
    if len(sequence) <= MOST_FOR_TERMINALS:
        through = ""
        if env.get("TMUX"):
            kept = shutil.which("tmux", path=env.get("PATH")) is not None and run(
                ("tmux", "load-buffer", "-w", "-"), data
            )
            through = " through tmux" + (", and kept in tmux's own buffer" if kept else "")
        elif _in_screen(env):
            through = " through screen"
        return Sent(
            "terminal",
            f"{failed}sent to the terminal's clipboard (OSC 52){through}; it does not answer whether it took it",
            sequence,
        )
    path = _file(data, home)
    return Sent("file", f"{failed}too long for the terminal's clipboard ({size(len(data))}): it stands in {path}")


def clipboard_tool(env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The program that writes the clipboard of the screen one sits at, if there is one.

    Over SSH a Mac's or Windows's own program would write the clipboard of the machine far away; X and Wayland
    programs only count where their display is.
    """
    far = bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY"))
    wanted = [
        (("wl-copy",), bool(env.get("WAYLAND_DISPLAY"))),
        (("xclip", "-selection", "clipboard", "-in"), bool(env.get("DISPLAY"))),
        (("xsel", "--clipboard", "--input"), bool(env.get("DISPLAY"))),
        (("pbcopy",), sys.platform == "darwin" and not far),
        (("clip.exe",), bool(env.get("WSL_DISTRO_NAME")) and not far),
    ]
    return next((c for c, there in wanted if there and shutil.which(c[0], path=env.get("PATH"))), None)


def osc52(data: bytes, env: Mapping[str, str]) -> str:
    """The sequence that asks the terminal to take the text, wrapped so that tmux or screen passes it on."""
    plain = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    if env.get("TMUX"):
        return "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if _in_screen(env):
        pieces = [plain[i : i + _SCREEN_PIECE] for i in range(0, len(plain), _SCREEN_PIECE)]
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return plain


def _in_screen(env: Mapping[str, str]) -> bool:
    return bool(env.get("STY")) and not env.get("TMUX")


def _file(data: bytes, home: Path | None) -> Path:
    """The one file of the last copy, private; the next copy takes its place, as in a clipboard."""
    if home is not None:
        write_whole(home / FILE, [data])  # two copies at once: one of them stands there, whole
        return home / FILE
    handle, name = tempfile.mkstemp(prefix="looptape-", suffix=f"-{FILE}")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return Path(name)


def _run(command: tuple[str, ...], data: bytes) -> bool:
    if command[0] == "clip.exe":  # Windows reads its own encoding unless told by a mark
        data = b"\xff\xfe" + data.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    try:
        # wl-copy and xclip leave a child behind that holds the clipboard: it must not hold our pipes.
        done = subprocess.run(
            command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE,
            start_new_session=True, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
