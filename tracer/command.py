"""What a command line is going to run: which interpreter, with which isolating options, which script."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*t?$")
_INTERPRETER = re.compile(r"^(?:python|pypy|node|nodejs|deno|bun|npx|tsx|ruby|perl|bash|sh|zsh|dash)[\d.]*t?$")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_ISOLATING = frozenset("IES")


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, understood as far as recording needs it.

    Attributes:
        program: The file that is started.
        argv: The command as it was given.
        python: The Python that will run, None for anything else.
        isolation: Options given to that Python that switch PYTHONPATH or site off.
        name: What the program is called: its script or module, else the command.
        shadow: A file of the program that would be found instead of looptape (or the other way round).
    """

    program: str
    argv: tuple[str, ...]
    python: str | None
    isolation: tuple[str, ...]
    name: str
    shadow: Path | None


def understand(program: str, argv: Sequence[str]) -> Command:
    """Looks at a command line.

    Args:
        program: The file that the first word stands for.
        argv: The command and its arguments.
    """
    python, options, rest = _python(program, argv)
    if python is None:
        rest = list(argv[1:]) if _INTERPRETER.match(Path(program).name) else [argv[0]]
    isolation = tuple(o for o in options if not o.startswith("--") and _ISOLATING & set(o))
    return Command(program, tuple(argv), python, isolation, _name(argv[0], rest), _shadow(rest) if python else None)


def _python(program: str, argv: Sequence[str]) -> tuple[str | None, list[str], list[str]]:
    """The interpreter, its own options, and the words from the script, -c or -m on."""
    if _PYTHON.match(Path(program).name):
        return program, *_split(argv[1:])
    words = _first_line(program)
    if words and Path(words[0]).name == "env":
        words = [w for w in words[1:] if w != "-S" and "=" not in w]
    if not words or not _PYTHON.match(Path(words[0]).name):
        return None, [], []
    return shutil.which(words[0]), _split(words[1:])[0], [program]


def _first_line(program: str) -> list[str]:
    """The words of a script's first line after the #!."""
    try:
        with open(program, "rb") as file:
            first = file.readline(300)
    except OSError:
        return []
    return first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Interpreter options, and what follows them."""
    position = 0
    while position < len(words):
        word = words[position]
        if not word.startswith("-") or word == "-" or (not word.startswith("--") and set(word) & set("cm")):
            break
        position += 2 if word in _WITH_VALUE else 1
    options, rest = list(words[:position]), list(words[position:])
    if rest and (letters := re.match(r"-[a-zA-Z]+?(?=[cm])", rest[0])):
        options.append(letters[0])  # -Ic code: the letters before the c are options too
    return options, rest


def _name(first: str, rest: Sequence[str]) -> str:
    """Script and module names without folder and ending; the command's where there is neither."""
    for index, word in enumerate(rest):
        if re.fullmatch(r"-[a-zA-Z]*m", word) and index + 1 < len(rest):
            return rest[index + 1]
        if word == "-" or re.fullmatch(r"-[a-zA-Z]*[ce]", word):
            break
        if not word.startswith("-"):
            return Path(word).stem or word
    return Path(first).stem or first


def _shadow(rest: Sequence[str]) -> Path | None:
    """A `looptape` module that the program would import as its own: beside its script, or in the working directory."""
    script = rest[0] if rest and not rest[0].startswith("-") else None
    folder = Path(os.path.realpath(script)).parent if script else Path.cwd()
    if script and Path(script).is_dir():
        folder = Path(script)
    for own in (folder / "looptape.py", folder / "looptape" / "__init__.py"):
        if own.is_file() and not own.resolve().samefile(_ours()):
            return own
    return None


def _ours() -> Path:
    return Path(__file__).resolve().parents[1] / "__init__.py"
