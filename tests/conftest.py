"""No test may touch the store, the settings or the keys of the person who runs it: the environment is made neutral first."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest

import examples

KEPT = {"LOOPTAPE_TESTDATA", "LOOPTAPE_UNDER_TEST", "LOOPTAPE_TEST_EXAMPLES"}
REMOVED = ("LOOPTAPE", "OTEL_", "ANTHROPIC_", "OPENAI_", "GITHUB_", "SSH_", "TEXTUAL")
REMOVED_TOO = {"FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TMUX", "STY", "PAGER", "EDITOR", "VISUAL", "BROWSER"}

_home = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported, in every test process; a test that needs another value sets it itself."""
    for name in list(os.environ):
        if (name.startswith(REMOVED) and name not in KEPT) or name in REMOVED_TOO or name.lower().endswith("_proxy"):
            del os.environ[name]
    config.stash[_home] = tempfile.TemporaryDirectory(prefix="looptape-tests-", ignore_cleanup_errors=True)
    os.environ["LOOPTAPE_HOME"] = config.stash[_home].name
    os.environ["XDG_CONFIG_HOME"] = os.path.join(config.stash[_home].name, "config")
    hypothesis.settings.register_profile(
        "looptape",
        deadline=None,
        max_examples=examples.examples(100),
        derandomize=not examples.full(),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],  # a second on the clock, which a busy machine takes
    )
    hypothesis.settings.load_profile("looptape")
    gc.disable()  # collecting tests makes objects that stay: looking at them again and again is a fifth of the time


def pytest_collection_finish() -> None:
    """What is there now stays to the end: no garbage collection need look at it again, and few are needed at all."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if _home in config.stash:
        config.stash[_home].cleanup()


# Every SDK client reads all certificates of the system, in a third of a tenth of a second; tests make hundreds of them.
ssl.create_default_context = functools.lru_cache(ssl.create_default_context)


# A shell starts background jobs with SIGINT ignored, and children inherit that: tests that interrupt would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _process_as_it_was() -> Iterator[None]:
    """A test that records in this process, instruments it, or says what it is, does so for itself: all is put back."""
    from looptape.tracer import facts, hook, process

    for library in hook.LIBRARIES:
        with contextlib.suppress(ImportError):  # loaded by a test alone it could not be put back
            importlib.import_module(library)
    wanted = dict(hook._wanted)
    described = dict(facts._described)
    recorder = process._recorder, process._off
    kinds = [
        (kind, name, vars(kind).get(name))
        for module in (sys.modules.get(library) for library in hook.LIBRARIES)
        if module is not None and hasattr(module, "HTTPTransport")
        for kind, name in (
            (module.HTTPTransport, "handle_request"),
            (module.AsyncHTTPTransport, "handle_async_request"),
        )
        if not getattr(module.HTTPTransport, hook.PATCHED, False)
    ]
    yield
    process._recorder, process._off = recorder
    facts._described.clear()
    facts._described.update(described)
    hook._wanted.clear()
    hook._wanted.update(wanted)
    for kind, name, method in kinds:
        if method is not None and vars(kind).get(name) is not method:
            setattr(kind, name, method)
        if hook.PATCHED in vars(kind):
            delattr(kind, hook.PATCHED)
