"""A run as a pytest test of its own: the tape beside it, its transcript, and a test that calls the program again."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...tracer.ci_tape import settled
from ...tracer.errors import LooptapeError
from ...tracer.store.export import records_of
from ...tracer.tape import line
from ..reference import Found
from .measured import of_found
from .naming import tape_of
from .transcript import beside, renew

if TYPE_CHECKING:
    from ...tracer.model import Run, Turn
    from ...tracer.store import Store

_CALLER = re.compile(r"(?s)(.+\.py):\d+")


@dataclass(frozen=True, slots=True)
class Plan:
    """The files of a test that is to be written.

    Attributes:
        module: The test's file; ``tape`` and ``transcript`` are what the pytest plugin looks for beside it.
        function: The test's name.
    """

    module: Path
    tape: Path
    transcript: Path
    function: str

    @property
    def there(self) -> tuple[Path, ...]:
        """Those of the files that exist already."""
        return tuple(p for p in (self.module, self.tape, self.transcript) if p.exists())


def plan(run: Run, folder: Path) -> Plan:
    """Where the test of a run goes in a folder."""
    word = re.sub(r"[^a-z0-9]+", "_", (run.task or run.name or run.title or run.id).lower()).strip("_")[:48].rstrip("_")
    word = word if word and not keyword.iskeyword(word) else f"run_{re.sub('[^a-z0-9]+', '_', run.id.lower())[:16]}"
    module, function = folder / f"test_{word}.py", f"test_{word}"
    tape = tape_of(module, [function])
    return Plan(module, tape, beside(tape), function)


def write(store: Store, run: Run, files: Plan, *, replace: bool = False) -> None:
    """Writes test, tape and transcript.

    Args:
        replace: Take the place of files that are there.

    Raises:
        LooptapeError: One of the files is there (``file-there``) or cannot be written, or the run cannot be replayed.
    """
    if files.there and not replace:
        raise LooptapeError("file-there", f"{files.there[0]} is there already", "Name another folder", exit_code=2)
    turns = list(store.turns(run.id))
    if not turns:
        raise LooptapeError("nothing-recorded", f"run {run.id} has no turns: there is nothing to replay")
    records = settled(records_of(store, run.id), f"{files.function} {files.tape.name}")
    try:
        files.tape.parent.mkdir(parents=True, exist_ok=True)
        _put(files.tape, b"".join(line(r) for r in records))
        renew(files.tape)
        taken = of_found(Found(run, store)).turns
        _put(files.module, "\n".join(_text(run, turns, files, taken)).encode("utf-8"))
    except OSError as error:
        raise LooptapeError(
            "bad-output",
            f"{error.filename or files.module}: {error.strerror}",
            "Name a folder that can be written",
            exit_code=2,
        ) from None


def _put(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.write_bytes(data)
    new.replace(path)


def _text(run: Run, turns: list[Turn], files: Plan, taken: int) -> Iterator[str]:
    program = program_of(run, turns)
    names = [c.name for t in turns if not t.inherited for c in t.tool_calls if c.origin != "provider"]
    yield f'"""A recorded run as a test: replayed offline from {files.tape.parent.parent.name}/{files.tape.parent.name}/."""'
    yield ""
    if program is not None:
        yield "import runpy"
        yield "from pathlib import Path"
        yield ""
    yield "import pytest"
    yield ""
    if program is not None:
        yield f"PROGRAM = Path(__file__).parent / {os.path.relpath(program, files.module.parent)!r}"
        yield ""
    yield ""
    yield "@pytest.mark.looptape"
    yield f"def {files.function}(tape{', monkeypatch' if program is not None else ''}):"
    if program is not None:
        yield '    monkeypatch.setattr("sys.argv", [str(PROGRAM)])  # and what else the program was started with'
        yield "    monkeypatch.syspath_prepend(str(PROGRAM.parent))"
        yield '    runpy.run_path(str(PROGRAM), run_name="__main__")'
    else:
        yield '    pytest.fail("call your agent here as it was called when this was recorded, then take this line away")'
    yield from _listed(names)
    yield f"    tape.assert_within(turns={taken})"
    yield ""


def _listed(names: list[str]) -> Iterator[str]:
    """The tools in their order; a list too long to read is cut by none: it is what was called."""
    one = f"    tape.assert_tools({names!a})"
    if len(one) <= 110:
        yield one
        return
    yield "    tape.assert_tools("
    yield "        ["
    for name in names:
        yield f"            {name!a},"
    yield "        ]"
    yield "    )"


def program_of(run: Run, turns: list[Turn]) -> Path | None:
    """The script that made the calls, if it lies on this machine: the first caller that is a file of Python."""
    for turn in turns:
        match = _CALLER.fullmatch(turn.caller or "")
        if match is not None:
            path = Path(match[1])
            if not path.is_absolute():
                path = Path(run.project or os.curdir) / path
            return path.absolute() if path.is_file() else None
    return None
