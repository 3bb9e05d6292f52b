"""Files of one folder that must be read together, because what belongs together is spread over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..context import Source

MAX_TOGETHER = 512 << 20


def together(found: Iterable[Source], belongs: Callable[[Source], bool]) -> Iterator[Source]:
    """The sources, those for which ``belongs`` is true as one for each folder; more than 512 MB stay apart."""
    groups: dict[Path, list[Path]] = {}
    order: list[Source | Path] = []
    for source in found:
        if len(source.files) != 1 or not belongs(source):
            order.append(source)
            continue
        folder = source.files[0].parent
        if folder not in groups:
            order.append(folder)
        groups.setdefault(folder, []).append(source.files[0])
    for one in order:
        if isinstance(one, Source):
            yield one
        elif sum(f.stat().st_size for f in groups[one]) > MAX_TOGETHER:
            yield from (Source(str(f), (f,)) for f in groups[one])
        else:
            yield as_one(groups[one])


def as_one(files: Sequence[Path]) -> Source:
    """These files as one source; its name says how many they are."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return Source(f"{files[0]}{more}", tuple(files))
