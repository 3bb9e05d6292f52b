"""What the model really saw in a turn, and what went over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..model import Request
from ..providers import by_api
from . import place
from .read import texts
from .rows import Connection, Row, select
from .text import encode, loads

_PARTS = ("system", "tools", "params")


@dataclass(frozen=True, slots=True)
class Wire:
    """The texts as they were: request and response, and the stream's chunks with their offsets in microseconds.

    ``request_text`` is put together again from its stored parts; each part is the exact recorded text.
    """

    request_text: str | None = None
    response_text: str | None = None
    chunks: tuple[tuple[int, str], ...] = ()


def request(con: Connection, run: str, number: int, *, fresh: bool = False) -> Request:
    """The request of a turn with all its messages, also those that the server held.

    Args:
        fresh: Only the messages that the turn before did not have, and nothing else; ``kept`` is then 0.
    """
    lying = place.of_run(con, run)
    near = {row["number"]: row for row in select(con, _TURN.format(place=lying), [encode(run), number - 1, number])}
    turn = near.get(number) or _turn(con, run, number, lying)
    if fresh and number - 1 in near and _sent_whole(turn) and _sent_whole(near[number - 1]):
        ids = _new(con, run, number, lying)
        bodies = texts(con, ids)
        return Request(tuple(_message(con, i, bodies) for i in ids), None, None, {}, 0)
    lists = _lists(con, run, number, lying)
    seen = _seen(con, run, turn, lying, lists)
    before = _seen(con, run, near[number - 1], lying, lists) if number - 1 in near else []
    kept = 0
    for left, right in zip(before, seen, strict=False):
        if left != right:
            break
        kept += 1
    if fresh:
        seen = seen[kept:]
        bodies = texts(con, [s for s in seen if isinstance(s, int)])
        return Request(
            tuple(_message(con, s, bodies) if isinstance(s, int) else s.value for s in seen), None, None, {}, 0
        )
    bodies = texts(con, [s for s in seen if isinstance(s, int)] + _part_blobs(turn))
    messages = tuple(_message(con, s, bodies) if isinstance(s, int) else s.value for s in seen)
    system, tools, params = (loads(bodies.get(turn[f"{name}_blob"])) for name in _PARTS)
    return Request(messages, system, tools, params if isinstance(params, dict) else {}, kept)


def wire(con: Connection, run: str, number: int) -> Wire:
    """What was on the wire in a turn, as far as it was recorded."""
    lying = place.of_run(con, run)
    turn = _turn(con, run, number, lying)
    ids = _sent(con, run, turn, lying)
    bodies = texts(con, [*ids, *_part_blobs(turn)])
    response = bodies.get(turn["response_blob"]) or texts(con, [turn["response_blob"] or 0]).get(turn["response_blob"])
    query = (
        f"select parts_json from base.chunks where run = ? and turn = ?{lying} and attempt = "  # noqa: S608
        f"(select max(attempt) from base.chunks where run = ? and turn = ?{lying}) order by seq"
    )
    rows = select(con, query, [encode(run), number, encode(run), number])
    chunks = tuple((int(p[0]), str(p[1])) for row in rows for p in loads(row["parts_json"]))
    return Wire(_request_text(turn, ids, bodies), response, chunks)


_TURN = (
    "select number, base, keep, mode, api, message_count, request_model, stream, system_blob, tools_blob, params_blob, "
    "response_blob from base.turns where run = ? and number between ? and ?{place}"
)


@dataclass(frozen=True, slots=True)
class _Held:
    """A message that only the server had: the answer of an earlier turn."""

    value: Any


def _turn(con: Connection, run: str, number: int, lying: str) -> Row:
    found = select(con, _TURN.format(place=lying), [encode(run), number, number])
    if not found:
        known = con.execute("select max(number) from base.turns where run = ?", [encode(run)]).fetchone()
        last = known[0] if known and known[0] else 0
        raise UsageError("no-such-turn", f"run {run} has no turn {number}", f"It has turns 1 to {last}" if last else "")
    return found[0]


def _listed(con: Connection, run: str, number: int, lying: str) -> list[int]:
    """Blob ids of the messages that the client sent."""
    query = (
        "select blob from base.spans where run = ? and first_turn <= ? and (last_turn is null or last_turn >= ?)"  # noqa: S608
        f"{lying} order by position"
    )
    return [r[0] for r in con.execute(query, [encode(run), number, number]).fetchall()]


def _lists(con: Connection, run: str, number: int, lying: str) -> dict[int, list[int]]:
    """The same of this turn and of the one before, with one look."""
    query = (
        "select blob, first_turn, last_turn from base.spans where run = ? and first_turn <= ? "  # noqa: S608
        f"and (last_turn is null or last_turn >= ?){lying} order by position"
    )
    rows = con.execute(query, [encode(run), number, number - 1]).fetchall()
    return {
        at: [blob for blob, first, last in rows if first <= at and (last is None or last >= at)]
        for at in (number - 1, number)
    }


def _sent_whole(turn: Row) -> bool:
    """True where the client sent all that the model saw (or where all of it was written down)."""
    return turn["message_count"] is not None and (turn["mode"] in (None, "full") or bool(turn["keep"]))


def _new(con: Connection, run: str, number: int, lying: str) -> list[int]:
    """Blob ids of the messages behind those that the turn before had too; tens of thousands stay where they are."""
    query = (
        "with near as (select position, blob, first_turn <= ? as was, coalesce(last_turn >= ?, true) as stands "  # noqa: S608
        f"from base.spans where run = ? and first_turn <= ? and (last_turn is null or last_turn >= ?){lying}) "
        "select position, blob, was, stands from near "
        "where position >= (select min(position) from near where was <> stands) order by position"
    )
    rows = con.execute(query, [number - 1, number, encode(run), number, number - 1]).fetchall()
    before = {position: blob for position, blob, was, _ in rows if was}
    now = [(position, blob) for position, blob, _, stands in rows if stands]
    same = 0
    while same < len(now) and before.get(now[same][0]) == now[same][1]:
        same += 1
    return [blob for _, blob in now[same:]]


def _sent(con: Connection, run: str, turn: Row, lying: str) -> list[int]:
    """Blob ids of the messages that were on the wire: without those that the server held."""
    ids = _listed(con, run, turn["number"], lying)
    if turn["mode"] in (None, "full") or not turn["keep"] or not turn["base"]:
        return ids
    earlier = select(con, _TURN.format(place=lying), [encode(run), turn["base"], turn["base"]])
    blob = earlier[0]["response_blob"] if earlier else None
    answer = answer_messages(turn["api"], loads(texts(con, [blob]).get(blob))) if blob is not None else []
    return ids[turn["keep"] + len(answer) :]


def _seen(con: Connection, run: str, turn: Row, lying: str, lists: Mapping[int, list[int]]) -> list[int | _Held]:
    """Messages of the turn: ids of those that were sent; answers that only the server held as values."""
    chain = [turn]
    # with keep > 0 the recorder knew the conversation and wrote it down whole
    while chain[-1]["mode"] not in (None, "full") and not chain[-1]["keep"]:
        base = chain[-1]["base"] or chain[-1]["number"] - 1
        known = 0 < base < chain[-1]["number"]
        earlier = select(con, _TURN.format(place=lying), [encode(run), base, base]) if known else []
        if not earlier:
            break
        chain.append(earlier[0])
    seen: list[int | _Held] = []
    previous: Row | None = None
    for link in reversed(chain):
        own: list[int] = []
        if link["message_count"] is not None:
            known_list = lists.get(link["number"])
            own = _listed(con, run, link["number"], lying) if known_list is None else known_list
        if previous is None:
            seen = list(own)
        else:
            body = loads(texts(con, [previous["response_blob"] or 0]).get(previous["response_blob"]))
            seen += [_Held(m) for m in answer_messages(previous["api"], body)]
            seen += own
        previous = link
    return seen


def answer_messages(api: str | None, body: Any) -> list[Any]:
    """A response body as the messages that a next request would carry for it."""
    if not isinstance(body, dict):
        return []
    if isinstance(body.get("output"), list):
        return list(body["output"])
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return [choices[0]["message"]] if isinstance(choices[0].get("message"), dict) else []
    if "content" in body:
        return [{"role": body.get("role") or "assistant", "content": body["content"]}]
    return []


def _message(con: Connection, blob: int, bodies: dict[int, str]) -> Any:
    if blob in bodies:
        return loads(bodies[blob])
    found = con.execute("select length from base.blobs where id = ?", [blob]).fetchone()
    length = found[0] if found else None
    return {"role": "unknown", "content": None, "not_recorded": True, "length": length}


def _part_blobs(turn: Row) -> list[int]:
    return [b for name in _PARTS if (b := turn[f"{name}_blob"]) is not None]


def _request_text(turn: Row, ids: list[int], bodies: dict[int, str]) -> str | None:
    if turn["message_count"] is None or any(i not in bodies for i in ids):
        return None
    parts: list[str] = []
    params = bodies.get(turn["params_blob"])
    if params and params.startswith("{") and params.rstrip().endswith("}"):
        inner = params.strip()[1:-1].strip()
        parts += [inner] if inner else []
    for name in ("system", "tools"):
        if (body := bodies.get(turn[f"{name}_blob"])) is not None:
            parts.append(f'"{name}":{body}')
    messages = ",".join(bodies[i] for i in ids)
    parts.append(f'"{by_api(turn["api"]).LIST_KEY}":[{messages}]')
    return "{" + ",".join(parts) + "}"
