"""What the recorded run answered from the fork's first turn on: for the model that answers from the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....tracer.errors import UsageError
from ....tracer.providers import by_api
from ...fork.inherited import loads, of_run
from ...fork.rebuild import rebuild
from ...fork.start import Start

if TYPE_CHECKING:
    from ....tracer.store import Store
    from ..models.recorded import RecordedModel


def recorded_model(store: Store, start: Start, *, seen_tools: bool = False) -> RecordedModel:
    """The model of a fork that nobody else was named for.

    The first request is compared whole; in the later ones only what came after it can differ.
    """
    from ..models.recorded import RecordedAnswer, RecordedModel

    first, last = start.inherited + 1, store.run(start.run).turns
    answers: dict[int, RecordedAnswer] = {}
    if first <= last:
        turns = {t.number: t for t in store.turns(start.run, first, last)}
        begin = _begin(store, start, first, seen_tools=seen_tools)
        key = by_api(start.api).LIST_KEY
        listed = _lists(store, start.run, last)
        for number, turn in turns.items():
            more = _more(listed.get(first, []), listed.get(number, [])) if number > first else []
            if begin is None or more is None:
                continue  # its history was rewritten: nothing of it can be told to be the same
            rest = {k: v for k, v in begin.body.items() if k != key} if number == first else None
            answers[number] = RecordedAnswer(
                (*begin.body[key], *more), rest, turn.response if isinstance(turn.response, dict) else None,
                by_api(turn.api).API, turn.error, turn.error_type,
            )  # fmt: skip
    return RecordedModel(answers, source=f"run {start.run}", edits=start.edits)


def _begin(store: Store, start: Start, first: int, *, seen_tools: bool) -> Start | None:
    try:
        return rebuild(store, start.run, first, seen_tools=seen_tools, api=start.api)
    except UsageError:
        return None


def _lists(store: Store, run: str, last: int) -> dict[int, list[Any]]:
    """The messages of every turn, each decoded once."""
    texts: dict[str, Any] = {}
    found: dict[int, list[Any]] = {}
    for record in of_run(store, run, last):
        if record["kind"] == "blob":
            texts[record["hash"]] = loads(record.get("text") or "null")
        elif record["kind"] == "turn_start":
            kept = found.get(record.get("base") or 0, [])[: record.get("keep") or 0]
            found[record["turn"]] = [*kept, *(texts.get(h) for h in record.get("append") or ())]
    return found


def _more(before: list[Any], after: list[Any]) -> list[Any] | None:
    """What a later list adds; None when it does not begin with the earlier one."""
    if after[: len(before)] != before:
        return None
    return after[len(before) :]
