"""The rows that one slice of records touches: read once, changed in memory, written back once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..canonical import digest
from .otlp import RawSpans
from .rows import Bad, Connection, Row, append, delete_turns, select, text, whole
from .spans import History, Span
from .text import encode, facts, loads

_HASH = re.compile("[0-9a-f]{32}")
_BLOBS = ("hash", "system", "tools", "params", "response", "message")
_DECODED_CHARS = 8000  # longer texts are decoded again: all decoded ones of a slice would be much memory
Key = tuple[str, int]


class Batch:
    """What a slice of records refers to. `load`, then change rows, then `write`, all in one transaction."""

    def __init__(self, con: Connection, *, source: str | None = None) -> None:
        self.con = con
        self.journal: str | None = None
        self.source = source
        self.runs: dict[str, Row] = {}
        self.turns: dict[Key, Row] = {}
        self.calls: dict[Key, list[Row]] = {}
        self.attempts: dict[Key, list[Row]] = {}
        self.histories: dict[str, History] = {}
        self.chunks: dict[tuple[str, int, int, int], Row | None] = {}
        self.events: dict[tuple[Any, ...], Row | None] = {}
        self.blobs: dict[str, Row] = {}
        self.texts: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._hashes: dict[int, str] = {}
        self.spoken: dict[str, None] = {}
        self.touched: set[Key] = set()
        self.raw = RawSpans()
        self.ended: set[Key] = set()
        self._fresh_blobs: list[Row] = []
        self._filled_blobs: list[Row] = []
        self._before: dict[int, Row] = {}
        self._calls_before: dict[Key, list[Row]] = {}
        self._next_blob = 1

    # -- reading ---------------------------------------------------------------------------------------------

    def load(self, records: Sequence[Any]) -> None:
        """Reads the rows that these records can touch."""
        runs, keys, hashes, kinds = _mentioned(records)
        self._next_blob = 1 + self.con.execute("select coalesce(max(id), 0) from base.blobs").fetchone()[0]
        self._load_blobs(hashes)
        names = [encode(r) for r in runs]
        for row in select(self.con, "select * from base.runs where id in (select unnest(?::varchar[]))", [names]):
            self.runs[row["id"]] = self._remember(row)
        if not self.runs:
            return
        keys = {key for key in keys if key[0] in self.runs}
        if keys:
            self._load_turns(keys, chunks="chunk" in kinds)
        if "event" in kinds:
            for row in select(
                self.con, "select * from base.events where run in (select unnest(?::varchar[]))", [names]
            ):
                self.events[_event_key(row)] = None
        if "turn_start" in kinds:
            self._load_histories(names)

    def _load_turns(self, keys: set[Key], *, chunks: bool) -> None:
        pairs = [[encode(k[0]) for k in keys], [k[1] for k in keys]]
        within = "join (select unnest($1::varchar[]) as run, unnest($2::integer[]) as n) as k on t.run = k.run"
        for row in select(self.con, f"select t.* from base.turns as t {within} and t.number = k.n", pairs):  # noqa: S608
            self.turns[row["run"], row["number"]] = self._remember(row)
        order = "order by t.run, t.turn, t.position"
        for row in select(self.con, f"select t.* from base.calls as t {within} and t.turn = k.n {order}", pairs):  # noqa: S608
            self.calls.setdefault((row["run"], row["turn"]), []).append(row)
        self._calls_before = {k: [dict(r) for r in rows] for k, rows in self.calls.items()}
        if chunks:
            what = "select t.run, t.turn, t.attempt, t.seq from base.chunks as t"
            for row in select(self.con, f"{what} {within} and t.turn = k.n", pairs):
                self.chunks[row["run"], row["turn"], row["attempt"], row["seq"]] = None

    def _load_histories(self, names: list[str]) -> None:
        spans: dict[str, list[Span]] = {}
        turns: dict[str, list[int]] = {}
        mine = "where run in (select unnest(?::varchar[]))"
        for row in select(self.con, f"select * from base.spans {mine}", [names]):  # noqa: S608
            span = Span(row["position"], row["blob"], row["first_turn"], row["last_turn"])
            spans.setdefault(row["run"], []).append(span)
        query = f"select run, number from base.turns {mine} and message_count is not null"  # noqa: S608
        for row in select(self.con, query, [names]):
            turns.setdefault(row["run"], []).append(row["number"])
        for run in turns:
            self.histories[run] = History(spans.get(run, []), turns[run])

    def _load_blobs(self, hashes: set[str]) -> None:
        if hashes and self._next_blob > 1:
            query = (
                "select id, replace(hash::varchar, '-', '') as hash, text is null as unknown, length "
                "from base.blobs where hash in (select unnest(?::uuid[]))"
            )
            for row in select(self.con, query, [list(hashes)]):
                self.blobs[row["hash"]] = row
                self._hashes[row["id"]] = row["hash"]

    def _remember(self, row: Row) -> Row:
        self._before[id(row)] = dict(row)
        return row

    # -- rows to change --------------------------------------------------------------------------------------

    def run(self, record: Row) -> Row:
        """The row of the record's run, made if it is new."""
        name = text(record.get("run"), "run", needed=True)
        if not name:
            raise Bad("run is empty")
        self.spoken[name] = None
        row = self.runs.get(name)
        if row is None:
            row = self.runs[name] = {"id": name, "status": "running", "source": self.source, "journal": None}
        at = whole(record.get("at"), "at")
        last = row.get("last_at")
        if at is not None and (not last or at > last):
            row["last_at"] = at
        if self.journal:
            row["journal"] = self.journal
        return row

    def turn(self, record: Row) -> Row:
        """The row of the record's turn, made if it is new."""
        number = whole(record.get("turn"), "turn", needed=True, limit=2**31 - 2)
        if number is None or number < 1:
            raise Bad("turn is less than 1")
        run = self.run(record)["id"]
        row = self.turns.get((run, number))
        if row is None:
            row = self.turns[run, number] = {"run": run, "number": number, "status": "open", "inherited": False}
        self.touched.add((run, number))
        return row

    def call(self, record: Row) -> Row:
        """The row of the record's tool call, made if the turn's own list lacks it."""
        name = text(record.get("call"), "call", needed=True)
        turn = self.turn(record)
        rows = self.calls.setdefault((turn["run"], turn["number"]), [])
        for row in rows:
            if row["id"] == name:
                return row
        row = {
            "run": turn["run"], "turn": turn["number"], "position": len(rows) + 1, "id": name, "listed": False,
            "name": "", "arguments_raw": None, "valid": True, "origin": "live", "side_effect": "unknown",
        }  # fmt: skip
        rows.append(row)
        return row

    def history(self, run: str) -> History:
        """The message lists of a run."""
        return self.histories.setdefault(run, History())

    def blob(self, key: Any, name: str = "blob") -> int | None:
        """The id of the blob with this hash; a blob that never came gets a place without text."""
        if key is None:
            return None
        return int(self._blob_row(key, name)["id"])

    def keep(self, key: Any, content: str | None, length: int | None) -> None:
        """A blob record: its text under its hash."""
        if content is not None and digest(content) != key:
            raise Bad("hash does not fit the text")
        row = self._blob_row(key, "hash")
        if content is None:
            row["length"] = length if row.get("length") is None else row["length"]
        elif row["unknown"]:
            role, flags, value = facts(content)
            row.update(text=content, length=len(content), role=role, flags=flags, unknown=False)
            self.texts[key] = content
            if flags is None and len(content) < _DECODED_CHARS:
                self._values[key] = value
            if not row.get("fresh"):
                self._filled_blobs.append(row)

    def text_of(self, key: str | None) -> str | None:
        """The text of a blob, from this slice or the store."""
        if key is None or key not in self.blobs:
            return None
        if key not in self.texts and not self.blobs[key]["unknown"]:
            found = select(self.con, "select text from base.blobs where id = ?", [self.blobs[key]["id"]])
            self.texts[key] = found[0]["text"]
        return self.texts.get(key)

    def hash_of(self, blob: int) -> str | None:
        """The hash of a blob that this slice names."""
        return self._hashes.get(blob)

    def value_of(self, key: str | None) -> Any:
        """The decoded text of a blob, as `loads` gives it; not to be changed. None where there is no text."""
        if key in self._values:
            return self._values[key]
        return loads(self.text_of(key))

    def _blob_row(self, key: Any, name: str) -> Row:
        row = self.blobs.get(key) if isinstance(key, str) else None
        if row is None:
            if not isinstance(key, str) or not _HASH.fullmatch(key):
                raise Bad(f"{name} is no hash of 32 hex digits")
            row = self.blobs[key] = {"id": self._next_blob, "hash": key, "unknown": True, "fresh": True, "length": None}
            self._hashes[self._next_blob] = key
            self._next_blob += 1
            self._fresh_blobs.append(row)
        return row

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Writes what changed. Rows that are as they were are left alone."""
        con = self.con
        append(con, "blobs", self._fresh_blobs)
        for row in self._filled_blobs:
            values = [encode(row["text"]), row["length"], row["role"], row["flags"], row["id"]]
            con.execute("update base.blobs set text = ?, length = ?, role = ?, flags = ? where id = ?", values)
        runs = [r for r in self.runs.values() if self._before.get(id(r)) != r]
        old = [encode(r["id"]) for r in runs if id(r) in self._before]
        if old:
            con.execute("delete from base.runs where id in (select unnest(?::varchar[]))", [old])
        self._give_places(runs)
        append(con, "runs", runs)
        turns = {k: r for k, r in self.turns.items() if self._before.get(id(r)) != r}
        delete_turns(con, "turns", [_coded(k) for k, r in turns.items() if id(r) in self._before], "number")
        append(con, "turns", self._placed(turns.values()))
        calls = {k: rows for k, rows in self.calls.items() if self._calls_before.get(k) != rows}
        delete_turns(con, "calls", [_coded(k) for k in calls if k in self._calls_before], "turn")
        append(con, "calls", self._placed(row for rows in calls.values() for row in rows))
        delete_turns(con, "attempts", [_coded(k) for k in self.attempts], "turn")
        append(con, "attempts", self._placed(row for rows in self.attempts.values() for row in rows))
        append(con, "chunks", self._placed(row for row in self.chunks.values() if row is not None))
        append(con, "events", self._placed(row for row in self.events.values() if row is not None))
        self._write_histories()
        self.raw.write(con)

    def _write_histories(self) -> None:
        rows: list[Row] = []
        for run, history in self.histories.items():
            if history.changed:
                place = self.runs[run].get("place")
                rows += ({**row, "place": place} for row in history.write(self.con, encode(run)))
        append(self.con, "spans", rows)

    def _give_places(self, runs: list[Row]) -> None:
        new = [row for row in runs if row.get("place") is None]
        if new:
            last = self.con.execute("select coalesce(max(place), 0) from base.runs").fetchall()[0][0]
            for number, row in enumerate(new, last + 1):
                row["place"] = number

    def _placed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows with the place of their run (006_places.sql)."""
        for row in rows:
            run = self.runs.get(row["run"])
            row["place"] = None if run is None else run.get("place")
            yield row


def _coded(key: Key) -> Key:
    return encode(key[0]), key[1]


def _event_key(row: Row) -> tuple[Any, ...]:
    return row["run"], row["turn"], row["happened_at"], row["kind"], row["detail_json"]


def _mentioned(records: Iterable[Any]) -> tuple[set[str], set[Key], set[str], set[str]]:
    """Runs, turns (with their neighbours), hashes and kinds that records name; odd values are left to `apply`."""
    runs: set[str] = set()
    turns: set[Key] = set()
    named: list[Any] = []
    kinds: set[str] = set()
    for record in records:
        kind = record.get("kind")
        if kind == "blob":  # says nothing else, and many records are blobs
            named.append(record.get("hash"))
            continue
        kinds.add(str(kind))
        parent = record.get("parent")
        for place in (record, parent) if isinstance(parent, dict) else (record,):
            name, at = place.get("run"), place.get("turn")
            if isinstance(name, str):
                runs.add(name)
                if isinstance(at, int) and 0 < at < 2**31 - 2:
                    turns.add((name, at))
        named += map(record.get, _BLOBS)
        appended = record.get("append")
        if isinstance(appended, list):
            named += appended
    hashes = {h for h in {v for v in named if isinstance(v, str)} if _HASH.fullmatch(h)}
    return runs, {(name, at + i) for name, at in turns for i in (-1, 0, 1)}, hashes, kinds
