"""An assembled run as tape records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...model import Usage
from ...providers import anthropic, by_api
from ...providers.answer import Answer, SeenResult, dumped
from ...tape import Record
from ..builder import RunBuilder
from ..report import Notes
from .assembled import Assembled
from .chains import Link
from .model_call import ModelCall, ToolSpan
from .span_tree import SpanTree

NO_CALL = "model_call_not_received"
_WANTS_TOOLS = ("tool_use", "tool_call", "tool_calls", "function_call")


def told(run: Assembled, source: str, notes: Notes, tree: SpanTree) -> Iterator[Record]:
    """The records of one run; counts go to the notes."""
    links = run.chain.links
    agent = run.agent
    first = links[0].call if links else None
    builder = RunBuilder(
        run.id,
        api=first.api if first else "manual",
        source=source,
        started_at=_start(run),
        name=_name(run),
        agent=(agent.agent or agent.name) if agent else first.agent if first else None,
        project=_one(agent.service if agent else None, first.service if first else None),
        session=_one(first.conversation if first else None, agent.conversation if agent else None),
        title=_title(run),
        parent=run.parent,
    )
    teller = _Teller(run, builder, notes, tree)
    for number, link in enumerate(links, 1):
        teller.turn(number, link)
        yield from builder.drain()
    if run.loose and not links:
        teller.turn_without_call()
    teller.end()
    notes.runs[run.id] = None
    notes.turns += builder.turns
    notes.tool_calls += builder.calls
    yield from builder.drain()


class _Teller:
    """Tells one run to its builder, turn by turn."""

    def __init__(self, run: Assembled, builder: RunBuilder, notes: Notes, tree: SpanTree) -> None:
        self._run = run
        self._builder = builder
        self._notes = notes
        self._tree = tree
        self._messages: tuple[Any, ...] = ()
        self._agent_failed = False

    def turn(self, number: int, link: Link) -> None:
        """The request, its answer, and the tools that ran for it."""
        call, builder = link.call, self._builder
        provider = by_api(call.api)
        kept = self._kept(call)
        builder.restart(kept)
        new = call.messages[kept:]
        keys = [builder.message(m, prompt=m is new[-1] and provider.is_prompt(m)) for m in new]
        for message, key in zip(new, keys, strict=True):
            for result in provider.results(message):
                self._seen(result, key, call)
        self._messages = call.messages if call.mode == "full" else ()
        builder.context(system=call.system, tools=call.tools, params=call.params or None)
        builder.turn(
            response=call.response,
            answer=self._run.answers[number - 1],
            usage=self._run.answers[number - 1].usage,
            at=call.started_at,
            ended_at=call.ended_at,
            first_chunk_at=call.first_chunk_at,
            model=call.model or call.response_model,
            status=call.status,
            error=call.error,
            error_type=call.error_type,
            attempts=call.attempts,
            flags=self._flags(number, link),
            agent=call.agent or (link.place.agent.agent or link.place.agent.name if link.place.agent else None),
            step=call.step or " > ".join(link.place.steps) or None,
            request_id=call.request_id,
            reported_cost_usd=call.reported_cost_usd,
            api=call.api,
            provider=call.provider,
            mode=call.mode,
            stream=call.stream or None,
            trace_id=call.trace_id,
            span_id=call.span_id,
            parent_span_id=call.parent_span_id,
            url=call.url,
        )
        for name, detail in call.notes:
            builder.event(name, call.ended_at, **detail)
        self._tools(number)

    def turn_without_call(self) -> None:
        """Tools ran, but the model calls that asked for them were not received."""
        tools = [t for turn in sorted(self._run.loose) for t in self._run.loose[turn]]
        orphans = [f for t in tools for f in self._orphan(t)]
        first = tools[0]
        self._builder.turn(
            answer=Answer(),
            usage=Usage(),
            flags=list(dict.fromkeys([NO_CALL, *orphans])),
            agent=(self._run.agent.agent or self._run.agent.name) if self._run.agent else None,
            trace_id=first.trace_id,
            at=min((t.started_at for t in tools if t.started_at is not None), default=None),
            ended_at=min((t.started_at for t in tools if t.started_at is not None), default=None),
        )
        self._notes.warn("tools without the model calls that asked for them: those were not received")
        self._tools(1)

    def end(self) -> None:
        """How the run ended, as far as anybody told."""
        run, builder = self._run, self._builder
        links = run.chain.links
        ended = [t for t in (run.agent and run.agent.ended_at, *(x.call.ended_at for x in links[-1:])) if t]
        at = max(ended, default=None)
        last = links[-1].call if links else None
        agent = run.agent
        if agent is not None and agent.usage is not None:  # a sum over its calls: told, never counted
            told = {"span_name": agent.name, "scope": agent.scope, "span_id": agent.span_id}
            builder.event("span_usage", at, **told, input_total=agent.usage.context, output=agent.usage.output)
        if last is not None and last.status != "ok":
            builder.end("failed" if last.status == "error" else "interrupted", last.error or last.error_type, at)
        elif agent is not None and agent.status == "error":
            builder.end("failed", agent.error or "the agent's span ended with an error", at)
        elif not links:
            builder.end("unknown", "no model calls were received", at)
        elif builder.turns in builder.unanswered.values():
            if agent is not None and self._all_ran():
                builder.end("completed", "the agent ended after its last tool", at)
            else:
                builder.end("interrupted", "the last calls have no result", at)
        elif builder.last.stop_reason in _WANTS_TOOLS:
            builder.end("unknown", "it ended asking for tools; what followed was not received", at)
        else:
            builder.end(
                builder.last.end or "completed", builder.last.stop_reason or "the last answer calls no tool", at
            )

    def _all_ran(self) -> bool:
        """The last turn's calls have all run, none with an error."""
        asked = self._run.asked[-1] if self._run.asked else []
        spans = [a.spans[-1] for a in asked if a.spans]
        return len(spans) == len(asked) and all(t.is_error is not True for t in spans)

    def _kept(self, call: ModelCall) -> int:
        if call.mode != "full":
            return 0
        kept = 0
        for old, new in zip(self._messages, call.messages, strict=False):
            if old is not new and old != new:
                break
            kept += 1
        return kept

    def _seen(self, result: SeenResult, key: str, call: ModelCall) -> None:
        name = result.call
        if not self._builder.owns(name):
            name = name or next(iter(self._builder.unanswered), "")
        can_tell = call.lossless and call.api == anthropic.API  # the others have no mark for it
        told_error = result.is_error if result.is_error or can_tell else None
        known = self._builder.result(
            name, key=key, path=result.path, is_error=told_error, at=call.started_at, join=False
        )
        if not known:
            self._notes.counts["results_without_call"] += 1

    def _flags(self, number: int, link: Link) -> list[str]:
        missing = link.place.missing
        flags = [*link.call.flags, *link.flags]
        for flag in flags:
            self._notes.counts[flag] += 1
        if missing:
            flags.append(f"parent {missing} not received")
        for asked in self._run.asked[number - 1]:
            for tool in asked.spans:
                flags += [*tool.flags, *self._orphan(tool)]
        for tool in self._run.loose.get(number, ()):
            flags += [*tool.flags, *self._orphan(tool)]
        return list(dict.fromkeys(flags))

    def _orphan(self, tool: ToolSpan) -> list[str]:
        missing = self._tree.place(tool).missing
        return [f"parent {missing} not received"] if missing else []

    def _tools(self, number: int) -> None:
        asked = self._run.asked[number - 1] if self._run.asked else []
        for one in asked:
            for tool in one.spans[:1]:
                self._ran(one.call.id, tool)
            for tool in one.spans[1:]:
                self._builder.event("tool_detail", tool.started_at, **_detail(tool))
        loose = self._run.loose
        turns = sorted(loose) if not self._run.chain.links else [number]
        for index, tool in enumerate((t for n in turns for t in loose.get(n, ())), 1):
            self._unasked(tool, number, index)

    def _unasked(self, tool: ToolSpan, number: int, index: int) -> None:
        """A tool that no known answer asked for becomes a call of the turn before it."""
        name = tool.call or f"tool:{number}.{index}"
        raw = tool.arguments if isinstance(tool.arguments, str) else dumped(tool.arguments or {})
        self._builder.unasked(name, tool.name, raw if tool.arguments is not None else None)
        self._ran(name, tool)

    def _ran(self, call: str, tool: ToolSpan) -> None:
        facts: dict[str, Any] = {
            "is_error": tool.is_error,
            "error_class": tool.error_class,
            "result": tool.result if tool.result is not None else tool.error,
            "state": "done",
        }
        known = {k: v for k, v in facts.items() if v is not None}
        self._builder.measured(call, tool.started_at, tool.ended_at, **known)


def _detail(tool: ToolSpan) -> Mapping[str, Any]:
    told = {"tool": tool.name, "scope": tool.scope, "span_id": tool.span_id, "error": tool.error}
    if tool.started_at is not None and tool.ended_at is not None:
        told["ms"] = str((tool.ended_at - tool.started_at) / 1000)
    return {k: v for k, v in told.items() if v is not None}


def _start(run: Assembled) -> int | None:
    agent = run.agent.started_at if run.agent else None
    calls = [x.call.started_at for x in run.chain.links if x.call.started_at is not None]
    tools = [t.started_at for ts in run.loose.values() for t in ts if t.started_at is not None]
    first = min(calls or tools, default=None)
    if agent is not None and (first is None or agent <= first) and not run.chain.parent:
        return agent
    return first


def _name(run: Assembled) -> str | None:
    if run.agent:
        return run.agent.name
    first = run.chain.links[0].call if run.chain.links else None
    if first and first.service:
        return first.service
    tools = [t for ts in run.loose.values() for t in ts]
    return tools[0].service if tools else None


def _title(run: Assembled) -> str | None:
    """The first prompt."""
    if not run.chain.links:
        return None
    for kind, who, content in run.chain.links[0].said:
        if kind == "text" and who == "user":
            return content.strip().splitlines()[0][:200] if content.strip() else None
    return None


def _one(*values: str | None) -> str | None:
    return next((v for v in values if v), None)
