"""The only writer of stdout and stderr, and the only one who knows exit codes.

stdout is data, stderr is narration. Every text is cleaned here, on its way out (`safe_text.clean`), and colour
is added after cleaning, so no control code of a recording can arrive. `Styled` marks a part of a line.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from ..tracer.errors import LooptapeError
from ..tracer.interrupts import is_interruption
from ..tracer.tape import plain
from . import safe_text

FINE, BAD, USAGE, UNUSABLE, INTERRUPTED = 0, 1, 2, 3, 130

_CODES = {"dim": "2", "bold": "1", "bad": "31", "good": "32", "accent": "36", "warn": "33"}


@dataclass(frozen=True, slots=True)
class Styled:
    """A text with one of the styles dim, bold, bad, good, accent, warn."""

    text: str
    style: str


Part = str | Styled


@dataclass(frozen=True, slots=True)
class Column:
    """A table column. When the terminal is too narrow, one with ``grow`` is cut, one with ``below`` stands whole on a
    line of its own under the row."""

    title: str
    right: bool = False
    grow: bool = False
    below: bool = False


def out(*parts: Part) -> None:
    """One line of data on stdout; parts are joined without a space, a line end inside them shows as a sign."""
    _write(sys.stdout, _rendered(parts, sys.stdout))


def block(text: str, *, indent: str = "", style: str | None = None) -> None:
    """A text of several lines on stdout, each indented."""
    for row in safe_text.lines(text):
        out(indent, Styled(row, style) if style and row else row)


def note(*parts: Part) -> None:
    """One line of narration on stderr."""
    _write(sys.stderr, _rendered(parts, sys.stderr))


def data(value: dict[str, Any]) -> None:
    """One JSON object on stdout with ``"version": 1`` and nothing else; ASCII, so no control code survives."""
    whole, indent = {"version": 1, **value}, 2 if sys.stdout.isatty() else None
    try:
        text = json.dumps(whole, indent=indent, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(plain(whole), indent=indent)
    _write(sys.stdout, text.replace("\x7f", "\\u007f"))


def exact(text: str) -> None:
    """Recorded text as it is, for pipes and files; on a terminal it is cleaned."""
    if sys.stdout.isatty():
        block(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()


def table(columns: Sequence[Column], rows: Iterable[Sequence[Part]], *, indent: str = "") -> None:
    """Aligned columns on stdout; cut to the terminal's width (marked by ``…``), never cut in a pipe."""
    cells = [[_one_line(part) for part in row] for row in rows]
    titles: list[Part] = [Styled(c.title, "dim") for c in columns]
    widths = [
        max([safe_text.width(c.title), *(safe_text.width(_text(row[i])) for row in cells)])
        for i, c in enumerate(columns)
    ]
    shown, under = list(range(len(columns))), []
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - len(indent)
        if sum(widths) + 2 * (len(columns) - 1) > room:
            under = [i for i in shown if columns[i].below]
            shown = [i for i in shown if not columns[i].below]
        columns, widths = [columns[i] for i in shown], [widths[i] for i in shown]
        _shrink(widths, columns, room - 2 * (len(columns) - 1))
    if any(c.title for c in columns):
        _line(columns, widths, [titles[i] for i in shown], indent)
    for row in cells:
        _line(columns, widths, [row[i] for i in shown], indent)
        for part in (row[i] for i in under):
            if _text(part):
                out(indent + "    ", part)


def progress(text: str) -> None:
    """Replaces the progress line on stderr; nothing when stderr is no terminal. An empty text removes it."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        sys.stderr.write("\r\x1b[K" + safe_text.clean(text, limit=shutil.get_terminal_size().columns - 1))
        sys.stderr.flush()


def error(trouble: LooptapeError) -> int:
    """An error as one line on stderr, ``looptape: what. cure``; returns its exit code."""
    what = trouble.what.rstrip(".")
    dot = "" if what.endswith(("?", "!")) else "."
    note(Styled("looptape: ", "bad"), f"{what}{dot} {trouble.cure}" if trouble.cure else what)
    return trouble.exit_code


def guard(work: Callable[[], Any]) -> int:
    """Runs a command; whatever happens becomes an exit code and at most one line, never a traceback."""
    import click

    sys.stdout, sys.stderr = _prepared(sys.stdout), _prepared(sys.stderr)
    try:
        code = work()
        sys.stdout.flush()
    except LooptapeError as trouble:
        return error(trouble)
    except click.UsageError as trouble:
        return error(_usage(trouble))
    except click.ClickException as trouble:
        return error(LooptapeError("usage", trouble.format_message(), exit_code=USAGE))
    except (KeyboardInterrupt, click.Abort):
        progress("")
        return INTERRUPTED
    except BrokenPipeError:
        _close_quietly()
        return FINE
    except Exception as trouble:
        if is_interruption(trouble):
            progress("")
            return INTERRUPTED
        return _crashed(trouble)
    return code if isinstance(code, int) else FINE


def is_terminal() -> bool:
    """True when a screen can be opened: stdin and stdout are terminals and TERM is not dumb."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def coloured(stream: IO[str]) -> bool:
    """Colour on this stream? NO_COLOR (not empty) forbids, FORCE_COLOR asks, else terminals but TERM=dumb."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _usage(trouble: Any) -> LooptapeError:
    path = trouble.ctx.command_path if trouble.ctx else "looptape"
    return LooptapeError("usage", trouble.format_message(), f"See {path} --help", exit_code=USAGE)


def _crashed(trouble: Exception) -> int:
    if os.environ.get("LOOPTAPE_DEBUG"):
        import traceback

        for row in safe_text.lines("".join(traceback.format_exception(trouble))):
            note(row)
    what = safe_text.clean(f"something went wrong inside looptape ({type(trouble).__name__}: {trouble})", limit=300)
    note(Styled("looptape: ", "bad"), what + ". LOOPTAPE_DEBUG=1 shows where")
    return BAD


def _line(columns: Sequence[Column], widths: list[int], row: Sequence[Part], indent: str) -> None:
    parts: list[Part] = [indent]
    last = max((i for i, part in enumerate(row) if _text(part)), default=-1)
    for index, (column, part) in enumerate(zip(columns, row, strict=True)):
        if index > last:
            break
        text = safe_text.fit(_text(part), widths[index], right=column.right)
        if index == last:
            text = text.rstrip()
        parts += [Styled(text, part.style) if isinstance(part, Styled) else text, "  "]
    out(*parts[:-1] if last >= 0 else parts)


def _shrink(widths: list[int], columns: Sequence[Column], room: int) -> None:
    growing = [i for i, c in enumerate(columns) if c.grow]
    while growing and sum(widths) > room:
        widest = max(growing, key=lambda i: widths[i])
        others = max((widths[i] for i in growing if i != widest), default=0)
        over = sum(widths) - room
        new = max(widths[widest] - over, min(others, widths[widest] - 1), 8)
        if new >= widths[widest]:
            return
        widths[widest] = new


def _rendered(parts: Sequence[Part], stream: IO[str]) -> str:
    colour = coloured(stream)
    done = []
    for part in parts:
        text = safe_text.clean(_text(part))
        if colour and isinstance(part, Styled) and text:
            text = f"\x1b[{_CODES[part.style]}m{text}\x1b[0m"
        done.append(text)
    return "".join(done)


def _one_line(part: Part) -> Part:
    if isinstance(part, Styled):
        return Styled(safe_text.clean(part.text), part.style)
    return safe_text.clean(part)


def _text(part: Part) -> str:
    return part.text if isinstance(part, Styled) else part


def _write(stream: IO[str], text: str) -> None:
    if stream is sys.stderr:
        progress("")
    try:
        stream.write(text + "\n")
        if stream is sys.stderr:
            stream.flush()
    except BrokenPipeError:
        if stream is sys.stderr:
            return  # nobody listens to the narration; the data may still be wanted
        raise


def _prepared(stream: Any) -> Any:
    """Text that the stream's encoding lacks is written as an escape, never an error; a closed stream takes nothing."""
    if stream is None:
        return open(os.devnull, "w")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _close_quietly() -> None:
    """Python would complain about the broken pipe again when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # a stdout without a descriptor (a test's) has nothing to flush
