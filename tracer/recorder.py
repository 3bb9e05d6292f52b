"""The recorder of a process: requests, answers and results into journal records.

It is told what happened by the transport, the tool wrapper and the loop API, decides which run and
turn that belongs to, and writes at once. `process.py` holds the one of this process and keeps its
troubles away from the agent.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any

from . import endings, observers, records, spans, tape
from .blobs import Blobs
from .clock import new_id, now
from .journal import Journal
from .live import Chain, OpenRun, OpenTurn, PendingCall, Where, Wording, call_key
from .providers import Answer, Provider
from .redaction import redact
from .requests import Incoming, first_words, take_apart
from .routing import Chains, Route, find, strand
from .substitute import installed


class Recorder:
    """Everything that is open in this process, and the journal it is written to."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.journal = journal or Journal()
        self.lock = threading.RLock()
        self.content = self.journal.content
        self.pending: dict[str, list[PendingCall]] = {}
        self._chains = Chains()
        self._runs: dict[str, OpenRun] = {}
        self._blobs = Blobs(content=self.content)
        self._generation = self.journal.generation
        self._lost: set[tuple[str, int]] = set()
        self._adopted: dict[str, OpenRun] = {}

    # -- runs ---------------------------------------------------------------------------------

    def open_run(self, run: OpenRun, *, at: int | None = None, **more: Any) -> None:
        """Writes the start of a run. ``more``: title, task, tags."""
        with self.lock:  # what is said anew after a failed write must not change in the middle of another's request
            self._open_run(run, at, more)

    def _open_run(self, run: OpenRun, at: int | None, more: Mapping[str, Any]) -> None:
        run.span = spans.RunSpan(run.id, run.name, run.agent)
        run.generation = self._sync_generation()
        run.more = dict(more)
        standing_in = installed()
        if standing_in is not None:
            standing_in.opened(run)
        self._runs[run.id] = run
        self.journal.write([records.run_start(run, at or now(), more)])

    def end_run(self, run: OpenRun, status: str, reason: str | None) -> None:
        """Writes the end of a run; the conversations of an explicit one are over."""
        self._end_turn(run)
        observers.closing(run)
        if not self.content and status in ("failed", "halted"):
            reason = reason.partition(":")[0] if reason else None
        if self.journal.write([*self._loss(run), records.run_end(run, now(), status, reason)]):
            self._lost.clear()
        run.ended = True
        if run.explicit:
            self._chains.drop(run)
            self._forget(run, status, reason)

    def update_run(self, run: OpenRun, **more: Any) -> None:
        """Writes more about a run: outcome, tags, warnings."""
        self.journal.write([{"kind": "run_update", "run": run.id, "at": now(), **more}])

    def event(
        self, run: OpenRun, kind: str, turn: int | None, detail: Mapping[str, Any], *, redacted: bool = False
    ) -> None:
        """Writes what is no turn; redacts it, unless the caller has."""
        cleaned = detail if redacted else json.loads(redact(json.dumps(tape.plain(detail), ensure_ascii=False)))
        self.journal.write(
            [{"kind": "event", "run": run.id, "turn": turn, "at": now(), "event": kind, "detail": cleaned}]
        )

    def adopt(self, run: OpenRun) -> OpenRun:
        """The run to use for a context that came through a fork: a child run in this process."""
        if run.pid == os.getpid():
            return run
        with self.lock:  # threads of the child may come with the same run at once
            return self._adopted.get(run.id) or self._adopt(run)

    def _adopt(self, run: OpenRun) -> OpenRun:
        child = OpenRun(id=new_id(), explicit=run.explicit, name=run.name, session=run.session, agent=run.agent)
        self._adopted[run.id] = child
        child.parent = {"run": run.id, "turn": run.turns or None, "call": None, "kind": "sub-agent"}
        child.observers = run.observers
        self.open_run(child)
        return child

    def at_exit(self) -> None:
        """The process ends in good order: says how each open run ended, releases the journal."""
        with self.lock:
            for run in list(self._runs.values()):
                self._retire(run)
            self.journal.close()

    def after_fork(self) -> None:
        """In a forked child: a journal of its own; the parent's runs go on there, not here."""
        self.lock = threading.RLock()
        self.journal.after_fork()
        self._chains.clear()
        self._blobs.restart()
        self._runs.clear()
        self._adopted.clear()
        self._lost.clear()
        self.pending.clear()

    # -- requests -----------------------------------------------------------------------------

    def request(
        self,
        provider: Provider,
        raw: bytes,
        *,
        place: Where | None,
        url: str | None = None,
        retries: int = 0,
        agent: str | None = None,
    ) -> OpenTurn | None:
        """A model call is about to be made: finds its run, writes its turn. None when it cannot be read.

        Args:
            place: Where in the code's context it is made.
            retries: How often the SDK says that it has sent this request before.
            agent: Who asks, where that is not the run's agent.
        """
        at = now()
        with self.lock:
            route = find(self._chains, place, provider, raw, retries)
            if route.retry and route.run is not None and route.run.last is not None:
                observers.asking(route.run.observers, observers.NextCall(route.run, again=True))
                return self._again(route.run, route.run.last, at)
            self._sync_generation()
            base = route.chain or (route.run.chain if route.run else None)
            if base is not None and (base.generation != self._generation or base.api != provider.API):
                base = None  # earlier records may be missing: say everything again
            try:
                incoming = take_apart(provider, raw, base, extended=route.extended and base is not None)
            except ValueError:
                return None
            _let_watch(route, provider, incoming)
            run = route.run or self._new_run(route, provider, incoming, at)
            return self._begin(run, route, provider, incoming, base, at, url, agent)

    def _again(self, run: OpenRun, turn: OpenTurn, at: int) -> OpenTurn:
        """Another attempt of the same turn; a run that its failure had ended goes on."""
        turn.in_flight = True
        if run.ended and not run.explicit:
            run.ended = False
            self.journal.write([records.run_end(run, at, "running", None)])
        return turn

    def _begin(
        self,
        run: OpenRun,
        route: Route,
        provider: Provider,
        incoming: Incoming,
        base: Chain | None,
        at: int,
        url: str | None,
        agent: str | None,
    ) -> OpenTurn:
        written: list[tape.Record] = self._loss(run)
        if run.generation != self._generation:
            written.append(records.run_start(run, at, run.more))
            run.generation = self._generation
        self._blobs.seen = None if installed() is None else {}
        hashes = tuple(self._blobs.put(written, text) for text in incoming.texts)
        parts = self._parts(written, incoming, base)
        if route.run is not None:
            written += self._seen(run, provider, incoming, hashes, at)
        self._end_turn(run)
        run.turns += 1
        turn = OpenTurn(run, run.turns, at, provider.API, in_flight=True, strand=strand(), agent=agent)
        turn.flags = _flags(run, route, incoming)
        turn.span = spans.TurnSpan(run.id, turn.number, run.span, incoming.parts.model, provider.NAME)
        same_run = base if base is not None and base.run is run and incoming.kept else None
        written.append(records.turn_start(turn, provider, incoming, hashes, parts, same_run, url))
        if self.journal.write(written):
            self._lost.clear()
        else:
            self._lost.add((run.id, turn.number))
        run.last, run.ended = turn, False
        self._drop_pending(run)
        if self._blobs.seen is not None:
            turn.wording = self._wording(incoming, hashes, parts, base, self._blobs.seen)
            self._blobs.seen = None
        self._keep(run, route, provider, incoming, incoming.kept + hashes, parts, turn)
        if spans.exporting() and spans.wants_content():
            turn.content = (incoming.texts, incoming.parts.system, incoming.parts.tools)
        return turn

    def _keep(
        self,
        run: OpenRun,
        route: Route,
        provider: Provider,
        incoming: Incoming,
        hashes: tuple[str, ...],
        parts: records.Parts,
        turn: OpenTurn,
    ) -> None:
        """Remembers the conversation as this request has it, for the next one to be compared with."""
        chain = route.chain if route.chain is not None and route.run is not None else Chain(run=run, api=provider.API)
        chain.run, chain.turn, chain.body, chain.hashes, chain.parts = run, turn.number, incoming.body, hashes, parts
        chain.answer = chain.answer_text = None
        chain.part_texts = turn.wording.parts if turn.wording else None
        chain.generation = self._generation
        if not incoming.same_rest or chain.tools_key is None:
            chain.tools_key = json.dumps(incoming.parts.tools, sort_keys=True)
        chain.touch()
        run.chain = turn.chain = chain
        for old in self._chains.add(chain):
            if not old.run.explicit and old.run is not run:
                self._retire(old.run)

    def _wording(
        self,
        incoming: Incoming,
        hashes: tuple[str, ...],
        parts: records.Parts,
        base: Chain | None,
        seen: dict[str, str],
    ) -> Wording:
        """What the request says, for one who stands in for the model: what is known already is not redacted again."""
        fresh = {k: seen[k] if k in seen else redact(t) for k, t in zip(hashes, incoming.texts, strict=True)}
        texts = base.part_texts if incoming.same_rest and base is not None else None
        if texts is None:
            given = incoming.parts
            values = (given.system, given.tools, dict(given.params))
            texts = tuple(  # type: ignore[assignment]  # three, as there are parts
                None if key is None else seen[key] if key in seen else redact(json.dumps(value, ensure_ascii=False))
                for key, value in zip(parts, values, strict=True)
            )
        told = incoming.parts
        return Wording(incoming.kept + hashes, fresh, texts, parts, told.model, told.stream, told.mode)  # type: ignore[arg-type]

    def _seen(
        self, run: OpenRun, provider: Provider, incoming: Incoming, hashes: tuple[str, ...], at: int
    ) -> list[tape.Record]:
        """Results that come back belong to the turn that called."""
        found = []
        for message, key in zip(incoming.messages, hashes, strict=True):
            for result in provider.results(message):
                call = run.pending.pop(result.call, None)
                if call is not None:
                    self._unlist(call)
                    found.append(records.call_seen(call, result, key, at))
        return found

    def _new_run(self, route: Route, provider: Provider, incoming: Incoming, at: int) -> OpenRun:
        run = OpenRun(id=new_id(), explicit=False)
        if route.resume is not None:
            run.follow(route.resume)
        elif route.parent is not None:
            run.descend(*route.parent)
        run.session = run.session or run.id
        title = (
            next((first_words(m) for m in incoming.messages if provider.is_prompt(m)), None) if self.content else None
        )
        self.open_run(run, at=at, title=redact(title) if title else None)
        return run

    def _parts(self, written: list[tape.Record], incoming: Incoming, base: Chain | None) -> records.Parts:
        if incoming.same_rest and base is not None:
            return base.parts
        parts = incoming.parts
        system, tools, params = (
            None if value is None else self._blobs.put(written, json.dumps(value, ensure_ascii=False))
            for value in (parts.system, parts.tools, dict(parts.params))
        )
        return system, tools, params

    # -- answers ------------------------------------------------------------------------------

    def answered(
        self,
        turn: OpenTurn,
        text: str | None,
        answer: Answer,
        *,
        status: str = "ok",
        error: str | None = None,
        error_type: str | None = None,
        partial: bool = False,
        first_chunk_at: int | None = None,
    ) -> None:
        """GENERATE is over: writes what came, whole or not. May be called again for the same turn (a retry)."""
        if turn.run.pid != os.getpid():
            return  # a forked child holds a copy of its parent's open turn: the parent says how it ended
        at = now()
        with self.lock:
            self._sync_generation()
            run, chain = turn.run, turn.chain
            turn.in_flight, turn.status, turn.calls, turn.answer = False, status, answer.calls, answer
            turn.stop_reason, turn.end, turn.error, turn.error_type = answer.stop_reason, answer.end, error, error_type
            if not self.content:
                turn.error = error_type
            written: list[tape.Record] = []
            response = self._blobs.put(written, text) if text is not None else None
            if text is not None and '"signature"' in text and redact(text) != text:
                turn.flags.append("altered_signature")
            self._end_generate(turn, answer)
            written.append(
                records.turn_end(
                    turn, answer, response, at=at, partial=partial, first_chunk_at=first_chunk_at, content=self.content
                )
            )
            if chain is not None and chain.turn == turn.number:
                chain.answer, chain.answer_text = answer, text
                self._chains.answered(chain, answer.id)
            if status in ("ok", "abandoned"):
                self._await_calls(run, turn, answer)
            ending = endings.of_turn(turn)
            if ending is not None and not run.explicit:
                run.ended = True
                self._end_turn(run)
                written.append(records.run_end(run, at, *ending))
            if not self.journal.write(written):
                self._lost.add((run.id, turn.number))
            observers.answered(turn, answer)

    def _end_generate(self, turn: OpenTurn, answer: Answer) -> None:
        """Puts the answer on the turn's span; says so when the provider's limits cut something off."""
        if turn.span is None:
            return
        content: spans.Content = {}
        if turn.content is not None:
            content = {k: redact(v) for k, v in spans.content(*turn.content, answer).items()}
        if not turn.span.generated(answer, error_type=turn.error_type, error=turn.error, content=content):
            turn.flags.append("otel_attributes_cut")

    def _end_turn(self, run: OpenRun) -> None:
        if run.last is not None and run.last.span is not None:
            run.last.span.end()
            run.last.span = None

    def _await_calls(self, run: OpenRun, turn: OpenTurn, answer: Answer) -> None:
        for call in answer.calls:
            if call.provider_side or not call.id:
                continue
            pending = PendingCall(call.id, call.name, call_key(call.name, _loads(call.arguments_raw)), run, turn.number)
            run.pending[call.id] = pending
            self.pending.setdefault(pending.key, []).append(pending)

    # -- forgetting ---------------------------------------------------------------------------

    def _drop_pending(self, run: OpenRun) -> None:
        """The model went on, or the run is over: nobody will answer these calls any more."""
        for call in run.pending.values():
            self._unlist(call)
        run.pending.clear()

    def _unlist(self, call: PendingCall) -> None:
        waiting = self.pending.get(call.key)
        if waiting is not None and call in waiting:
            waiting.remove(call)
            if not waiting:
                del self.pending[call.key]

    def _retire(self, run: OpenRun) -> None:
        """Nothing more will come to this run (the process ends, or others took its place)."""
        ending = endings.of_process(run)
        if not run.ended:
            self.end_run(run, *ending)
        self._forget(run, *ending)

    def _forget(self, run: OpenRun, status: str, reason: str | None) -> None:
        self._end_turn(run)
        self._drop_pending(run)
        if run.span is not None:
            run.span.end(status, reason)
            run.span = None
        self._runs.pop(run.id, None)

    def _sync_generation(self) -> int:
        if self._generation != self.journal.generation:
            self._generation = self.journal.generation
            self._blobs.restart()
        return self._generation

    def _loss(self, run: OpenRun) -> list[tape.Record]:
        """After a failed write: how many turns are missing, said in the run that goes on."""
        if not self._lost:
            return []
        lost = len(self._lost)
        noun = "turn" if lost == 1 else "turns"
        return [{"kind": "run_update", "run": run.id, "at": now(), "warnings": [f"{lost} {noun} could not be stored"]}]


def _let_watch(route: Route, provider: Provider, incoming: Incoming) -> None:
    """Asks who watches the run whether this call may go out: a `LooptapeStop` of theirs goes to the program."""
    watched = route.run or (route.parent[0] if route.parent is not None else None)
    if watched is None or not watched.observers:
        return
    last = incoming.messages[-1] if incoming.messages else None
    call = observers.NextCall(
        route.run,
        tuple(r for m in incoming.messages for r in provider.results(m)),
        last if provider.is_prompt(last) else None,
        incoming.parts.tools,
        incoming.parts.model,
        route.run is not None and "compaction" in _flags(route.run, route, incoming),
    )
    observers.asking(watched.observers, call)


def _flags(run: OpenRun, route: Route, incoming: Incoming) -> list[str]:
    if route.run is None:
        return []
    if route.chain is not None:
        return list(incoming.flags)
    # in a `run()` block a request that extends nothing, after a longer conversation: its context was compacted
    return ["compaction"] if run.chain is not None and len(run.chain.hashes) > 2 else []


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
