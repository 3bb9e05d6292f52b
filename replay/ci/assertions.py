"""The `tape` of a test: its run, its verdict, and what can be asserted about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ...tracer.canonical import canonical
from ...tracer.errors import UsageError
from ...tracer.model import Run
from ..verdict import Verdict
from .bound import Bound
from .figures import TOLERATED, Figures, figures, limit, shown

if TYPE_CHECKING:
    from ...tracer.store import Store
    from ..recording import Recording

Wanted = str | tuple[str, Any]


class Tape:
    """What a test with `@pytest.mark.looptape` gets as `tape`."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._read: tuple[int, tuple[Recording, ...]] | None = None

    @property
    def run(self) -> Run:
        """The run that the test has made so far (the first, where it made several).

        Raises:
            AssertionError: It has made no model call.
        """
        return self.recordings[0].run

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """Every run of the test with its turns, sub-agents behind those that started them."""
        from ..recording import load

        size = sum(file.stat().st_size for file in (self._bound.home / "journal").glob("*.jsonl"))
        if self._read is not None and self._read[0] == size:
            return self._read[1]
        with self._store() as store:
            found = tuple(load(store, run) for run in _runs(store))
        self._read = (size, found)
        assert any(one.turns for one in found), "the test has made no model call that looptape sees"  # noqa: S101 - this is an assertion of a test
        return found

    @property
    def verdict(self) -> Verdict:
        """The judgement over the replay until now.

        Raises:
            UsageError: Nothing is replayed (`--looptape=record` or `off`).
        """
        found = self._bound.so_far()
        if found is None:
            raise UsageError("no-replay", "there is no verdict: this test is not replayed now", "Look at tape.replayed")
        return found

    @property
    def replayed(self) -> bool:
        """False while the test is recorded, or runs with `--looptape=off`."""
        return self._bound.so_far() is not None

    @property
    def figures(self) -> Figures:
        """Turns, tool calls, tokens and dollars of the test, those of its sub-agents included."""
        return figures((turn for one in self.recordings for turn in one.turns), owned=False)

    def assert_tools(self, wanted: Sequence[Wanted]) -> None:
        """The tools that were called, in the order of the requests: just these.

        Args:
            wanted: Names, or (name, arguments). Calls of sub-agents come behind those of the run that started them.
        """
        __tracebackhide__ = True
        made = [(c.name, c.arguments) for one in self.recordings for turn in one.turns for c in turn.tool_calls]
        pairs = zip(made, wanted, strict=False)
        place = next((i for i, (got, want) in enumerate(pairs) if not _same(got, want)), min(len(made), len(wanted)))
        if place == len(made) == len(wanted):
            return
        rows = [f"call {place + 1} is another"]
        rows.append(f"  wanted  {_word(wanted[place]) if place < len(wanted) else '(no more calls)'}")
        rows.append(f"  got     {_word(made[place]) if place < len(made) else '(no more calls)'}")
        rows.append(f"  all     {', '.join(name for name, _ in made) or '(none)'}")
        raise AssertionError("\n".join(rows))

    def assert_within(
        self,
        *,
        turns: int | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        tolerance: float = 0.0,
    ) -> None:
        """The test took no more than this. A figure that nobody knows (a model without a price) is a failure.

        Args:
            turns, tokens, usd: The budgets; tokens are all that were read and written, cached ones included.
            tolerance: What may be added to each: 0.1 is ten percent.
        """
        __tracebackhide__ = True
        spent = self.figures
        given = {"turns": turns, "tokens": tokens, "usd": None if usd is None else Decimal(str(usd))}
        if not any(v is not None for v in given.values()):
            raise UsageError("usage", "assert_within() checks nothing", "Give turns=, tokens= or usd=")
        failed = []
        for name in TOLERATED:
            base, now = given[name], spent.get(name)
            if base is None:
                continue
            most = limit(base, Decimal(str(tolerance)))
            if now is None:
                failed.append(f"{name} cannot be checked: {spent.missing(name)}")
            elif now > most:
                failed.append(f"{name}: {shown(name, now)}, at most {shown(name, most)}")
        if failed:
            raise AssertionError("\n".join(failed))

    def assert_no_cycles(self) -> None:
        """No run of the test went round in circles (a step repeated without anything new)."""
        __tracebackhide__ = True
        from dataclasses import replace

        from ..cycles import find_cycles

        rows = []
        for one in self.recordings:
            # served turns are inherited: the detector tells nothing of somebody else's past, but this is the test's own
            own = replace(one, turns=tuple(replace(t, inherited=False) for t in one.turns))
            rows += [f"{one.run.name or one.run.id}: {found.sentence}" for found in find_cycles(own)]
        if rows:
            raise AssertionError("\n".join(rows))

    @contextmanager
    def _store(self) -> Iterator[Store]:
        from ...tracer.store import open_store

        with open_store(self._bound.home) as store:
            yield store


def _runs(store: Store) -> list[Run]:
    """Runs by their start, each followed by its sub-agents."""
    from ...tracer.store import Filter

    runs = sorted(store.runs(Filter(limit=0, include_empty=True)), key=lambda r: (r.started_at or 0, r.id))
    ids = {r.id for r in runs}

    def below(above: str | None) -> Iterator[Run]:
        for run in runs:
            parent = run.parent
            own = parent.run if parent is not None and parent.kind == "sub-agent" and parent.run in ids else None
            if own == above:
                yield run
                yield from below(run.id)

    return list(below(None))


def _same(got: tuple[str, Any], want: Wanted) -> bool:
    if isinstance(want, str):
        return got[0] == want
    return got[0] == want[0] and canonical(got[1]) == canonical(want[1])


def _word(call: Wanted) -> str:
    return call if isinstance(call, str) else f"{call[0]}({canonical(call[1])})"
