"""What the store knows already that an import has to know: ends, calls that began sub-agents, orphans, traces."""

from __future__ import annotations

from typing import Any

from .codex.codex_lines import spawned
from .context import Context


def context_of(store: Any) -> Context:
    """What the store knows already; asked before the first transaction begins."""
    ended = store.sql("select id, epoch_us(ended_at) from runs where ended_at is not null")
    unlinked = store.sql("select id from runs where parent_kind = 'sub-agent' and parent_call is null")
    query = "select run, number, flags from turns where array_to_string(flags, ' ') like '%parent % not received%'"
    orphans: dict[str, list[tuple[str, int, list[str]]]] = {}
    for run, turn, flags in store.sql(query)[2]:
        for missing in (f.split()[1] for f in flags if f.endswith(" not received") and f.startswith("parent ")):
            orphans.setdefault(missing, []).append((run, int(turn), list(flags)))
    context = Context(
        ended={run: int(at) for run, at in ended[2]},
        unlinked={run for (run,) in unlinked[2]},
        orphans=orphans,
        traced=lambda traces: _traced(store, sorted(traces)),
    )
    _add_agents(store, context)
    return context


def _traced(store: Any, traces: list[str]) -> tuple[bool, set[str]]:
    """Are spans of these traces in the store as they came? Which of them are in runs that a file gave?"""
    among = "in (select unnest(?::varchar[]))"
    waiting = store.rows(f"select 1 from base.otlp_traces where trace {among} limit 1", [traces])  # noqa: S608
    told = store.rows(
        f"select distinct t.trace_id from base.turns as t join base.runs as r on r.id = t.run where t.trace_id {among} "  # noqa: S608
        "and r.source = 'otlp' and r.id not in (select run from base.otlp_runs)",
        [traces],
    )
    return bool(waiting), {row["trace_id"] for row in told}


def _add_agents(store: Any, context: Context) -> None:
    """The calls that began sub-agents, and the sub-agents that their results name."""
    query = (
        "select c.id, c.run, c.turn, r.session, try(json_extract_string(c.returned, '$.agentId')) "
        "from tool_calls as c join runs as r on r.id = c.run where c.name in ('Task', 'Agent')"
    )
    for call, run, turn, session, agent in store.sql(query)[2]:
        context.calls[call] = (run, int(turn))
        if session and agent:
            context.agents[session, agent] = call
    query = (
        "select c.id, c.run, c.turn, c.result from tool_calls as c join runs as r on r.id = c.run "
        "where r.source = 'codex' and c.name like '%spawn%' and c.result is not null"
    )
    for call, run, turn, result in store.sql(query)[2]:
        for name in spawned({"output": result}):
            context.calls[call], context.agents["codex", name] = (run, int(turn)), call
