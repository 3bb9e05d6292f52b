"""Which line of the user's program made this call: the first frame outside SDKs and site-packages."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache
from types import FrameType

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OTHERS = tuple(
    path + os.sep
    for path in {sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"], os.path.dirname(os.__file__)}
)
_OURS = tuple(os.path.join(_HERE, part) + os.sep for part in ("tracer", "replay", "tui"))
_SAMPLES = os.path.join(_HERE, "sample_traces", "loops") + os.sep
_verdicts: dict[str, bool] = {}


def caller() -> str | None:
    """``file:line``, the file relative to the working directory where it lies below it; None when nobody is found."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        foreign = _verdicts.get(path)
        if foreign is None:
            foreign = _verdicts[path] = _is_foreign(path)
        if not foreign:
            return f"{_short(path)}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _is_foreign(path: str) -> bool:
    if path.startswith("<"):
        return path != "<stdin>"
    if path.startswith(_SAMPLES):  # programs as a user has them, wherever looptape is installed
        return False
    inside = f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path
    return inside or path.startswith(_OTHERS) or path.startswith(_OURS)


@lru_cache(maxsize=256)
def _short(path: str) -> str:
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if relative.startswith("..") else relative
