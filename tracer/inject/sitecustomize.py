"""Started by Python itself in a program under `looptape record`: the user's own sitecustomize, then recording."""

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
    except ImportError:
        return  # a program started by ours, in another environment, or with a looptape of its own
    instrument()


try:
    _users_own()
finally:
    if os.environ.get("LOOPTAPE_RECORD") == "1":
        try:
            _record()
        except Exception as error:
            sys.stderr.write(
                f"looptape: not recorded ({type(error).__name__}: {error}); your program is not affected\n"
            )
