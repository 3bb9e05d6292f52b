"""`instrument()`: recording in every client of the process, whoever makes it.

Imports nothing heavy: under `looptape record` this file is loaded by every Python process that the program
starts, also by those that never call a model. The recorder comes with the first HTTP library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .quiet import quietly

LIBRARIES = ("httpx2", "httpx")
PATCHED = "_looptape_patched"
"""Marks a library's transport class whose instances record."""


_wanted = {"always": 0, "for a while": 0}
"""Who asked: the patch stays in the libraries, but passes everything through where nobody wants it any more."""


def instrument() -> None:
    """Records every client of the process that goes through httpx2 or httpx, now or later.

    Frameworks that make their own clients are recorded by this. Safe to call before those libraries
    are imported, and more than once.
    """
    _wanted["always"] = 1
    _patch_libraries()


@contextmanager
def instrumented() -> Iterator[None]:
    """The same while the block runs (a replay in this process, which must miss no client)."""
    _wanted["for a while"] += 1
    try:
        _patch_libraries()
        yield
    finally:
        _wanted["for a while"] -= 1


def _patch_libraries() -> None:
    for name in LIBRARIES:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "HTTPTransport"):
            _patch(module)
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # no MetaPathFinder: importlib.abc costs 5 ms


@quietly
def _patch(module: ModuleType) -> None:
    """Puts recording into the library's own two transport classes; their subclasses inherit it."""
    from .process import recorder
    from .transport import send, send_async

    sync, asynchronous = module.HTTPTransport, module.AsyncHTTPTransport
    if recorder() is None or getattr(sync, PATCHED, False):
        return
    original, original_async = sync.handle_request, asynchronous.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        if not any(_wanted.values()):
            return original(self, request)
        return send(lambda r: original(self, r), request)

    async def handle_async_request(self: Any, request: Any) -> Any:
        if not any(_wanted.values()):
            return await original_async(self, request)
        return await send_async(lambda r: original_async(self, r), request)

    sync.handle_request = handle_request
    asynchronous.handle_async_request = handle_async_request
    setattr(sync, PATCHED, True)


class _Finder:
    """Waits for httpx2 or httpx to be imported and patches it then."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The real spec with a loader that patches after loading; None for every other module."""
        if fullname not in LIBRARIES:
            return None
        for finder in sys.meta_path:
            spec = None if isinstance(finder, _Finder) else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """Loads a module with its own loader, then patches it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module under its own loader's name, then patches its transports."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        _patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
