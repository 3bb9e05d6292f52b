"""`wrap(client)` and `instrument()`: put the recording transport into SDK clients.

The only file that touches a client's inside. No public path reaches the transports of a client that
exists, so private attributes are used here and tested against every supported SDK version.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

from .process import quietly, recorder
from .transport import AsyncRecordingTransport, RecordingTransport, send, send_async

C = TypeVar("C")
_LIBRARIES = ("httpx2", "httpx")
_PATCHED = "_looptape_patched"


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
    http._transport = _recording(http, http._transport)
    for pattern, transport in list(http._mounts.items()):
        if transport is not None:
            http._mounts[pattern] = _recording(http, transport)
    return client


def instrument() -> None:
    """Records every client of the process that goes through httpx2 or httpx, now or later.

    Frameworks that make their own clients are recorded by this. Safe to call before those libraries
    are imported, and more than once.
    """
    if recorder() is None:
        return
    for name in _LIBRARIES:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "HTTPTransport"):
            _patch(module)
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _is_http_client(value: object) -> bool:
    return hasattr(value, "_transport") and hasattr(value, "_mounts") and hasattr(value, "_transport_for_url")


def _recording(http: Any, transport: Any) -> Any:
    if isinstance(transport, (RecordingTransport, AsyncRecordingTransport)):
        return transport
    is_async = hasattr(http, "aclose")
    return AsyncRecordingTransport(transport) if is_async else RecordingTransport(transport)


@quietly
def _patch(module: ModuleType) -> None:
    """Puts recording into the library's own two transport classes; their subclasses inherit it."""
    sync, asynchronous = module.HTTPTransport, module.AsyncHTTPTransport
    if getattr(sync, _PATCHED, False):
        return
    original, original_async = sync.handle_request, asynchronous.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        return send(lambda r: original(self, r), request)

    async def handle_async_request(self: Any, request: Any) -> Any:
        return await send_async(lambda r: original_async(self, r), request)

    sync.handle_request = handle_request
    asynchronous.handle_async_request = handle_async_request
    setattr(sync, _PATCHED, True)


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for httpx2 or httpx to be imported and patches it then."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The real spec with a loader that patches after loading; None for every other module."""
        if fullname not in _LIBRARIES:
            return None
        for finder in sys.meta_path:
            if isinstance(finder, _Finder):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads a module with its own loader, then patches it."""

    def __init__(self, inner: importlib.abc.Loader) -> None:
        self._inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module, then patches its transports."""
        self._inner.exec_module(module)
        _patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
