"""Facts about this process that a run keeps: project, git commit, versions, a name. Read once, no subprocess."""

from __future__ import annotations

import os
import platform
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

_described: dict[str, Any] = {}
_SDKS = ("anthropic", "openai", "httpx2", "httpx", "opentelemetry.sdk", "pydantic_ai", "langchain", "agents")


def project() -> str:
    """The git root above the working directory, else the working directory."""
    if _described.get("project"):
        return str(_described["project"])
    try:
        return _project(os.getcwd())
    except OSError:  # the working directory is gone
        return ""


def git_commit() -> str | None:
    """The commit that is checked out in the project, None outside a repository."""
    if "git_commit" in _described:
        commit = _described["git_commit"]
        return str(commit) if commit else None
    try:
        return _commit(project())
    except (OSError, UnicodeDecodeError):
        return None


def describe(**given: Any) -> None:
    """Says facts of the recorded program that are not this process's own.

    Args:
        **given: Any of name, source, project, git_commit, versions; None takes one back.
    """
    _described.update(given)
    for key in [k for k, value in _described.items() if value is None]:
        del _described[key]


def source() -> str:
    """How runs of this process are recorded: sdk, or proxy."""
    return str(_described.get("source") or "sdk")


def name() -> str:
    """What the program is called: the script's name without its ending, or the module run with -m."""
    if _described.get("name"):
        return str(_described["name"])
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and getattr(spec, "name", None):
        return str(spec.name).removesuffix(".__main__")
    script = getattr(main, "__file__", None) or (sys.argv[0] if sys.argv else "")
    return Path(script).stem if script and script not in ("-c", "-") else "python"


def versions() -> dict[str, str]:
    """Versions of looptape, Python and the SDKs that this process has loaded."""
    from .version import __version__

    if _described.get("versions"):
        return dict(_described["versions"])
    found = {"looptape": __version__, "python": platform.python_version()}
    for module_name in _SDKS:
        module = sys.modules.get(module_name)
        version = getattr(module, "__version__", None) if module else None
        if isinstance(version, str):
            found[module_name] = version
    return found


@lru_cache(maxsize=16)
def _project(directory: str) -> str:
    folder = Path(directory)
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return str(candidate)
    return directory


@lru_cache(maxsize=16)
def _commit(root: str) -> str | None:
    git = Path(root) / ".git"
    if git.is_file():  # a worktree or submodule points elsewhere
        git = (Path(root) / git.read_text().removeprefix("gitdir:").strip()).resolve()
    head = git / "HEAD"
    if not head.is_file():
        return None
    text = head.read_text().strip()
    if not text.startswith("ref: "):
        return text or None
    ref = text.removeprefix("ref: ")
    common = git
    if (git / "commondir").is_file():
        common = (git / (git / "commondir").read_text().strip()).resolve()
    for place in (git / ref, common / ref):
        if place.is_file():
            return place.read_text().strip() or None
    packed = common / "packed-refs"
    if packed.is_file():
        for line in packed.read_text().splitlines():
            if line.endswith(f" {ref}"):
                return line.split(" ", 1)[0]
    return None
