"""Where texts of a run stand, and each as a candidate: rows of the store taken apart into what people read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...tracer.store.text import loads, result_text
from ..message_parts import MessagePart, parts, plain_text, role

if TYPE_CHECKING:
    from ...tracer.store.scan import Scan
    from .wanted import Needle

PLACES = ("prompts", "thinking", "answers", "arguments", "results", "errors")
_TURN_COLUMNS = {"answers": "text", "thinking": "thinking", "errors": "error"}
_HEADS = (("system_blob", "system"), ("tools_blob", "tool schemas"))
_LEAVES = 10_000  # of one value; more are no arguments


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may hold what is looked for.

    Attributes:
        what: Who speaks, or the tool.
        last_turn: The last turn whose request carried it; None: the last of the run, or it is no message.
        position: Of the message in the request, from 1; None when it is none.
        texts: Forms of the same text, the first that matches is shown: arguments as written, then each text in them.
    """

    run: str
    turn: int
    where: str
    what: str
    texts: tuple[str, ...]
    call: str | None = None
    position: int | None = None
    last_turn: int | None = None


def candidates(scan: Scan, runs: list[str], sought: Needle, places: frozenset[str]) -> Iterator[Candidate]:
    """All that may match in these runs: turns and calls first, so that messages which repeat them can be left out."""
    yield from _of_turns(scan, runs, sought, places)
    yield from _of_calls(scan, runs, sought, places)
    if "prompts" in places:
        yield from _of_heads(scan, runs, sought)
    if places != {"errors"}:
        yield from _of_messages(scan, runs, sought, places)


def _of_turns(scan: Scan, runs: list[str], sought: Needle, places: frozenset[str]) -> Iterator[Candidate]:
    columns = {where: column for where, column in _TURN_COLUMNS.items() if where in places}
    if not columns:
        return
    for row in scan.turns(runs, list(columns.values()), sought.plain):
        for where, column in columns.items():
            if row[column] is not None:
                yield Candidate(row["run"], row["turn"], where, "assistant", (row[column],))


def _of_calls(scan: Scan, runs: list[str], sought: Needle, places: frozenset[str]) -> Iterator[Candidate]:
    columns = [c for c, where in (("arguments_raw", "arguments"), ("returned_json", "results")) if where in places]
    if not columns:
        return
    for row in scan.calls(runs, columns, sought.stored):
        place = {"run": row["run"], "turn": row["turn"], "what": row["name"], "call": row["id"]}
        if row.get("arguments_raw") is not None:
            yield Candidate(**place, where="arguments", texts=_forms(row["arguments_raw"]))
        if row.get("returned_json") is not None:
            text = result_text(loads(row["returned_json"])) or ""
            yield Candidate(**place, where="results", texts=(text,))


def _of_heads(scan: Scan, runs: list[str], sought: Needle) -> Iterator[Candidate]:
    for column, what in _HEADS:
        known: dict[int, tuple[str, ...]] = {}
        for row in scan.heads(runs, column, sought.stored):
            if row["blob"] not in known:
                value = loads(row["text"])
                known[row["blob"]] = (plain_text(value),) if what == "system" else tuple(leaves(value))
            yield Candidate(
                row["run"], row["first_turn"], "prompts", what, known[row["blob"]], last_turn=row["last_turn"]
            )


def _of_messages(scan: Scan, runs: list[str], sought: Needle, places: frozenset[str]) -> Iterator[Candidate]:
    rows = scan.messages(runs, sought.stored, with_assistant=places != {"results"})
    with_results = {r["blob"] for r in rows if r["role"] != "assistant"} if "results" in places else set()
    owners = {(c["run"], c["blob"], c["id"]): c for c in scan.calls_seen(runs, sorted(with_results))}
    known: dict[int, tuple[str, list[MessagePart]]] = {}
    for row in rows:
        if row["blob"] not in known:
            message = loads(row["text"])
            known[row["blob"]] = role(message), parts(message)
        speaker, found = known[row["blob"]]
        for part in found:
            where = _where(part, speaker)
            if where not in places:
                continue
            owner = owners.get((row["run"], row["blob"], part.call)) if where == "results" else None
            yield Candidate(
                run=row["run"],
                turn=owner["turn"] if owner else row["first_turn"],
                where=where,
                what=(owner["name"] if owner else part.name) or speaker,
                texts=_forms(part.text) if part.kind == "call" else (part.text,),
                call=part.call,
                position=row["position"],
                last_turn=row["last_turn"],
            )


def _where(part: MessagePart, speaker: str) -> str:
    known = {"thinking": "thinking", "call": "arguments", "result": "results", "image": ""}.get(part.kind)
    return known if known is not None else "answers" if speaker == "assistant" else "prompts"


def _forms(raw: str) -> tuple[str, ...]:
    return (raw, *leaves(loads(raw))) if "\\" in raw else (raw,)


def leaves(value: Any) -> list[str]:
    """The texts in a decoded value, in their order."""
    found: list[str] = []
    stack = [value]
    while stack and len(found) < _LEAVES:
        one = stack.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            stack.extend(reversed(one.values()))
        elif isinstance(one, list):
            stack.extend(reversed(one))
    return found
