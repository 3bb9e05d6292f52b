"""A turn reduced to what the rules look at: numbers in place of texts, so that it is small and can be kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...tracer.canonical import canonical
from . import kinds, masks
from .declared import Declared
from .outcomes import complaint, is_empty, looks_failed
from .seen import CallSeen, TurnSeen

_PROSE = frozenset({"explanation", "thought_process", "task_progress", "requires_approval", "nonce", "request_id", "requestid", "trace_id",
                    "timestamp", "tool_call_id", "toolcallid", "retry_note", "retry", "attempt"})  # fmt: skip
"""Arguments that say something about the call and change nothing in it."""
_ENTITY = ("file_path", "path", "filename", "file", "url", "uri", "id", "ref", "pattern_path", "directory", "dir")
_WORDS = re.compile(r"\w+")
_SPECIFIC = re.compile(r"\b(?=\w*\d)\w{3,}\b")
_NO_SUCH_TOOL = re.compile(
    r"(?:unknown|invalid|no such|unsupported|unrecognized|not a valid) (?:tool|function|action|command name)|(?:tool|function)\b.{0,60}\b(?:not found|does not exist|is not available|not a valid)",
    re.IGNORECASE,
)
"""The tool is not there, under whatever name: its name does not tell these errors apart."""
_PEOPLE = ("denied", "cancelled")
"""A person said no: that is talk, not trouble."""
_TRANSIENT = re.compile(
    r"\b(?:429|500|502|503|504|529)\b|rate.?limit|too many requests|timed? ?out|temporarily|connection (?:reset|refused|aborted)"
    r"|econnreset|etimedout|overloaded|unavailable|try again (?:later|in)",
    re.IGNORECASE,
)
_MISSING = re.compile(r"\b404\b|not found|no such|does(?:n't| not) exist|unknown id", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Move:
    """One call of a round.

    Attributes:
        key: The tool and its arguments, without what changes by itself.
        result: What came back, likewise; None when it is not known.
        effect: read, mutate, poll, actuate, bookkeeping, unknown.
        shape, same_error: The kind of error, and the very error; None without one.
        named: The error names something of the arguments: asked again with it, the error was not read.
        about: The error has a word in common with the arguments.
        onward: It takes along what was changed before it.
        things: Files, addresses, numbered names in the arguments of a sub-agent's start.
    words, entity: For the likeness of calls: the words of the arguments; the thing they are about.
        lines: The lines of the result.
        size: Characters of the result.
        command: It is a command line.
    short: For people.
    """

    name: str
    key: int
    result: int | None
    effect: str
    short: str
    words: frozenset[int]
    entity: int
    things: frozenset[int] = frozenset()
    lines: tuple[int, ...] = ()
    size: int = 0
    empty: bool = False
    failed: bool = False
    shape: int | None = None
    same_error: int | None = None
    error_text: str = ""
    named: bool = False
    about: bool = False
    transient: bool = False
    missing: bool = False
    search: bool = False
    check: bool = False
    handoff: bool = False
    target: str = ""
    spawn: bool = False
    command: bool = False
    revert: bool = False
    onward: bool = False
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of one agent, reduced."""

    number: int
    agent: str
    moves: tuple[Move, ...]
    text: frozenset[int] = frozenset()
    text_key: int = 0
    text_size: int = 0
    opening: str = ""
    user: str | None = None
    compaction: bool = False
    chant: tuple[int, str] | None = None
    started_at: int | None = None

    @property
    def works(self) -> bool:
        """True when it does more than keeping books."""
        return any(m.effect != "bookkeeping" for m in self.moves)

    @property
    def signature(self) -> frozenset[tuple[int, int]] | None:
        """Its calls with their results in no order; None when there are none or a result is not known."""
        found = [(m.key, m.result) for m in self.moves if m.effect != "bookkeeping"]
        return frozenset(found) if found and all(r is not None for _, r in found) else None  # type: ignore[arg-type]


def reduce(turn: TurnSeen, declared: Declared, chant: tuple[int, str] | None) -> Round:
    """A turn as the rules see it. Equal calls made in parallel count once."""
    moves: dict[tuple[int, int | None], Move] = {}
    for call in turn.calls:
        if declared.effects.get(call.name) != "ignore":
            move = _move(call, declared)
            moves.setdefault((move.key, move.result), move)
    text = turn.text.strip()
    return Round(
        number=turn.number,
        agent=turn.agent or "",
        moves=tuple(moves.values()),
        text=masks.words(text) if text and not turn.calls else frozenset(),
        text_key=masks.digest(masks.mask(text[: 16 << 10])) if text and not turn.calls else 0,
        text_size=len(text),
        opening=" ".join(text[:200].split())[:60],
        user=turn.user,
        compaction=turn.compaction,
        chant=chant,
        started_at=turn.started_at,
    )


def dump(round_: Round) -> dict[str, Any]:
    """A round as JSON."""
    found = {name: getattr(round_, name) for name in Round.__slots__}  # `asdict` would copy every number
    moves = [
        {**{n: getattr(m, n) for n in Move.__slots__}, "words": sorted(m.words), "things": sorted(m.things)}
        for m in round_.moves
    ]
    return {**found, "moves": moves, "text": sorted(round_.text)}


def load(saved: dict[str, Any]) -> Round:
    """What `dump` wrote."""
    moves = tuple(Move(**{**m, **_decoded(m)}) for m in saved["moves"])
    chant = tuple(saved["chant"]) if saved.get("chant") else None
    return Round(**{**saved, "moves": moves, "text": frozenset(saved["text"]), "chant": chant})


def _decoded(move: dict[str, Any]) -> dict[str, Any]:
    sets = {name: frozenset(move.get(name) or ()) for name in ("words", "things")}
    return {**sets, "lines": tuple(move["lines"])}


def _move(call: CallSeen, declared: Declared) -> Move:
    said = declared.effects.get(call.name) or (call.side_effect if call.side_effect != "unknown" else None)
    effect = said or kinds.effect_of(call.name, call.arguments)
    counted = _counted(call, declared)
    text = counted if isinstance(counted, str) else canonical(counted)
    failed = looks_failed(call.is_error, call.result)
    result = call.result
    seen = masks.masked(result) if result is not None else None
    error = complaint(result or "") if failed else ""
    command = kinds.command_of(call.name, call.arguments)
    shape = masks.shape_of_error(error) if call.error_class not in _PEOPLE else ""
    if command is not None and shape:  # cat and head meet one error, each with its own name before it
        started = {p.lower() for p in kinds.programs(command)}
        shape = " ".join(w for w in shape.split() if w not in started)
    handoff = kinds.is_handoff(call.name)
    spawn = kinds.is_spawn(call.name, call.child_run) and not handoff
    words = _words(counted)
    return Move(
        name=call.name,
        key=masks.digest(masks.joined((call.name, masks.mask(text)))),
        result=seen.digest if seen is not None else masks.digest(call.digest) if call.digest else None,
        effect=effect,
        short=_short(call),
        words=words,
        things=masks.things(" ".join(_values(counted))) if spawn else frozenset(),
        entity=_entity(call),
        lines=seen.lines if seen is not None else (),
        size=call.length if call.length is not None else len(result or ""),
        empty=result is not None and not failed and is_empty(result),
        failed=failed,
        shape=masks.digest(masks.joined(("" if _NO_SUCH_TOOL.search(error[:300]) else call.name, shape)))
        if failed and shape
        else None,
        same_error=masks.error_text_key(error) if failed else None,
        named=failed and any(word in text for word in _SPECIFIC.findall(error[:500])),
        about=failed and any(len(w) > 2 and masks.word_key(w) in words for w in _WORDS.findall(error[:500].lower())),
        error_text=" ".join(error[:300].split())[:120],
        transient=failed
        and (call.error_class == "transient" or (call.error_class is None and bool(_TRANSIENT.search(error[:2000])))),
        missing=failed and bool(_MISSING.search(error[:2000])),
        search=kinds.is_search(call.name, call.arguments),
        check=kinds.is_check(call.name, call.arguments),
        handoff=handoff,
        target=_target(call.arguments),
        spawn=spawn,
        command=command is not None,
        revert=kinds.is_revert(call.name, call.arguments),
        onward=kinds.carries_on(call.name, call.arguments),
        declared=said is not None,
    )


def _words(arguments: Any) -> frozenset[int]:
    """The words of the values: the names of the arguments are the same in every call."""
    return masks.words(" ".join(_values(arguments)))


def _values(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, dict) and depth < 20:
        for inner in value.values():
            yield from _values(inner, depth + 1)
    elif isinstance(value, list) and depth < 20:
        for inner in value:
            yield from _values(inner, depth + 1)
    elif value is not None:
        yield str(value)


def _counted(call: CallSeen, declared: Declared) -> Any:
    """The arguments that tell two calls of this tool apart."""
    if call.loop_key is not None:
        return call.loop_key
    arguments = call.arguments
    if not isinstance(arguments, dict):
        return arguments if arguments is not None else ""
    wanted = declared.keys.get(call.name)
    if wanted is not None:
        return {k: arguments.get(k) for k in wanted}
    kept = {k: v for k, v in arguments.items() if str(k).lower() not in _PROSE}
    if kinds.command_of(call.name, arguments) is not None:
        kept.pop("description", None)
        if isinstance(kept.get("command"), str):
            kept["command"] = _without_comment(kept["command"])
    return kept or arguments


def _without_comment(command: str) -> str:
    return re.sub(r"\s+#[^\n'\"]*$", "", command.strip(), flags=re.MULTILINE)


def _target(arguments: Any) -> str:
    """Whom a handover names."""
    if isinstance(arguments, dict):
        for key in ("agent", "agent_name", "to", "target", "destination", "recipient"):
            if isinstance(value := arguments.get(key), str):
                return value[:60]
    return ""


def _entity(call: CallSeen) -> int:
    if isinstance(call.arguments, dict):
        for key in _ENTITY:
            value = call.arguments.get(key)
            if isinstance(value, (str, int)):
                return masks.digest(str(value))
    return 0


def _short(call: CallSeen) -> str:
    command = kinds.command_of(call.name, call.arguments)
    if command is not None:
        said = command
    elif isinstance(call.arguments, dict):
        said = ", ".join(
            f"{k}={v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str)}"
            for k, v in list(call.arguments.items())[:4]
        )
    else:
        said = str(call.arguments or "")
    said = " ".join(said[:400].split())
    return f"{call.name}({said[:60]}{'…' if len(said) > 60 else ''})"
