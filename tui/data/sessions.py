"""Folders of other programs' sessions: which are here, which are remembered and kept in step."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tracer import paths
from ...tracer.errors import LooptapeError

if TYPE_CHECKING:
    from ...tracer.importers import FileReport
    from ...tracer.importers.context import Context
    from ...tracer.store import Store

QUICK_BYTES = 50_000_000
_ANOTHER_TIME = (
    "unreadable-file",
    "skipped-lines",
    "unknown-kinds",
)  # they may come in although the file stays as it is


@dataclass(frozen=True, slots=True)
class Folder:
    """Session files found below a folder. ``files`` maps a path to (mtime in ns, octets)."""

    program: str
    path: Path
    files: Mapping[str, tuple[int, int]]

    @property
    def option(self) -> str:
        """The option of `looptape import` that takes these in and keeps them in step."""
        return "--" + self.program.lower().replace(" ", "-")

    @property
    def octets(self) -> int:
        """Octets of all files."""
        return sum(size for _, size in self.files.values())


@dataclass(frozen=True, slots=True)
class _Change:
    """A file that is not as it was when it was read last."""

    folder: str
    path: str
    stat: tuple[int, int]


def claude_folders(env: Mapping[str, str] | None = None) -> list[Path]:
    """The folders where Claude Code keeps its sessions, those that exist."""
    usual = [Path.home() / ".claude" / "projects", Path.home() / ".config" / "claude" / "projects"]
    return _existing(claude_places(env) or usual)


def claude_places(env: Mapping[str, str] | None = None) -> list[Path]:
    """The folders that ``CLAUDE_CONFIG_DIR`` (a list with commas) names, there or not."""
    given = (os.environ if env is None else env).get("CLAUDE_CONFIG_DIR", "").split(",")
    return [Path(part.strip()).expanduser() / "projects" for part in given if part.strip()]


def codex_folders(env: Mapping[str, str] | None = None) -> list[Path]:
    """The folders where Codex keeps its sessions and those put away, as far as they exist."""
    root = Path.home() / ".codex"
    return _existing(codex_places(env) or [root / "sessions", root / "archived_sessions"])


def codex_places(env: Mapping[str, str] | None = None) -> list[Path]:
    """The folders below the one that ``CODEX_HOME`` names, there or not."""
    given = (os.environ if env is None else env).get("CODEX_HOME", "")
    return [Path(given).expanduser() / name for name in ("sessions", "archived_sessions")] if given else []


def found() -> list[Folder]:
    """What other programs left on this machine, by program; folders without a session left out."""
    folders = [Folder("Claude Code", path, scan(path)) for path in claude_folders()]
    folders += [Folder("Codex", path, scan(path)) for path in codex_folders()]
    return [f for f in folders if f.files]


def scan(folder: Path) -> dict[str, tuple[int, int]]:
    """Every .jsonl below a folder with its time and size; what cannot be read is left out."""
    return dict(sorted(_walk(str(folder))))


def remember(folder: Path) -> None:
    """Keeps a folder in step from now on."""
    with _changing() as known:
        known.setdefault(str(folder.absolute()), {})


def remembered() -> list[Path]:
    """The folders that are kept in step."""
    return [Path(p) for p in _load()]


def standing() -> int:
    """Another number when a file of the remembered folders is not as it was."""
    return hash(tuple(tuple(scan(folder).items()) for folder in remembered()))


def waiting() -> int:
    """Files of the remembered folders that are not as they were when they were read last."""
    return sum(1 for _ in _changed(_load()))


def in_step(
    store: Store,
    tell: Callable[[str], None],
    *,
    everything: bool = False,
    seconds: float | None = None,
    strict: bool = False,
) -> list[FileReport]:
    """Imports what the files of the remembered folders gained; much at once only when ``everything`` is asked for.

    A file that was read before is read on from there, so that a running session costs what is new in it.

    Args:
        tell: Called with progress, and with one line when changes were left for ``looptape sync``.
        seconds: No further file is begun after that time.
        strict: Refuse files with lines or kinds that cannot be read; they wait for somebody who is not strict.

    Returns:
        What came in; a file that could not be used with its ``error``, one that is no session with ``format`` None.
    """
    known = _load()
    changed = list(_changed(known))
    if not everything:
        changed, left = _quick(changed)
        if left:
            what = "1 session file has changed" if left == 1 else f"{left:,} session files have changed"
            tell(f"{what}: looptape sync brings {'it' if left == 1 else 'them'} in")
    if not changed:
        return []
    try:
        return _take_in(store, changed, known, tell, seconds, strict=strict)
    finally:
        with suppress(OSError), _changing() as kept:  # what cannot be kept is read again the next time
            for change in changed:
                if change.folder in kept and change.path in known[change.folder]:
                    kept[change.folder][change.path] = known[change.folder][change.path]


def _changed(known: Mapping[str, Mapping[str, Any]]) -> Iterator[_Change]:
    """Sessions before the files of their sub-agents."""
    for folder, old in known.items():
        found = [(path, stat) for path, stat in scan(Path(folder)).items() if old.get(path) != list(stat)]
        for path, stat in sorted(found, key=lambda f: (os.path.basename(f[0]).startswith("agent-"), f[0])):
            yield _Change(folder, path, stat)


def _quick(changed: list[_Change]) -> tuple[list[_Change], int]:
    """Those that are done in a moment, the shortest first, and how many others there are."""
    if not changed:
        return [], 0
    from ...tracer.importers import follow, marks

    lengths = {}
    for change in changed:
        with suppress(OSError):
            path = Path(change.path)
            lengths[change] = follow.unread(path, marks.load(path))
    octets, chosen = 0, set()
    for change in sorted(lengths, key=lambda c: lengths[c]):
        octets += lengths[change]
        if octets <= QUICK_BYTES:
            chosen.add(change)
    return [c for c in changed if c in chosen], len(lengths) - len(chosen)


def _take_in(
    store: Store,
    changed: list[_Change],
    known: dict[str, dict[str, Any]],
    tell: Callable[[str], None],
    seconds: float | None,
    *,
    strict: bool,
) -> list[FileReport]:
    from ...tracer.importers import context_of, marks

    reports: list[FileReport] = []
    end = None if seconds is None else time.monotonic() + seconds
    try:
        context = context_of(store)
        for number, change in enumerate(changed, 1):
            tell(f"importing {number:,} of {len(changed):,}: {change.path}")
            found, read = _import(store, Path(change.path), context, strict=strict)
            reports += found
            if read:
                known[change.folder][change.path] = list(change.stat)
            if end is not None and time.monotonic() > end:
                break
    except LooptapeError as error:
        tell(f"session files wait: {error.what}")
    marks.tidy()
    return reports


def _import(store: Store, path: Path, context: Context, *, strict: bool) -> tuple[list[FileReport], bool]:
    """What the file gave, and whether it could be read at all; a store that cannot be written stops the rest."""
    from ...tracer.importers import FileReport, follow, marks

    try:
        reports, mark = follow.import_growth(store, path, marks.load(path), context, strict=strict)
    except LooptapeError as error:
        if error.slug.startswith(("store-", "disk-")):
            raise
        if error.slug == "unknown-format":
            return [FileReport(str(path), None, warnings=("passed over: no format that looptape knows",))], True
        return [FileReport(str(path), None, error=error.what, cure=error.cure)], error.slug not in _ANOTHER_TIME
    with suppress(OSError):  # without a mark it is read whole the next time
        marks.save(path, mark)
    return reports, True


def _existing(folders: list[Path]) -> list[Path]:
    return [f for f in dict.fromkeys(folders) if f.is_dir()]


def _walk(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)
            elif entry.name.endswith(".jsonl") and entry.is_file():  # a pipe would be waited for
                stat = entry.stat()
                yield entry.path, (stat.st_mtime_ns, stat.st_size)


def _file() -> Path:
    return paths.home() / "folders.json"


def _load() -> dict[str, dict[str, Any]]:
    try:
        known = json.loads(_file().read_bytes())
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in known.items() if isinstance(v, dict)} if isinstance(known, dict) else {}


@contextmanager
def _changing() -> Iterator[dict[str, dict[str, Any]]]:
    """What is remembered as it is now, to be changed; one looptape at a time does it."""
    paths.make_private(paths.home())
    lock = os.open(_file().with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _load()
        before = json.dumps(known)
        yield known
        if (after := json.dumps(known)) == before:
            return  # every screen looks at the file's time
        new = _file().with_suffix(".new")
        new.write_text(after)
        new.chmod(0o600)
        new.replace(_file())
    finally:
        os.close(lock)
