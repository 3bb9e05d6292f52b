"""A request as the model saw it, in plain text: system, tools, numbered messages, marked same or new."""

from __future__ import annotations

from typing import Any

from ...replay.message_parts import MessagePart, parts, plain_text, role
from ...tracer.canonical import same
from ...tracer.model import Request, Run
from .. import report
from ..report import Styled
from .transcript import json_block, subtitle

SAME, NEW, CHANGED = "≡", "+", "✎"


def show(run: Run, number: int, request: Request, before: Request | None) -> None:
    """Prints a whole request; ``before`` is the request of the turn before, for the marks."""
    report.out(Styled(f"request of turn {number}", "bold"), "  ", subtitle(run))
    if before is not None:
        report.out(Styled(f"{SAME} as in turn {number - 1}   {CHANGED} changed   {NEW} new", "dim"))
    if request.params:
        report.out(Styled("parameters ", "accent"), _mark(before and before.params, request.params, before))
        for key, value in request.params.items():
            report.out(f"  {key}: ", value if isinstance(value, str) else _compact(value))
    if request.system is not None:
        report.out(Styled("system ", "accent"), _mark(before and before.system, request.system, before))
        report.block(plain_text(request.system), indent="  ")
    _tools(request, before)
    report.out(Styled(f"messages {len(request.messages):,}", "accent"))
    for index, message in enumerate(request.messages):
        _message(index, message, before)


def mark(index: int, message: Any, before: Request | None) -> str:
    """How a message (index from 0) stands to the one at its place in the turn before."""
    if before is None:
        return " "
    if index >= len(before.messages):
        return NEW
    return SAME if same(before.messages[index], message) else CHANGED


def _message(index: int, message: Any, before: Request | None) -> None:
    sign = mark(index, message, before)
    style = "dim" if sign == SAME else "bold"
    left_out = isinstance(message, dict) and message.get("not_recorded") is True
    said = f"not recorded ({message.get('length') or 0:,} characters)" if left_out else role(message)
    report.out(Styled(f"{sign} [{index + 1}] {said}", style))
    for part in parts(message):
        _part(part)


def _part(part: MessagePart) -> None:
    if part.kind == "call":
        report.out("  → ", Styled(part.name or "?", "bold"), f" {part.text}")
    elif part.kind == "result":
        report.out(
            "  ",
            Styled(f"{'✗' if part.is_error else '='} result of {part.call or '?'}", "bad" if part.is_error else "dim"),
        )
        report.block(part.text, indent="    ")
    elif part.kind == "thinking":
        report.block(part.text, indent="  ~ ", style="dim")
    else:
        report.block(part.text, indent="  ")


def _tools(request: Request, before: Request | None) -> None:
    tools = request.tools
    if not isinstance(tools, list) or not tools:
        return
    report.out(Styled(f"tools {len(tools)} ", "accent"), _mark(before and before.tools, tools, before))
    for tool in tools:
        inner = tool.get("function") if isinstance(tool, dict) and isinstance(tool.get("function"), dict) else tool
        if not isinstance(inner, dict):
            report.block(json_block(tool), indent="  ")
            continue
        report.out(
            "  ", Styled(str(inner.get("name") or inner.get("type")), "bold"), f"  {inner.get('description') or ''}"
        )
        schema = inner.get("input_schema") or inner.get("parameters")
        if schema is not None:
            report.out("    ", Styled(_compact(schema), "dim"))


def _mark(old: Any, new: Any, before: Request | None) -> Styled:
    if before is None:
        return Styled("", "dim")
    return Styled(f"{SAME} unchanged", "dim") if same(old, new) else Styled(f"{CHANGED} changed", "warn")


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
