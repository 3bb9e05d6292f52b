"""Running the command line in this process: what it printed and its exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from looptape.tui.cli import main


@dataclass(frozen=True)
class Ran:
    """A command's exit code, its data and its narration."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object it printed."""
        return json.loads(self.out)


def looptape(*arguments: str, stdin: bytes = b"") -> Ran:
    """Runs a command with stdin, stdout and stderr that are no terminals."""
    out, err = _stream(), _stream()
    code: object = None
    given = io.TextIOWrapper(io.BytesIO(stdin))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _stdin(given), _environment():
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Ran(code, _text(out), _text(err))


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "surrogatepass")


@contextlib.contextmanager
def _environment() -> Any:
    """A command hands what settings files say to its children through the environment: that ends with it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _stdin(stream: io.TextIOWrapper) -> Any:
    before, sys.stdin = sys.stdin, stream
    try:
        yield
    finally:
        sys.stdin = before
