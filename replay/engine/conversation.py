"""The request body while a run grows: every message is made into JSON once, so that a turn costs what is new."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...tracer.providers import by_api


class Conversation:
    """A request body with its growing message list."""

    def __init__(self, api: str, body: Mapping[str, Any]) -> None:
        self.api = api
        self._key = by_api(api).LIST_KEY
        listed = body.get(self._key)
        self.rest: dict[str, Any] = {k: v for k, v in body.items() if k != self._key}
        self._messages: list[Any] = []
        self._texts: list[bytes] = []
        self.add(listed if isinstance(listed, list) else [])

    @property
    def messages(self) -> Sequence[Any]:
        """The messages as they stand; not to be changed."""
        return self._messages

    @property
    def size(self) -> int:
        """Bytes of the messages."""
        return sum(map(len, self._texts))

    def add(self, messages: Sequence[Any]) -> None:
        """Appends messages."""
        for message in messages:
            self._messages.append(message)
            self._texts.append(_bytes(message))

    def replace(self, index: int, message: Any) -> None:
        """Puts another message in the place of one."""
        self._messages[index] = message
        self._texts[index] = _bytes(message)

    def cut(self, first: int, last: int, instead: Sequence[Any]) -> None:
        """Takes messages ``first`` to ``last`` (from 0, the last not included) out and puts others there."""
        self._messages[first:last] = list(instead)
        self._texts[first:last] = [_bytes(m) for m in instead]

    def raw(self, **changed: Any) -> bytes:
        """The body as JSON. The messages stand first, so that other tools in a turn leave the beginning as it was."""
        rest = json.dumps({**self.rest, **changed}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        listed = b'{"' + self._key.encode() + b'":[' + b",".join(self._texts) + b"]"
        return listed + (b"," + rest[1:] if rest != b"{}" else b"}")

    def body(self, **changed: Any) -> dict[str, Any]:
        """The body as a dict that shares its messages with this conversation."""
        return {**self.rest, **changed, self._key: list(self._messages)}


def _bytes(message: Any) -> bytes:
    # compact, as the SDKs send it: so the texts of a recording's messages are stored once for all its forks
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
