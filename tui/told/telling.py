"""What there is to tell of a run, turn by turn, as lines and passages: for the command line and for the screen. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...replay.message_parts import plain_text
from ...replay.recording import Incoming, Recording
from ...tracer.model import Event, Run, ToolCall, Turn
from .. import format as fmt
from ..report import Part, Styled
from ..safe_text import clean

SHORT = 300
LINES = 5
THINKING = 500
WORDS = 4000
TITLE = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One line of parts, ``indent`` blanks before it."""

    parts: tuple[Part, ...]
    indent: int = 2


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of others behind a mark.

    Attributes:
        room: Characters that are shown of it where it is shortened; of short extracts also at most a few lines.
        more: How the command line shows all of it.
    """

    mark: str
    text: str
    room: int
    more: str
    style: str | None = None
    indent: int = 2

    @property
    def shortened(self) -> str:
        """As much of the text as there is room for."""
        text = self.text[: self.room]
        return "\n".join(text.split("\n")[:LINES]) if self.room <= SHORT else text


@dataclass(frozen=True, slots=True)
class Call:
    """The line of a tool call: its name, its arguments (shortened or whole), facts."""

    call: ToolCall
    facts: str

    def line(self, *, whole: bool) -> Line:
        """As one line."""
        head = clean(arguments_text(self.call), limit=None if whole else SHORT)
        return Line((Styled("→ ", "accent"), Styled(self.call.name, "bold"), " ", head, Styled(self.facts, "dim")))


Said = Line | Passage | Call


def of_run(run: Run) -> Iterator[Line]:
    """What run this is, how it ended, what it used."""
    state: list[Part] = [Styled(f"{fmt.sign(run.status)} {run.status}", fmt.STYLES.get(run.status, "dim"))]
    if run.reason:
        state.append(f" ({run.reason})")
    title = Styled(clean(fmt.run_title(run), limit=TITLE), "bold")
    yield Line((title, "  ", Styled(run.id, "dim"), "  ", *state), 0)
    facts = [
        *run.models,
        fmt.clock(run.started_at),
        fmt.duration(fmt.run_ms(run)),
        run.project or "",
        f"from {run.source}",
    ]
    yield Line((Styled(" · ".join(f for f in facts if f and f != fmt.MISSING), "dim"),), 0)
    usage = run.usage
    cost = fmt.run_cost(run) if run.cost_usd is not None or run.turns else fmt.MISSING
    yield Line(
        (
            f"{fmt.counted(run.turns, 'turn')} · {fmt.counted(run.tool_calls, 'call')} · ",
            Styled(fmt.counted(run.errors, "error"), "bad") if run.errors else "no errors",
            f" · in {fmt.short_tokens(usage.context)} (cache {fmt.cache_share(usage)})"
            f" · out {fmt.short_tokens(usage.output)} · {cost}",
        ),
        0,
    )
    for line in fmt.cost_lines(run):
        yield Line((Styled(line, "dim"),), 0)
    yield from _more(run)


def of_turn(recording: Recording, turn: Turn, *, figures: bool = False) -> Iterator[Said]:
    """One turn: its head, what came in, what the model said, its calls with their results.

    Args:
        figures: Every figure is said.
    """
    yield _turn_head(turn)
    if figures:
        yield from _figures(turn)
    yield from map(of_event, recording.events_at(turn.number))
    for incoming in recording.incoming.get(turn.number, ()):
        yield _incoming(incoming)
    whole = f"show {turn.run}:{turn.number}"
    if turn.thinking:
        yield Passage("~ ", turn.thinking, THINKING, whole, "dim")
    if turn.text:
        yield Passage("", turn.text, WORDS, whole)
    for call in turn.tool_calls:
        yield from _call(turn, call)
    if turn.error:
        yield Line((Styled(f"✗ {turn.error_type or 'error'}: {turn.error}", "bad"),))
    yield from _attempts(turn)


def of_event(event: Event) -> Line:
    """Something that happened and is no turn; what is empty in it is left out."""
    detail = _in_words(event.detail)
    return Line((Styled(f"▤ {event.kind}", "warn"), f" {clean(detail, limit=SHORT)}" if detail else ""))


def _in_words(detail: Mapping[str, Any]) -> str:
    """``kind mixed, rest (kind recorded)``."""
    said = ((name, _in_words(v) if isinstance(v, dict) else plain_text(v)) for name, v in detail.items() if v != [])
    return ", ".join(
        f"{name} ({words})" if isinstance(detail[name], dict) else f"{name} {words}" for name, words in said if words
    )


def arguments_text(call: ToolCall) -> str:
    """The arguments on one line: compact JSON, or as the model wrote them when they are not valid."""
    if call.valid and call.arguments is None and call.arguments_raw in ("", "{}"):
        return "arguments not recorded"
    if not call.valid or not isinstance(call.arguments, dict):
        return call.arguments_raw
    return json.dumps(call.arguments, ensure_ascii=False)


def _more(run: Run) -> Iterator[Line]:
    if run.parent:
        where = f":{run.parent.turn}" if run.parent.turn else ""
        yield Line((Styled(f"{fmt.kinship(run)} of {run.parent.run}{where}", "dim"),), 0)
    if run.outcome:
        yield Line(("outcome ", _outcome(run.outcome)), 0)
    if run.limits:
        yield Line((Styled("limits " + ", ".join(f"{k} {_figure(v)}" for k, v in run.limits.items()), "dim"),), 0)
    if run.tags:
        yield Line((Styled("tags " + ", ".join(f"{k}={v}" for k, v in run.tags.items()), "dim"),), 0)
    for warning in run.warnings:
        yield Line((Styled(f"⚠ {warning}", "warn"),), 0)


def _figure(value: Any) -> str:
    """``1800`` for 1800.0, anything else as it is."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _outcome(outcome: Mapping[str, Any]) -> str:
    """``pass: compared with the annual report``, other facts behind."""
    head = ": ".join(plain_text(outcome[k]) for k in ("verdict", "note") if outcome.get(k) is not None)
    rest = [f"{k} {plain_text(v)}" for k, v in outcome.items() if k not in ("verdict", "note") and v is not None]
    return ", ".join([head, *rest] if head else rest)


def _turn_head(turn: Turn) -> Line:
    usage = turn.usage
    cost = fmt.money(turn.cost_usd) if turn.cost_usd is not None or usage.origin != "missing" else None
    facts = [
        turn.model or turn.request_model,
        turn.stop_reason,
        None if turn.status in ("ok", "error") else turn.status,
        f"in {fmt.short_tokens(usage.context)} (cache {fmt.cache_share(usage)}) out {fmt.short_tokens(usage.output)}"
        if usage.origin != "missing"
        else "usage not known",
        cost,
        fmt.duration(turn.generate_ms) if turn.generate_ms is not None else None,
        turn.agent,
        turn.step,
        turn.caller,
        "inherited" if turn.inherited else None,
        *turn.flags,
    ]
    mark = Styled("✗ ", "bad") if turn.status == "error" else ""
    text = " · ".join(f for f in facts if f)
    return Line((mark, Styled(f"{turn.number}", "accent"), "  ", Styled(text, "dim")), 0)


def _figures(turn: Turn) -> Iterator[Line]:
    usage = turn.usage
    buckets = {
        "input": usage.input,
        "cache read": usage.cache_read,
        "cache write 5 m": usage.cache_write_5m,
        "cache write 1 h": usage.cache_write_1h,
        "output": usage.output,
        "of it reasoning": usage.reasoning,
    }
    said = [f"{name} {fmt.count(value)}" for name, value in buckets.items() if value is not None]
    if said:
        lower = ", at least" if usage.partial else ""
        yield Line((Styled(f"tokens: {', '.join(said)} ({usage.origin}{lower})", "dim"),))
    if usage.origin != "missing":
        for line in fmt.price_lines(turn):
            yield Line((Styled(line, "dim"),))
    phases = {
        "generate": turn.generate_ms,
        "parse": turn.parse_ms,
        "execute": turn.execute_ms,
        "resume": turn.resume_ms,
    }
    timed = [f"{name} {fmt.duration(ms)}" for name, ms in phases.items() if ms is not None]
    if turn.first_chunk_at is not None and turn.started_at is not None:
        timed.insert(0, f"first chunk {fmt.duration((turn.first_chunk_at - turn.started_at) / 1000)}")
    ids = [f"{k} {v}" for k, v in (("request", turn.request_id), ("trace", turn.trace_id), ("span", turn.span_id)) if v]
    for said in (timed, [fmt.clock(turn.started_at)] if turn.started_at else [], ids):
        if said:
            yield Line((Styled(", ".join(said), "dim"),))


def _incoming(incoming: Incoming) -> Passage:
    part = incoming.part
    mark = {"user": "> ", "tool": "↳ ", "assistant": "< "}.get(incoming.role, f"[{incoming.role}] ")
    if part.kind == "result":
        mark = "↳ ✗ " if part.is_error else "↳ "
    text = f"{part.name} {part.text}" if part.kind == "call" and part.name else part.text
    words = part.kind == "text"
    return Passage(mark, text, WORDS if words else SHORT, "--request", "bold" if words else None)


def _call(turn: Turn, call: ToolCall) -> Iterator[Said]:
    facts = [
        fmt.duration(call.ms) if call.ms is not None and call.timing == "measured" else None,
        None if call.origin == "live" else call.origin,
        None if call.state in ("done", "requested") else call.state.replace("_", " "),
        f"child run {call.child_run}" if call.child_run else None,
    ]
    yield Call(call, "  " + " · ".join(f for f in facts if f) if any(facts) else "")
    if not call.valid:
        yield Line((Styled(f"✗ invalid arguments: {call.invalid_reason}", "bad"),), 4)
    if call.result is None:
        if call.result_length is not None:
            said = f"= not kept ({fmt.count(call.result_length)} characters, {call.result_digest})"
            yield Line((Styled(said, "dim"),), 4)
        return
    words = plain_text(call.result)
    if call.is_error:
        yield Passage("✗ ", words, SHORT, "--raw", "bad", 4)
    else:
        yield Passage("= ", words, SHORT, f"show {turn.run}:{turn.number}", None, 4)


def _attempts(turn: Turn) -> Iterator[Line]:
    if len(turn.attempts) < 2:
        return
    for number, attempt in enumerate(turn.attempts, 1):
        wait = f" after {fmt.duration(attempt.wait_ms)}" if attempt.wait_ms else ""
        what = str(attempt.status) if attempt.status else ""
        words = " ".join(filter(None, (what, attempt.error_type, attempt.error)))
        yield Line((Styled(f"attempt {number}{wait}: {words}", "dim"),))
