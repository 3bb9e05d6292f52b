"""What came of a replay: recorded, served, left over, live, and the first place where it parted from the recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..tracer.canonical import canonical, digest
from .player.events import of_kind
from .player.recorded import RecordedRuns
from .player.scope import covered_by, is_served, is_served_call
from .player.settings import ReplaySettings
from .player.stops import Miss

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Counts:
    """Model calls (turns) and tool calls."""

    model: int = 0
    tools: int = 0

    def __bool__(self) -> bool:
        return bool(self.model or self.tools)

    def as_json(self) -> dict[str, int]:
        """As contracts have it."""
        return {"model": self.model, "tools": self.tools}

    def __str__(self) -> str:
        return f"{_count(self.model, 'model call')}, {_count(self.tools, 'tool call')}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement over one replay, of all its processes.

    Attributes:
        ok: Everything that was to be served was asked for and served, nothing was missed or reached a network unasked.
        recorded: What the settings say is to be answered from the recording.
        served: What was; a call inside a tool whose recorded result was given counts with it.
        unconsumed: What nobody asked for: ``recorded`` less ``served`` and what ran by itself.
        live: Model calls that were sent, tools that ran or were stubbed.
        bypassed: Recorded tool calls whose tools are not wrapped and ran by themselves.
        network_requests: Connections off this machine that were made.
        normalised: {``turn``, ``path``, ``rule``} of every use of a rule; ``drift`` what `dialogue` let pass.
        diverged: {``turn``, ``path``, ``recorded``, ``got``, ``nearest``} of the first miss; its echoes are none.
        notes: What else a person should know.
        digest: Hash of what was served; equal in every repeat.
    """

    ok: bool
    recorded: Counts
    served: Counts
    unconsumed: Counts
    live: Counts
    bypassed: int
    network_requests: int
    normalised: tuple[Mapping[str, Any], ...]
    drift: tuple[Mapping[str, Any], ...]
    diverged: Mapping[str, Any] | None
    notes: tuple[str, ...]
    digest: str
    missed: Miss | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON object of the contract, with ``drift``, ``notes`` and ``digest`` beside."""
        counts = {n: getattr(self, n).as_json() for n in ("recorded", "served", "unconsumed", "live")}
        return {
            "ok": self.ok, **counts, "bypassed": self.bypassed, "network_requests": self.network_requests,
            "normalised": [dict(n) for n in self.normalised], "drift": [dict(d) for d in self.drift],
            "diverged": dict(self.diverged) if self.diverged is not None else None, "notes": list(self.notes),
            "digest": self.digest,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Short lines for a person."""
        found = [f"replay {'ok' if self.ok else 'failed'}: {self.served.model} of {_count(self.recorded.model, 'model call')} and "
                 f"{self.served.tools} of {_count(self.recorded.tools, 'tool call')} served from the recording, "
                 f"{self.network_requests} network requests"]  # fmt: skip
        if self.missed is not None:
            found += self.missed.lines()
        if self.unconsumed:
            found.append(f"not asked for: {self.unconsumed}")
        if self.live:
            found.append(f"live: {self.live}")
        if self.bypassed:
            found.append(f"ran by themselves, not wrapped: {_count(self.bypassed, 'tool call')}")
        found += _listed("let pass by rule", [f"turn {n['turn']} {n['path']} ({n['rule']})" for n in self.normalised])
        found += _listed("drift", [f"turn {d['turn']} {d['path']}" for d in self.drift])
        return found + list(self.notes)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def judge(recorded: RecordedRuns, settings: ReplaySettings, events: Iterable[Mapping[str, Any]]) -> Verdict:
    """The verdict over the events of every process of a replay."""
    told = list(events)
    turns, calls = _wanted(recorded, settings)
    done_turns, done_calls, inside = _done(recorded, told)
    passed = {_call(e) for e in of_kind(told, "bypassed")} & calls
    served = Counts(len(turns & done_turns), len(calls & done_calls))
    left = Counts(len(turns - done_turns), len(calls - done_calls - passed))
    misses, stopped = of_kind(told, "miss"), of_kind(told, "stopped", "unwrapped")
    reached = [e for e in of_kind(told, "network") if not e.get("blocked")]
    live = Counts(len(of_kind(told, "live_model")), len(of_kind(told, "live_tool")))
    no_calls = not served.model and not live.model
    closed = settings.network == "closed" and not live
    ok = not (misses or stopped or left or no_calls or (reached and closed))
    beyond = len({_call(e) for e in of_kind(told, "served_tool")} - calls)
    notes = [*recorded.notes, *_notes(told, misses, no_calls=no_calls, inside=len(inside & turns))]
    if beyond:
        notes.append(f"{_count(beyond, 'tool call')} of live turns answered from the recording as well")
    return Verdict(
        ok, Counts(len(turns), len(calls)), served, left, live, len(passed), len(reached), _used(recorded, told, "normalised"),
        _used(recorded, told, "drift"), _diverged(misses), tuple(notes), _digest(recorded, told), _miss(misses),
    )  # fmt: skip


def _wanted(recorded: RecordedRuns, settings: ReplaySettings) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """Keys of the turns and the tool calls that are to be served."""
    turns: set[tuple[Any, ...]] = {t.key for t in recorded.turns() if is_served(recorded, settings, t)}
    calls: set[tuple[Any, ...]] = {
        (c.run, c.turn, c.id) for t in recorded.turns() for c in t.calls if is_served_call(recorded, settings, t, c)
    }
    return turns, calls


def _done(
    recorded: RecordedRuns, events: Sequence[Mapping[str, Any]]
) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """Turns and calls that were served, those inside a served call among them (the turns of these once more)."""
    turns: set[tuple[Any, ...]] = {(e["run"], e["turn"]) for e in of_kind(events, "served_model") if e.get("last")}
    calls: set[tuple[Any, ...]] = {_call(e) for e in of_kind(events, "served_tool")}
    inside: set[tuple[Any, ...]] = set()
    for turn in recorded.turns():
        for call in turn.calls:
            if (call.run, call.turn, call.id) in calls:
                covered = covered_by(recorded, call)
                inside |= {t.key for t in covered}
                calls |= {(c.run, c.turn, c.id) for t in covered for c in t.calls}
    return turns | inside, calls, inside - turns


def _call(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return event.get("run"), event.get("turn"), event.get("call")


def _used(recorded: RecordedRuns, events: Sequence[Mapping[str, Any]], kind: str) -> tuple[Mapping[str, Any], ...]:
    """The uses of rules, each once; the run is named where it is not the only one."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for event in of_kind(events, kind):
        shown = {k: v for k, v in event.items() if k not in ("event", "run")}
        if len(recorded.runs) > 1:
            shown["run"] = event.get("run")
        found.setdefault((event.get("run"), event.get("turn"), event.get("path")), shown)
    return tuple(found[k] for k in sorted(found, key=lambda k: (str(k[0]), k[1] or 0)))


def _diverged(misses: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if not misses:
        return None
    first = misses[0]
    return {n: first.get(n) for n in ("turn", "path", "paths", "recorded", "got", "nearest", "run", "what", "cure")}


def _miss(misses: Sequence[Mapping[str, Any]]) -> Miss | None:
    if not misses:
        return None
    first = misses[0]
    get = first.get
    paths = tuple(get("paths") or ())
    return Miss(
        get("run"), get("turn"), get("path"), get("recorded"), get("got"), get("nearest"), str(get("cure")), str(get("what")), paths
    )  # fmt: skip


def _notes(
    events: Sequence[Mapping[str, Any]], misses: Sequence[Mapping[str, Any]], *, no_calls: bool, inside: int
) -> list[str]:
    notes = [str(e.get("text")) for e in of_kind(events, "note")]
    if no_calls and not misses and not of_kind(events, "unwrapped", "stopped"):
        notes.insert(
            0,
            "no model call was answered: the program made none, or none that looptape sees (another interpreter, a client of its own)",
        )
    if inside:
        notes.append(f"{_count(inside, 'model call')} of sub-agents lie inside tool calls that were served whole")
    notes += [f"stopped: {e['reason']}" for e in of_kind(events, "stopped")]
    for event in of_kind(events, "unwrapped"):
        notes.append(f"stopped before turn 1, not wrapped: {', '.join(event.get('names') or ())}")
    if misses and misses[0].get("action") == "warn":
        notes.append(
            "what followed the divergence was answered as recorded, though something else was asked (--on-miss warn)"
        )
    if len(misses) > 1:
        notes.append(f"{_count(len(misses) - 1, 'further miss', 'further misses')} after the first")
    refused = dict.fromkeys(str(e.get("address")) for e in of_kind(events, "network") if e.get("blocked"))
    if refused:
        notes.append(f"refused connections: {', '.join(list(refused)[:_SHOWN])}")
    return list(dict.fromkeys(notes))


def _digest(recorded: RecordedRuns, events: Sequence[Mapping[str, Any]]) -> str:
    """Over what was served, whatever the order in which threads were told."""
    rank = {r.id: i for i, r in enumerate(recorded.runs)}
    served = [
        [rank.get(str(e.get("run")), -1), e.get("turn"), str(e.get("attempt") or e.get("call")), e.get("digest")]
        for e in of_kind(events, "served_model", "served_tool")
    ]
    return digest(canonical(sorted(served, key=canonical)))


def _listed(title: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    more = f", and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return [f"{title}: {'; '.join(items[:_SHOWN])}{more}"]


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
