"""What the keys y and o are about on a turn: the chosen part of the text, else the main thing of the tab. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...data.views import TurnView
from ...place import Place, Subject
from ...widgets.blocks import Fold
from ...widgets.json_text import pretty, readable
from .content import text_of
from .reading import Wired


def subject_of(
    place: Place, view: TurnView | None, tab: str, chosen: Fold | None, extras: Mapping[str, Any]
) -> Subject:
    """The place with a value, if there is one."""
    caller = view.turn.caller if view is not None else None
    value, what = (chosen.value, chosen.what) if chosen is not None else _main(view, tab, extras)
    if value is None:
        return Subject(place, caller=caller)
    return Subject(place, _written(value), what, value if not isinstance(value, str) else readable(value), caller)


def _main(view: TurnView | None, tab: str, extras: Mapping[str, Any]) -> tuple[Any, str]:
    if view is None:
        return None, ""
    turn = view.turn
    if tab == "request" and view.request is not None:
        seen = view.request
        parts = {"system": seen.system, "tools": seen.tools, **seen.params, "messages": list(seen.messages)}
        return {k: v for k, v in parts.items() if v is not None}, "request"
    if tab == "response":
        return turn.response, "response"
    if tab == "usage":
        return turn.usage.raw, "usage"
    if tab == "wire":
        wired = extras.get("wire")
        return (wired.view.request, "request") if isinstance(wired, Wired) else (None, "")
    if tab == "calls":
        return next(((c.result, f"result of {c.name}") for c in turn.tool_calls if c.result is not None), (None, ""))
    return (turn.text, "text") if tab == "conversation" and turn.text else (None, "")


def _written(value: Any) -> str:
    """A value as text: blocks by their words where they have any, all else as JSON."""
    if isinstance(value, str):
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(b, Mapping) and isinstance(b.get("text"), str) for b in value)
    ):
        return text_of(value)
    return pretty(value)
