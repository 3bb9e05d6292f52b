"""`wrap(client)`: puts the recording transport into an SDK client.

The only file that touches a client's inside (`hook.py` does so to their HTTP libraries). No public path
reaches the transports of a client that exists, so private attributes are used here and tested against
every supported SDK version.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .hook import instrument as instrument
from .process import recorder
from .redaction import remember
from .transport import AsyncRecordingTransport, RecordingTransport

C = TypeVar("C")


def wrap(client: C) -> C:
    """Records every model call of an SDK client, in place, and returns the same client.

    Works for `anthropic` and `openai` clients (sync, async, Vertex and Azure kinds) and for plain
    httpx or httpx2 clients. Clones made by `with_options` share the transport and are recorded too.

    Args:
        client: The client to record. Wrapping it twice changes nothing.

    Raises:
        TypeError: When this is no client whose transport can be reached; nothing was changed then.
    """
    if recorder() is None:
        return client
    http: Any = client if _is_http_client(client) else getattr(client, "_client", None)
    if not _is_http_client(http):
        raise TypeError(
            f"looptape.wrap() records anthropic, openai and httpx clients, not {type(client).__module__}.{type(client).__name__}. "
            "For other loops use `with looptape.run(...) as run: run.turn(...)`"
        )
    for name in ("api_key", "auth_token"):
        if isinstance(key := getattr(client, name, None), str):
            remember(key)  # what is written before the first request must not hold it either
    http._transport = _recording(http, http._transport)
    for pattern, transport in list(http._mounts.items()):
        if transport is not None:
            http._mounts[pattern] = _recording(http, transport)
    return client


def _is_http_client(value: object) -> bool:
    return hasattr(value, "_transport") and hasattr(value, "_mounts") and hasattr(value, "_transport_for_url")


def _recording(http: Any, transport: Any) -> Any:
    if isinstance(transport, (RecordingTransport, AsyncRecordingTransport)):
        return transport
    is_async = hasattr(http, "aclose")
    return AsyncRecordingTransport(transport) if is_async else RecordingTransport(transport)
