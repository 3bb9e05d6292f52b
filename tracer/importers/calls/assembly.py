"""Model calls, tool runs and the spans around them into runs: assembled, not trusted.

    yield from assemble(calls, source="otlp", notes=notes, tools=tools, spans=spans)

Dedupe: one call that several instrumentations told of is one turn (`twins`). Runs: by what the messages say
(`chains`); trace, agent and conversation ids are hints. Tools: by call id, else by name and arguments in order
(`tool_match`). Usage counts on calls only, never on the spans around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...canonical import stable_id
from ...providers.answer import Answer, AnswerCall
from ...tape import Record
from ..report import Notes
from .assembled import Assembled
from .chains import Chain, Link, chained
from .likeness import Known
from .model_call import AgentSpan, ModelCall, ToolSpan
from .reattach import Orphans, reattached
from .recovery import recovered
from .run_telling import told
from .span_tree import SpanTree
from .tool_match import Asked, Matcher
from .twins import merged

_ENDS = {"stop": "completed", "end_turn": "completed", "length": "limit", "max_tokens": "limit", "error": "failed"}


def assemble(
    calls: Iterable[ModelCall],
    *,
    source: str,
    notes: Notes,
    tools: Iterable[ToolSpan] = (),
    spans: Iterable[AgentSpan] = (),
    orphans: Orphans | None = None,
) -> Iterator[Record]:
    """The records of the runs that these calls make up, run by run, parents before their children.

    Args:
        calls: In any order; doubles and wrappers among them.
        source: FORMAT of the importer: part of every run id, beside the ``key`` of the run's first call.
        notes: Gets runs, turns, tool_calls, counts and warnings.
        tools, spans: What ran and what stood around; empty where the source has none.
        orphans: What the store holds of spans whose parent was not received; found here, they are re-attached.
    """
    given, ran, around = list(calls), list(tools), list(spans)
    tree = SpanTree([*given, *ran, *around])
    once = merged(given, tree)
    notes.counts["wrappers"] += len(given) - len(once)
    known = Known()
    chains = chained(once, tree, known)
    for chain in chains:
        recovered(chain, known)
    runs = [Assembled(stable_id(source, c.links[0].call.key), c, _agent(c)) for c in chains]
    for run in runs:
        _answers(run)
    _place_tools(runs, ran, around, tree, source)
    runs += _empty_runs(runs, around, tree, source)
    _parents(runs, tree)
    _say(notes, [*given, *ran], tree)
    for run in _ordered(runs):
        yield from told(run, source, notes, tree)
    if orphans:
        yield from reattached(orphans, runs, [*ran, *around, *once], tree)


def _agent(chain: Chain) -> AgentSpan | None:
    return chain.links[0].place.agent


def _answers(run: Assembled) -> None:
    """What each call answered; calls without an id of their own get one."""
    for number, link in enumerate(run.chain.links, 1):
        call = link.call
        said = link.answer
        stop = call.stop_reason or said.stop_reason
        seen: set[str] = set()
        calls = tuple(_named(c, number, i, seen) for i, c in enumerate(said.calls, 1))
        run.answers.append(
            Answer(
                id=call.response_id or said.id,
                model=call.response_model or said.model,
                stop_reason=stop,
                text=said.text,
                thinking=said.thinking,
                calls=calls,
                usage=call.usage or said.usage,
                error=said.error,
                error_type=said.error_type,
                request_id=said.request_id,
                end=None if calls else said.end or _ENDS.get(stop or ""),
            )
        )
        at = call.started_at or call.ended_at or 0  # a stream's first calls may run before it ends
        home = link.place.home.key if link.place.home else None
        run.asked.append([Asked(run.chain, number, c, at, call.trace_id, home) for c in calls if not c.provider_side])


def _named(call: AnswerCall, turn: int, index: int, seen: set[str]) -> AnswerCall:
    if not call.id or call.id in seen:
        call = replace(call, id=f"{call.id or 'call'}:{turn}.{index}")
    seen.add(call.id)
    return call


def _place_tools(
    runs: list[Assembled], tools: Sequence[ToolSpan], spans: Sequence[AgentSpan], tree: SpanTree, source: str
) -> None:
    """Every tool to its call; one that nobody asked for to the turn before it; else to a run without a model call."""
    matcher = Matcher((a for run in runs for turn in run.asked for a in turn), tree)
    ordered = sorted(tools, key=lambda t: (t.detail, t.started_at or 0))
    loose = [t for t in ordered if not (t.detail and tree.place(t).tool) and matcher.claim(t) is None]
    homes, traces = _homes(runs), _traces(runs)
    agents: dict[str | None, list[AgentSpan]] = {}
    for span in spans:
        if span.kind == "agent":
            agents.setdefault(span.trace_id, []).append(span)
    for tool in loose:
        if tool.detail:  # a transport of a tool that nobody else tells of: no call of the model's that we know
            continue
        home = tree.place(tool).home
        known = homes.get(home.key) if home else None
        alike = traces.get(tool.trace_id, []) if tool.trace_id else []
        if known is None and len(alike) == 1 and not isinstance(home, AgentSpan):
            known = alike[0]
        if known is None:
            known = _run_without_calls(tool, home, agents.get(tool.trace_id, ()), source, homes)
            if not known.chain.links and not known.loose:
                runs.append(known)
        known.loose.setdefault(_turn_before(known, tool), []).append(tool)


def _homes(runs: Iterable[Assembled]) -> dict[str, Assembled]:
    """The first run of each agent and tool that has calls directly in it."""
    found: dict[str, Assembled] = {}
    for run in runs:
        for link in run.chain.links:
            if link.place.home:
                found.setdefault(link.place.home.key, run)
    return found


def _traces(runs: Iterable[Assembled]) -> dict[str | None, list[Assembled]]:
    found: dict[str | None, list[Assembled]] = {}
    for run in runs:
        for trace in {link.call.trace_id for link in run.chain.links}:
            found.setdefault(trace, []).append(run)
    return found


def _run_without_calls(
    tool: ToolSpan,
    home: AgentSpan | ToolSpan | None,
    spans: Sequence[AgentSpan],
    source: str,
    homes: dict[str, Assembled],
) -> Assembled:
    """The run of a tool whose model calls were not received: of its agent, of its trace's root, or its own."""
    agent = home if isinstance(home, AgentSpan) else _root(spans)
    key = agent.key if agent else f"trace:{tool.trace_id}" if tool.trace_id else tool.key
    if key not in homes:
        homes[key] = Assembled(stable_id(source, key), Chain([]), agent)
    return homes[key]


def _root(agents: Sequence[AgentSpan]) -> AgentSpan | None:
    return min(agents, key=lambda s: (s.parent_span_id is not None, s.started_at or 0), default=None)


def _turn_before(run: Assembled, tool: ToolSpan) -> int:
    before = [n for n, link in enumerate(run.chain.links, 1) if (link.call.started_at or 0) <= (tool.started_at or 0)]
    return before[-1] if before else 1


def _empty_runs(runs: list[Assembled], spans: Sequence[AgentSpan], tree: SpanTree, source: str) -> list[Assembled]:
    """Agents of which nothing but their own span was received."""
    used: set[str] = set()
    for run in runs:
        if run.agent:
            used.add(run.agent.key)
        for link in run.chain.links:
            used |= _agents_above(link.call, tree)
        for tools in run.loose.values():
            for tool in tools:
                used |= _agents_above(tool, tree)
        if run.agent:
            used |= _agents_above(run.agent, tree)
    return [
        Assembled(stable_id(source, s.key), Chain([]), s)
        for s in spans
        if s.kind == "agent" and s.key not in used and tree.place(s).agent is None
    ]


def _agents_above(span: ModelCall | ToolSpan | AgentSpan, tree: SpanTree) -> set[str]:
    found: set[str] = set()
    agent = tree.place(span).agent
    while agent is not None and agent.key not in found:
        found.add(agent.key)
        agent = tree.place(agent).agent
    return found


def _parents(runs: list[Assembled], tree: SpanTree) -> None:
    """A run under a tool or an agent of another run is its child; one that goes on with another's words resumes it."""
    owners: dict[str, tuple[Assembled, Asked]] = {}
    homes = _homes(runs)
    by_chain = {id(run.chain): run for run in runs}
    for run in runs:
        for turn in run.asked:
            for asked in turn:
                owners.update({t.key: (run, asked) for t in asked.spans})
    for run in runs:
        if run.chain.parent is not None:
            before = by_chain[id(run.chain.parent[0])]
            run.parent = {"run": before.id, "turn": run.chain.parent[1], "kind": "resume"}
        elif run.chain.links:
            run.parent = _above(run, owners, homes, tree)


def _above(
    run: Assembled, owners: Mapping[str, tuple[Assembled, Asked]], homes: Mapping[str, Assembled], tree: SpanTree
) -> Mapping[str, Any] | None:
    head = run.chain.links[0]
    home = head.place.home
    while home is not None:
        if isinstance(home, ToolSpan) and home.key in owners:
            above, asked = owners[home.key]
            if above is not run:
                return {"run": above.id, "turn": asked.turn, "call": asked.call.id, "kind": "sub-agent"}
        elif home.key in homes and homes[home.key] is not run and home is not head.place.home:
            above = homes[home.key]
            return {"run": above.id, "turn": _turn_at(above, head), "kind": "sub-agent"}
        home = tree.place(home).home
    return None


def _turn_at(run: Assembled, head: Link) -> int | None:
    before = [
        n for n, link in enumerate(run.chain.links, 1) if (link.call.started_at or 0) <= (head.call.started_at or 0)
    ]
    return before[-1] if before else None


def _ordered(runs: Sequence[Assembled]) -> list[Assembled]:
    """Parents first; else as they began."""
    by_id = {run.id: run for run in runs}
    out: dict[str, Assembled] = {}

    def put(run: Assembled, above: frozenset[str]) -> None:
        parent = by_id.get(run.parent["run"]) if run.parent else None
        if parent is not None and parent.id not in out and parent.id not in above:
            put(parent, above | {run.id})
        out.setdefault(run.id, run)

    for run in runs:
        put(run, frozenset())
    return list(out.values())


def _say(notes: Notes, spans: Sequence[ModelCall | ToolSpan], tree: SpanTree) -> None:
    missing = {m for s in spans if (m := tree.place(s).missing)}
    if missing:
        names = ", ".join(sorted(missing)[:5])
        notes.warn(f"parents not received: {len(missing)} ({names}{', ...' if len(missing) > 5 else ''})")


__all__ = ["AgentSpan", "Assembled", "ModelCall", "ToolSpan", "assemble"]
