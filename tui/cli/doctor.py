"""`looptape doctor`: does recording work here? It really records a turn and reads it back."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import click

from ...tracer import paths
from ...tracer.errors import LooptapeError
from .. import format as fmt
from .. import report
from ..safe_text import clean
from .options import json_option

SIGNS = {"ok": ("✓", "good"), "warn": ("!", "warn"), "bad": ("✗", "bad"), "info": ("·", "dim")}
SDKS = ("anthropic", "openai")
LIBRARIES = ("httpx2", "httpx", "opentelemetry-sdk", "duckdb", "textual")
ANY_PYTHON = sys.executable
LOW_DISK = 500_000_000
OLD_PRICES = 120  # days


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. ``state``: ok, warn, bad, or info (no judgement)."""

    name: str
    state: str
    said: str
    cure: str = ""


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Check SDKs, a recording made for the purpose, the store, prices and disk space."""
    checks = []
    for check in _checks():
        checks.append(check)
        if not as_json:
            sign, style = SIGNS[check.state]
            report.out(report.Styled(sign, style), " ", f"{check.name:<18}", check.said)
            if check.cure:
                report.out(" " * 20, report.Styled(check.cure, "warn"))
    bad = sum(c.state == "bad" for c in checks)
    if as_json:
        report.data({"ok": not bad, "checks": [asdict(c) for c in checks]})
    elif bad:
        report.note(f"{fmt.counted(bad, 'thing')} to repair")
    return report.BAD if bad else report.FINE


def _checks() -> Iterator[Check]:
    from ... import __version__

    yield Check("looptape", "info", f"{__version__} at {Path(__file__).parents[2]}")
    yield Check("python", "info", f"{platform.python_version()} at {sys.executable}")
    for name in LIBRARIES:
        yield Check(name, "info", version(name) or "not installed")
    with ThreadPoolExecutor(len(SDKS)) as pool:
        yield from pool.map(_sdk, SDKS)
    yield from _store()
    yield _journals()
    yield from _prices()
    yield _disk()
    yield from _environment()


def version(distribution: str) -> str | None:
    """The installed version, without importing the package; None when it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _sdk(name: str) -> Check:
    installed = version(name)
    if installed is None:
        return Check(name, "info", "not installed")
    with tempfile.TemporaryDirectory(prefix="looptape-doctor-") as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("LOOPTAPE")} | {"LOOPTAPE_HOME": folder}
        try:
            ran = subprocess.run(
                [ANY_PYTHON, "-m", "looptape.tui.cli.probe", name],
                env=env, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL, cwd=folder,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return Check(name, "bad", f"{installed}: the test recording did not end ({type(error).__name__})")
        if ran.returncode:
            last = (ran.stderr.strip().splitlines() or ["no word"])[-1]
            return Check(
                name,
                "bad",
                f"{installed}: a test recording failed: {last}",
                "Is this SDK version supported? See the README",
            )
        return _read_back(name, installed, Path(folder))


def _read_back(name: str, installed: str, home: Path) -> Check:
    from ...tracer.store import Filter, open_store

    try:
        with open_store(home) as store:
            runs = store.runs(Filter(include_empty=True))
            turns = store.turns(runs[0].id) if runs else []
    except LooptapeError as error:
        return Check(name, "bad", f"{installed}: the test recording cannot be read: {error.what}", error.cure)
    if len(runs) == 1 and len(turns) == 1 and turns[0].usage.output == 7 and turns[0].text == "recorded":
        return Check(name, "ok", f"{installed}: a turn was recorded and read back")
    got = f"{fmt.counted(len(runs), 'run')}, {fmt.counted(len(turns), 'turn')}"
    return Check(
        name, "bad", f"{installed}: one turn was made, found were {got}", "Please report this with the versions above"
    )


def _store() -> Iterator[Check]:
    file = paths.store_file()
    from ...tracer.store import check_home

    try:
        check_home(paths.home())
    except LooptapeError as error:
        yield Check("store", "bad", error.what, error.cure)
        return
    if not file.exists() and not paths.journal_dir().exists():
        yield Check("store", "info", f"{file}: nothing recorded yet")
        return
    from ...tracer.store import Filter, open_store

    try:
        with open_store() as store:
            runs = store.count(Filter(include_empty=True))
            notices = list(store.notices)
    except LooptapeError as error:
        yield Check("store", "bad", error.what, error.cure)
        return
    octets = file.stat().st_size if file.exists() else 0
    yield Check("store", "ok", f"{file}: {fmt.counted(runs, 'run')}, {fmt.size(octets)}")
    for text in notices:
        yield Check("store", "warn", text)


def _journals() -> Check:
    try:
        files = [f for f in paths.journal_dir().iterdir() if f.suffix == ".jsonl"]
    except FileNotFoundError:
        return Check("journals", "ok", "none")
    except OSError as error:
        return Check("journals", "bad", f"{paths.journal_dir()}: {error.strerror}", "Make the folder yours again")
    there = [octets for file in files if (octets := _octets(file)) is not None]
    return Check("journals", "ok", f"{len(there)} live or waiting, {fmt.size(sum(there))}" if there else "none")


def _octets(file: Path) -> int | None:
    """A file's size; None where it is gone: whoever looks at runs moves journals into the store."""
    try:
        return file.stat().st_size
    except OSError:
        return None


def _prices() -> Iterator[Check]:
    if version("genai-prices") is None:
        yield Check(
            "prices", "warn", "genai-prices is not installed: everything is unpriced", "pip install genai-prices"
        )
        return
    from ...tracer import pricing
    from ...tracer.prices import listed

    try:
        using = pricing.sources()
    except LooptapeError as error:
        yield Check("prices", "bad", error.what, error.cure)
        return
    newest = listed.newest_date()
    said = f"{using}: {listed.size():,} models, prices up to {newest}"
    if newest is not None and (datetime.now(tz=UTC).date() - newest).days > OLD_PRICES:
        yield Check("prices", "warn", f"{said}: that may be too old", "pip install -U genai-prices")
    else:
        yield Check("prices", "ok", said)
    yield from _priced(using)


def _priced(using: str) -> Iterator[Check]:
    """Models without a price among what is stored, and figures of other price lists than today's."""
    from ...tracer.store import open_store, priced

    if not paths.store_file().exists():
        return
    try:
        with open_store(drain=False) as store:
            unpriced, sources = priced.unpriced_models(store), priced.price_sources(store)
    except LooptapeError:
        return  # the store's own check has told it
    if unpriced:
        named = ", ".join(f"{clean(model, limit=40)} ({fmt.counted(turns, 'turn')})" for model, turns in unpriced[:5])
        more = f" and {len(unpriced) - 5} more" if len(unpriced) > 5 else ""
        yield Check("prices", "warn", f"no price for {named}{more}", "Put them into a price file: docs/cost.md")
    older = sum(turns for source, turns in sources.items() if source not in using)
    if older:
        said = f"{fmt.counted(older, 'turn')} priced by {', '.join(s for s in sources if s not in using)}"
        yield Check("prices", "info", said, "looptape sync --reprice works them out by today's list")


def _disk() -> Check:
    folder = paths.home()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    state = "ok" if free > LOW_DISK else "warn"
    return Check(
        "disk",
        state,
        f"{fmt.size(free)} free at {paths.home()}",
        "" if state == "ok" else "Make room, or set LOOPTAPE_HOME",
    )


def _environment() -> Iterator[Check]:
    for name in sorted(os.environ):
        if name == "LOOPTAPE" or name.startswith("LOOPTAPE_"):
            off = name == "LOOPTAPE" and os.environ[name].strip().lower() in ("off", "0", "false", "no")
            cure = "Nothing is recorded with this; unset it to record" if off else ""
            yield Check("environment", "warn" if off else "info", f"{name}={os.environ[name]}", cure)
