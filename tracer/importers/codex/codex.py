"""Codex CLI rollouts, old and new: one JSON object a line, in two logs that tell most things twice.

`response_item` lines are what the model saw and said. `event_msg` lines are for display: they add how commands
ended, and in files that keep the words nowhere else they are the words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import stable_id
from ...model import Usage
from ...providers import openai_responses
from ...providers.answer import Answer, AnswerCall, mapping, objects, text_of
from ..builder import RunBuilder
from ..context import Context, Source
from ..numbers import Numbers
from ..reading import first_objects, micros
from ..reading import objects as objects_of
from ..report import Notes
from . import codex_display as display
from . import codex_lines as said
from .codex_origin import FORMAT, Origin, instructions
from .codex_turns import Entry, Turns

TITLE = "Codex CLI rollout"

_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "token_usage_record")
_PARAMS = ("model", "effort", "summary", "approval_policy", "sandbox_policy", "personality")


def recognise(head: bytes) -> bool:
    """True for lines of a known type whose content lies in ``payload``."""
    return any(v.get("type") in _KINDS and isinstance(v.get("payload"), dict) for v in first_objects(head))


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the one run that a rollout holds."""
    parts, growth = {"notes": notes, "context": context}, source.growth
    session: Session | None = growth.resumed(KEPT, parts) if growth is not None else None
    if session is not None:
        session.go_on()

    def keep() -> None:
        if growth is not None and session is not None:
            growth.keep(session, KEPT, parts, FORMAT)

    for number, line in objects_of(source.lines(), notes, at_end=keep):
        try:
            session = session or Session(line, notes, context)
            session.line(line)
        except RecursionError:
            notes.skip(number, "nested too deeply")
        if session is not None:
            yield from session.drain()
    if session is not None:
        session.finish(growing=growth is not None)
        yield from session.drain()


class Session:
    """One rollout while it is read. Its first line says whose it is."""

    def __init__(self, first: dict[str, Any], notes: Notes, context: Context) -> None:
        self._notes = notes
        self._context = context
        self._origin = Origin(first, context)
        facts = {**self._origin.facts, "parent": self._origin.parent_record()}
        self._run = RunBuilder(self._origin.run, api=openai_responses.API, source=FORMAT, **facts)
        self._run.context(system=self._origin.system)
        self._turns = Turns(self._run, notes)
        self._last_at: int | None = None
        self._title: str | None = None
        self._end: tuple[str, str] | None = None
        self._spawns: set[str] = set()
        self._strange = 0
        self._late: list[tape.Record] = []
        self._told = (0, 0)
        notes.runs[self._run.run] = None

    def runs(self) -> dict[str, int]:
        """The run and its turns so far."""
        return {self._run.run: self._run.turns}

    def go_on(self) -> None:
        """The file has grown: what was counted up to here is not counted again."""
        self._told = (self._run.turns, self._run.calls)
        self._notes.runs[self._run.run] = None

    def drain(self) -> Iterator[tape.Record]:
        """The records so far; each once."""
        yield from self._run.drain()
        late, self._late = self._late, []
        yield from late

    def line(self, line: dict[str, Any]) -> None:
        """One object of the file."""
        at = micros(line.get("timestamp"))
        kind, payload = line.get("type"), line.get("payload")
        if not isinstance(kind, str) or not isinstance(payload, dict):
            self._unknown("line without type and payload", line, at)
            return
        if at is not None:
            self._last_at = at if self._last_at is None else max(at, self._last_at)
        if kind == "session_meta":
            if self._origin.again(payload):
                self._late.append({"kind": "run_start", "run": self._run.run, "parent": self._origin.parent_record()})
            return
        self._turns.inherited = self._origin.copied(payload, at)
        if kind == "turn_context":
            self._turn_context(payload)
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "compacted":
            self._compacted(payload, at)
        elif kind == "token_usage_record":
            self._usage(payload, at)
        elif kind == "event_msg":
            self._event(payload, at)
        else:
            self._unknown(kind[:80], line, at)

    def finish(self, *, growing: bool = False) -> None:
        """The end of the file; of one that is ``growing`` an answer without usage is not over."""
        run, notes = self._run, self._notes
        if growing:
            self._turns.preview()
        else:
            self._turns.close()
        notes.turns += run.turns - self._told[0]
        notes.tool_calls += run.calls - self._told[1]
        notes.counts["calls_without_result"] += len(run.unanswered)
        warnings = self._warnings()
        known = self._context.ended.get(run.run)
        if known is not None and self._last_at is not None and self._last_at < known:
            return  # the store holds a longer copy: nothing is said about the end
        run.update(title=self._title, warnings=warnings or None)
        run.end(*self._ending(), self._last_at)

    def _turn_context(self, payload: dict[str, Any]) -> None:
        params = {k: payload[k] for k in _PARAMS if payload.get(k) is not None}
        self._turns.model(text_of(payload.get("model")))
        self._run.context(system=instructions(payload), params=params or None)

    def _item(self, item: dict[str, Any], at: int | None) -> None:
        kind = said.kind_of(item)
        if kind is None:
            self._unknown(f"response_item {str(item.get('type'))[:60]}", item, at)
            return
        if kind == "quiet":
            return
        call = text_of(item.get("call_id"))
        if call and kind == "said" and "spawn" in str(item.get("name")):
            self._spawns.add(call)
        self._turns.item(kind, item, at)
        if kind == "heard":
            self._prompted(item)
        elif kind == "result" and call in self._spawns:
            self._note_agents(str(call), item)

    def _prompted(self, item: dict[str, Any]) -> None:
        if said.is_prompt(item):
            self._title = self._title or said.title_of(item)
            self._end = None

    def _note_agents(self, call: str, item: dict[str, Any]) -> None:
        """Remembers which threads a call began, for their own files."""
        for name in said.spawned(item):
            self._context.agents[FORMAT, name] = call
            turn = self._run.owner(call) or self._run.turns + 1
            self._context.calls[call] = (self._run.run, turn)
            child = stable_id(FORMAT, name)
            if child in self._context.unlinked:  # it came in before its call had a result
                self._context.unlinked.discard(child)
                parent = {"run": self._run.run, "turn": turn, "call": call, "kind": "sub-agent"}
                self._late.append({"kind": "run_start", "run": child, "parent": parent})

    def _usage(self, payload: dict[str, Any], at: int | None) -> None:
        if not self._origin.owns(text_of(payload.get("thread_id"))) and not self._turns.inherited:
            self._notes.counts["records_of_other_threads"] += 1
            return
        self._turns.recorded(payload, at)

    def _compacted(self, payload: dict[str, Any], at: int | None) -> None:
        history, summary = payload.get("replacement_history"), text_of(payload.get("message"))
        items: list[Any] = objects(history)
        if not items and summary:
            items = [said.message("user", [summary])]
        self._turns.restart(items)
        self._run.event("compaction", at, summary=summary, window=payload.get("window_number"), messages=len(items))
        self._notes.counts["compactions"] += 1
        if not isinstance(history, list):
            self._notes.warn("compactions in old rollouts keep only the summary: the request after one may hold more")

    def _event(self, payload: dict[str, Any], at: int | None) -> None:
        kind = text_of(payload.get("type")) or ""
        if kind == "token_count":
            if isinstance(payload.get("info"), dict):
                self._turns.counted(payload["info"], at)
        elif kind == "token_usage_record":
            self._usage(payload, at)
        elif kind == "item_completed":
            self._shown_item(mapping(payload.get("item")), payload, at)
        elif kind in display.LEGACY_WORDS:
            texts = [t for t in (text_of(payload.get("message")), text_of(payload.get("text"))) if t]
            self._show(kind, said.message(display.LEGACY_WORDS[kind], texts), at)
        elif kind in display.LEGACY_COMMANDS:
            self._turns.command(str(payload.get("call_id")), None, display.facts(payload, payload, at))
        elif not self._boundary(kind, payload, at) and not said.is_quiet(kind):
            self._unknown(f"event_msg {kind[:60]}", payload, at)

    def _boundary(self, kind: str, payload: dict[str, Any], at: int | None) -> bool:
        """Events that end or undo something; False for others."""
        if kind in ("task_complete", "turn_complete"):
            self._turns.close()
            self._end = ("completed", "task complete")
        elif kind == "turn_aborted":
            self._turns.close(aborted=True)
            self._run.event(kind, at, reason=payload.get("reason"))
            self._end = ("interrupted", "aborted")
        elif kind in ("error", "stream_error", "warning"):
            self._run.event("warning" if kind == "warning" else "api_error", at, error=payload)
            if kind == "error":
                self._turns.close()
                self._end = ("failed", text_of(payload.get("message")) or "the client reported an error")
        elif kind == "thread_rolled_back":
            self._turns.rolled_back(said.count(payload.get("num_turns")) or 0)
            self._run.event("rolled_back", at, prompts=payload.get("num_turns"))
        elif kind == "thread_name_updated":
            self._title = text_of(payload.get("thread_name")) or self._title
        else:
            return False
        return True

    def _shown_item(self, item: dict[str, Any], payload: dict[str, Any], at: int | None) -> None:
        kind, name = text_of(item.get("type")) or "", text_of(item.get("id"))
        if kind in display.WORDS:
            self._show("item", said.message(display.WORDS[kind], said.words(item), name), at)
        elif kind in display.COMMANDS:
            facts = display.facts(item, payload, at)
            by_user = str(item.get("source")).startswith("user")
            made = None if by_user or name is None else display.made(kind, name, item)
            if not self._turns.command(name or "", made, facts):
                self._notes.counts["commands_without_call"] += 1
                detail = {k: v for k in ("command", "aggregated_output") if (v := item.get(k)) is not None}
                self._run.event("command", at, **detail, exit_code=facts.get("exit_code"))

    def _show(self, source: str, item: dict[str, Any], at: int | None) -> None:
        self._turns.show(source, item, at)
        if item.get("role") == "user":
            self._prompted(item)

    def _unknown(self, kind: str, raw: dict[str, Any], at: int | None) -> None:
        """What nobody here knows is counted and kept as it is."""
        self._notes.strange(kind)
        self._strange += 1
        self._run.event("not_understood", at, record=raw)

    def _warnings(self) -> list[str]:
        notes, found = self._notes, []
        if self._strange:
            kinds, many = len(notes.unknown), "s" * (self._strange != 1)
            notes.warn(f"not understood: {self._strange} record{many} of {kinds} type{'s' * (kinds != 1)}")
        if self._turns.unplaced:
            found = ["the counters of the file hold more tokens than its turns"]
            notes.warn(f"{found[0]} ({self._turns.unplaced:,}): part of the session is not in it")
        if missing := notes.counts["turns_without_usage"]:
            notes.warn(f"no usage in the file for {missing} of {self._run.turns} turns")
        return found

    def _ending(self) -> tuple[str, str]:
        run, turns = self._run, self._turns
        if self._end is not None and not (turns.waiting and self._end[0] == "completed"):
            return self._end
        if run.unanswered:
            return "interrupted", f"no result for {', '.join(list(run.unanswered)[:3])}: the run ended before it came"
        if turns.waiting:
            return "interrupted", "the last prompt has no answer"
        if not run.turns:
            return "unknown", "no model call in the file"
        if any(not c.provider_side for c in run.last.calls) and not run.last.text:
            if turns.refused:
                return "halted", "the user refused the last call"
            return "interrupted", f"no request follows the results of turn {run.turns}"
        return "completed", "the file ends with an answer"


# what a session consists of
KEPT = (Session, Origin, RunBuilder, Turns, Entry, Numbers, Answer, AnswerCall, Usage)
