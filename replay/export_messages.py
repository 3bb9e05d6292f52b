"""One turn's request as the provider's own JSON: what can be sent again, or taken in by the raw importer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tracer.errors import LooptapeError, UsageError
from ..tracer.providers import by_api

if TYPE_CHECKING:
    from ..tracer.model import Run, Turn
    from ..tracer.store import Store

_SYSTEM = {"openai.responses": "instructions"}
# What asks the server to put earlier messages before these: here they all stand in the list.
_CHAIN = ("thread", "previous_message_id", "previous_response_id", "conversation")


def request_body(store: Store, run: Run, number: int | None = None) -> dict[str, Any]:
    """The request of a turn (the last one that has a request, by default) as one JSON object.

    All messages stand in it, also those that only the server held. Secrets stay as ``[redacted:TYPE]``.

    Raises:
        UsageError: The run has no turn, or none of that number.
        LooptapeError: Its content was not recorded (``no-content``, exit 3).
    """
    turn = _turn(store, run, number)
    request = store.request(run.id, turn.number)
    lacking = sum(1 for m in request.messages if isinstance(m, dict) and m.get("not_recorded") is True)
    if lacking or turn.message_count is None:
        what = f"{lacking} of its {len(request.messages)} messages were" if lacking else "its request was"
        raise LooptapeError(
            "no-content",
            f"turn {turn.number} of {run.id} cannot be written: {what} not recorded",
            "Recordings with LOOPTAPE_CONTENT=full hold the messages",
        )
    api = by_api(turn.api)
    body: dict[str, Any] = {}
    model = turn.request_model or turn.model
    if model:
        body["model"] = model
    body.update({k: v for k, v in request.params.items() if k not in _CHAIN})
    if request.system is not None:
        body[_SYSTEM.get(api.API, "system")] = request.system
    if request.tools is not None:
        body["tools"] = request.tools
    body[api.LIST_KEY] = list(request.messages)
    if turn.stream and turn.api in ("anthropic.messages", "openai.chat", "openai.responses"):
        body["stream"] = True
    return body


def _turn(store: Store, run: Run, number: int | None) -> Turn:
    turns = store.turns(run.id, number, number)
    asked = [t for t in turns if t.message_count is not None] or turns
    if not asked:
        what = "no turn to write" if number is None else f"no turn {number} in its recording"
        raise UsageError("no-turn", f"run {run.id} has {what}", f"looptape show {run.id} lists its turns")
    return asked[-1]
