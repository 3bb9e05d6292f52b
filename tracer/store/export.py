"""A stored run as tape records again: what `ingest` takes, in stable order, with its sub-agents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import UsageError
from ..tape import Record, header
from .rows import USAGE, Row
from .store import Store
from .text import encode, loads


def records_of(store: Store, run_id: str) -> Iterator[Record]:
    """Header, then the run with its sub-agents, each blob before its first reference.

    Taking the records into an empty store gives equal runs, turns and requests.

    Raises:
        UsageError: There is no such run (``no-such-run``).
    """
    yield header()
    blobs = _Blobs(store)
    for run in _family(store, run_id):
        yield from _run(store, run, blobs)


def family(store: Store, run_id: str) -> list[str]:
    """Ids of a run and its sub-agents, depth first, in order of their start. Raises UsageError as `records_of`."""
    return [row["id"] for row in _family(store, run_id)]


def _family(store: Store, run_id: str) -> list[Row]:
    """The run, then its sub-agents depth first, in order of their start."""
    rows = store.rows("select * from base.runs where id = ?", [encode(run_id)])
    if not rows:
        raise UsageError("no-such-run", f"there is no run {run_id}", "`looptape runs` lists them")
    family: list[Row] = []
    waiting, known = rows, {run_id}
    while waiting:
        row = waiting.pop(0)
        family.append(row)
        children = store.rows(
            "select * from base.runs where parent_run = ? and parent_kind = 'sub-agent' order by started_at, id",
            [encode(row["id"])],
        )
        waiting = [c for c in children if c["id"] not in known] + waiting
        known |= {c["id"] for c in children}
    return family


def _run(store: Store, run: Row, blobs: _Blobs) -> Iterator[Record]:
    coded = [encode(run["id"])]
    yield _run_start(run)
    turns = store.rows("select * from base.turns where run = ? order by number", coded)
    calls = _by_turn(store.rows("select * from base.calls where run = ? order by turn, position", coded))
    tries = _by_turn(store.rows("select * from base.attempts where run = ? order by turn, number", coded))
    chunks = _by_turn(store.rows("select * from base.chunks where run = ? order by turn, attempt, seq", coded))
    lists = _Lists(store, coded[0])
    blobs.expect(_needed(turns, calls, lists))
    for turn in turns:
        number = turn["number"]
        if turn["message_count"] is not None:
            base, keep, new = lists.step(number)
            if turn["mode"] not in (None, "full") and not turn["keep"]:
                base, keep, new = turn["base"], 0, lists.at(number)
            parts = [turn[f"{p}_blob"] for p in ("system", "tools", "params")]
            yield from blobs.records([*parts, *new])
            yield _turn_start(blobs, turn, base, keep, new)
        for row in chunks.get(number, ()):
            yield _chunk(row)
        own = calls.get(number, [])
        if turn["usage_origin"] is not None:
            yield from blobs.records([turn["response_blob"]])
            yield _turn_end(blobs, turn, own, tries.get(number, []))
        yield from _call_records(blobs, own)
    yield from _run_tail(store, run)


def _needed(turns: list[Row], calls: dict[int, list[Row]], lists: _Lists) -> Iterator[int | None]:
    """Every blob of a run, in about the order of its records."""
    new: dict[int, list[int]] = {}
    for first, blob in lists.firsts():
        new.setdefault(first, []).append(blob)
    for turn in turns:
        yield from (turn["system_blob"], turn["tools_blob"], turn["params_blob"])
        yield from new.pop(turn["number"], ())
        yield turn["response_blob"]
        yield from (call["seen_blob"] for call in calls.get(turn["number"], ()))
    for left in new.values():
        yield from left


class _Lists:
    """The message lists of a run, one after another."""

    def __init__(self, store: Store, run: str) -> None:
        self._spans = store.rows("select * from base.spans where run = ? order by position", [run])
        self._before: list[int] = []
        self._number: int | None = None

    def at(self, turn: int) -> list[int]:
        """Blob ids of the messages of a turn."""
        return [s["blob"] for s in self._spans if s["first_turn"] <= turn <= (s["last_turn"] or turn)]

    def firsts(self) -> Iterator[tuple[int, int]]:
        """The turn in which each message comes first, and its blob."""
        return ((s["first_turn"], s["blob"]) for s in self._spans)

    def step(self, turn: int) -> tuple[int | None, int, list[int]]:
        """Base turn, how many messages of it are kept, and the new ones."""
        now = self.at(turn)
        keep = 0
        for left, right in zip(self._before, now, strict=False):
            if left != right:
                break
            keep += 1
        base = self._number if keep else None
        self._before, self._number = now, turn
        return base, keep, now[keep:]


class _Blobs:
    """The blobs of an export: each once, before its first reference. Read many at a time: a query costs milliseconds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sent: set[int] = set()
        self._hashes: dict[int, str] = {}
        self._coming: deque[int] = deque()
        self._texts: dict[int, Row] = {}

    def expect(self, ids: Iterable[int | None]) -> None:
        """Says what will be asked for, in about that order."""
        wanted = [i for i in dict.fromkeys(ids) if i is not None]
        for part in range(0, len(wanted), _MANY):
            found = self._store.rows(_HASHES, [[i for i in wanted[part : part + _MANY] if i not in self._hashes]])
            self._hashes.update((r["id"], r["hash"]) for r in found)
        self._coming = deque(i for i in wanted if i not in self._sent)

    def hashes(self, ids: Sequence[int | None]) -> list[str | None]:
        """The hash of each."""
        return [None if i is None else self._hashes[i] for i in ids]

    def records(self, ids: Iterable[int | None]) -> Iterator[Record]:
        """A record for each that was not sent yet and has something to say."""
        for i in dict.fromkeys(ids):
            if i is None or i in self._sent:
                continue
            self._sent.add(i)
            if i not in self._texts:
                self._read(i)
            row = self._texts.pop(i)
            if row["text"] is not None:
                yield {"kind": "blob", "hash": row["hash"], "text": row["text"]}
            elif row["length"] is not None:
                yield {"kind": "blob", "hash": row["hash"], "length": row["length"]}

    def _read(self, first: int) -> None:
        """Reads one and those that are expected next."""
        wanted = [first]
        while self._coming and len(wanted) < _AHEAD:
            i = self._coming.popleft()
            if i != first and i not in self._sent and i not in self._texts:
                wanted.append(i)
        self._texts.update((r["id"], r) for r in self._store.rows(_TEXTS, [wanted]))


_HASHES = "select id, replace(hash::varchar, '-', '') as hash from base.blobs where id in (select unnest(?::bigint[]))"
_TEXTS = _HASHES.replace("as hash", "as hash, text, length")
_MANY, _AHEAD = 20_000, 256


def _run_start(run: Row) -> Record:
    record: Record = {"kind": "run_start", "run": run["id"], "at": run["started_at"]}
    for name in ("name", "title", "agent", "project", "session", "task", "source", "git_commit", "list_price"):
        record[name] = run[name]
    for name in ("tags", "limits", "versions"):
        record[name] = loads(run[f"{name}_json"]) or {}
    if run["parent_run"]:
        record["parent"] = {n: run[f"parent_{n}"] for n in ("run", "turn", "call", "kind")}
    if run["ended_at"] is None and run["status"] != "running":
        record["status"] = run["status"]
    return record


def _turn_start(blobs: _Blobs, turn: Row, base: int | None, keep: int, new: list[int]) -> Record:
    hashes = blobs.hashes([turn["system_blob"], turn["tools_blob"], turn["params_blob"], *new])
    record: Record = {"kind": "turn_start", "run": turn["run"], "turn": turn["number"], "at": turn["started_at"]}
    record.update(keep=keep, base=base, append=hashes[3:], system=hashes[0], tools=hashes[1], params=hashes[2])
    names = (
        "provider", "api", "stream", "mode", "agent", "user_turn", "inherited", "caller", "step", "trace_id",
        "span_id", "parent_span_id", "url",
    )  # fmt: skip
    record.update({name: turn[name] for name in names})
    record.update(model=turn["request_model"], flags=loads(turn["request_flags_json"]) or [])
    return record


def _turn_end(blobs: _Blobs, turn: Row, calls: list[Row], tries: list[Row]) -> Record:
    record: Record = {"kind": "turn_end", "run": turn["run"], "turn": turn["number"], "at": turn["ended_at"]}
    names = ("status", "error", "error_type", "stop_reason", "model", "response_id", "request_id", "first_chunk_at")
    record.update({name: turn[name] for name in names})
    record.update(
        parse=turn["parse_status"],
        flags=loads(turn["response_flags_json"]) or [],
        response=blobs.hashes([turn["response_blob"]])[0],
        calls=[_listed(c) for c in calls if c["listed"]],
        usage={**{n: turn[n] for n in USAGE}, "origin": turn["usage_origin"], "partial": turn["usage_partial"]},
        usage_raw=loads(turn["usage_json"]),
        attempts=[_attempt(a) for a in tries],
    )
    if turn["reported_cost_usd"] is not None:
        record["reported_cost_usd"] = turn["reported_cost_usd"]
    return record


def _listed(call: Row) -> dict[str, Any]:
    given: dict[str, Any] = {n: call[n] for n in ("id", "name", "arguments_raw", "valid", "invalid_reason")}
    if call["origin"] == "provider":
        given["origin"] = "provider"
        if call["measured_end"] is None:
            given.update(is_error=call["returned_error"], result=loads(call["returned_json"]))
    if call["returned_state"] and call["measured_end"] is None:
        given["state"] = call["returned_state"]
    return given


def _attempt(row: Row) -> dict[str, Any]:
    names = ("status", "error", "error_type", "wait_ms", "started_at", "ended_at", "request_id")
    body = {} if row.get("body") is None else {"body": row["body"]}
    return {**{n: row[n] for n in names}, "headers": loads(row["headers_json"]) or {}, **body}


def _chunk(row: Row) -> Record:
    names = ("run", "turn", "attempt", "seq", "altered")
    return {"kind": "chunk", **{n: row[n] for n in names}, "parts": loads(row["parts_json"])}


def _call_records(blobs: _Blobs, calls: list[Row]) -> Iterator[Record]:
    for call in calls:
        place = {"run": call["run"], "turn": call["turn"], "call": call["id"]}
        names = {n: call[n] for n in ("name", "origin", "side_effect", "loop_key", "arguments_raw")}
        provided = call["origin"] == "provider" and call["listed"]
        if call["measured_start"] is not None or not call["listed"] or call["side_effect"] != "unknown":
            yield {"kind": "call_start", **place, "at": call["measured_start"], **names}
        ended = call["measured_end"] is not None or (call["returned_digest"] is not None and not provided)
        if ended:
            yield _call_end(call, place)
        if call["seen_blob"] is not None or call["seen_at"] is not None:
            yield from blobs.records([call["seen_blob"]])
            yield {
                "kind": "call_seen", **place, "at": call["seen_at"],
                "message": blobs.hashes([call["seen_blob"]])[0],
                "path": call["seen_path"], "is_error": call["seen_error"], "error_class": call["seen_class"],
                **({} if ended or provided or call["returned_json"] is None else {"returned": loads(call["returned_json"])}),
            }  # fmt: skip


def _call_end(call: Row, place: dict[str, Any]) -> Record:
    record = {
        "kind": "call_end", **place, "at": call["measured_end"], "is_error": call["returned_error"],
        "error_class": call["returned_class"], "state": call["returned_state"], "digest": call["returned_digest"],
        "length": call["returned_length"],
    }  # fmt: skip
    for name, column in (("error_type", "returned_type"), ("gave", "returned_as")):
        if call.get(column) is not None:
            record[name] = call[column]
    if call.get("returned_shape_json") is not None:
        record["shape"] = loads(call["returned_shape_json"])
    if call["returned_json"] is not None:
        record["result"] = loads(call["returned_json"])
    return record


def _run_tail(store: Store, run: Row) -> Iterator[Record]:
    query = "select * from base.events where run = ? order by happened_at nulls first, turn, kind, detail_json"
    for row in store.rows(query, [encode(run["id"])]):
        yield {
            "kind": "event", "run": run["id"], "turn": row["turn"], "at": row["happened_at"], "event": row["kind"],
            "detail": loads(row["detail_json"]),
        }  # fmt: skip
    more = {n: found for n in ("outcome", "warnings") if (found := loads(run[f"{n}_json"]))}
    if run["reported_cost_usd"] is not None:
        more["reported_cost_usd"] = run["reported_cost_usd"]
    if more:
        yield {"kind": "run_update", "run": run["id"], "at": run["last_at"], **more}
    if run["ended_at"] is not None or run["status"] != "running":  # ends without a time: many imports know none
        yield {
            "kind": "run_end",
            "run": run["id"],
            "at": run["ended_at"],
            "status": run["status"],
            "reason": run["reason"],
        }


def _by_turn(rows: list[Row]) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["turn"], []).append(row)
    return grouped
