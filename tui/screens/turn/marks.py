"""What must be known before one trusts a turn's figures and texts: cut, edited, inherited, unpriced, not kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....tracer.model import ToolCall, Turn
from ...data.views import TurnView
from ...format import counted

FLAGS: Mapping[str, str] = {
    "truncated_at_source": "truncated at source",
    "content_not_kept": "content not kept",
    "history_incomplete": "history incomplete",
    "answer_not_read": "answer not read",
    "answer_text_only": "only the answer's text is known",
    "assistant_text_not_kept": "the model's words were not kept",
    "no_content": "no content",
    "output_unreliable": "output tokens unreliable",
    "otel_attributes_cut": "attributes cut",
    "altered_signature": "edited: a signed block was redacted",
    "cached_response": "answered from the program's own cache",
    "compaction": "▤ compaction: the history was replaced",
}
"""A turn's flags in words; those that are not here are told as they are."""


def marks(view: TurnView, extras: Mapping[str, Any]) -> tuple[str, ...]:
    """The remarks of a turn, the gravest first; nothing when all is whole and its own."""
    turn = view.turn
    said = [FLAGS.get(flag, flag.replace("_", " ")) for flag in turn.flags]
    if turn.inherited:
        said.append("inherited from the parent run")
    if (lost := not_recorded(view)) > 0:
        said.append(f"{counted(lost, 'message')} not loaded: only hashes are kept")
    if view.request_trouble:
        said.append("request not known")
    if (cut := sum(1 for call in turn.tool_calls if shortened(call))) > 0:
        said.append(f"{counted(cut, 'result')} truncated before the model saw it")
    if getattr(extras.get("wire"), "altered", False):
        said.append("edited chunks")
    if turn.usage.partial:
        said.append("tokens are lower bounds")
    if unpriced(turn):
        said.append("unpriced")
    return tuple(dict.fromkeys(said))


def not_recorded(view: TurnView) -> int:
    """Messages of the request of which only the hash was kept."""
    messages = view.request.messages if view.request is not None else ()
    return sum(1 for m in messages if isinstance(m, Mapping) and m.get("not_recorded"))


def shortened(call: ToolCall) -> bool:
    """True where the model saw less than the tool gave."""
    if call.is_error or not isinstance(
        call.result, str
    ):  # an error is told to the model in other words than it was raised in
        return False
    return (call.result_length or 0) > len(call.result)


def unpriced(turn: Turn) -> bool:
    """True where tokens are known and no price is."""
    return turn.cost_usd is None and turn.usage.origin != "missing" and turn.status != "open"
