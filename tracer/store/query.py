"""A user's own SQL: one read-only statement over the documented views, with nothing else in reach."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..errors import UsageError
from .rows import Connection
from .text import decode

VIEWS = ("runs", "turns", "tool_calls", "messages", "attempts", "events")
# Table functions that make rows from their arguments alone.
_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})
_WHERE = re.compile(r"\n+LINE (\d+): (.*)\n( *)\^")


def run(con: Connection, query: str, limit: int | None) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """Column names, their types, and rows (at most `limit`).

    Raises:
        UsageError: The SQL is wrong (the position is named) or asks for more than reading the views.
    """
    import duckdb

    try:
        _check(con, query)
        found = con.execute(query)
        names = [d[0] for d in found.description]
        types = [str(d[1]) for d in found.description]
        rows = found.fetchall() if limit is None else found.fetchmany(limit)
    except duckdb.OutOfMemoryException:
        raise UsageError(
            "sql-memory",
            "the query needs more memory than looptape lets it have",
            "Ask for less at once (WHERE run = ...), or search `messages`, which needs less than `tool_calls.result`",
        ) from None
    except duckdb.Error as error:
        raise UsageError("bad-sql", _said(error), f"The views are {', '.join(VIEWS)}; see docs/schema.md") from None
    return names, types, [tuple(decode(v) if isinstance(v, str) else v for v in row) for row in rows]


def _check(con: Connection, query: str) -> None:
    import duckdb

    statements = con.extract_statements(query)
    if len(statements) != 1:
        what = "no statement" if not statements else f"{len(statements)} statements"
        raise UsageError("bad-sql", f"the query holds {what}", "Give one SELECT")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        inner = re.sub(r"(?is)^\s*explain\s+(analyze\s+)?(\([^)]*\)\s*)?", "", query)
        return _check(con, inner)
    if kind != duckdb.StatementType.SELECT:
        name = "PIVOT" if kind == duckdb.StatementType.MULTI else kind.name
        raise UsageError("sql-read-only", f"{name} is not allowed: the store is read-only here", "Give one SELECT")
    found = json.loads(con.execute("select json_serialize_sql(?::varchar)", [query]).fetchone()[0])
    if found.get("error"):
        # the parser took it, so it is a SELECT that has no such form (PIVOT, for one)
        raise UsageError(
            "bad-sql", f"this query cannot be checked ({found.get('error_message')})", "Write it as a SELECT"
        )
    known = set(VIEWS) | set(_named_queries(found))
    for place in _sources(found):
        name, schema = place
        if name.lower() not in known or schema not in ("", "main"):
            shown = f"{schema}.{name}" if schema else name
            raise UsageError("sql-views-only", f"{shown} cannot be read here", f"The views are {', '.join(VIEWS)}")
    return None


def _named_queries(node: Any) -> Iterator[str]:
    """Names of WITH queries anywhere in the statement."""
    for part in _walk(node):
        cte = part.get("cte_map")
        if isinstance(cte, dict):
            for entry in cte.get("map", ()):
                yield str(entry["key"]).lower()
        if part.get("type") == "RECURSIVE_CTE_NODE":
            yield str(part.get("cte_name", "")).lower()


def _sources(node: Any) -> Iterator[tuple[str, str]]:
    """Tables and table functions that the statement reads, with their schemas."""
    for part in _walk(node):
        kind = part.get("type")
        if kind == "BASE_TABLE":
            yield (
                str(part.get("table_name")),
                ".".join(filter(None, (part.get("catalog_name"), part.get("schema_name")))),
            )
        elif kind == "TABLE_FUNCTION":
            name = str((part.get("function") or {}).get("function_name"))
            if name.lower() not in _FUNCTIONS:
                yield f"{name}()", ""
        elif kind == "SHOW_REF" and not part.get("query"):
            name = str(part.get("table_name")).strip('"')
            if name not in ("tables", "") and name not in VIEWS:
                yield name, str(part.get("schema_name") or "")


def _walk(node: Any) -> Iterator[dict[str, Any]]:
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)


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
