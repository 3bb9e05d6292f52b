"""How other programs are asked to show a file: $EDITOR at a line, $PAGER; and files for them to look at."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...tracer.errors import UsageError

_WAITING = {"code": "--wait", "code-insiders": "--wait", "codium": "--wait", "vscodium": "--wait", "cursor": "--wait",
            "windsurf": "--wait", "subl": "--wait", "sublime_text": "--wait", "zed": "--wait", "zeditor": "--wait", "mate": "--wait"}  # fmt: skip
"""Editors with a window of their own: without this they come back before the file is read."""
_GOTO = frozenset({"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "sublime_text", "zed", "zeditor", "hx", "helix"})
_LINE_OPTION = frozenset(
    {"idea", "pycharm", "charm", "goland", "webstorm", "phpstorm", "rubymine", "clion", "rider", "mate", "kate"}
)
_PLACE = re.compile(r"(?s)(.+):(\d+)")


def editor(path: Path, line: int | None, env: Mapping[str, str]) -> list[str]:
    """The command that opens a file in the user's editor, at a line where one is given.

    Raises:
        UsageError: Neither $VISUAL nor $EDITOR is set, and none of the usual editors is there.
    """
    command = _words(env, ("VISUAL", "EDITOR"))
    if not command:
        usual = next((n for n in ("sensible-editor", "nano", "vim", "vi") if shutil.which(n, path=env.get("PATH"))), "")
        if not usual:
            raise UsageError("no-editor", "$EDITOR is not set", "Set it: export EDITOR=vim")
        command = [usual]
    name = Path(command[0]).name.removesuffix(".exe")
    wait = [_WAITING[name]] if name in _WAITING and _WAITING[name] not in command else []
    if line is None:
        return [*command, *wait, str(path)]
    if name in _GOTO:
        return [*command, *wait, "--goto", f"{path}:{line}"]
    if name in _COLON:
        return [*command, *wait, f"{path}:{line}"]
    if name in _LINE_OPTION:
        return [*command, *wait, "--line", str(line), str(path)]
    return [*command, f"+{line}", str(path)]


def pager(path: Path, env: Mapping[str, str]) -> list[str]:
    """The command that pages a file.

    Raises:
        UsageError: $PAGER is not set and there is none of the usual pagers.
    """
    command = _words(env, ("PAGER",))
    if not command:
        usual = next((n for n in ("less", "more") if shutil.which(n, path=env.get("PATH"))), "")
        if not usual:
            raise UsageError("no-pager", "$PAGER is not set", "Set it: export PAGER=less")
        command = [usual]
    return [*command, str(path)]


def caller_place(caller: str, project: str | None) -> tuple[Path, int]:
    """The file and line of a recorded caller (``file:line``); a relative file lies in the run's project.

    Raises:
        UsageError: It is not of that form, or the file is not on this machine.
    """
    match = _PLACE.fullmatch(caller)
    if match is None:
        raise UsageError("no-caller", f"{caller!r} is no file and line")
    path = Path(match[1])
    if not path.is_absolute():
        folders = [Path(project)] if project else []
        path = next(
            (f / path for f in (*folders, Path.cwd()) if (f / path).is_file()), (folders or [Path.cwd()])[0] / path
        )
    if not path.is_file():
        raise UsageError("no-caller", f"{path} is not on this machine", "The run was recorded where it was")
    return path, int(match[2])


@contextmanager
def passing_file(text: str, name: str) -> Iterator[Path]:
    """A private file (0600, in a folder of its own) with a text, exactly; gone afterwards.

    Args:
        name: Its name, whose ending tells an editor what it is.
    """
    with tempfile.TemporaryDirectory(prefix="looptape-") as folder:
        path = Path(folder) / (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "text.txt")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
        yield path


def _words(env: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    """The first of these variables that says something, as a shell would split it."""
    for name in names:
        text = env.get(name, "").strip()
        if text:
            try:
                return shlex.split(text)
            except ValueError:
                raise UsageError("bad-command", f"${name} is {text!r}: a quote is open", f"Correct ${name}") from None
    return []
