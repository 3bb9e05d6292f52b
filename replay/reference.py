"""How people name a run or a turn: id, unique beginning, name, last, last~2, path of a tape; RUN:7, RUN:7-9."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..tracer.errors import LooptapeError, UsageError
from ..tracer.model import Run

if TYPE_CHECKING:
    from ..tracer.store import Store

_TURNS = re.compile(r"(?s)(.+):(\d+)(?:-(\d+))?")
_LAST = re.compile(r"last(?:~(\d+))?")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference as written, taken apart. ``first`` and ``last`` are turn numbers, None for the whole run."""

    text: str
    base: str
    first: int | None = None
    last: int | None = None
    back: int | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The run a reference means, the store it lies in, and what should be said about the choice."""

    run: Run
    store: Store
    first: int | None = None
    last: int | None = None
    said: str | None = None


def parse(text: str) -> Reference:
    """A reference taken apart, nothing looked up but whether a file of that path exists.

    Raises:
        UsageError: The text is empty, or its turns are 0 or run backwards.
    """
    base, first, last = text, None, None
    if not text.strip():
        raise UsageError("bad-reference", "the reference is empty", "Name a run, e.g. last")
    match = _TURNS.fullmatch(text)
    if match and not _is_file(text):
        base, first = match[1], int(match[2])
        last = int(match[3]) if match[3] else first
        if first < 1 or last < first:
            raise UsageError("bad-reference", f"{text!r} names no turns", "Turns are numbered from 1: RUN:7 or RUN:7-9")
    ago = _LAST.fullmatch(base)
    path = Path(base).expanduser() if _is_file(base) or _looks_like_path(base) else None
    return Reference(text, base, first, last, int(ago[1] or 0) if ago else None, path)


@contextmanager
def resolve(text: str, project: str | None = None) -> Iterator[Found]:
    """The run that a reference means, with its store open (a tape file: a store in memory).

    Args:
        project: The project of this directory, for ``last``.

    Raises:
        UsageError: Nothing or several things have that name; lists the nearest.
        LooptapeError: The store cannot be opened, or the file is no recording.
    """
    reference = parse(text)
    if reference.path is not None:
        yield _in_file(reference)
        return
    from ..tracer.store import open_store

    with open_store() as store:
        yield find(store, reference, project)


def find(store: Store, reference: Reference, project: str | None = None) -> Found:
    """The run of a reference that is no path, in an open store. Raises UsageError as `resolve` does."""
    if reference.back is not None:
        run, said = _latest(store, reference, project)
        return _checked(Found(run, store, reference.first, reference.last, said))
    candidates = store.find(reference.base)
    if not candidates:
        raise UsageError("unknown-run", f"there is no run {reference.base!r}", _nearest(store, reference.base))
    exact = [r for r in candidates if r.id == reference.base]
    named = [r for r in candidates if reference.base in (r.name, r.title)]
    if exact or len(candidates) == 1:
        return _checked(Found((exact or candidates)[0], store, reference.first, reference.last))
    if named:
        # a replay has the name of what it repeats: the run itself is meant
        own = [r for r in named if r.source != "replay"] or named
        newest = max(own, key=lambda r: r.started_at or 0)
        what = "runs" if len(own) == len(named) else "runs beside its replays"
        said = f"{len(own)} {what} have this name: the newest is {newest.id}" if len(own) > 1 else None
        return _checked(Found(newest, store, reference.first, reference.last, said))
    listed = ", ".join(_label(r) for r in candidates[:5]) + (", …" if len(candidates) > 5 else "")
    raise UsageError(
        "ambiguous-run", f"{len(candidates)} runs begin with {reference.base!r}: {listed}", "Give more of the id"
    )


def project_of(folder: Path) -> str:
    """The project that a folder belongs to: the git root above it, else the folder itself."""
    folder = folder.absolute()
    return str(next((f for f in (folder, *folder.parents) if (f / ".git").exists()), folder))


def _latest(store: Store, reference: Reference, project: str | None) -> tuple[Run, str | None]:
    from ..tracer.store import Filter

    back = reference.back or 0
    for where, given in (("this project", project), ("all projects", None)):
        if where == "this project" and project is None:
            continue
        newest = store.runs(Filter(project=given, sort="time", limit=back + 1))
        if len(newest) > back:
            run = newest[back]
            return run, f"{reference.base} of {where}: {_label(run)}"
        if newest and where == "this project":
            break
    have = store.count(Filter(project=given))
    if not have:
        raise UsageError("no-runs", "there is no run yet", "Try: looptape demo, or looptape import PATH")
    where_text = "this project has" if given else "the store has"
    raise UsageError(
        "unknown-run", f"{where_text} only {have} runs, no {reference.base}", f"The oldest is last~{have - 1}"
    )


def _in_file(reference: Reference) -> Found:
    from ..tracer.importers import import_path
    from ..tracer.store import memory_store

    path = reference.path
    assert path is not None  # noqa: S101 - the caller looked
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError("no-file", f"{path} {what}", "Name a tape file, or import the folder first")
    store = memory_store()
    reports = import_path(store, path)
    ids = [run for report in reports for run in report.runs]
    runs = [store.run(i) for i in dict.fromkeys(ids)]
    if not runs:
        reasons = [f"line {line}: {reason}" for report in reports for line, reason in _skipped(report)][:1]
        raise LooptapeError(
            "no-recording", f"{path} holds no run" + (f" ({reasons[0]})" if reasons else ""), "Is it a tape?"
        )
    roots = [r for r in runs if r.parent is None or r.parent.run not in ids] or runs
    if len(roots) > 1:
        listed = ", ".join(_label(r) for r in roots[:5])
        raise UsageError(
            "ambiguous-run",
            f"{path} holds {len(roots)} runs: {listed}",
            "Run looptape import on it and name one of them",
        )
    return _checked(Found(roots[0], store, reference.first, reference.last))


def _skipped(report: object) -> list[tuple[int, str]]:
    found = []
    for item in getattr(report, "skipped", ()):
        if isinstance(item, dict):
            found.append((item.get("line", 0), item.get("reason", "")))
        else:
            found.append((item[0], item[1]))
    return found


def _checked(found: Found) -> Found:
    if found.first is None or found.first <= found.run.turns:
        return found
    have = "no turns" if not found.run.turns else f"turns 1 to {found.run.turns}" if found.run.turns > 1 else "one turn"
    raise UsageError(
        "no-turn",
        f"{_label(found.run)} has {have}, no turn {found.first}",
        f"Try {found.run.id}:{found.run.turns or 1}",
    )


def _nearest(store: Store, text: str) -> str:
    from ..tracer.store import Filter

    runs = store.runs(Filter(limit=500))
    if not runs:
        return "The store is empty: try looptape demo, or looptape import PATH"
    names = {n: r for r in reversed(runs) for n in (r.id, r.name, r.title) if n}
    close = difflib.get_close_matches(text, names, 3, 0.6)
    near = [names[n] for n in close] or runs[:3]
    said = "Nearest" if close else "The newest"
    return f"{said}: {', '.join(dict.fromkeys(_label(r) for r in near))}"


def _label(run: Run) -> str:
    name = run.name or run.title
    return f"{run.id} ({name})" if name else run.id


def _is_file(text: str) -> bool:
    try:
        return Path(text).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _looks_like_path(text: str) -> bool:
    return text.endswith((".jsonl", ".tape", ".json")) or text.startswith(("/", "./", "../", "~/"))
