"""Started by Python itself in a program under `looptape record` or `replay`: the user's own sitecustomize, then ours."""

import os
import sys


def _users_own() -> None:
    """Runs the sitecustomize that this one stands in front of, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    mine = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


def _record() -> None:
    """Switches recording on; whatever goes wrong, the program runs as if we were not there."""
    sys._looptape_injected = True  # type: ignore[attr-defined]
    try:
        from looptape.tracer.hook import instrument
        from looptape.tracer.unseen import tell_at_exit
    except ImportError:
        return  # a program started by ours, in another environment, or with a looptape of its own
    instrument()
    tell_at_exit()


def _replay(file: str) -> None:
    """Installs the replay. Where that fails the program must not run: it would be live."""
    try:
        import importlib

        try:
            child = importlib.import_module("looptape.replay.program.child")
        except ImportError as error:
            if not (error.name or "").startswith("looptape"):
                raise
            _closed(file)  # a helper in another environment: it cannot be answered, so it may not reach a network
            return
        child.install(file)
    except BaseException as error:
        sys.stderr.write(f"looptape: the replay cannot start here ({type(error).__name__}: {error}); nothing was run\n")
        sys.stderr.flush()
        os._exit(3)


def _closed(file: str) -> None:
    import json

    with open(file, encoding="utf-8") as handed:
        if json.load(handed).get("closed") is not True:
            return

    def hook(event: str, args: tuple) -> None:  # type: ignore[type-arg]
        if event != "socket.connect" or not isinstance(args[1], tuple):
            return
        host = str(args[1][0])
        if not host.startswith(("127.", "::1", "localhost")):
            raise ConnectionError(
                f"looptape: {sys.executable} cannot import looptape, so this replay closes the network to it ({host})"
            )

    sys.addaudithook(hook)


try:
    _users_own()
finally:
    if _handed := os.environ.get("LOOPTAPE_REPLAY"):
        _replay(_handed)
    if os.environ.get("LOOPTAPE_RECORD") == "1":
        try:
            _record()
        except Exception as error:
            sys.stderr.write(
                f"looptape: not recorded ({type(error).__name__}: {error}); your program is not affected\n"
            )
