"""Where to step next in a run: the next turn with an error, the next call of a tool. Asks the store, reads no turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..tracer.store import Store

_FAILED = "status = 'error' or number in (select turn from base.calls where run = ? and (is_error or not valid))"
_CALLED = "number in (select turn from base.calls where run = ? and name in (select unnest(?::varchar[])))"


def next_error(store: Store, run: str, number: int, step: int = 1) -> int | None:
    """The nearest turn after (``step`` 1) or before (-1) a turn whose model call or tool failed; None without one."""
    return _nearest(store, run, number, step, _FAILED, [run])


def next_call(store: Store, run: str, number: int, names: list[str], step: int = 1) -> int | None:
    """The nearest turn after or before a turn that calls one of these tools; None without one."""
    return _nearest(store, run, number, step, _CALLED, [run, names]) if names else None


def _nearest(store: Store, run: str, number: int, step: int, condition: str, values: list[object]) -> int | None:
    best, side = ("min", ">") if step > 0 else ("max", "<")
    query = f"select {best}(number) as found from base.turns where run = ? and number {side} ? and ({condition})"  # noqa: S608
    found = store.rows(query, [run, number, *values])[0]["found"]
    return None if found is None else int(found)
