"""Which runs an analysis looks at: those that a filter picks, each with its sub-agents; and whose each run is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...tracer.store import Filter
from ...tracer.store.filters import where

OWN = "not t.inherited and t.duplicate_of is null"
"""A turn that its run owns: neither a fork's past nor a copy, so that sums count nothing twice."""

BILLED = "(t.input is not null or t.output is not null or t.status = 'ok')"
"""A call that failed before any usage came cost nothing that anybody knows of."""

FAMILY = """
  family(id, root) as (
    select r.id, r.id from base.runs as r
    where coalesce(r.parent_kind, '') <> 'sub-agent' or r.parent_run not in (select id from base.runs)
    union
    select r.id, f.root from family as f join base.runs as r on r.parent_run = f.id where r.parent_kind = 'sub-agent'
  )
"""
"""Every run with the run at whose head it stands: a sub-agent's is the one that called it, however far up."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The runs that pass a filter, and the sub-agents below them.

    Attributes:
        given: The filter; its ``since`` picks turns, not runs.
    """

    given: Filter

    @property
    def everything(self) -> bool:
        """True when no run is left out."""
        plain = replace(self.given, since=None, sort="time", limit=50, include_empty=False)
        return plain == Filter()

    def chosen(self) -> tuple[str, list[Any]]:
        """A WITH query ``chosen(id)`` of the runs, and its values."""
        condition, values = where(replace(self.given, since=None))
        query = f"""
          chosen(id) as (
            select r.id from base.runs as r where {condition}
            union
            select r.id from chosen as c join base.runs as r on r.parent_run = c.id where r.parent_kind = 'sub-agent'
          )
        """  # noqa: S608 - our own words
        return query, values

    def turns(self) -> tuple[str, list[Any]]:
        """The condition on own turns ``t``: of chosen runs, and begun since then."""
        parts, values = [OWN], []
        if self.given.since is not None:
            parts.append("coalesce(t.started_at, t.ended_at) >= ?")
            values.append(self.given.since)
        if not self.everything:
            parts.append("t.run in (select id from chosen)")
        return " and ".join(parts), values
