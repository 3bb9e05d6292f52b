"""A run as plain text: per turn its head, what came in, thinking, words, calls and results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..replay.message_parts import plain_text
from ..replay.recording import Incoming, Recording
from ..tracer.model import Event, Run, ToolCall, Turn
from ..tracer.observers import STATE
from . import format as fmt
from . import report
from .report import Part, Styled
from .safe_text import clean

SHORT = 300
LINES = 5
THINKING = 500
WORDS = 4000
TITLE = 100


def show_run(recording: Recording, *, whole: bool = False) -> None:
    """Prints the head of the run and every loaded turn; ``whole``: nothing is shortened."""
    show_head(recording.run)
    for event in recording.events:
        if event.turn is None and event.kind != STATE:
            _event(event)
    for turn in recording.turns:
        report.out()
        show_turn(recording, turn, whole=whole)


def show_head(run: Run) -> None:
    """Three lines: what run this is, how it ended, what it used."""
    name = clean(fmt.run_title(run), limit=TITLE)
    state: list[Part] = [Styled(f"{fmt.sign(run.status)} {run.status}", fmt.STYLES.get(run.status, "dim"))]
    if run.reason:
        state.append(f" ({run.reason})")
    report.out(Styled(name, "bold"), "  ", Styled(run.id, "dim"), "  ", *state)
    facts = [
        *run.models,
        fmt.clock(run.started_at),
        fmt.duration(fmt.run_ms(run)),
        run.project or "",
        f"from {run.source}",
    ]
    report.out(Styled(" · ".join(f for f in facts if f and f != fmt.MISSING), "dim"))
    usage = run.usage
    cost = fmt.run_cost(run) if run.cost_usd is not None or run.turns else fmt.MISSING
    report.out(
        f"{fmt.counted(run.turns, 'turn')} · {fmt.counted(run.tool_calls, 'call')} · ",
        Styled(fmt.counted(run.errors, "error"), "bad") if run.errors else "no errors",
        f" · in {fmt.short_tokens(usage.context)} (cache {fmt.cache_share(usage)}) · out {fmt.short_tokens(usage.output)} · {cost}",
    )
    for line in fmt.cost_lines(run):
        report.out(Styled(line, "dim"))
    _more(run)


def show_turn(recording: Recording, turn: Turn, *, whole: bool = False) -> None:
    """Prints one turn; ``whole``: nothing is shortened, every figure is said."""
    _turn_head(turn)
    if whole:
        _figures(turn)
    for event in recording.events_at(turn.number):
        _event(event)
    for incoming in recording.incoming.get(turn.number, ()):
        _incoming(incoming, whole)
    if turn.thinking:
        _text("~ ", turn.thinking, THINKING, whole, f"show {turn.run}:{turn.number}", style="dim")
    if turn.text:
        _text("", turn.text, WORDS, whole, f"show {turn.run}:{turn.number}")
    for call in turn.tool_calls:
        _call(turn, call, whole)
    if turn.error:
        report.out("  ", Styled(f"✗ {turn.error_type or 'error'}: {turn.error}", "bad"))
    _attempts(turn)


def subtitle(run: Run) -> Styled:
    """The line over a part of a run: which run this is."""
    return Styled(f"{run.id}  {clean(run.name or run.title or '', limit=TITLE)}", "dim")


def _more(run: Run) -> None:
    if run.parent:
        where = f":{run.parent.turn}" if run.parent.turn else ""
        report.out(Styled(f"{run.parent.kind} of {run.parent.run}{where}", "dim"))
    if run.outcome:
        report.out("outcome ", _outcome(run.outcome))
    if run.limits:
        report.out(Styled("limits " + ", ".join(f"{k} {v}" for k, v in run.limits.items()), "dim"))
    if run.tags:
        report.out(Styled("tags " + ", ".join(f"{k}={v}" for k, v in run.tags.items()), "dim"))
    for warning in run.warnings:
        report.out(Styled(f"⚠ {warning}", "warn"))


def _outcome(outcome: Mapping[str, Any]) -> str:
    """``pass: compared with the annual report``, other facts behind."""
    head = ": ".join(plain_text(outcome[k]) for k in ("verdict", "note") if outcome.get(k) is not None)
    rest = [f"{k} {plain_text(v)}" for k, v in outcome.items() if k not in ("verdict", "note") and v is not None]
    return ", ".join([head, *rest] if head else rest)


def _turn_head(turn: Turn) -> None:
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
    report.out(mark, Styled(f"{turn.number}", "accent"), "  ", Styled(text, "dim"))


def _figures(turn: Turn) -> None:
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
        report.out("  ", Styled(f"tokens: {', '.join(said)} ({usage.origin}{lower})", "dim"))
    if usage.origin != "missing":
        for line in fmt.price_lines(turn):
            report.out("  ", Styled(line, "dim"))
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
            report.out("  ", Styled(", ".join(said), "dim"))


def _incoming(incoming: Incoming, whole: bool) -> None:
    part = incoming.part
    mark = {"user": "> ", "tool": "↳ ", "assistant": "< "}.get(incoming.role, f"[{incoming.role}] ")
    if part.kind == "result":
        mark = "↳ ✗ " if part.is_error else "↳ "
    text = f"{part.name} {part.text}" if part.kind == "call" and part.name else part.text
    _text(
        mark,
        text,
        WORDS if part.kind == "text" else SHORT,
        whole,
        "--request",
        style="bold" if part.kind == "text" else None,
    )


def _call(turn: Turn, call: ToolCall, whole: bool) -> None:
    arguments = arguments_text(call)
    head = clean(arguments, limit=None if whole else SHORT)
    facts = [
        fmt.duration(call.ms) if call.ms is not None and call.timing == "measured" else None,
        None if call.origin == "live" else call.origin,
        None if call.state in ("done", "requested") else call.state.replace("_", " "),
        f"child run {call.child_run}" if call.child_run else None,
    ]
    said = " · ".join(f for f in facts if f)
    report.out(
        "  ", Styled("→ ", "accent"), Styled(call.name, "bold"), " ", head, Styled(f"  {said}" if said else "", "dim")
    )
    if not call.valid:
        report.out("    ", Styled(f"✗ invalid arguments: {call.invalid_reason}", "bad"))
    if call.result is None:
        if call.result_length is not None:
            report.out(
                "    ", Styled(f"= not kept ({fmt.count(call.result_length)} characters, {call.result_digest})", "dim")
            )
        return
    words = plain_text(call.result)
    if call.is_error:
        _text("✗ ", words, SHORT, whole, "--raw", style="bad", indent="    ")
    else:
        _text("= ", words, SHORT, whole, f"show {turn.run}:{turn.number}", indent="    ")


def _attempts(turn: Turn) -> None:
    if len(turn.attempts) < 2:
        return
    for number, attempt in enumerate(turn.attempts, 1):
        wait = f"after {fmt.duration(attempt.wait_ms)}: " if attempt.wait_ms else ""
        what = str(attempt.status) if attempt.status else ""
        error = f" {attempt.error_type or ''} {attempt.error or ''}".rstrip()
        report.out("  ", Styled(f"attempt {number} {wait}{what}{error}", "dim"))


def _event(event: Event) -> None:
    detail = ", ".join(f"{k} {plain_text(v)}" for k, v in event.detail.items())
    report.out("  ", Styled(f"▤ {event.kind}", "warn"), f" {clean(detail, limit=SHORT)}" if detail else "")


def _text(
    mark: str, text: str, room: int, whole: bool, more: str, *, style: str | None = None, indent: str = "  "
) -> None:
    shown = text if whole else _shortened(text, room)
    pad = " " * len(mark)
    for index, row in enumerate(shown.rstrip("\n").split("\n")):
        row = row.rstrip("\r").expandtabs(4)
        if row or index == 0:
            report.out(indent, mark if index == 0 else pad, Styled(row, style) if style else row)
        else:
            report.out()
    if len(shown) < len(text):
        report.out(indent, pad, Styled(f"… {len(text) - len(shown):,} more characters: {more}", "dim"))


def _shortened(text: str, room: int) -> str:
    """At most so many characters, and of short extracts at most a few lines."""
    text = text[:room]
    return "\n".join(text.split("\n")[:LINES]) if room <= SHORT else text


def arguments_text(call: ToolCall) -> str:
    """The arguments on one line: compact JSON, or as the model wrote them when they are not valid."""
    if not call.valid or not isinstance(call.arguments, dict):
        return call.arguments_raw
    return json.dumps(call.arguments, ensure_ascii=False)


def json_block(value: Any) -> str:
    """Any JSON value, indented."""
    return json.dumps(value, ensure_ascii=False, indent=2)
