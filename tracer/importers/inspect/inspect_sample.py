"""One sample of an Inspect log as a run: model events are turns, tool events measure calls, the score is the outcome."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import tape
from ...canonical import stable_id
from ...providers.answer import count, mapping, objects, text_of
from ..builder import RunBuilder
from ..reading import micros
from ..report import Notes
from . import inspect_messages as said
from .inspect_log import Log, identity, outcome, run_facts
from .inspect_parts import Parts
from .inspect_repeats import Keys, digest
from .inspect_spans import EVENTS, Place, Spans, flat

MAX_MESSAGES = 100_000  # of one request: ranges of a pool can name the same messages over and over


@dataclass(slots=True)
class Thread:
    """A conversation of the sample: the agent's own, that of a sub-agent, or that of a scorer's model."""

    run: RunBuilder
    history: list[bytes] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    context: str | None = None
    compacted: bool = False


def records(log: Log, parts: Parts, notes: Notes) -> Iterator[tape.Record]:
    """The records of a sample and of the runs inside it."""
    reader = _Reader(log, parts, notes)
    if any(e.get("event") == "model" for e, _ in flat(parts.events.glimpsed())):
        yield from reader.replayed()
    else:
        yield from reader.from_messages()


class _Reader:
    def __init__(self, log: Log, parts: Parts, notes: Notes) -> None:
        self.log = log
        self.parts = parts
        self.sample = parts.head
        self.notes = notes
        self.attachments = said.Attachments(parts.texts)
        self.keys = Keys(parts.pool, self._message)
        self.run = identity(log, self.sample)
        self.threads: dict[str | None, Thread] = {}
        self.owners: dict[str, tuple[Thread, int]] = {}
        self.spans = Spans()
        self.tokens = 0
        self.last_at: int | None = None

    def replayed(self) -> Iterator[tape.Record]:
        """The sample from its events."""
        began, ended = (micros(self.sample.get(f"{name}_at")) for name in ("started", "completed"))
        if began is None or ended is None:  # logs of 2024 and before
            times = [at for e in self.parts.events.glimpsed() if (at := micros(e.get("timestamp"))) is not None]
            began, ended = began or min(times, default=None), ended or max(times, default=None)
        self._begin(began)
        for event, call in flat(self.parts.events):
            self.last_at = micros(event.get("completed")) or micros(event.get("timestamp")) or self.last_at
            self._event(event, call)
            for thread in self.threads.values():
                yield from thread.run.drain()
        yield from self._finish(ended)

    def from_messages(self) -> Iterator[tape.Record]:
        """The sample from its last message list, where the events were not logged: no times, hardly any usage."""
        main = self._begin(micros(self.sample.get("started_at")))
        answers = sum(m.get("role") == "assistant" for m in self.parts.messages.glimpsed())
        self.notes.warn("samples without model events: turns come from the messages, without times and mostly usage")
        for given in self.parts.messages:
            if given.get("role") != "assistant":
                self._hear(main, self._message(given), given, None)
                continue
            answers -= 1
            output: dict[str, Any] = {"choices": [{"message": given}], "model": given.get("model")}
            whole = mapping(self.sample.get("output"))
            if not answers and self._is_output(whole, given):
                output = whole
            self._turn(main, {"model": self.log.model, "output": output}, Place())
            yield from main.run.drain()
        yield from self._finish(micros(self.sample.get("completed_at")))

    def _begin(self, at: int | None) -> Thread:
        self.notes.runs[self.run] = None
        facts = run_facts(self.log, self.sample, self.attachments)
        main = Thread(RunBuilder(self.run, api=said.API, provider="", source="inspect", started_at=at, **facts))
        self.threads[None] = main
        return main

    def _finish(self, at: int | None) -> Iterator[tape.Record]:
        """Results that no request shows any more, the outcome, how it ended."""
        main = self.threads[None]
        for given in self.parts.messages:
            if given.get("role") == "tool" and text_of(given.get("tool_call_id")) in main.run.unanswered:
                self._hear(main, self._message(given), given, None)
                yield from main.run.drain()
            self.notes.counts["messages"] += 1
            self.notes.counts["tool_errors"] += said.tool_error(given.get("error")) is not None
            self.notes.counts["prompts"] += given.get("source") in ("input", "operator")
        found = outcome(self.log, self.attachments.resolved(self.sample.get("scores")))
        if found:
            main.run.update(outcome=found)
        self._warn(main)
        error, limit = mapping(self.sample.get("error")), mapping(self.sample.get("limit"))
        if error:
            main.run.end("failed", text_of(error.get("message")) or "the sample failed", at)
        elif limit:
            main.run.end("limit", f"{limit.get('type')} limit of {limit.get('limit')}", at)
        elif not main.run.turns:
            main.run.end("unknown", "no model call in it", at)
        else:
            main.run.end(at=at)
        self._count(main)
        for key, thread in self.threads.items():
            if key is not None:
                thread.run.end(at=self.last_at)
                self.notes.counts["sub_agent_turns"] += thread.run.turns
                self.notes.counts["sub_agent_calls"] += thread.run.calls
            yield from thread.run.drain()

    def _count(self, main: Thread) -> None:
        self.notes.turns += main.run.turns
        self.notes.tool_calls += main.run.calls
        self.notes.counts["sub_agents"] += len(self.threads) - 1

    def _warn(self, main: Thread) -> None:
        if self.attachments.missing:
            self.notes.warn("texts that the log replaced by attachments are missing in it: the references stand there")
        if self.attachments.refused:
            limit = said.MAX_ATTACHED >> 20
            self.notes.warn(f"attachments of a message with more than {limit} MB were left out: the references stand")
        whole = sum(
            count(u.get("total_tokens")) or 0 for u in objects([*mapping(self.sample.get("model_usage")).values()])
        )
        if whole > self.tokens:
            text = f"the log counts {whole - self.tokens:,} tokens more for this sample than its model calls show"
            main.run.update(warnings=[text])
            self.notes.warn("samples whose own token sum is more than their model calls show: see the runs' warnings")

    # -- events ----------------------------------------------------------------------------------------------

    def _event(self, event: Mapping[str, Any], nested: str | None) -> None:
        kind = event.get("event")
        at = micros(event.get("timestamp"))
        if self.spans.take(event):
            return
        if kind == "model":
            place = self.spans.place(event, nested)
            self._model(self._thread(place, at), event, place)
        elif kind == "tool":
            self._tool(event, at)
        elif kind == "compaction":
            thread = self._thread(self.spans.place(event, nested), at)
            thread.compacted = True
            thread.run.event("compaction", at, **_detail(event, ("type", "tokens_before", "tokens_after", "source")))
        elif kind in ("error", "sample_limit", "interrupt") or (
            kind == "approval" and event.get("decision") not in ("approve", None)
        ):
            main = self.threads[None].run
            main.event(
                str(kind), at, **_detail(event, ("error", "type", "limit", "message", "decision", "explanation"))
            )
        elif not isinstance(kind, str) or kind not in EVENTS:
            self.notes.strange(f"event {str(kind)[:40]}")

    def _thread(self, place: Place, at: int | None) -> Thread:
        found = self.threads.get(place.thread)
        if found is None:
            owner, turn = self.owners.get(place.call or "", (self.threads[None], None))
            parent = {"run": owner.run.run, "turn": turn, "call": place.call if turn else None, "kind": "sub-agent"}
            run = stable_id("inspect", self.run, str(place.thread))
            self.notes.runs[run] = None
            facts = {
                "name": place.name,
                "agent": place.agent or place.name,
                "session": text_of(self.log.eval.get("run_id")),
            }
            builder = RunBuilder(
                run, api=said.API, provider="", source="inspect", started_at=at, parent=parent, **facts
            )
            found = self.threads[place.thread] = Thread(builder)
        return found

    def _model(self, thread: Thread, event: Mapping[str, Any], place: Place) -> None:
        at = micros(event.get("timestamp"))
        refs = event.get("input_refs")
        inputs: Sequence[tuple[bytes, Any]]
        if refs and not event.get("input"):
            inputs = [*itertools.islice(self.keys.of_pool(refs), MAX_MESSAGES)]
            if not inputs:
                self.notes.warn("model calls whose messages are not in the log's pool: their requests are empty")
        else:
            inputs = [(self.keys.of(m), m) for m in objects(event.get("input"))]
        pairs = zip(inputs, thread.history, strict=False)
        same = len([*itertools.takewhile(lambda pair: pair[0][0] == pair[1], pairs)])
        if same < len(thread.history):
            thread.run.restart(same)
            del thread.history[same:]
        for _, given in inputs[same:]:
            raw = self.parts.pool.at(given) if isinstance(given, int) else given
            self._hear(thread, self._message(raw), mapping(raw), at)
        self._context(thread, event)
        self._turn(thread, event, place)

    def _context(self, thread: Thread, event: Mapping[str, Any]) -> None:
        tools = said.tools(event.get("tools"))
        params = {**mapping(event.get("config")), "tool_choice": event.get("tool_choice") if tools else None}
        params = {k: v for k, v in params.items() if v is not None}
        text = said.dumps([tools, params])
        if text != thread.context:
            thread.context = text
            thread.run.context(tools=self.attachments.resolved(tools or []), params=params)

    def _turn(self, thread: Thread, event: Mapping[str, Any], place: Place) -> None:
        output = self.attachments.resolved(mapping(event.get("output")))
        raw = mapping(mapping(event.get("call")).get("response"))
        body = said.completion(output, text_of(raw.get("id")))
        answer = said.answer(output, body)
        provider, model = said.names(event.get("model"))
        error = text_of(event.get("error")) or answer.error
        pending = event.get("pending") is True
        flags = ["cached_response"] if event.get("cache") == "read" else []
        if flags:
            self.notes.warn("answers out of Inspect's own cache: their usage is that of the first time")
        if thread.compacted:
            flags, thread.compacted = [*flags, "compaction"], False
        said_back = body["choices"][0]["message"] if body["choices"] else None
        number = thread.run.turn(
            message=said_back,
            response=body if body["choices"] or not error else None,
            answer=answer,
            at=micros(event.get("timestamp")),
            ended_at=micros(event.get("completed")),
            model=model,
            provider=provider,
            status="interrupted" if pending else "error" if error else "ok",
            error=error,
            flags=flags,
            agent=place.agent,
            step=place.step,
            reported_cost_usd=_money(mapping(output.get("usage")).get("total_cost")),
        )
        if said_back is not None:
            thread.history.append(digest(said_back))
        for call in answer.calls:
            self.owners[call.id] = (thread, number)
        if retries := count(event.get("retries")):
            thread.run.event("model_retries", micros(event.get("timestamp")), count=retries)
        self.tokens += count(mapping(output.get("usage")).get("total_tokens")) or 0

    def _tool(self, event: Mapping[str, Any], at: int | None) -> None:
        call = text_of(event.get("id")) or ""
        self.spans.tool(event, call)
        ended = micros(event.get("completed"))
        if call not in self.owners:
            detail = {"function": text_of(event.get("function")), "call": call}
            self.threads[None].run.event("tool_without_call", at, **detail)
            return
        if ended is None:  # older logs tell one time only, and not which
            return
        error = said.tool_error(event.get("error"))
        more: dict[str, Any] = {"is_error": error is not None or event.get("failed") is True}
        if error:
            more["error_class"] = error.error_class
            more["state"] = "cancelled" if error.kind == "cancelled" else "done"
        if event.get("result") not in (None, "") or not error:
            more["result"] = self.attachments.resolved(event.get("result"))
        self.owners[call][0].run.measured(call, at, ended, **{k: v for k, v in more.items() if v is not None})

    # -- messages --------------------------------------------------------------------------------------------

    def _message(self, given: Any) -> dict[str, Any]:
        return said.message(self.attachments.resolved(mapping(given)))

    def _hear(self, thread: Thread, converted: dict[str, Any], raw: Mapping[str, Any], at: int | None) -> None:
        """A message of the history that is no answer just given."""
        thread.history.append(digest(converted))
        call = converted.get("tool_call_id")
        if converted["role"] != "tool" or not isinstance(call, str) or call in thread.answered:
            thread.run.message(converted, prompt=raw.get("source") in ("input", "operator"))
            return
        error = said.tool_error(raw.get("error"))
        known = thread.run.result(
            call,
            message=converted,
            path=said.result_path(converted),
            is_error=error is not None,
            error_class=error.error_class if error else None,
            at=at,
        )
        if known:
            thread.answered.add(call)
            self.notes.counts["tool_results"] += 1

    def _is_output(self, output: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        choices = objects(output.get("choices"))
        return bool(choices) and self._message(choices[0].get("message")) == self._message(given)


def _detail(event: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {n: event[n] for n in names if event.get(n) is not None}


def _money(value: Any) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if number else None
