"""Whose rollout a file is: the first session_meta, and which lines are those of another session that a fork repeats."""

from __future__ import annotations

import uuid
from typing import Any

from ...canonical import canonical, digest, stable_id
from ...providers.answer import mapping, text_of
from ..context import Context
from ..reading import micros

FORMAT = "codex"

# a fork writes the lines of its past in one go, with new times: an answer takes longer than this
_COPY_GAP = 700_000


class Origin:
    """Who the file is about.

    Attributes:
        name: The session's id; from the first line where the file names none.
        run: Id of its run.
        facts: Arguments of the `RunBuilder` that follow from the first line.
        parent: Id of the session it was forked from or spawned by.
    """

    def __init__(self, line: dict[str, Any], context: Context) -> None:
        meta = mapping(line.get("payload")) if line.get("type") == "session_meta" else {}
        at = micros(line.get("timestamp"))
        session = text_of(meta.get("session_id"))
        self.name = text_of(meta.get("id")) or session or digest(canonical(line))
        self.run = stable_id(FORMAT, self.name)
        self.system = instructions(meta)
        spawn = _spawn(meta)
        forked = text_of(meta.get("forked_from_id")) or text_of(meta.get("forked_from"))
        spawned = text_of(meta.get("parent_thread_id")) or text_of(mapping(spawn).get("parent_thread_id"))
        self.parent = spawned or forked
        self._kind = "fork" if spawn is None else "sub-agent"
        self._context = context
        self._ids = {self.name, session or self.name}
        self._created = micros(meta.get("timestamp")) or at
        self._copying = forked is not None
        self._previous = at or 0
        self.facts = {"started_at": self._created, **_facts(meta, spawn), "session": session or self.name}

    def parent_record(self) -> dict[str, Any] | None:
        """The parent of the run as a record has it."""
        if self.parent is None:
            return None
        call = self._context.agents.get((FORMAT, self.name))
        run, turn = self._context.calls.get(call or "", (stable_id(FORMAT, self.parent), None))
        return {"run": run, "turn": turn, "call": call, "kind": self._kind}

    def owns(self, thread: str | None) -> bool:
        """True for this session's own id, and where none is told."""
        return thread is None or thread in self._ids

    def again(self, meta: dict[str, Any]) -> bool:
        """A further session_meta; True when only it tells that this is a fork."""
        name = text_of(meta.get("id")) or text_of(meta.get("session_id"))
        if name is None or name in self._ids:
            return False
        self._copying = True
        first, self.parent = self.parent is None, self.parent or name
        return first

    def copied(self, payload: dict[str, Any], at: int | None) -> bool:
        """True while the lines are those of another session that a fork repeats at its beginning."""
        if not self._copying:
            return False
        thread, started = text_of(payload.get("thread_id")), payload.get("started_at")
        turn, created = _made_at(payload.get("turn_id")), self._created
        if thread is not None and thread in self._ids:
            self._copying = False
        elif created is not None and isinstance(started, int) and (started + 1) * 1_000_000 < created:
            return True
        elif turn is not None and created is not None:
            self._copying = turn < created
        elif at is not None:
            old = created is not None and at < created
            self._copying = old or at <= self._previous + _COPY_GAP
            self._previous = max(at, self._previous)
        return self._copying


def instructions(payload: dict[str, Any]) -> str | None:
    """The system prompt, where the line holds it."""
    given = payload.get("base_instructions")
    return text_of(given) or text_of(mapping(given).get("text")) or None


def _facts(meta: dict[str, Any], spawn: dict[str, Any] | None) -> dict[str, Any]:
    git, version = mapping(meta.get("git")), text_of(meta.get("cli_version"))
    tags = {
        "git_branch": git.get("branch"),
        "git_repository": git.get("repository_url"),
        "originator": meta.get("originator"),
    }
    names = (meta.get("agent_role"), meta.get("agent_nickname"), mapping(spawn).get("agent_role"))
    role = next((n for n in names if isinstance(n, str) and n), None)
    return {
        "provider": text_of(meta.get("model_provider")),
        "agent": role or (FORMAT if spawn is None else "sub-agent"),
        "project": text_of(meta.get("cwd")),
        "tags": {k: v for k, v in tags.items() if isinstance(v, str) and v} or None,
        "versions": {FORMAT: version} if version else None,
        "git_commit": text_of(git.get("commit_hash")),
        "list_price": True,
    }


def _spawn(meta: dict[str, Any]) -> dict[str, Any] | None:
    """What is said of the spawning of this thread; None for a thread that people began."""
    source = mapping(meta.get("source"))
    given = source.get("subagent") or source.get("subAgent")
    if given is None and meta.get("thread_source") != "subagent":
        return None
    return mapping(mapping(given).get("thread_spawn"))


def _made_at(name: Any) -> int | None:
    """The time (µs) inside a version 7 UUID."""
    if not isinstance(name, str) or len(name) != 36:
        return None
    try:
        value = uuid.UUID(name)
    except ValueError:
        return None
    return (value.int >> 80) * 1000 if value.version == 7 else None
