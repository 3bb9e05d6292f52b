"""A whole recorded run again, offline, without its program: every next request is made anew and held against the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...tracer import substitute
from ...tracer.clock import new_id
from ...tracer.errors import LooptapeStop, UsageError
from ...tracer.live import OpenRun, OpenTurn, where
from ...tracer.providers import Provider, by_api
from ...tracer.recorder import Recorder
from ...tracer.streams import sse_events
from ...tracer.substitute import Asked, Reply, ToolAsked
from ..matching import part_path
from ..player import tape_runs
from ..player.events import Events
from ..player.player import Player
from ..player.recorded import RecordedRun, RecordedRuns, RecordedTurn
from ..player.scope import covered_by
from ..player.settings import ReplaySettings
from ..verdict import Verdict, judge
from .conversation import Conversation
from .outcome import Ending
from .rebuilding import Rebuilt, next_messages, told_result
from .record import RunRecord
from .tools.execution import Wanted

if TYPE_CHECKING:
    from ...tracer.store import Store


def replay_run(
    store: Store, run: str, settings: ReplaySettings, *, recorder: Recorder | None = None
) -> tuple[str | None, Verdict]:
    """The id of the new run and the verdict of replaying a stored run whole; see `replay_recorded`."""
    from ...tracer.store.export import records_of

    recorded = tape_runs.read(records_of(store, run), f"run {run}")
    return replay_recorded(recorded, settings, recorder=recorder)


def replay_recorded(
    recorded: RecordedRuns, settings: ReplaySettings, *, recorder: Recorder | None = None
) -> tuple[str | None, Verdict]:
    """Replays every run of a recording: answers and tool results from it, each next request made from them.

    What a loop cannot know is taken from the recording: the user's words, system, tools and parameters, a history that
    the program rewrote, and the form that it gave to results that are no text. All else must come out as recorded.

    Raises:
        UsageError: Something live was asked for, which needs the program or a fork.
    """
    _offline_only(settings)
    events = Events()
    settings = replace(settings, unwrapped="run")  # the loop asks for every call itself
    player = Player(recorded, settings, events)
    former = substitute.install(player)
    made: dict[str, OpenRun] = {}
    try:
        for run in recorded.runs:
            if run.id not in _inside_calls(recorded):
                made[run.id] = _Driver(recorded, run, player, events, settings, recorder).drive(made)
    except LooptapeStop:
        pass  # the events tell it
    finally:
        substitute.install(former)
    first = next((e["run"] for e in events.all() if e["event"] == "opened"), None)
    return first, judge(recorded, settings, events.all())


class _Driver:
    """Replays one run."""

    def __init__(
        self,
        recorded: RecordedRuns,
        run: RecordedRun,
        player: Player,
        events: Events,
        settings: ReplaySettings,
        recorder: Recorder | None,
    ) -> None:
        self._recorded = recorded
        self._source = run
        self._player = player
        self._events = events
        self._settings = settings
        self._recorder = recorder
        self._rest: tuple[tuple[str | None, str | None, str | None], dict[str, Any]] | None = None

    def drive(self, made: dict[str, OpenRun]) -> OpenRun:
        """Every turn of it, as a new run.

        Raises:
            LooptapeStop: It parted from the recording.
        """
        source = self._source
        opened = OpenRun(id=new_id(), explicit=True, name=source.name)
        above = self._recorded.parent_of(source.id)
        if above is not None and above[0] in made:
            parent = made[above[0]]
            opened.parent = {"run": parent.id, "turn": above[1], "call": above[2], "kind": "sub-agent"}
        api = next((t.api for t in source.turns), "manual")
        record = RunRecord(opened, api, self._recorder)
        record.open()
        token = where.set(record.where)
        ending = Ending("model", _STATUS.get(source.status or "", "completed"), source.reason or "the recording ends")
        try:
            self._turns(record)
        except LooptapeStop as stop:
            ending = Ending("miss", "halted", str(stop).removeprefix("looptape: ").splitlines()[0])
            raise
        finally:
            where.reset(token)
            record.end(ending)
        return opened

    def _turns(self, record: RunRecord) -> None:
        before: RecordedTurn | None = None
        conversation: Conversation | None = None
        response: dict[str, Any] | None = None
        for turn in self._source.turns:
            if not turn.answered:
                break
            if before is None or conversation is None or before.api != turn.api:
                conversation = Conversation(
                    turn.api, {**self._parts(turn), by_api(turn.api).LIST_KEY: self._texts(turn.hashes)}
                )
                sent: dict[str, Any] = {}
            else:
                sent = self._next(conversation, before, turn, response)
            response = self._ask(record, turn, conversation, sent)
            before = turn if response is not None or turn is self._source.turns[-1] else before
            self._calls(record, turn)

    def _next(
        self, conversation: Conversation, before: RecordedTurn, turn: RecordedTurn, response: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Brings the conversation to this turn's request; gives what stands in the body beside it."""
        conversation.rest = self._parts(turn)
        kept = len(before.hashes)
        if turn.hashes[:kept] != before.hashes:
            self._events.add(
                "note", text=f"turn {turn.number}: the program rewrote its history, which was taken as recorded"
            )
            conversation.cut(0, len(conversation.messages), self._texts(turn.hashes))
            return {}
        tail = self._texts(turn.hashes[kept:])
        done = [told_result(c, tail) for c in before.calls if c.has_result]
        made: Rebuilt = next_messages(turn.api, response, done, tail)
        for index, rule in made.adopted:
            path = f"{by_api(turn.api).LIST_KEY}[{kept + index}]"
            self._events.add("normalised", run=turn.run, turn=turn.number, path=path, rule=rule)
        conversation.add(made.messages)
        if turn.mode == "full":
            return {}
        key = "previous_response_id" if turn.mode == "previous_response" else "previous_message_id"
        fresh = made.messages[made.echoes :]
        return {by_api(turn.api).LIST_KEY: fresh, **({key: response["id"]} if response and response.get("id") else {})}

    def _ask(
        self, record: RunRecord, turn: RecordedTurn, conversation: Conversation, sent: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The recorded answer to the request as it was made now, after as many attempts as were recorded."""
        stream = {"stream": True} if turn.stream else {}
        listed = sent.pop(by_api(turn.api).LIST_KEY, None)
        if listed is not None:  # the server holds the earlier messages: they are not on the wire
            raw = json.dumps({**conversation.rest, **stream, **sent, by_api(turn.api).LIST_KEY: listed}).encode()
        else:
            raw = conversation.raw(**stream, **sent)
        opened = record.ask(raw)
        attempts: list[dict[str, Any]] = []
        for number in range(1, len(turn.attempts) + 1):
            try:
                reply = self._player.answer(_asked(by_api(turn.api), opened, raw, number))
            except LooptapeStop as stop:
                record.failed(opened, stop, type(stop).__name__, attempts, cancelled=True)
                raise
            attempts.append(_attempt(reply))
            body = _body(by_api(turn.api), reply, turn.stream)
            if body is not None:
                record.answered(opened, body, attempts, recorded=True)
                return body
        said = attempts[-1] if attempts else {"error": "no answer", "error_type": None}
        failure = RuntimeError(str(said["error"]))
        opened.served = True
        record.failed(opened, failure, str(said["error_type"] or "error"), attempts, cancelled=False)
        return None

    def _calls(self, record: RunRecord, turn: RecordedTurn) -> None:
        for call in turn.calls:
            if not call.has_result:
                continue
            asked = ToolAsked(call.name, call.arguments, record.run, record.run.turns, call.id)
            reply = self._player.tool(asked)
            raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
            token = record.started(Wanted(call.id, call.name, raw), None, "recorded" if reply is None else reply.origin)
            record.ended(token, told_result(call, ()).result)

    def _parts(self, turn: RecordedTurn) -> dict[str, Any]:
        """The body beside its messages: the program's own, taken as recorded."""
        if self._rest is not None and self._rest[0] == turn.parts:
            return self._rest[1]
        system, tools, params = (None if k is None else json.loads(self._recorded.texts[k]) for k in turn.parts)
        rest = dict(params) if isinstance(params, dict) else {}
        for name, value in ((part_path(turn.api, "system"), system), (part_path(turn.api, "tools"), tools)):
            if value is not None:
                rest[name] = value
        self._rest = (turn.parts, rest)
        return rest

    def _texts(self, hashes: Sequence[str]) -> list[Any]:
        return [json.loads(self._recorded.texts[h]) for h in hashes]


_STATUS = {s: s for s in ("completed", "limit", "halted", "failed", "interrupted")}


def _offline_only(settings: ReplaySettings) -> None:
    live = settings.model != "recorded" or settings.tools != "recorded" or settings.on_miss == "live"
    live = live or any(how != "recorded" for how in settings.tool.values())
    if live or settings.from_turn not in (None, 1):
        raise UsageError(
            "needs-a-fork",
            "without its program a run is replayed whole and from the recording alone",
            "Go on live from a turn with: looptape fork RUN:N",
        )


def _inside_calls(recorded: RecordedRuns) -> set[str]:
    """Runs of sub-agents that a recorded call's tool made: the call's result stands for them."""
    return {t.run for c in recorded.calls() if c.has_result for t in covered_by(recorded, c)}


def _asked(provider: Provider, turn: OpenTurn, raw: bytes, attempt: int) -> Asked:
    said = turn.wording
    if said is None:
        raise RuntimeError("nobody stands in for the model")
    return Asked(
        provider, "", {}, raw, turn.run, turn, attempt, said.hashes, said.fresh, said.parts, said.model, said.stream,
        said.mode, said.part_hashes,
    )  # fmt: skip


def _body(provider: Provider, reply: Reply | None, stream: bool) -> dict[str, Any] | None:
    """The response body of a reply; None where it is a failure."""
    if reply is None or reply.status is None or reply.status >= 300 or reply.error is not None:
        return None
    text = b"".join(reply.chunks).decode("utf-8", "replace")
    if reply.hold is not None:
        reply.hold.release()
    try:
        found = json.loads(text)
    except ValueError:
        found, _ = provider.assemble(sse_events(text)) if stream else (None, False)
    return found if isinstance(found, dict) else None


def _attempt(reply: Reply | None) -> dict[str, Any]:
    status = reply.status if reply is not None else None
    record: dict[str, Any] = {"status": status, "error": None, "error_type": None, "wait_ms": 0.0, "started_at": None}
    record |= {"ended_at": None, "request_id": None, "headers": {}}
    if reply is not None and reply.error is not None:
        record |= {"error": reply.error.message, "error_type": reply.error.kind}
    elif status is not None and status >= 300 and reply is not None:
        record |= {"error": b"".join(reply.chunks).decode("utf-8", "replace")[:500], "error_type": f"http_{status}"}
    return record
