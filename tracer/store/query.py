"""A user's own SQL: one read-only statement over the documented views, with nothing else in reach."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..errors import UsageError
from ..interrupts import is_interruption
from .attached import Attached
from .rows import Connection
from .text import decode

VIEWS = ("runs", "turns", "tool_calls", "messages", "attempts", "events")
# Table functions that make rows from their arguments alone.
_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})
_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_EXPLAIN = re.compile(rf"(?is){_BLANK}*explain\b{_BLANK}*(analyze\b)?{_BLANK}*(\([^()]*\))?")
_WHERE = re.compile(r"\n+LINE (\d+): (.*)\n( *)\^")


def run(
    con: Connection, query: str, limit: int | None, attached: Attached | None = None
) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """Column names, their types, and rows (at most `limit`).

    Raises:
        UsageError: The SQL is wrong (the position is named) or asks for more than reading the views.
    """
    import duckdb

    try:
        found = con.execute(_checked(con, query, attached))
        names = [d[0] for d in found.description]
        types = [str(d[1]) for d in found.description]
        rows = found.fetchall() if limit is None else found.fetchmany(limit)
    except duckdb.OutOfMemoryException:
        raise UsageError(
            "sql-memory",
            "the query needs more memory than looptape lets it have",
            "Ask for less at once (WHERE run = ...), or search `messages`, which needs less than `tool_calls.result`",
        ) from None
    except (RuntimeError, duckdb.InterruptException) as error:
        if not is_interruption(error):
            raise
        raise KeyboardInterrupt from None  # DuckDB took the signal for itself
    except duckdb.Error as error:
        raise UsageError("bad-sql", _said(error), f"The views are {', '.join(VIEWS)}; see docs/schema.md") from None
    return names, types, [tuple(decode(v) if isinstance(v, str) else v for v in row) for row in rows]


def _checked(con: Connection, query: str, attached: Attached | None, *, explained: bool = False) -> str:
    """The statement to run, once nothing but the views is in its reach."""
    import duckdb

    statements = con.extract_statements(query)
    if len(statements) != 1:
        what = "no statement" if not statements else f"{len(statements)} statements"
        raise UsageError("bad-sql", f"the query holds {what}", "Give one SELECT")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        head = _EXPLAIN.match(query)
        if head is None or explained:
            raise UsageError("bad-sql", "this EXPLAIN cannot be checked", "Begin with EXPLAIN SELECT")
        # put together anew, so that what was checked is what runs
        analyze = "analyze " if head[1] else ""
        return f"explain {analyze}{head[2] or ''} {_checked(con, query[head.end() :], attached, explained=True)}"
    if kind != duckdb.StatementType.SELECT:
        name = "PIVOT" if kind == duckdb.StatementType.MULTI else kind.name
        raise UsageError("sql-read-only", f"{name} is not allowed: the store is read-only here", "Give one SELECT")
    found = json.loads(con.execute("select json_serialize_sql(?::varchar)", [query]).fetchone()[0])
    if found.get("error"):
        # the parser took it, so it is a SELECT that has no such form (PIVOT, for one)
        raise UsageError(
            "bad-sql", f"this query cannot be checked ({found.get('error_message')})", "Write it as a SELECT"
        )
    for name in _foreign(found, attached):
        cure = f"The views are {', '.join(VIEWS)}" + ("" if attached else "; --attach FILE adds a file")
        raise UsageError("sql-views-only", f"{name} cannot be read here", cure)
    return query


def _foreign(statement: Any, attached: Attached | None) -> Iterator[str]:
    """Tables and table functions that are neither views of ours, nor of the attached file, nor WITH queries in whose
    scope they stand."""
    for part, named in _walk(statement):
        kind = part.get("type")
        if kind == "BASE_TABLE":
            name = str(part.get("table_name"))
            schema = ".".join(filter(None, (part.get("catalog_name"), part.get("schema_name"))))
            if attached and attached.holds(part.get("catalog_name") or "", part.get("schema_name") or "", name):
                continue
            ours = name.lower() in VIEWS and schema in ("", "main")
            if not ours and (schema or name.lower() not in named):
                yield f"{schema}.{name}" if schema else name
        elif kind == "TABLE_FUNCTION":
            name = str((part.get("function") or {}).get("function_name"))
            if name.lower() not in _FUNCTIONS:
                yield f"{name}()"
        elif kind == "SHOW_REF" and not part.get("query"):
            name = str(part.get("table_name")).strip('"')
            if name not in ("tables", "") and name not in VIEWS:
                yield name


def _walk(statement: Any) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Every object of a parsed statement with the names of the WITH queries that can be read there."""
    stack: list[tuple[Any, frozenset[str]]] = [(statement, frozenset())]
    while stack:
        part, named = stack.pop()
        if isinstance(part, list):
            stack.extend((one, named) for one in part)
        if not isinstance(part, dict):
            continue
        if part.get("type") == "RECURSIVE_CTE_NODE":
            named |= {str(part.get("cte_name", "")).lower()}
        inside = named
        for entry in (part.get("cte_map") or {}).get("map", ()):
            stack.append((entry["value"], inside))  # sees those before it
            inside |= {str(entry["key"]).lower()}
        yield part, inside
        stack.extend((value, inside) for key, value in part.items() if key != "cte_map")


def _said(error: Exception) -> str:
    """DuckDB's message on one line, with line and column."""
    message = str(error)
    place = _WHERE.search(message)
    at = ""
    if place:
        column = len(place[3]) - len(f"LINE {place[1]}: ") + 1
        at = f" (line {place[1]}, column {max(1, column)})"
        message = message[: place.start()]
    first = " ".join(message.split())
    return f"SQL: {first.rstrip('.')}{at}"
