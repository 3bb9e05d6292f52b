"""A run as one HTML file that does nothing but show: no script, no link, no remote resource, every text escaped."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Any

from ..tracer.model import Request, Run, ToolCall, Turn
from .message_parts import plain_text
from .recording import Recording

Clean = Callable[[str], str]

FOLD_LINES, FOLD_CHARS = 14, 1500  # a longer text stands folded behind its first words

STYLE = """
:root{color-scheme:light dark;--ink:#1c1b22;--dim:#6b6876;--page:#faf9f7;--card:#fff;--line:#dedbe3;--blue:#2458b3;
--green:#23703a;--red:#b3261e;--violet:#6b3fa0;--well:#f3f1f5}
@media(prefers-color-scheme:dark){:root{--ink:#e6e4ea;--dim:#98949f;--page:#161519;--card:#1e1d22;--line:#38353f;
--blue:#8ab4f8;--green:#81c995;--red:#f28b82;--violet:#c5a3f0;--well:#26242b}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:64rem;padding:2rem 1.25rem 4rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.25rem;margin:0 0 1.25rem}
dt{color:var(--dim)}
dd{margin:0;overflow-wrap:anywhere}
.turn{border-top:1px solid var(--line);padding-top:1rem;margin-top:1.75rem}
.facts{color:var(--dim);font-size:.85rem;margin:.1rem 0 .75rem;overflow-wrap:anywhere}
.part{border:1px solid var(--line);border-left:3px solid var(--line);border-radius:4px;background:var(--card);margin:.6rem 0;
padding:.5rem .75rem}
.what{font-size:.8rem;font-weight:600;color:var(--dim);overflow-wrap:anywhere}
.user{border-left-color:var(--blue)}
.assistant{border-left-color:var(--green)}
.call{border-left-color:var(--violet)}
.result{margin-left:1.5rem}
.error{border-left-color:var(--red)}
.error>.what{color:var(--red)}
.thinking pre,.event pre{color:var(--dim)}
pre{margin:.3rem 0 0;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext;
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
summary{cursor:pointer;font-size:.85rem;overflow-wrap:anywhere}
summary span{color:var(--dim)}
details>pre{background:var(--well);border-radius:4px;padding:.5rem .6rem}
footer{color:var(--dim);font-size:.8rem;margin-top:3rem}
@media print{:root{--page:#fff;--card:#fff;--ink:#000;--dim:#555;--line:#bbb;--well:#fff}
body{max-width:none;padding:0;font-size:10pt}pre{font-size:8.5pt}h2,.what,summary{break-after:avoid}
details::details-content{content-visibility:visible;display:block;block-size:auto}}
"""


def policy() -> str:
    """The content security policy of the file: nothing may load or run; its one style sheet is known by its hash."""
    digest = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def html(recording: Recording, clean: Clean = lambda text: text, request: Request | None = None) -> Iterator[str]:
    """The run as the pieces of one HTML document.

    Args:
        clean: Applied to every recorded text before it is escaped (control codes and what hides in Unicode).
        request: Of the first turn shown: its system prompt, tools and parameters then stand at the head.
    """
    title = _e(recording.run.name or recording.run.title or recording.run.id, clean)
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy())}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )
    yield from _head(recording.run, clean)
    if request is not None:
        yield from _given(request, clean)
    for turn in recording.turns:
        yield from _turn(recording, turn, clean)
    yield f"<footer>looptape, run {_e(recording.run.id, clean)}</footer>\n</body>\n</html>\n"


def _head(run: Run, clean: Clean) -> Iterator[str]:
    cost = "unpriced" if run.cost_usd is None else f"${run.cost_usd:,.4f}" + (" (list price)" if run.list_price else "")
    partly = f", {run.unpriced_turns} turns unpriced" if run.cost_usd is not None and run.unpriced_turns else ""
    facts = {
        "status": run.status + (f" ({run.reason})" if run.reason else ""),
        "model": ", ".join(run.models),
        "task": run.task,
        "started": _time(run.started_at),
        "turns": f"{run.turns:,}",
        "tool calls": f"{run.tool_calls:,}",
        "errors": f"{run.errors:,}",
        "cost": cost + partly,
        "outcome": json.dumps(dict(run.outcome), ensure_ascii=False) if run.outcome else None,
        "tags": ", ".join(f"{k}: {v}" for k, v in run.tags.items()),
        "source": run.source,
        "warnings": "\n".join(run.warnings),
    }
    yield "<dl>\n"
    for name, value in facts.items():
        if value:
            yield f"<dt>{name}</dt><dd>{_e(value, clean)}</dd>\n"
    yield "</dl>\n"


def _given(request: Request, clean: Clean) -> Iterator[str]:
    if request.system is not None:
        yield _part("system", "system", plain_text(request.system), clean, fold=True)
    if request.tools is not None:
        count = len(request.tools) if isinstance(request.tools, (list, tuple)) else 1
        yield _part("tools", f"tools ({count})", _json(request.tools), clean, fold=True)
    if request.params:
        yield _part("params", "parameters", _json(dict(request.params)), clean, fold=True)


def _turn(recording: Recording, turn: Turn, clean: Clean) -> Iterator[str]:
    yield f'<section class="turn">\n<h2>Turn {turn.number}</h2>\n'
    yield f'<p class="facts">{_e(" · ".join(_facts(turn)), clean)}</p>\n'
    for event in recording.events_at(turn.number):
        yield _part("event", f"event: {event.kind}", _json(event.detail), clean)
    for incoming in recording.incoming.get(turn.number, ()):
        kind = "user" if incoming.role == "user" else "other"
        yield _part(kind, incoming.role, incoming.part.text, clean)
    if turn.thinking:
        yield _part("thinking", "thinking", turn.thinking, clean)
    if turn.text:
        yield _part("assistant", "assistant", turn.text, clean)
    for call in turn.tool_calls:
        yield from _call(call, clean)
    if turn.error:
        yield _part("error", f"error: {turn.error_type or ''}", turn.error, clean)
    yield "</section>\n"


def _facts(turn: Turn) -> Iterator[str]:
    yield from (f for f in (turn.model, turn.stop_reason, None if turn.status == "ok" else turn.status) if f)
    usage = turn.usage
    if usage.context is not None or usage.output is not None:
        yield f"in {_count(usage.context)}, out {_count(usage.output)} tokens"
    if turn.cost_usd is not None:
        yield f"${turn.cost_usd:.4f}"
    if turn.generate_ms is not None:
        yield f"{turn.generate_ms / 1000:.1f} s"
    if turn.inherited:
        yield "inherited"


def _call(call: ToolCall, clean: Clean) -> Iterator[str]:
    note = "" if call.valid else f" (invalid arguments: {call.invalid_reason or 'no JSON object'})"
    arguments = _json(call.arguments) if call.valid else call.arguments_raw
    yield _part("call" if call.valid else "call error", f"call: {call.name}{note}", arguments, clean)
    took = "" if call.ms is None else f", {call.ms / 1000:.1f} s" + (" (inferred)" if call.timing == "inferred" else "")
    if call.result is not None:
        kind, title = ("result error", "result: error") if call.is_error else ("result", "result")
        yield _part(kind, title + took, plain_text(call.result), clean)
    elif call.state in ("no_result", "cancelled", "incomplete"):
        yield _part("result error", f"result: none ({call.state.replace('_', ' ')})", "", clean)


def _part(kind: str, title: str, text: str, clean: Clean, *, fold: bool = False) -> str:
    """One box; a long text is folded, with its size and first words outside.

    Args:
        kind: Its classes, ours; title and text may be anybody's.
        fold: Fold it as soon as it is more than a few lines.
    """
    shown = clean(text).rstrip("\n")
    head = f'<div class="part {kind}"><div class="what">{_e(title, clean)}</div>'
    if not shown:
        return head + "</div>\n"
    body = f"<pre>\n{escape(shown)}</pre>"  # the line end after <pre> is eaten, so that none of the text is
    lines = shown.count("\n") + 1
    if not (lines > FOLD_LINES or len(shown) > FOLD_CHARS or (fold and (lines > 3 or len(shown) > 300))):
        return f"{head}{body}</div>\n"
    size = f"{len(shown):,} characters, {lines:,} line{'' if lines == 1 else 's'}"
    first = " ".join(shown[:400].split())
    first = first if len(first) <= 100 and len(shown) <= 400 else first[:100] + "…"
    return f"{head}<details><summary>{escape(first)} <span>({size})</span></summary>{body}</details></div>\n"


def _e(text: str, clean: Clean) -> str:
    return escape(clean(text))


def _json(value: Any) -> str:
    try:
        return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _time(at: int | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at // 1_000_000, UTC).isoformat()
