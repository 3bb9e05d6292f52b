"""No test may touch the store, the settings or the keys of the person who runs it: the environment is made neutral first."""

from __future__ import annotations

import functools
import os
import signal
import ssl
import tempfile

import pytest

KEPT = {"LOOPTAPE_TESTDATA", "LOOPTAPE_UNDER_TEST"}
REMOVED = ("LOOPTAPE", "OTEL_", "ANTHROPIC_", "OPENAI_")

_home = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported, in every test process; a test that needs another value sets it itself."""
    for name in [name for name in os.environ if name.startswith(REMOVED) and name not in KEPT]:
        del os.environ[name]
    config.stash[_home] = tempfile.TemporaryDirectory(prefix="looptape-tests-", ignore_cleanup_errors=True)
    os.environ["LOOPTAPE_HOME"] = config.stash[_home].name
    os.environ["XDG_CONFIG_HOME"] = os.path.join(config.stash[_home].name, "config")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if _home in config.stash:
        config.stash[_home].cleanup()


# Every SDK client reads all certificates of the system, in a third of a tenth of a second; tests make hundreds of them.
ssl.create_default_context = functools.lru_cache(ssl.create_default_context)


# A shell starts background jobs with SIGINT ignored, and children inherit that: tests that interrupt would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
