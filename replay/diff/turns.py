"""Two turns: what the model was newly given, what it answered, which tools it called with what, what came back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.model import ToolCall, Turn
from ...tracer.store.text import loads
from ...tracer.store.windows import Step
from ..alike import key
from ..message_parts import parts, plain_text, role
from .changes import NOTHING, Change, by_path, edit, text_change
from .requests import params, system, tools
from .sequences import gaps, matches


@dataclass(frozen=True, slots=True)
class Seen:
    """A turn with what was new in its request.

    Attributes:
        incoming: Who and what words, for everything that is neither an answer nor a result of the run's calls.
        history: What happened to earlier messages (compaction, edited, ...) and to how many; None for nothing.
    """

    turn: Turn
    step: Step | None = None
    incoming: tuple[tuple[str, str], ...] = ()
    history: tuple[str, int] | None = None


def seen(turns: Sequence[Turn], steps: Iterable[Step]) -> list[Seen]:
    """Turns with what their steps say."""
    by_number = {s.number: s for s in steps}
    known = {c.id for t in turns for c in t.tool_calls}
    return [_seen(t, by_number.get(t.number), known) for t in turns]


def signatures(one: Seen) -> tuple[str, str, tuple[str, ...]]:
    """What a turn is recognised by in another run: all of it, then what it did, then the tools it called."""
    calls = [[c.name, c.arguments if c.valid else c.arguments_raw] for c in one.turn.tool_calls]
    did = canonical(calls) if calls else f"said {one.turn.text or ''}"
    results = [c.result if isinstance(c.result, str) else canonical(c.result) for c in one.turn.tool_calls]
    whole = "\x1f".join([did, one.turn.text or "", *results, *(text for _, text in one.incoming)])
    return whole, did, tuple(c.name for c in one.turn.tool_calls)


class Heads:
    """System, tools, parameters and model of a run hold for many turns: each difference of them is told once."""

    def __init__(self) -> None:
        self._told: set[tuple[str, Any, Any]] = set()

    def changes(self, a: Seen, b: Seen) -> list[Change]:
        """Those differences that no earlier pair of turns had."""
        found = []
        models = [one.turn.model or one.turn.request_model for one in (a, b)]
        if models[0] != models[1] and self._new("model", *models):
            found.append(edit("model", "model", *models))
        if a.step is None or b.step is None:
            return found
        for part in ("params", "system", "tools"):
            one, two = getattr(a.step, part), getattr(b.step, part)
            if one == two or not self._new(part, one, two):
                continue
            left, right = loads(one), loads(two)
            if part == "params":
                found += by_path(part, params(left), params(right), "")
            else:
                found += system(left, right) if part == "system" else tools(left, right)
        return found

    def _new(self, part: str, a: Any, b: Any) -> bool:
        before = len(self._told)
        self._told.add((part, a, b))
        return len(self._told) > before


def turns(a: Seen, b: Seen) -> list[Change]:
    """The changes from one turn to another in the order in which they happened: given, answered, called, came back."""
    found = []
    if a.history != b.history:
        found.append(Change("history", "edited", "history", _history(a), _history(b)))
    found += _incoming(a.incoming, b.incoming)
    return found + answers(a.turn, b.turn)


def answers(a: Turn, b: Turn) -> list[Change]:
    """The changes of two answers and of what their calls brought back."""
    found = []
    for part in ("thinking", "text"):
        left, right = getattr(a, part) or "", getattr(b, part) or ""
        if left != right:
            found.append(text_change(part, part, left, right))
    found += _calls(a.tool_calls, b.tool_calls)
    for name in ("stop_reason", "status", "error"):
        left, right = getattr(a, name), getattr(b, name)
        if left != right:
            found.append(edit("status", name, left, right))
    order = {"result": 1}
    return sorted(found, key=lambda c: order.get(c.part, 0))


def _calls(a: Sequence[ToolCall], b: Sequence[ToolCall]) -> list[Change]:
    """Calls paired by what they ask, then by tool, then by place."""
    if [(c.name, c.arguments_raw) for c in a] == [(c.name, c.arguments_raw) for c in b]:
        return [
            change for place, (one, two) in enumerate(zip(a, b, strict=True)) for change in _result(one, two, place)
        ]
    left, right = ([(c.name, canonical(_asked(c))) for c in side] for side in (a, b))
    found = []
    for one, two, pair in gaps(matches(left, right), len(a), len(b)):
        named = matches([a[i].name for i in one], [b[j].name for j in two])
        inner = [(one[i], two[j]) for i, j in named]
        for i, j in inner:
            found += [
                *by_path("arguments", _asked(a[i]), _asked(b[j]), f"calls[{j + 1}].arguments"),
                *_result(a[i], b[j], j),
            ]
        lone = [i for i in one if i not in {p[0] for p in inner}]
        fresh = [j for j in two if j not in {p[1] for p in inner}]
        for i, j in zip(lone, fresh, strict=False):
            found.append(Change("calls", "edited", f"calls[{j + 1}]", _said(a[i]), _said(b[j])))
        found += [Change("calls", "dropped", f"calls[{i + 1}]", _said(a[i])) for i in lone[len(fresh) :]]
        found += [Change("calls", "inserted", f"calls[{j + 1}]", NOTHING, _said(b[j])) for j in fresh[len(lone) :]]
        found += _result(a[pair[0]], b[pair[1]], pair[1]) if pair else []
    return found


def _result(a: ToolCall, b: ToolCall, place: int) -> list[Change]:
    path = f"calls[{place + 1}].result"
    if a.result != b.result:
        left, right = plain_text(a.result), plain_text(b.result)
        if left != right:
            return [text_change("result", path, left, right)]
    if bool(a.is_error) != bool(b.is_error):
        return [Change("result", "edited", f"{path}.is_error", bool(a.is_error), bool(b.is_error))]
    if a.state != b.state:
        return [Change("result", "edited", f"calls[{place + 1}].state", a.state, b.state)]
    return []


def _incoming(a: Sequence[tuple[str, str]], b: Sequence[tuple[str, str]]) -> list[Change]:
    found = []
    for one, two, _ in gaps(matches(a, b), len(a), len(b)):
        for i, j in zip(one, two, strict=False):
            if a[i][0] != b[j][0]:
                found.append(Change("input", "edited", f"input[{j + 1}]", ": ".join(a[i]), ": ".join(b[j])))
            else:
                found.append(text_change("input", f"input[{j + 1}]", a[i][1], b[j][1]))
        found += [Change("input", "dropped", f"input[{i + 1}]", ": ".join(a[i])) for i in one[len(two) :]]
        found += [Change("input", "inserted", f"input[{j + 1}]", NOTHING, ": ".join(b[j])) for j in two[len(one) :]]
    return found


def _seen(turn: Turn, step: Step | None, known: set[str]) -> Seen:
    if step is None:
        return Seen(turn)
    incoming, added = [], list(step.added)
    history = None
    if step.dropped:
        before = {key(s.text, s.hash) for s in step.dropped}
        after = [key(s.text, s.hash) for s in step.added]
        gone = before - set(after)
        added = [s for s, k in zip(step.added, after, strict=True) if k not in before]
        if gone:
            flag = next((f for f in turn.flags if f in ("compaction", "edited")), "edited")
            history = (flag, len(gone))
    for sent in added:
        message = loads(sent.text)
        who = role(message)
        if who == "assistant" and turn.number > 1:
            continue  # the answer of the turn before, come back
        incoming += [(who, p.text) for p in parts(message) if not (p.kind == "result" and p.call in known)]
    return Seen(turn, step, tuple(incoming), history)


def _history(one: Seen) -> str:
    return "as it was" if one.history is None else f"{one.history[0]}: {one.history[1]} earlier messages gone"


def _asked(call: ToolCall) -> Any:
    return call.arguments if call.valid and call.arguments is not None else call.arguments_raw


def _said(call: ToolCall) -> str:
    return f"{call.name} {call.arguments_raw}"
