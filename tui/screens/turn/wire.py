"""The wire tab: every attempt with status, wait and headers; request and response as they were; the stream. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....tracer.model import Attempt, Turn
from ...data.views import Trouble, TurnView
from ...format import counted, duration, size
from ...told.media import without_blobs
from ...widgets.blocks import Block, Body, Document, Fold, Head
from ...widgets.cells import Span
from ...widgets.json_text import pretty, readable
from .conversation import phase
from .reading import Want, Wired

_BLANK = Head(())
_RAW_CHUNKS = 2000
"""Chunks that stand one by one with their times; beyond them the stream is shown joined."""


def wire(view: TurnView, extras: Mapping[str, Any], want: Want) -> Document:
    """What went over the wire. ``extras``: ``wire`` once it is read."""
    told = extras.get("wire")
    out: list[Block] = [*_attempts(view.turn), _BLANK]
    if told is None:
        return (*out, Head((("reading …", "dim"),)))
    if isinstance(told, Trouble):
        return (*out, Head((("✗ ", "bad_strong"), (f"{told.what}. {told.cure}", "text"))))
    shown: Wired = told
    if shown.view.trouble:
        out += [Head((("✗ ", "bad_strong"), (shown.view.trouble, "text"))), _BLANK]
    out += [_text("request", shown.view.request, want.raw, open_=not shown.view.chunks), _BLANK]
    if shown.view.chunks:
        out += [_stream(shown, want.raw), _BLANK]
    if shown.view.response is not None or not shown.view.chunks:
        out.append(_text("response", shown.view.response, want.raw, open_=True))
    return tuple(out)


def _attempts(turn: Turn) -> Iterator[Block]:
    yield phase("ATTEMPTS", str(len(turn.attempts)) if turn.attempts else "not recorded")
    for number, attempt in enumerate(turn.attempts, 1):
        inner = (*_headers(attempt), *_refused(attempt))
        yield Fold(
            f"attempt.{number}", tuple(_attempt(number, attempt)), inner, False, 0, value=attempt.body, what="body"
        )


def _attempt(number: int, attempt: Attempt) -> Iterator[Span]:
    fine = attempt.error is None and (attempt.status or 200) < 400
    status = "no status" if attempt.status is None else str(attempt.status)
    yield (f"{number}  ", "dim")
    yield (f"{'' if fine else '✗ '}{status}", "text" if fine else "bad_strong")
    if attempt.error:
        yield (f" {attempt.error}", "bad")
    facts = []
    if attempt.started_at is not None and attempt.ended_at is not None:
        facts.append(f"took {duration((attempt.ended_at - attempt.started_at) / 1000)}")
    if attempt.wait_ms:
        facts.append(f"after a wait of {duration(attempt.wait_ms)}")
    if attempt.error_type and attempt.error_type != attempt.error:
        facts.append(attempt.error_type)
    facts.append(attempt.request_id or "")
    facts.append(counted(len(attempt.headers), "header") if attempt.headers else "")
    yield ("  " + " · ".join(f for f in facts if f), "dim")


def _headers(attempt: Attempt) -> Iterator[Block]:
    widest = max((len(name) for name in attempt.headers), default=0)
    for name, value in sorted(attempt.headers.items()):
        yield Head(((f"{name:<{min(widest, 40)}}  ", "dim"), (str(value), "text")), 4, min(widest, 40) + 2)


def _refused(attempt: Attempt) -> Iterator[Block]:
    if attempt.body:
        yield Head((("body of the refused answer", "dim"),), 4)
        yield _body(attempt.body, raw=False, indent=6)


def _text(name: str, text: str | None, raw: bool, *, open_: bool) -> Block:
    if text is None:
        return phase(name.upper(), "not recorded")
    head: tuple[Span, ...] = ((f"{name.upper():<10}", "accent_strong"), (size(len(text)), "dim"))
    return Fold(f"wire.{name}", head, (_body(text, raw=raw, indent=4),), open_, value=text, what=name, lasting=True)


def _stream(shown: Wired, raw: bool) -> Fold:
    chunks = shown.view.chunks
    joined = "".join(text for _, text in chunks)
    facts = f"{counted(len(chunks), 'chunk')} · {size(len(joined))}"
    head: list[Span] = [("STREAM    ", "accent_strong"), (facts, "dim")]
    head += [("  edited chunks: a secret was taken out", "bad")] if shown.altered else []
    inner: list[Block] = []
    if raw or len(chunks) > _RAW_CHUNKS:
        inner.append(Body(joined, "text", 4))
    else:
        for offset, text in chunks:
            inner += [Head(((f"{offset / 1e6:8.3f} s", "dim"),), 2), Body(text.rstrip("\n"), "text", 6)]
    return Fold("wire.stream", tuple(head), tuple(inner), value=joined, what="stream", lasting=True)


def _body(text: str, *, raw: bool, indent: int) -> Body:
    value = None if raw else readable(text)
    return Body(text, "text", indent) if value is None else Body(pretty(without_blobs(value)), "text", indent, "json")
