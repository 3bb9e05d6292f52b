"""T05: streamed answers without usage: the provider was not asked for it, or the stream was not read to its end."""

from __future__ import annotations

from collections.abc import Iterator

from ...tracer.model import Turn
from .facts import RunFacts
from .rule import Finding, Said, Unknown, span

ID = "T05"
TITLE = "Stream without usage"
FIX_ASK = 'Ask for it: stream_options={"include_usage": true}, and read the stream to its last chunk, which carries it.'
FIX_READ = (
    "Read every stream to its end, for usage comes with the last event; where the loop does, the instrumentation drops it: "
    "record with one that keeps it."
)


def check(facts: RunFacts) -> Iterator[Said]:
    """Streams that ended well and say no tokens. Cut ones have lower bounds where the provider gives any."""
    answered = [t for t in facts.turns if t.status == "ok"]
    silent = [t for t in answered if t.usage.origin == "missing"]
    streams = [t for t in silent if t.stream]
    if not streams:
        if facts.foreign and silent and len(silent) == len(answered) and any(t.started_at for t in answered):
            yield Unknown(ID, facts.run.id, ("turns.stream", "turns.usage"))
        return
    numbers = [t.number for t in streams]
    chat = any((t.api or "").startswith("openai.chat") or t.provider == "openai" for t in streams)
    yield Finding(
        ID, "warning", facts.run.id, numbers[0], numbers[-1],
        f"{len(streams)} of {sum(t.stream for t in answered)} streamed answers say nothing of their tokens ({span(numbers)})",
        tuple(f"turn {t.number}: {_told(t)}" for t in streams[:3]), facts.waste(()), 0.9, FIX_ASK if chat else FIX_READ,
    )  # fmt: skip


def _told(turn: Turn) -> str:
    return f"{turn.model or turn.request_model or 'no model'}, stop reason {turn.stop_reason or 'none'}, no usage"
