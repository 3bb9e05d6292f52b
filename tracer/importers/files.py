"""From a path to the things to import: a file, the files of a folder, the pieces of a journal, a stream."""

from __future__ import annotations

import difflib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..errors import LooptapeError, UsageError
from .claude import claude_bodies
from .context import Source

STREAM = "-"
STREAM_BYTES = 4_000_000_000  # more than that comes from a file, or from something without an end
_SPOOL_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_PIECE = re.compile(r"(?P<journal>[0-9a-f]{32})(?:\.(?P<number>\d{1,9}))?\.jsonl(?:\.gz|\.zst)?")
# OpenHands keeps each event of a conversation in a file of its own
_EVENT = re.compile(r"event-(?P<number>\d{1,9})-[0-9A-Za-z-]{1,80}\.json")


def sources(path: str | Path) -> Iterator[Source]:
    """What there is to import at this path, sessions before the files of their sub-agents.

    Raises:
        UsageError: Nothing is there.
        LooptapeError: It is a device, or a stream that does not end.
    """
    label = str(path)
    if label == STREAM:
        if sys.stdin is None:  # closed by who began us
            raise UsageError("no-stdin", "standard input is closed", "Pipe something in, or name a file")
        yield Source(STREAM, stream=_spooled(sys.stdin.buffer, "stdin"))
        return
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError) as error:
        raise _missing(place, error) from None
    if stat.S_ISDIR(mode):
        yield from _walk(place)
    elif stat.S_ISREG(mode):
        yield Source(label, (place,))
    elif stat.S_ISFIFO(mode):
        with place.open("rb") as stream:  # as of <(zcat ...)
            yield Source(label, stream=_spooled(stream, label))
    else:
        raise LooptapeError("no-file", f"{label} is a device, no file", "Name a file or folder, or - for stdin")


def _walk(folder: Path) -> Iterator[Source]:
    groups: dict[tuple[Path, str], list[tuple[int, Path]]] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        bodies = _is_body_folder(Path(place), names)
        for name in sorted(names):
            path = Path(place, name)
            companion = name.startswith("agent-") and name.endswith(".meta.json")  # read with its agent's lines
            companion |= bodies and name.endswith((claude_bodies.REQUESTS, claude_bodies.RESPONSES))  # by their index
            if companion or not path.is_file():
                continue
            piece = _PIECE.fullmatch(name)
            piece = piece or _EVENT.fullmatch(name)
            key = piece.groupdict().get("journal", "event") if piece else name
            groups.setdefault((Path(place), key), []).append((int(piece["number"] or 0) if piece else 0, path))
    for _, pieces in sorted(groups.items(), key=lambda g: (_is_agent(g[0][1]), g[0])):
        files = tuple(path for _, path in sorted(pieces))
        yield Source(str(files[0]), files)


def _is_body_folder(place: Path, names: list[str]) -> bool:
    """True for raw API bodies with the index that names them."""
    index = place / claude_bodies.INDEX
    if claude_bodies.INDEX not in names or not index.is_file():
        return False
    try:
        return claude_bodies.recognise(Source(str(index), (index,)).head())
    except (OSError, LooptapeError):
        return False  # said when the index itself is imported


def _is_agent(name: str) -> bool:
    return name.startswith("agent-")


def _spooled(stream: IO[bytes], label: str) -> IO[bytes]:
    kept = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - closed with the Source that holds it
    left = STREAM_BYTES
    while piece := stream.read(min(_PIECE_BYTES, left + 1)):
        left -= len(piece)
        if left < 0:
            kept.close()
            what = f"{label}: more than {STREAM_BYTES / 1e9:g} GB came and it went on; nothing of it was imported"
            raise LooptapeError("too-large", what, "Put it into a file and import that")
        kept.write(piece)
    return kept


def _missing(path: Path, error: Exception) -> LooptapeError:
    reason = getattr(error, "strerror", None) or str(error)
    if path.is_symlink():
        return UsageError(
            "no-such-file", f"{path}: a link to what is not there ({os.readlink(path)})", "Check the link"
        )
    try:
        names = sorted(p.name for p in path.parent.iterdir())
    except (OSError, ValueError):
        names = []
    near = difflib.get_close_matches(path.name, names, 3, 0.5)
    cure = f"Nearest: {', '.join(str(path.parent / n) for n in near)}" if near else "Check the path"
    return UsageError("no-such-file", f"{path}: {reason}", cure)
