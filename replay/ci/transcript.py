"""The short readable text beside a tape, for a reviewer: what was said, called and returned, turn by turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.providers import by_api
from ..export_markdown import fenced, word
from ..message_parts import parts, plain_text, role
from ..player import tape_runs
from ..player.recorded import RecordedCall, RecordedRun, RecordedRuns, RecordedTurn

LONGEST = 1200
"""Characters of one text that are shown; what is left out is counted."""
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udfff]")


def beside(tape: Path) -> Path:
    """Where the transcript of a tape stands: `x.tape.jsonl` has `x.tape.md`."""
    return tape.with_name(tape.name.removesuffix(".jsonl") + ".md")


def transcript(recorded: RecordedRuns, title: str) -> str:
    """The transcript of a tape. It holds nothing that changes when an unchanged run is recorded again."""
    rows = [f"# {word(title, _clean)}", ""]
    rows += ["Made from the tape beside it; pytest says when the two no longer agree.", ""]
    for run in recorded.runs:
        rows += _run(recorded, run)
    return "\n".join(rows).rstrip("\n") + "\n"


def agrees(tape: Path, recorded: RecordedRuns, title: str) -> bool:
    """Whether the transcript beside a tape is there and says what the tape says."""
    try:
        return beside(tape).read_text("utf-8") == transcript(recorded, title)
    except (OSError, UnicodeDecodeError):
        return False


def renew(tape: Path) -> None:
    """Writes the transcript beside a tape anew.

    Raises:
        LooptapeError: The tape cannot be replayed.
    """
    beside(tape).write_text(transcript(tape_runs.read(tape), title_of(tape)), "utf-8")


def title_of(tape: Path) -> str:
    """What a tape is called in its transcript."""
    return tape.name.removesuffix(".jsonl").removesuffix(".tape")


def _run(recorded: RecordedRuns, run: RecordedRun) -> Iterator[str]:
    if len(recorded.runs) > 1:
        above = recorded.parent_of(run.id)
        started = f", started by turn {above[1]}" if above is not None else ""
        yield f"## Run {word(run.name or 'without a name', _clean)}{started}"
        yield ""
    before: RecordedTurn | None = None
    for turn in run.turns:
        yield from _turn(recorded, turn, before)
        before = turn
    yield f"End: {word(' '.join(t for t in (run.status, run.reason) if t) or 'not recorded', _clean)}"
    yield ""


def _turn(recorded: RecordedRuns, turn: RecordedTurn, before: RecordedTurn | None) -> Iterator[str]:
    refused = [str(a.status or a.error_type or "no answer") for a in turn.attempts[:-1]]
    facts = [turn.model, "streamed" if turn.stream else None, f"after {', '.join(refused)}" if refused else None]
    yield f"### Turn {turn.number}"
    yield ""
    yield word(" · ".join(f for f in facts if f), _clean)
    yield ""
    system = turn.parts[0]
    if system is not None and (before is None or before.parts[0] != system):
        yield from _shown("system", plain_text(json.loads(recorded.texts[system])))
    known = {c.id for c in before.calls} if before is not None else set()
    kept = _kept(turn, before)
    for key in turn.hashes[kept:]:
        message = json.loads(recorded.texts[key])
        if role(message) == "assistant" and before is not None:
            continue
        for part in parts(message):
            if not (part.kind == "result" and part.call in known):
                yield from _shown(word(role(message), _clean), part.text)
    yield from _answer(turn)


def _kept(turn: RecordedTurn, before: RecordedTurn | None) -> int:
    if before is None:
        return 0
    pairs = zip(turn.hashes, before.hashes, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(turn.hashes), len(before.hashes)))


def _answer(turn: RecordedTurn) -> Iterator[str]:
    last = turn.attempts[-1] if turn.attempts else None
    if last is None or last.response is None:
        said = "none" if last is None else str(last.error or last.body or last.status)
        yield from _shown("no answer", said)
    else:
        answer = by_api(turn.api).answer(json.loads(last.response))
        if answer.text:
            yield from _shown("assistant", answer.text)
    for call in turn.calls:
        yield from _call(call)


def _call(call: RecordedCall) -> Iterator[str]:
    arguments = call.arguments if isinstance(call.arguments, str) else canonical(call.arguments)
    yield from _shown(f"call {word(call.name, _clean)}", arguments)
    if not call.has_result:
        yield "**result**: none"
        yield ""
        return
    raised = f" {word(call.error_type, _clean)}" if call.error_type else ""
    title = f"error{raised}" if call.is_error or raised else "result"
    yield from _shown(title, call.error if raised and call.error else plain_text(call.value))


def _shown(title: str, text: Any) -> Iterator[str]:
    text = str(text)
    more = len(text) - LONGEST
    if more > 0:
        title, text = f"{title} (first {LONGEST:,} of {len(text):,} characters)", text[:LONGEST]
    yield from fenced(title, text, _clean)


def _clean(text: str) -> str:
    return _ODD.sub("\ufffd", text.replace("\r\n", "\n"))
