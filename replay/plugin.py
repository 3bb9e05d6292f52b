"""The pytest plugin: `@pytest.mark.looptape` binds a test to its tape and answers its model calls from there.

Loaded by every pytest of an environment that has looptape, so it imports nothing and does nothing before a test
has the marker. What a bound test does is in `replay.ci`.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .ci.assertions import Tape
    from .ci.bound import Bound, Plan

MODES = ("replay", "record", "missing", "off")
OPTIONS = ("match", "on_miss", "tape", "tools", "tool", "unwrapped", "network", "normalisers")
MARKER = (
    "looptape(match='normalised', on_miss='stop', tape=None, tools='recorded', tool={}, unwrapped='stop', "
    "network='closed', normalisers=()): answer this test's model calls and wrapped tools from its tape, "
    "tapes/MODULE/TEST.tape.jsonl beside its module"
)


class StreamLeftOpen(pytest.PytestWarning):
    """A test ended while a model call or a stream of it was still open; looptape stopped recording it."""


class State:
    """What one pytest process knows of tapes. The lists travel from xdist's workers to the one that reports."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.whole: set[str] = set()
        self.bound: dict[str, str] = {}
        self.written: list[str] = []
        self.transcripts: list[str] = []

    def told(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "modules": sorted(self.modules), "whole": sorted(self.whole), "bound": self.bound,
            "written": self.written, "transcripts": self.transcripts,
        }  # fmt: skip

    def add(self, told: dict[str, Any]) -> None:
        """Takes what another process told."""
        self.modules.update(told["modules"])
        self.whole.update(told["whole"])
        self.bound.update(told["bound"])
        self.written += told["written"]
        self.transcripts += told["transcripts"]


_state = pytest.StashKey[State]()
_bound = pytest.StashKey["Bound"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--looptape`."""
    parser.getgroup("looptape").addoption(
        "--looptape", choices=MODES, default="replay",
        help="tests with @pytest.mark.looptape: replay their tapes (default), record them, record missing ones and "
        "replay the others, or off: run live, no tape is read or written",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Tells of the marker."""
    config.addinivalue_line("markers", MARKER)
    config.stash[_state] = State()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Finds the tape of each marked test, before anything is deselected."""
    state = config.stash[_state]
    partly = {str(Path(a.split("::")[0]).absolute()) for a in config.args if "::" in a}
    for item in items:
        module = str(item.path)
        state.modules.add(module)
        if module not in partly and not config.getoption("lf", False):
            state.whole.add(module)
        mark = item.get_closest_marker("looptape")
        if mark is None:
            continue
        strange = [*map(repr, mark.args), *(name for name in mark.kwargs if name not in OPTIONS)]
        if strange:
            known = ", ".join(OPTIONS)
            raise pytest.UsageError(
                f"{item.nodeid}: @pytest.mark.looptape knows no {', '.join(strange)}; it has {known}"
            )
        file = str(_file(item, mark))
        other = state.bound.setdefault(file, item.nodeid)
        if other != item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} and {other} have one tape, {file}: give each its own (tape=...)")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the fixtures of a marked test, after those who skip it."""
    mark = item.get_closest_marker("looptape")
    if mark is None:
        return
    plan = _plan(item, mark)
    if plan is None:
        return
    from ..tracer.errors import LooptapeError
    from .ci.bound import Bound

    bound = Bound(plan)
    try:
        bound.start()
    except LooptapeError as error:
        raise pytest.fail.Exception(f"looptape: {error}", pytrace=False) from None
    item.stash[_bound] = bound


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """The test itself; a bad verdict fails it, whatever became of the miss in the program."""
    __tracebackhide__ = True
    bound = item.stash.get(_bound, None)
    if bound is None:
        return (yield)
    try:
        result = yield
    except BaseException as error:
        _finish(item, bound, failed=True)
        _report(item, bound, error)
        raise
    _finish(item, bound, failed=False)
    problem = bound.problem(None)
    if problem is not None:
        pytest.fail(problem, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Closes what a failed fixture left open."""
    __tracebackhide__ = True
    bound = item.stash.get(_bound, None)
    if bound is not None:
        _finish(item, bound, failed=True)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(request: Any) -> Generator[None, Any, Any]:
    """A fixture of a marked test that misses is told by the miss too."""
    __tracebackhide__ = True
    bound = request.node.stash.get(_bound, None) if isinstance(request.node, pytest.Item) else None
    try:
        return (yield)
    except BaseException as error:
        if bound is not None and not bound.over:
            _finish(request.node, bound, failed=True)
            _report(request.node, bound, error)
        raise


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Tape:
    """The run and the verdict of a test with `@pytest.mark.looptape`, and assertions about them."""
    bound = request.node.stash.get(_bound, None)
    if bound is None:
        pytest.fail("the tape fixture needs @pytest.mark.looptape on the test", pytrace=False)
    from .ci.assertions import Tape

    return Tape(bound)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells what it knows."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["looptape"] = session.config.stash[_state].told()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """The process that reports hears it."""
    told = getattr(node, "workeroutput", {}).get("looptape")
    if told is not None:
        node.config.stash[_state].add(told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tapes that were written, transcripts that do not agree, tapes that no test is bound to."""
    state = config.stash[_state]
    if not state.modules or config.getoption("looptape") == "off":
        return
    lines = [f"recorded {path}" for path in sorted(set(state.written))]
    if state.transcripts:
        lines += [f"stale transcript: {path} does not agree with its tape" for path in sorted(set(state.transcripts))]
        lines.append("  write them anew: pytest --looptape=missing")
    unused = _stale(state)
    lines += [f"stale tape: no test is bound to {_shown(config, path)}" for path in unused]
    if lines:
        terminalreporter.section("looptape")
        for line in lines:
            terminalreporter.line(line)


def _stale(state: State) -> list[Path]:
    folders = {str(Path(m).parent) for m in state.modules}
    if not any((Path(folder) / "tapes").is_dir() for folder in folders):
        return []
    from .ci.naming import stale

    return list(stale(map(Path, state.modules), map(Path, state.whole), map(Path, state.bound)))


def _file(item: pytest.Item, mark: pytest.Mark) -> Path:
    given = mark.kwargs.get("tape")
    if given is not None:
        return (item.path.parent / str(given)).absolute()
    from .ci.naming import tape_of

    names = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return tape_of(item.path, [*names, item.name])


def _plan(item: pytest.Item, mark: pytest.Mark) -> Plan | None:
    """What is to be done; None where nothing is (`off`, and the test asks for no `tape`)."""
    mode = item.config.getoption("looptape")
    file = _file(item, mark)
    if mode == "off" and "tape" not in getattr(item, "fixturenames", ()):
        return None
    from .ci.bound import Plan
    from .player.settings import ReplaySettings

    given = {k: v for k, v in mark.kwargs.items() if k != "tape"}
    settings = ReplaySettings(**{**given, "normalisers": tuple(given.get("normalisers", ()))})
    replays = mode == "replay" or (mode == "missing" and file.exists())
    doing: Any = "observe" if mode == "off" else "replay" if replays else "record"
    name = getattr(item, "originalname", None) or item.name
    return Plan(doing, file, _shown(item.config, file), item.nodeid, name, settings)


def _finish(item: pytest.Item, bound: Bound, *, failed: bool) -> None:
    """Closes the recorder; told once, however often it is asked for."""
    from ..tracer.errors import LooptapeError

    if bound.over:
        return
    state = item.config.stash[_state]
    try:
        bound.finish(failed=failed)
    except LooptapeError as error:
        raise pytest.fail.Exception(f"looptape: {error}", pytrace=False) from None
    state.written += bound.written
    if bound.stale_transcript:
        from .ci.transcript import beside, renew

        if item.config.getoption("looptape") == "missing":
            renew(bound.plan.file)
        else:
            state.transcripts.append(_shown(item.config, beside(bound.plan.file)))
    for text in bound.warnings:
        item.warn(StreamLeftOpen(text))


def _report(item: pytest.Item, bound: Bound, error: BaseException) -> None:
    """Fails the test by its miss, where there is one; else says beside its own failure how the replay stood."""
    plain = (
        KeyboardInterrupt,
        SystemExit,
        GeneratorExit,
        pytest.exit.Exception,
        pytest.skip.Exception,
        pytest.xfail.Exception,
    )
    if isinstance(error, plain):
        return
    problem = bound.problem(error)
    if problem is not None:
        from .program.stops import stop_in

        other = "" if stop_in(error) is not None else f"\n  the test then ended with {type(error).__name__}: {error}"
        raise pytest.fail.Exception(problem + other, pytrace=False) from None
    if bound.plan.doing == "record":
        item.add_report_section(
            "call", "looptape", f"not recorded, since the test failed: {bound.plan.shown} is as it was"
        )
    elif bound.verdict is not None:
        item.add_report_section("call", "looptape", "\n".join(bound.verdict.lines()))


def _shown(config: pytest.Config, path: Path) -> str:
    """A path as one would type it."""
    try:
        return path.relative_to(config.rootpath).as_posix()
    except ValueError:
        return str(path)
