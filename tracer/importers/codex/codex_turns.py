"""The items of a Codex rollout into turns: which of them are one answer, what it used, what was said twice.

A rollout does not say where an answer ends. Its usage does: newer versions write one record after each answer,
older ones a cumulative count, after the items or (up to about 0.50) before them. What stands between is one turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...canonical import digest
from ...model import Usage
from ...providers import openai_responses
from ...providers.answer import Answer, text_of
from ..builder import RunBuilder
from ..numbers import Numbers
from ..report import Notes
from . import codex_lines as said

MAX_FACTS = 2000  # commands whose result has not come yet


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that waits for its turn. ``shown``: only a display event told it so far."""

    kind: str
    item: dict[str, Any]
    at: int | None
    shown: bool = False
    prompt: bool = False
    inherited: bool = False


class Turns:
    """Takes items, events and counts in the order of the file; tells the builder of one run."""

    def __init__(self, run: RunBuilder, notes: Notes) -> None:
        self.run = run
        self.inherited = False
        self.flags: list[str] = []
        self.waiting = False
        self.refused = False
        self.unplaced = 0
        self._model: str | None = None
        self._notes = notes
        self._entries: list[Entry] = []
        self._facts: dict[str, dict[str, Any]] = {}
        self._commands = Numbers()
        self._truth = False
        self._items = Numbers()
        self._shown: dict[str, Numbers] = {}
        self._held: tuple[Usage, int | None] | None = None
        self._held_at = 0
        self._items_first = False
        self._records = False
        self._seen = Numbers()
        self._high = 0
        self._total: dict[str, Any] | None = None
        self._heard_at: int | None = None
        self._ended: int | None = None
        self._prompts: list[int] = []

    @property
    def open(self) -> bool:
        """True while the model has spoken and nothing ended that turn yet."""
        return any(e.kind == "said" for e in self._entries)

    def model(self, name: str | None) -> None:
        """The model from here on."""
        if name is not None and name != self._model:
            if self.open:
                self.close()
            self._model = name

    def item(self, kind: str, item: dict[str, Any], at: int | None) -> None:
        """An item of the model's own history: the truth."""
        for key in _keys(item):
            _one_more(self._items, key)
            self._forget_shown(key)
        call = text_of(item.get("call_id")) or text_of(item.get("id"))
        self._truth |= kind == "said"
        if kind == "said" and item.get("type") in said.CALLS and call:
            self._forget_command(call)
            self._commands.add(call)
        self._take(kind, item, at, shown=False)

    def show(self, source: str, item: dict[str, Any], at: int | None) -> None:
        """The same words as a display event has them: kept only where no item (and no other event) says them."""
        counter = self._shown.setdefault(source, Numbers())
        new = False
        for key in _keys(item):
            others = [c.get(key) or 0 for name, c in self._shown.items() if name != source]
            new |= _one_more(counter, key) > max([self._items.get(key) or 0, *others])
        if new:
            self._take("said" if item.get("role") != "user" else "heard", item, at, shown=True)

    def command(self, call: str, made: tuple[dict[str, Any], dict[str, Any]] | None, facts: dict[str, Any]) -> bool:
        """How a call really went. ``made``: call and result for files that have no items; False when nobody made it."""
        known = call in self._commands
        if not known and (made is None or self._truth):
            return False
        self._facts[call] = facts
        if len(self._facts) > MAX_FACTS:
            del self._facts[next(iter(self._facts))]
        if not known and made is not None:
            self._commands.add(call)
            self._take("said", made[0], facts.get("started_at"), shown=True)
            self._take("result", made[1], facts.get("ended_at"), shown=True)
        self._entries.append(Entry("measured", {"call_id": call, **facts}, None))
        return True

    def counted(self, info: dict[str, Any], at: int | None) -> None:
        """A cumulative count: it ends a turn only when it holds something that was not counted yet."""
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if not isinstance(total, dict):
            total = None
        key = ("total", said.same_counts(total)) if total is not None else ("last", said.same_counts(last))
        if self._records or not self._seen.add(repr(key)):
            self._notes.counts["repeated_counts"] += 1
            return
        raw = last if isinstance(last, dict) else said.difference(total, self._total) if total is not None else None
        if total is not None:
            whole, fresh = said.tokens(total), said.same_counts(last) == said.same_counts(total)
            if whole < self._high and not fresh:
                self._notes.counts["counts_gone_back"] += 1
                return
            before = 0 if fresh else said.tokens(self._total)
            if not self.inherited:
                self.unplaced += max(0, whole - before - said.tokens(raw))
            self._high, self._total = whole, total
        if said.tokens(raw) > 0:
            self._ends(said.usage(raw), at)

    def recorded(self, record: dict[str, Any], at: int | None) -> None:
        """The usage of one response: it ends a turn."""
        name, total = text_of(record.get("response_id")), record.get("thread_token_usage")
        key = ("response", name) if name else ("total", said.same_counts(total))
        if not self._seen.add(repr(key)):
            self._notes.counts["repeated_counts"] += 1
            return
        self._seen.add(repr(("total", said.same_counts(total))))
        self._records = self._items_first = True
        if isinstance(total, dict):
            if not self.inherited:
                self.unplaced += max(
                    0, said.tokens(total) - said.tokens(self._total) - said.tokens(record.get("usage"))
                )
            self._total, self._high = total, said.tokens(total)
        self._close(self._entries, said.usage(record.get("usage")), at, name)
        self._entries, self._held = [], None

    def close(self, *, aborted: bool = False) -> None:
        """The answer before is over, whether its usage came or not."""
        entries, held = self._entries, self._held
        self._entries, self._held = [], None
        usage, at = held or (None, None)
        self._close(entries, usage, at, status="cancelled" if aborted else None)

    def preview(self) -> None:
        """What is there of the answer that is still being written, as an open turn: told again when it is whole.

        Where its last words may be those of the next answer, only the first are told.
        """
        entries, held = self._entries, self._held
        usage, at = held or (None, None)
        first = entries if held or self._total is not None else _answers(entries)[0]
        self._close(first, usage, at, status="open")

    def restart(self, items: list[Any]) -> None:
        """The history starts anew with these items."""
        self.close()
        self.run.restart(0)
        self._prompts.clear()
        for item in items:
            if isinstance(item, dict):
                self.run.message(item)
        self.flags.append("compaction")

    def rolled_back(self, prompts: int) -> None:
        """The last prompts and all that followed them are no longer in the history."""
        self.close()
        if 0 < prompts <= len(self._prompts):
            self.run.restart(self._prompts[-prompts])
            del self._prompts[-prompts:]
        self.waiting = False

    def _take(self, kind: str, item: dict[str, Any], at: int | None, *, shown: bool) -> None:
        prompt = kind == "heard" and said.is_prompt(item)
        if prompt and self.open:
            self.close()
        if prompt:
            self._notes.counts["prompts"] += 1
        self._entries.append(Entry(kind, item, at, shown, prompt, self.inherited))

    def _forget_shown(self, key: str) -> None:
        for index, entry in enumerate(self._entries):
            if entry.shown and key in _keys(entry.item):
                self._notes.counts["prompts"] -= entry.prompt
                del self._entries[index]
                self._held_at -= index < self._held_at
                return

    def _forget_command(self, call: str) -> None:
        self._entries = [e for e in self._entries if not (e.shown and e.item.get("call_id") == call)]

    def _ends(self, usage: Usage, at: int | None) -> None:
        """A new cumulative count: after its items, or before them."""
        truth = any(e.kind == "said" and not e.shown for e in self._entries)
        if self._held is None and (truth or self._items_first):
            self._items_first |= truth
            self._close(self._entries, usage, at)
            self._entries = []
            return
        if self._held is not None:
            # what only events told after the last item belongs to the count that comes now
            upto = self._held_at
            if truth:
                upto = 1 + max(i for i, e in enumerate(self._entries) if not e.shown)
            entries, self._entries = self._entries[:upto], self._entries[upto:]
            self._close(entries, *self._held)
        self._held, self._held_at = (usage, at), len(self._entries)

    def _close(
        self,
        entries: list[Entry],
        usage: Usage | None,
        at: int | None,
        response: str | None = None,
        *,
        status: str | None = None,
    ) -> None:
        groups = [entries] if usage is not None or self._total is not None else _answers(entries)
        for group in groups:
            if usage is not None or any(e.kind == "said" for e in group):
                self._tell(group, usage, at, response, status)
            else:
                self._write(group, None)

    def _tell(
        self, entries: list[Entry], usage: Usage | None, at: int | None, response: str | None, status: str | None
    ) -> None:
        """One turn: what the model heard, its answer, and what came with it. ``status``: open, or cancelled if empty."""
        spoken = [i for i, e in enumerate(entries) if e.kind == "said"]
        first = spoken[0] if spoken else len(entries)
        self._write(entries[:first], None)
        items = [entries[i].item for i in spoken]
        ends = [t for i in spoken if (t := entries[i].at) is not None]
        ended = max(ends) if ends else at
        body = {"id": response, "model": self._model, "output": items}
        answer = self._named(openai_responses.answer(body))
        began = self._heard_at if self._heard_at is None or ended is None or self._heard_at <= ended else None
        self.run.turn(
            response={k: v for k, v in body.items() if v is not None},
            answer=answer,
            usage=usage,
            at=began,
            ended_at=ended,
            model=self._model,
            status="ok" if status == "cancelled" and (usage is not None or answer.calls) else status or "ok",
            flags=[*self.flags, *([] if items else ["no_content"])],
            inherited=entries[first].inherited if spoken else self.inherited,
        )
        self._notes.counts["turns_without_usage"] += usage is None
        self.flags = []
        self.waiting = False
        self._heard_at = None
        if ended is not None:
            self._ended = max(ended, self._ended or 0)
        self._write(entries[first:], ended)

    def _write(self, entries: list[Entry], ended: int | None) -> None:
        for entry in entries:
            if entry.kind in ("said", "heard"):
                if entry.prompt:
                    self._prompts.append(self.run.length)
                    self.waiting = True
                self.run.message(entry.item, prompt=entry.prompt)
            elif entry.kind == "result":
                self._result(entry)
            else:
                facts = entry.item
                failed = facts.get("is_error")
                self.run.measured(facts["call_id"], facts.get("started_at"), facts.get("ended_at"), is_error=failed)
            if entry.kind in ("heard", "result") and entry.at is not None:
                self._heard_at = max(entry.at, self._heard_at or 0, ended or 0)

    def _result(self, entry: Entry) -> None:
        call = str(entry.item["call_id"])
        facts = self._facts.pop(call, {})
        code, failed, kind = said.failure(entry.item)
        if facts.get("is_error") is not None:
            failed = facts["is_error"]
        told = {k: v for k in ("exit_code", "status", "duration_ms") if (v := facts.get(k)) is not None}
        if code is not None:
            told.setdefault("exit_code", code)
        # a result that came while the answer was still arriving: how long the tool took is not known
        early = self._ended is not None and entry.at is not None and entry.at < self._ended
        known = self.run.result(
            call,
            message=entry.item,
            path="$.output",
            is_error=failed,
            error_class=kind,
            at=None if early else entry.at,
            returned=told or None,
        )
        self.refused = kind == "denied"
        self._notes.counts["tool_results" if known else "results_without_call"] += 1
        self._notes.counts["tool_errors"] += failed is True

    def _named(self, answer: Answer) -> Answer:
        """Calls that the file gives no id get one, so that two of them are two."""
        calls = [
            replace(c, id=f"{c.name}-{self.run.turns + 1}-{i}") if not c.id else c
            for i, c in enumerate(answer.calls, 1)
        ]
        return replace(answer, calls=tuple(calls))


def _one_more(counter: Numbers, key: str) -> int:
    number = (counter.get(key) or 0) + 1
    counter[key] = number
    return number


def _keys(item: dict[str, Any]) -> list[str]:
    role = said.role_of(item)
    if item.get("type") not in ("message", "reasoning"):
        return []
    return [f"{role}:{digest(text.strip())}" for text in dict.fromkeys(said.words(item))]


def _answers(entries: list[Entry]) -> list[list[Entry]]:
    """Without any count in the file: an answer ends where results came back."""
    groups: list[list[Entry]] = [[]]
    spoke = heard = False
    for entry in entries:
        if entry.kind == "said" and spoke and heard:
            groups.append([])
            heard = False
        spoke |= entry.kind == "said"
        heard |= entry.kind in ("result", "heard") and spoke
        groups[-1].append(entry)
    return groups
