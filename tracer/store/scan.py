"""Looking for a text in everything that runs hold: blobs found by their intervals, columns of turns and calls.

No index: a scan of a slice of runs, whose rows lie together because they were drained together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .rows import Connection, Row, select
from .text import decode, encode

BUCKET = 8192  # blob ids that are looked at or passed over together
CONTEXT = 120  # characters kept on each side of a match
_RUNS = "run in (select unnest(?::varchar[]))"


@dataclass(frozen=True, slots=True)
class Found:
    """The first match in a text, with what stands around it, and how many matches the text holds."""

    before: str
    match: str
    after: str
    count: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Looks for RE2 patterns in what runs hold. Good while its store is not closed or written to."""

    con: Connection

    def check(self, pattern: str) -> None:
        """Raises UsageError ``bad-regex`` for a pattern that RE2 does not take, with its words."""
        import duckdb

        try:
            self.con.execute("select regexp_matches('', ?)", [encode(pattern)]).fetchall()
        except duckdb.Error as error:
            said = str(error).splitlines()[0].split("Error: ", 1)[-1]
            raise UsageError(
                "bad-regex",
                f"the regular expression cannot be read ({said[:160]})",
                "It is RE2's syntax: no lookahead, no backreference; leave --regex out to look for the text as it stands",
            ) from None

    def messages(self, runs: Sequence[str], pattern: str, *, with_assistant: bool = True) -> list[Row]:
        """Messages of these runs whose JSON text the pattern matches, each once a run.

        Rows: run, blob, position, first_turn, last_turn (None: still there), role, text.
        """
        coded = [encode(r) for r in runs]
        reach = self.con.execute(
            f"select blob // {BUCKET} as bucket, min(blob), max(blob), count(*) from base.spans where {_RUNS} group by 1 order by 1",  # noqa: S608
            [coded],
        ).fetchall()
        if not reach:
            return []
        ranges, dense = _ranges(reach)
        wanted = f"({ranges}) and b.text is not null" + (
            "" if with_assistant else " and b.role is distinct from 'assistant'"
        )
        if dense:  # hardly anything else lies there: to look at it too is quicker than to leave it out
            query = f"select b.id, b.role, b.text from base.blobs as b where {wanted} and regexp_matches(b.text, ?)"  # noqa: S608
        else:  # the CASE looks at both sides, so that only texts that these runs hold are matched, not all that lie between
            query = f"""
              select b.id, b.role, b.text from base.blobs as b
              join (select distinct blob from base.spans where {_RUNS}) as h on h.blob = b.id
              where {wanted} and case when h.blob > 0 then regexp_matches(b.text, ?) end
            """  # noqa: S608 - our own words and numbers
        hits = {row["id"]: row for row in select(self.con, query, [*([] if dense else [coded]), encode(pattern)])}
        if not hits:
            return []
        place = f"""
          select run, blob, min(position) as position, min(first_turn) as first_turn,
            case when count(*) = count(last_turn) then max(last_turn) end as last_turn
          from base.spans where blob in (select unnest(?::bigint[])) and {_RUNS} group by run, blob order by run, first_turn, position
        """  # noqa: S608
        return [
            {**row, "role": hits[row["blob"]]["role"], "text": hits[row["blob"]]["text"]}
            for row in select(self.con, place, [list(hits), coded])
        ]

    def heads(self, runs: Sequence[str], column: str, pattern: str) -> list[Row]:
        """System prompts or tool schemas (``system_blob``, ``tools_blob``) that match, each once a run: as `Scan.messages`."""
        query = f"""
          with held as materialized (
            select run, {column} as blob, min(number) as first_turn, max(number) as last_turn
            from base.turns where {_RUNS} and {column} is not null group by run, {column}
          )
          select held.run, held.blob, 0 as position, held.first_turn, held.last_turn, b.text from held
          join (select id, text from base.blobs where id in (select distinct blob from held)) as b on b.id = held.blob
          where regexp_matches(b.text, ?)
          order by held.run, held.first_turn
        """  # noqa: S608 - our own words
        coded = [encode(r) for r in runs]
        return select(self.con, query, [coded, encode(pattern)])

    def turns(self, runs: Sequence[str], columns: Sequence[str], pattern: str) -> list[Row]:
        """Turns of these runs with any of these columns matching; a column that does not match is None."""
        return _columns(
            self.con, "turns", "number as turn, null as position, null as id, null as name", runs, columns, pattern
        )

    def calls(self, runs: Sequence[str], columns: Sequence[str], pattern: str) -> list[Row]:
        """Calls of these runs with any of these columns matching; a column that does not match is None."""
        return _columns(self.con, "calls", "turn, position, id, name", runs, columns, pattern)

    def calls_seen(self, runs: Sequence[str], blobs: Sequence[int]) -> list[Row]:
        """The calls whose results stand in these messages: run, turn, position, id, name, blob."""
        if not blobs:
            return []
        query = (
            "select run, turn, position, id, name, seen_blob as blob from base.calls "  # noqa: S608 - our names
            f"where seen_blob in (select unnest(?::bigint[])) and {_RUNS}"
        )
        return select(self.con, query, [list(blobs), [encode(r) for r in runs]])

    def unrecorded(self, runs: Sequence[str]) -> int:
        """How many of these runs have messages of which only the hash was recorded."""
        query = (
            "select count(distinct run) from base.spans where blob in (select id from base.blobs where text is null) "  # noqa: S608
            f"and {_RUNS}"
        )
        found = self.con.execute(query, [[encode(r) for r in runs]]).fetchone()
        return int(found[0])

    def matches(self, texts: Sequence[str], pattern: str) -> list[Found | None]:
        """The first match of an RE2 pattern in each text, None where there is none."""
        coded = [encode(t) for t in texts]
        # what stands before the first match, and the match, as groups of one pattern: the shortest beginning wins
        query = """
          select i, regexp_extract(t, $2, ['before', 'match']) as found, len(regexp_extract_all(t, $3)) as count
          from (select unnest(range(len($1::varchar[]))) as i, unnest($1::varchar[]) as t) where regexp_matches(t, $3)
        """
        given = encode(pattern)
        done: list[Found | None] = [None] * len(coded)
        for i, found, count in self.con.execute(query, [coded, rf"(?s:\A(.*?))({given})", given]).fetchall():
            done[i] = around(coded[i], len(found["before"]), len(found["match"]), count)
        return done


def around(text: str, start: int, length: int, count: int) -> Found:
    """A match in a text of the store with what stands around it."""
    end = start + length
    return Found(
        decode(text[max(0, start - CONTEXT) : start]), decode(text[start:end]), decode(text[end : end + CONTEXT]), count
    )


def _columns(
    con: Connection, table: str, keys: str, runs: Sequence[str], columns: Sequence[str], pattern: str
) -> list[Row]:
    chosen = ", ".join(f"case when regexp_matches({c}, $2) then {c} end as {c}" for c in columns)
    either = " or ".join(f"regexp_matches({c}, $2)" for c in columns)
    query = (
        f"select run, {keys}, {chosen} from base.{table} "  # noqa: S608 - our names
        f"where run in (select unnest($1::varchar[])) and ({either}) order by run, turn, position"
    )
    return select(con, query, [[encode(r) for r in runs], encode(pattern)])


def _ranges(reach: list[tuple[Any, ...]]) -> tuple[str, bool]:
    """Where blobs of some buckets lie, neighbours joined: what DuckDB can pass over by its zone maps; and whether most
    of what lies there is wanted."""
    joined: list[list[int]] = []
    for bucket, low, high, _ in reach:
        if joined and bucket - joined[-1][2] <= 1:
            joined[-1][1:] = [high, bucket]
        else:
            joined.append([low, high, bucket])
    width = sum(high - low + 1 for low, high, _ in joined)
    return " or ".join(f"b.id between {low} and {high}" for low, high, _ in joined), sum(
        r[3] for r in reach
    ) > width / 2
