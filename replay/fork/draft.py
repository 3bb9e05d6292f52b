"""A turn's request out of the record as it was printed, before anything is edited or repaired."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...tracer.errors import UsageError
from ...tracer.model import Turn
from ...tracer.providers import by_api
from ..export_messages import request_body
from .shapes import answer_messages
from .start import KnownResult

if TYPE_CHECKING:
    from ...tracer.store import Store

_CHAINED = ("thread", "previous_response")


@dataclass(frozen=True, slots=True)
class Draft:
    """What the model saw at a turn, and what it answered there.

    Attributes:
        run, number: The recorded run and N.
        source: Where the record comes from at first: a fork's source is that of the run it came from.
        api: The api as recorded, maybe ``manual``.
        body: The request with all its messages, in the numbering of ``show --request``.
        turns: Turns 1 to N.
        tail: Messages that turn N+1's request adds after turn N's answer, None when it does not go on from it.
        response: The answer of turn N where it is kept, else None.
        results: Results of turn N's calls that were given by edits, by call id.
        edits, notes: What was changed, and what had to be done to read the request.
        dropped: Turns that were taken out of the request.
    """

    run: str
    number: int
    source: str
    api: str
    body: dict[str, Any]
    turns: tuple[Turn, ...]
    tail: tuple[Any, ...] | None = None
    response: Any = None
    results: dict[str, KnownResult] = field(default_factory=dict)
    edits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[int, ...] = ()

    @property
    def list_key(self) -> str:
        """Where the body has its messages: messages, input or contents."""
        return by_api(self.api).LIST_KEY

    @property
    def messages(self) -> list[Any]:
        """The messages of the body."""
        found = self.body[self.list_key]
        assert isinstance(found, list)  # noqa: S101 - `draft` makes it one
        return found

    @property
    def turn(self) -> Turn:
        """Turn N."""
        return self.turns[-1]

    def copy(self) -> Draft:
        """The same with a body, an answer and a tail of its own, to be changed."""
        return Draft(
            self.run, self.number, self.source, self.api, deepcopy(self.body), self.turns, deepcopy(self.tail),
            deepcopy(self.response), dict(self.results), self.edits, self.notes, self.dropped,
        )  # fmt: skip


def draft(store: Store, run: str, number: int) -> Draft:
    """The request that the model saw in turn ``number``; one more than the run has turns goes on after its end.

    Raises:
        UsageError: There is no such turn, or nothing to go on with after the last one.
        LooptapeError: The content was not recorded (exit 3).
    """
    found = store.run(run)
    turns = store.turns(run, 1, number + 1)
    here = tuple(t for t in turns if t.number <= number)
    if here and here[-1].number == number - 1 and not store.turns(run, number):
        return _after_the_end(store, run, number - 1)
    if not here or here[-1].number < number:  # past the end, or a hole in the record
        beyond = not 1 <= number <= found.turns and len(turns) == len(here)
        what = f"run {run} has no turn {number}" if beyond else f"turn {number} of {run} is not in the record"
        raise UsageError("no-turn", what, _which(run, found.turns))
    body = request_body(store, found, number)
    body.pop("stream", None)
    made = Draft(run, number, origin(store, run), here[-1].api or "unknown", body, here, notes=_notes(here))
    body[made.list_key] = list(body.get(made.list_key) or [])
    if turns[-1].number == number + 1 and turns[-1].message_count is not None:
        made = _with_tail(made, store)
    return made


def origin(store: Store, run: str) -> str:
    """Where a run's record comes from at first: through forks and replays up to the run that was seen or imported."""
    seen: set[str] = set()
    while run not in seen:
        seen.add(run)
        found = store.run(run)
        above = found.parent.run if found.parent is not None and found.source in ("fork", "replay") else None
        if above is None or not store.find(above):
            return found.source
        run = above
    return "unknown"


def _with_tail(made: Draft, store: Store) -> Draft:
    """What turn N+1 added after N's answer, when its request goes on from there unchanged."""
    after = store.request(made.run, made.number + 1)
    answer = answer_messages(made.turn.response)
    known = len(made.messages)
    if after.kept < known or len(after.messages) < known + len(answer):
        return made
    return Draft(
        made.run, made.number, made.source, made.api, made.body, made.turns,
        tuple(after.messages[known + len(answer):]), notes=made.notes,
    )  # fmt: skip


def _after_the_end(store: Store, run: str, last: int) -> Draft:
    before = draft(store, run, last)
    if before.turn.response is None or not answer_messages(before.turn.response):
        raise UsageError("no-answer", f"turn {last} of {run} has no answer to go on from", f"Try {run}:{last}")
    if not before.turn.tool_calls:
        raise UsageError(
            "run-over", f"run {run} was over with turn {last}: nothing is left to go on with", _which(run, last)
        )
    return Draft(
        before.run, before.number, before.source, before.api, before.body, before.turns,
        response=deepcopy(before.turn.response), notes=before.notes,
    )  # fmt: skip


def _notes(turns: tuple[Turn, ...]) -> tuple[str, ...]:
    mode = turns[-1].mode
    if mode in _CHAINED:
        link = "previous_message_id" if mode == "thread" else "previous_response_id"
        return (
            f"the server held the earlier messages ({link}): they were put together from the answers recorded here",
        )
    return ()


def _which(run: str, turns: int) -> str:
    if not turns:
        return "The run has no turns: name another, see looptape runs"
    return f"It has turns 1 to {turns}: e.g. {run}:{turns}" if turns > 1 else f"It has one turn: {run}:1"
