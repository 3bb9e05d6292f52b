"""How every reading command opens the store: journals drained, remembered folders in step, notices said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import report
from ..data.sessions import in_step, remembered
from .options import project

if TYPE_CHECKING:
    from ...replay.reference import Found
    from ...tracer.store import Store


@contextmanager
def reading() -> Iterator[Store]:
    """The store, up to date; what it has to say goes to stderr."""
    from ...tracer.store import open_store

    with open_store() as store:
        _up_to_date(store)
        yield store


@contextmanager
def found(text: str) -> Iterator[Found]:
    """The run that a reference names, its store open; says which one ``last`` or a name chose."""
    from ...replay import reference

    parsed = reference.parse(text)
    if parsed.path is not None:
        with reference.resolve(text) as one:
            _clipped(one)
            yield one
        return
    with reading() as store:
        one = reference.find(store, parsed, project())
        if one.said:
            report.note(one.said)
        _clipped(one)
        yield one


def _clipped(one: Found) -> None:
    """Says so when fewer turns are there than were asked for."""
    if one.first is not None and one.last is not None and one.last > one.run.turns:
        which = f"turn {one.first}" if one.first == one.run.turns else f"turns {one.first}-{one.run.turns}"
        report.note(f"{which} of {one.run.turns}: there are no more")


def _up_to_date(store: Store) -> None:
    if remembered():
        in_step(store, _tell)
        report.progress("")
    for text in store.notices:
        report.note(text)


def _tell(text: str) -> None:
    if text.startswith("importing"):
        report.progress(text)
    else:
        report.note(text)
