"""A model that answers from a recorded run, turn by turn, as long as the requests are those of the recording."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....tracer.canonical import canonical
from ....tracer.providers import by_api
from ...message_parts import MessagePart, parts
from ...player.normalise import Normaliser
from ..dialects import response_body
from .protocol import ModelAnswer, ModelError, ModelMiss

CURE = "Name who shall answer: --model anthropic, openai:BASE_URL, a model's name, or scripted:FILE"
_LISTS = ("messages", "input", "contents")
_SHORT = 60


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One recorded turn.

    Attributes:
        messages: The request's messages, in the wire format of the fork as far as the first one goes.
        rest: Everything else of the request; None where it is not compared (later turns of the same run).
        response: The answer as it was recorded, None when the call failed.
        api: The wire format of the answer.
    """

    messages: tuple[Any, ...]
    rest: Mapping[str, Any] | None
    response: Mapping[str, Any] | None
    api: str
    error: str | None = None
    error_type: str | None = None


class RecordedModel:
    """Answers turn N with what turn N was answered. Thinking is not compared: it is not always sent again."""

    apis: tuple[str, ...] = ()
    """Any wire format."""
    limited_as: str | None = None
    """Nothing limits a recording."""

    def __init__(self, answers: Mapping[int, RecordedAnswer], *, source: str, edits: Sequence[str] = ()) -> None:
        self._answers = answers
        self._source = source
        self._edits = tuple(edits)
        self._rules = Normaliser()

    def ask(self, body: Mapping[str, Any], *, api: str, turn: int, timeout: float) -> ModelAnswer:
        """The recorded answer of that turn.

        Raises:
            ModelError: That call failed in the recording.
            ModelMiss: The recording has no such turn, or its request was another.
        """
        found = self._answers.get(turn)
        if found is None:
            last = max(self._answers, default=turn - 1)
            raise ModelMiss(f"{self._source} ends with turn {last}, turn {turn} is new. {CURE}")
        differs = self._difference(found, body)
        if differs is not None:
            changed = f" (edited: {', '.join(e.partition('=')[0] for e in self._edits)})" if self._edits else ""
            raise ModelMiss(f"the request of turn {turn} is not the recorded one{changed}: {differs}. {CURE}")
        if found.response is None:
            raise ModelError(found.error or "the recorded call failed", kind=found.error_type or "recorded_error")
        return ModelAnswer(_as(api, found, turn), recorded=True)

    def spec(self) -> dict[str, Any]:
        """Its kind: the run is the one that was forked."""
        return {"kind": "recorded"}

    def fresh(self, turns_made: int = 0) -> RecordedModel:
        """The same: it answers by the turn's number."""
        return self

    def close(self) -> None:
        """Nothing to let go of."""

    def _difference(self, found: RecordedAnswer, body: Mapping[str, Any]) -> str | None:
        """The first path that differs, with both values short; None when it is the same request."""
        if found.rest is not None:
            rest = {k: v for k, v in body.items() if k not in _LISTS}
            for key in sorted({*rest, *found.rest}):
                if canonical(rest.get(key)) != canonical(found.rest.get(key)):
                    return f"{key} was {_short(found.rest.get(key))}, is {_short(rest.get(key))}"
        key = next((k for k in _LISTS if k in body), "messages")
        asked = [(i, p) for i, m in enumerate(body.get(key) or (), 1) for p in _spoken(m)]
        known = [p for m in found.messages for p in _spoken(m)]
        for (place, got), recorded in zip(asked, known, strict=False):
            if not self._same(got, recorded):
                return f"{key}[{place}] was {_short(recorded.text)}, is {_short(got.text)}"
        if len(asked) != len(known):
            return f"{key} holds {len(asked)} parts, the recording {len(known)}"
        return None

    def _same(self, got: MessagePart, recorded: MessagePart) -> bool:
        if (got.kind, got.name) != (recorded.kind, recorded.name):
            return False
        if got.text == recorded.text:
            return True
        if got.kind == "call":
            return canonical(_loads(got.text)) == canonical(_loads(recorded.text))
        return self._rules.text(got.text) == self._rules.text(recorded.text)


def _spoken(message: Any) -> list[MessagePart]:
    return [p for p in parts(message) if p.kind != "thinking" and (p.text or p.kind != "text")]


def _as(api: str, found: RecordedAnswer, turn: int) -> dict[str, Any]:
    """The answer in the wire format of the fork: as it was, or what it says where the recording has another."""
    response = dict(found.response or {})
    if found.api == api or (api == "anthropic.messages" and isinstance(response.get("content"), list)):
        return response
    said = by_api(found.api).answer(response)
    calls = [
        {"id": c.id, "name": c.name, "arguments": _loads(c.arguments_raw)} for c in said.calls if not c.provider_side
    ]
    return response_body(api, text=said.text, calls=calls, turn=turn, usage=None, model=said.model, stop=None)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHORT else line[: _SHORT - 1] + "…")


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
