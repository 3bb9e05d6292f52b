"""Answers a program's model calls and wrapped tools from a recording; stops, or goes live, where that was asked for."""

from __future__ import annotations

import atexit
import threading
from typing import Any

from ...tracer.canonical import canonical, digest
from ...tracer.fork_lock import renewed_in_children
from ...tracer.live import OpenRun
from ...tracer.providers import Provider
from ...tracer.shapes import again
from ...tracer.substitute import Asked, Reply, ToolAsked, ToolReply, registered
from . import normalise, raising, serving
from .differences import json_path, shown_both
from .events import Events
from .explain import Compared, Explainer, is_drift
from .ledger import Ledger, part_hashes
from .live import Caps, may_run, stub_value, with_model
from .normalise import NotJson, decoded
from .order import Order, model_item, tool_item
from .recorded import RecordedAttempt, RecordedCall, RecordedRuns, RecordedTurn
from .scope import Scope, covered_by
from .settings import ReplaySettings
from .stops import Miss, ReplayMismatch, ReplayStopped, UnwrappedTools


class Player:
    """Stands in for the model and the tools of this process. Safe to call from any thread.

    Args:
        recorded: What answers.
        settings: What is answered from it, and how strictly.
        events: Takes what happens; `verdict.judge` reads it.

    Raises:
        UsageError: A normaliser of the user's is not there.
    """

    def __init__(self, recorded: RecordedRuns, settings: ReplaySettings, events: Events) -> None:
        self._recorded = recorded
        self._settings = settings
        self._events = events
        self._lock = threading.RLock()
        self._ledger = Ledger(recorded, normalise.of(recorded, settings.match, settings.normalisers))
        self._explainer = Explainer(self._ledger, "the recording")
        self._scope = Scope(recorded, settings, self._ledger)
        self._order = Order(recorded, lambda text: events.add("note", text=text))
        self._caps = Caps(settings, lambda usd, model: events.add("live_cost", usd=usd, model=model))
        if settings.max_cost_usd is not None:
            atexit.register(self._caps.settle)  # so that other processes know what the last call cost
        self._checked = False
        self._sound: set[str] = set()
        self._live_turns: set[tuple[str, int]] = set()
        self._passed: dict[str, int] = {}
        self._roots: list[str] = []
        renewed_in_children(self)

    # -- the seam -----------------------------------------------------------------------------

    def renew(self) -> None:
        """In a forked child: another thread may have been answered just then."""
        self._lock = threading.RLock()
        self._order.renew()

    def prepare(self, provider: Provider, raw: bytes) -> bytes:
        """The request as it shall be recorded and sent: with another model's name where it will be live with that."""
        name = self._settings.model
        if name in ("recorded", "live"):
            return raw
        with self._lock:
            begun = self._scope.all_served()
        return with_model(provider, raw, name) if begun else raw

    def opened(self, run: OpenRun) -> None:
        """A run is about to be written: it is a replay, and its root is a fork of the recorded one."""
        with self._lock:
            run.source = "replay"
            self._scope.opened(run)
            if run.parent is None and self._recorded.roots:
                left = [r for r in self._recorded.roots if r.id not in self._roots] or list(self._recorded.roots)
                root = next((r for r in left if r.name == run.name), left[0])
                self._roots.append(root.id)
                above = root.original or root.id  # as it is called in a store
                run.parent = {"run": above, "turn": self._settings.from_turn or 1, "call": None, "kind": "fork"}
            self._events.add("opened", run=run.id, parent=run.parent)

    def answer(self, asked: Asked) -> Reply | None:
        """The recorded answer; None where the request is to be sent for real.

        Raises:
            ReplayMismatch: The request is not in the recording.
            UnwrappedTools, ReplayStopped: See there.
        """
        with self._lock:
            self._before_first()
            self._see_others()
            self._check_json(asked)
            self._ledger.texts.learn(asked)
            place = (asked.run.id, asked.turn.number)
            if place in self._live_turns:
                return None  # another attempt of what is live
            if asked.attempt > 1 and place in self._ledger.turns:
                return self._another_attempt(self._ledger.turns[place], asked)
            if self._scope.is_live(asked):
                self._send(asked)
                return None
            turn = self._matching(asked)
            return self._serve(turn, asked) if turn is not None else self._missed(asked)

    def tool(self, asked: ToolAsked) -> ToolReply | None:
        """The recorded result, or the stub; None where the tool is to run.

        Raises:
            ReplayMismatch: The call is not in the recording.
            ReplayStopped: It would run live, and may change something.
        """
        with self._lock:
            self._before_first()
            self._see_others()
            self._caps.settle()
            how = self._scope.tool(asked)
            call = self._ledger.call(asked) if how == "recorded" else None
            if call is not None and not call.has_result:
                how = self._settings.tool.get(asked.name, self._settings.tools)  # cut there: as what comes after
            if how.startswith("stub:"):
                return self._stub(asked, how.removeprefix("stub:"))
            if how == "live":
                self._run_tool(asked)
                return None
            if call is None:
                return self._missed_tool(asked, self._explainer.missed_tool(asked))
            if not call.has_result:
                return self._missed_tool(asked, self._explainer.unanswered(call))
            return self._serve_call(call)

    # -- model calls --------------------------------------------------------------------------

    def _matching(self, asked: Asked) -> RecordedTurn | None:
        for turn in self._ledger.candidates(asked):
            if (
                turn.hashes == asked.hashes
                and turn.parts == part_hashes(asked)
                and not self._strict_stream(turn, asked)
            ):
                return turn
            compared = self._explainer.compare(turn, asked)
            if not compared.real:
                self._accept(compared)
                return turn
        expected = self._ledger.expected(asked)
        if expected is not None and self._explainer.accepted:  # a miss was let pass: its echo is none
            compared = self._explainer.compare(expected, asked)
            if not compared.real:
                self._accept(compared)
                return expected
        return None

    def _strict_stream(self, turn: RecordedTurn, asked: Asked) -> bool:
        return self._settings.match == "exact" and turn.stream != asked.stream

    def _accept(self, compared: Compared) -> None:
        """Notes every difference that a rule lets pass, once."""
        self._explainer.accepted.update(compared.pairs)
        turn = compared.turn
        rules: dict[str, list[str]] = {}
        for difference in compared.differences:
            self._explainer.ids.keep(difference)
            if is_drift(difference):
                recorded, got = shown_both(difference.recorded, difference.got)
                self._events.add(
                    "drift", run=turn.run, turn=turn.number, path=json_path(difference.path), recorded=recorded, got=got
                )
            else:
                rules.setdefault(json_path(difference.path), []).extend(difference.rules)
        for path, names in rules.items():
            self._events.add(
                "normalised", run=turn.run, turn=turn.number, path=path, rule=", ".join(dict.fromkeys(names))
            )

    def _serve(self, turn: RecordedTurn, asked: Asked) -> Reply:
        self._note_bypassed(turn)
        place = self._ledger.give(turn, asked)
        attempt = turn.attempts[place]
        last = place + 1 == len(turn.attempts)
        if last:
            self._scope.served(turn.key)
        self._events.add(
            "served_model", run=turn.run, turn=turn.number, attempt=place + 1, last=last, digest=_attempt_digest(attempt),
            by=asked.run.id, by_turn=asked.turn.number,
        )  # fmt: skip
        return serving.reply(attempt, asked, self._order.hold(model_item(turn)) if last else None)

    def _another_attempt(self, turn: RecordedTurn, asked: Asked) -> Reply:
        if self._ledger.is_open(turn):
            return self._serve(turn, asked)
        miss = self._explainer.again(turn, asked)
        self._tell(miss, "stop")
        raise ReplayMismatch(miss)

    def _send(self, asked: Asked) -> None:
        name = self._settings.model
        if name not in ("recorded", "live") and asked.model != name and self._settings.from_turn is not None:
            self._stop(f"the first live turn would still ask {asked.model}, since not every turn before it was served")
        self._go_live(asked)

    def _go_live(self, asked: Asked) -> None:
        try:
            self._caps.one_more(asked.turn)
        except ReplayStopped as stop:
            self._events.add("stopped", reason=stop.reason)
            raise
        self._live_turns.add((asked.run.id, asked.turn.number))
        self._scope.lived(asked.run.id)
        self._events.add("live_model", by=asked.run.id, by_turn=asked.turn.number, model=asked.model)

    def _missed(self, asked: Asked) -> Reply | None:
        expected = self._ledger.expected(asked)
        miss, compared = self._explainer.missed(asked, expected)
        how = self._settings.on_miss
        if how == "warn" and (expected is None or compared is None):
            how = "stop"  # there is nothing left to answer with
        self._tell(miss, how)
        if how == "live":
            self._go_live(asked)
            return None
        if how == "warn" and expected is not None:
            self._explainer.accepted.update(self._explainer.compare(expected, asked).pairs)
            return self._serve(expected, asked)
        raise ReplayMismatch(miss)

    def _tell(self, miss: Miss, action: str) -> None:
        self._events.add(
            "miss", run=miss.run, turn=miss.turn, path=miss.path, paths=list(miss.paths), recorded=miss.recorded, got=miss.got,
            nearest=miss.nearest, cure=miss.cure, what=miss.what, action=action,
        )  # fmt: skip

    # -- tool calls ---------------------------------------------------------------------------

    def _serve_call(self, call: RecordedCall) -> ToolReply:
        self._ledger.give_call(call)
        inside = covered_by(self._recorded, call)
        for turn in inside:
            self._scope.served(turn.key)
        self._order.settle(*(model_item(t) for t in inside), *(tool_item(c) for t in inside for c in t.calls))
        self._events.add(
            "served_tool",
            run=call.run,
            turn=call.turn,
            call=call.id,
            name=call.name,
            digest=digest(canonical([call.value, call.error_type])),
        )
        hold = self._order.hold(tool_item(call))
        if call.error_type is not None:
            return ToolReply(
                error=raising.exception(call.error_type, call.error or "", (call.shape or {}).get("args")),
                hold=hold,
                gave=call.gave,
            )
        value, lost = again(call.value, call.shape)
        for kind in lost:
            self._events.add(
                "note", text=f"{call.name} gave a {kind}, which cannot be made here: its fields were given"
            )
        return ToolReply(value=value, hold=hold, gave=call.gave)

    def _missed_tool(self, asked: ToolAsked, miss: Miss) -> ToolReply | None:
        live = self._settings.on_miss == "live"
        self._tell(miss, "live" if live else "stop")  # a guessed result is none: warn stops here too
        if live:
            self._run_tool(asked)
            return None
        raise ReplayMismatch(miss)

    def _run_tool(self, asked: ToolAsked) -> None:
        named = self._settings.tool.get(asked.name) == "live"
        if not named and not may_run(self._side_effect(asked)):
            self._stop(
                f"{asked.name} would run live, and it changes something or does not say. Name it (--tool {asked.name}=live), "
                f"or give it a result (--tool {asked.name}=stub:TEXT)"
            )
        self._given_up(asked)
        self._events.add("live_tool", name=asked.name, turn=asked.turn, call=asked.call, stub=False)

    def _stub(self, asked: ToolAsked, text: str) -> ToolReply:
        values = [c.value for c in self._ledger.calls_named(asked.name) if c.has_result and c.error_type is None]
        self._given_up(asked)
        self._events.add("live_tool", name=asked.name, turn=asked.turn, call=asked.call, stub=True)
        return ToolReply(value=stub_value(text, values), origin="stub")

    def _given_up(self, asked: ToolAsked) -> None:
        """The recorded call that this one takes the place of is not waited for."""
        call = self._ledger.call(asked)
        if call is not None:
            self._ledger.give_call(call)
            self._order.settle(tool_item(call))

    def _side_effect(self, asked: ToolAsked) -> str | None:
        if asked.side_effect is not None:
            return asked.side_effect
        known = {c.side_effect for c in self._ledger.calls_named(asked.name)} - {None, "unknown"}
        return known.pop() if len(known) == 1 else None

    # -- other processes ----------------------------------------------------------------------

    def _see_others(self) -> None:
        """What another process of this replay was given is not given again."""
        for event in self._events.of_others():
            if event["event"] == "live_model":
                self._caps.turns += 1
            elif event["event"] == "live_cost":
                self._caps.cost(event["usd"], event["model"])
            turn = self._recorded.turn(str(event.get("run")), event.get("turn") or 0)
            if turn is None:
                continue
            if event["event"] == "served_model":
                self._ledger.given[turn.key] = max(self._ledger.given.get(turn.key, 0), event["attempt"])
                if event["last"]:
                    self._scope.served(turn.key)
                    self._order.settle(model_item(turn))
            elif event["event"] in ("served_tool", "bypassed", "replaced"):
                for call in (c for c in turn.calls if c.id == event["call"]):
                    self._ledger.give_call(call)
                    self._order.settle(tool_item(call))

    # -- checks -------------------------------------------------------------------------------

    def _before_first(self) -> None:
        """Before anything is answered: are the tools wrapped that would otherwise really run?"""
        if self._checked:
            return
        self._checked = True
        names = self._unwrapped()
        if names and self._settings.unwrapped == "stop":
            self._checked = False  # whoever asks next is stopped as well
            self._events.add("unwrapped", names=names)
            raise UnwrappedTools(names)

    def _unwrapped(self) -> list[str]:
        wrapped, dispatcher = registered()
        if dispatcher:
            return []
        exempt = {n for n, how in self._settings.tool.items() if how == "live"}
        names = {
            c.name
            for c in self._recorded.calls()
            if c.has_result and c.name not in wrapped | exempt and self._scope.is_asked(c)
        }
        return sorted(names)

    def _note_bypassed(self, turn: RecordedTurn) -> None:
        """The model goes on: results of the turns before that nobody asked for came from tools that ran by themselves."""
        if self._settings.unwrapped != "run":
            return
        run = self._recorded.run(turn.run)
        wrapped, _ = registered()
        passed = self._passed.get(turn.run, 0)
        self._passed[turn.run] = max(passed, turn.number - 1)
        for earlier in run.turns if run is not None else ():
            if passed < earlier.number < turn.number:
                self._bypass(earlier, wrapped)

    def _bypass(self, turn: RecordedTurn, wrapped: frozenset[str]) -> None:
        for call in turn.calls:
            if call.has_result and call.name not in wrapped and self._ledger.call_is_open(call):
                self._ledger.give_call(call)
                self._order.settle(tool_item(call))
                self._events.add("bypassed", run=call.run, turn=call.turn, call=call.id, name=call.name)

    def _check_json(self, asked: Asked) -> None:
        """Refuses NaN and infinities: a server would, and no comparison holds with them."""
        named = [(None, key, text) for key, text in asked.fresh.items()]
        parts = zip(normalise.PARTS, part_hashes(asked), asked.parts, strict=True)
        for part, key, text in [*named, *parts]:
            if text is None or key is None or key in self._sound:
                continue
            if "NaN" in text or "Infinity" in text:
                try:
                    decoded(text)
                except NotJson as error:
                    place = part or f"{asked.provider.LIST_KEY}[{asked.hashes.index(key)}]"
                    self._stop(f"the request of turn {asked.turn.number} holds {error} at {json_path(place)}")
            self._sound.add(key)

    def _stop(self, reason: str) -> Any:
        self._events.add("stopped", reason=reason)
        raise ReplayStopped(reason)


def _attempt_digest(attempt: RecordedAttempt) -> str:
    said = attempt.response if attempt.response is not None else attempt.body
    if said is None:
        said = "".join(text for _, text in attempt.chunks)
    return digest(canonical([attempt.status, said, attempt.error_type]))
