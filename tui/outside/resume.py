"""The command with which another tool goes on with a session of its own, from what its import recorded.

Ids and folders were written by others: an id counts only in the form that its tool gives, a folder only as an
absolute path without odd characters, and both are quoted for a shell.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...tracer.canonical import stable_id
from ...tracer.model import Run
from ..data import sessions
from ..safe_text import clean

if TYPE_CHECKING:
    from ...tracer.store import Store

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_OPENCODE = re.compile(r"ses_[0-9A-Za-z]{8,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is asked to go on.

    Attributes:
        format: The run's source.
        program, words: The command before the session's id.
        folders: Where the tool keeps its sessions, and ``pattern`` with ``{id}`` where one lies there; None: not known.
    """

    format: str
    name: str
    program: str
    words: tuple[str, ...]
    form: re.Pattern[str]
    folders: Callable[[Mapping[str, str]], list[Path]] | None = None
    pattern: str = ""


TOOLS = (
    Tool("claude-code", "Claude Code", "claude", ("--resume",), _UUID, sessions.claude_folders, "*/{id}.jsonl"),
    Tool("codex", "Codex", "codex", ("resume",), _UUID, sessions.codex_folders, "**/*{id}.jsonl*"),
    Tool("gemini-cli", "Gemini CLI", "gemini", ("--resume",), _UUID),
    Tool("opencode", "OpenCode", "opencode", ("--session",), _OPENCODE),
)


@dataclass(frozen=True, slots=True)
class Resume:
    """How a run is gone on with.

    Attributes:
        tool: The tool's name.
        command: Its words, empty where there is no way.
        folder: Where it must run; None where that is not known.
        notes: What to know before; the reason, where there is no way.
        obstacle: Why it cannot be run here.
    """

    tool: str = ""
    command: tuple[str, ...] = ()
    folder: str | None = None
    notes: tuple[str, ...] = ()
    obstacle: str | None = None

    @property
    def text(self) -> str:
        """The command as a shell takes it."""
        command = shlex.join(self.command)
        return f"cd {shlex.quote(self.folder)} && {command}" if self.folder else command


def resume_of(store: Store, run: Run, env: Mapping[str, str]) -> Resume:
    """How a run is gone on with on this machine; of a sub-agent, the session that called it.

    Args:
        env: The environment, for PATH and where tools keep their sessions.
    """
    owner = _owner(store, run)
    notes: tuple[str, ...] = ()
    if owner.id != run.id:
        notes = ("of a sub-agent: the session that called it",)
    found = of_run(owner, turn=owner.turns)
    if not found.command:
        return found
    return _here(found, _tool(owner.source), env, notes)


def of_run(run: Run, turn: int = 1) -> Resume:
    """The command for a run that is nobody's sub-agent, from what is recorded alone."""
    tool = _tool(run.source)
    fork = f"r, or looptape fork {run.id}:{max(1, turn)}, runs on from a turn"
    if tool is None:
        return Resume(notes=(f"there is no session to resume, the run is from {clean(run.source, limit=40)}: {fork}",))
    session = run.session or ""
    if not tool.form.fullmatch(session):
        return Resume(tool.name, notes=(f"its id is none that {tool.name} gives: {fork}",))
    if stable_id(run.source, session) != run.id:
        return Resume(tool.name, notes=(f"its file names the session it was copied from: {fork}",))
    command = (tool.program, *tool.words, session)
    folder = run.project
    if not folder:
        return Resume(tool.name, command, notes=(f"run it where the session was: {tool.name} recorded no folder",))
    if not folder.startswith("/") or not folder.isprintable() or clean(folder) != folder:
        return Resume(tool.name, command, notes=(f"run it where the session was: {clean(folder, limit=60)}",))
    return Resume(tool.name, command, folder)


def _here(found: Resume, tool: Tool | None, env: Mapping[str, str], notes: tuple[str, ...]) -> Resume:
    """The same with what this machine has to say of it."""
    obstacle = None
    if tool is None:
        return found
    if found.folder is None:
        obstacle = "its folder is not known"
    elif not Path(found.folder).is_dir():
        obstacle = "its folder is not on this machine"
    elif shutil.which(tool.program, path=env.get("PATH")) is None:
        obstacle = f"{tool.program} is not on PATH"
    if obstacle is None and tool.folders is not None and not _kept(tool, found.command[-1], env):
        notes = (*notes, f"recorded elsewhere: {tool.name} has no such session here")
    return Resume(found.tool, found.command, found.folder, (*notes, *found.notes), obstacle)


def _kept(tool: Tool, session: str, env: Mapping[str, str]) -> bool:
    folders = tool.folders(env) if tool.folders is not None else []
    return any(_has(folder, tool.pattern.format(id=session)) for folder in folders)


def _has(folder: Path, pattern: str) -> bool:
    """True where a file of that name lies there; a folder that its tool removes meanwhile holds none."""
    try:
        return next(folder.glob(pattern), None) is not None
    except OSError:
        return False


def _tool(source: str) -> Tool | None:
    return next((t for t in TOOLS if t.format == source), None)


def _owner(store: Store, run: Run) -> Run:
    """The run that a person began: a sub-agent's caller, however deep it is."""
    seen = {run.id}
    while run.parent is not None and run.parent.kind == "sub-agent" and run.parent.run not in seen:
        found = store.find(run.parent.run)
        if not found or found[0].id != run.parent.run:
            break
        run = found[0]
        seen.add(run.id)
    return run
