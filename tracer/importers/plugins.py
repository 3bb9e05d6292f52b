"""Importers of other distributions, by entry point: loaded when nothing of ours fits, and never able to break an import."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import tape
from ..errors import LooptapeError
from .context import Context, Source
from .report import Notes

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "looptape.importers"

_OFFERS = ("FORMAT", "TITLE", "recognise", "records")
_troubles: dict[str, None] = {}


@dataclass(slots=True)
class Plugin:
    """A foreign importer behind the face of ours; what goes wrong in it is told with its distribution's name."""

    FORMAT: str
    TITLE: str
    distribution: str
    module: Any

    def recognise(self, head: bytes) -> bool:
        """What the plug-in says; False when it fails."""
        try:
            return bool(self.module.recognise(head))
        except Exception as error:  # foreign code: its fault must not keep other files out
            _trouble(self.distribution, self.FORMAT, error)
            return False

    def records(self, source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
        """Its records.

        Raises:
            LooptapeError: It failed (``broken-importer``); nothing of the file is kept.
        """
        try:
            for record in self.module.records(source, notes, context):
                if not isinstance(record, dict) or record.get("kind") not in tape.KINDS:
                    raise TypeError("it yields what is no tape record")
                yield record
        except (LooptapeError, OSError):
            raise
        except Exception as error:
            raise LooptapeError(
                "broken-importer",
                f"{source.label}: the importer {self.FORMAT} of {self.distribution} failed: {_said(error)}",
                f"Nothing of it was imported; tell the authors of {self.distribution}",
            ) from None


def recognised(head: bytes) -> Plugin | None:
    """The plug-in whose format this is."""
    loaded = (_load(entry) for entry in _entries())
    return next((p for p in loaded if p is not None and p.recognise(head)), None)


def named(name: str) -> Plugin | None:
    """The plug-in with this entry point; no other one is loaded."""
    return next((p for entry in _entries() if entry.name == name and (p := _load(entry)) is not None), None)


def names() -> list[str]:
    """Names of the entry points, loaded or not."""
    return sorted({entry.name for entry in _entries()})


def troubles() -> tuple[str, ...]:
    """One line for every plug-in that failed in this process."""
    return tuple(_troubles)


def forget() -> None:
    """The next import looks again at what is installed."""
    _load.cache_clear()
    _entries.cache_clear()
    _troubles.clear()


@functools.cache
def _entries() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # a moment, and most files are of a format that we know

    return tuple(entry_points(group=GROUP))


@functools.cache
def _load(entry: EntryPoint) -> Plugin | None:
    owner = entry.dist.name if entry.dist is not None else entry.value
    try:
        module = entry.load()
        lacking = [name for name in _OFFERS if not hasattr(module, name)]
        if lacking:
            raise TypeError(f"it has no {', '.join(lacking)}")
        return Plugin(str(module.FORMAT), str(module.TITLE), owner, module)
    except (Exception, SystemExit) as error:  # whatever a foreign module does when it is loaded
        _trouble(owner, entry.name, error)
        return None


def _trouble(distribution: str, name: str, error: BaseException) -> None:
    _troubles[f"the importer {name} of {distribution} does not work: {_said(error)}"] = None


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
