"""Claude Code sessions: one JSON object a line, one answer spread over several lines.

A turn is one message id. Sub-agents become runs of their own, in each of the three layouts: lines
marked as side chain, progress lines of the call that started them, and files of their own.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ... import tape
from ...canonical import digest, stable_id
from ...model import Usage
from ...providers.answer import Answer, AnswerCall
from ..context import Context, Source
from ..numbers import Numbers
from ..reading import first_objects, mentions, objects
from ..report import Notes
from . import claude_lines as said
from .claude_thread import Thread
from .conversation import Conversation, Result, Turn

FORMAT = "claude-code"
TITLE = "Claude Code session"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PLAIN = re.compile(r"[\w-]{1,100}")
_MAX_CHAINS = 10_000
_MARKS = frozenset({"user", "assistant", "system", "progress", "queue-operation", "attachment"})


def recognise(head: bytes) -> bool:
    """True for lines that carry a session id, or for the summaries and snapshots that open such files."""
    for value in first_objects(head):
        kind = value.get("type")
        if not isinstance(kind, str):
            continue
        if kind in _MARKS and isinstance(value.get("sessionId"), str):
            return True
        if kind == "summary" and "leafUuid" in value:
            return True
        if kind == "file-history-snapshot" and "snapshot" in value:
            return True
    return False


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the session's run and of the sub-agents in it."""
    session = _resumed(source, notes, context) or Session(source, notes, context)

    def keep() -> None:
        if source.growth is not None:
            source.growth.keep(session, KEPT, _parts(source, notes, context), FORMAT)

    for number, line in objects(source.lines(), notes, noise=session.is_noise, at_end=keep):
        try:
            session.line(line)
        except RecursionError:
            notes.skip(number, "nested too deeply")
        yield from session.out
        session.out.clear()
    session.finish()
    yield from session.out


def _resumed(source: Source, notes: Notes, context: Context) -> Session | None:
    """The session of a file whose beginning was read before."""
    growth = source.growth
    if growth is None:
        return None
    session: Session | None = growth.resumed(KEPT, _parts(source, notes, context))
    if session is not None and not session.go_on():
        growth.restart()
        notes.runs.clear()
        return None
    return session


def _parts(source: Source, notes: Notes, context: Context) -> dict[str, Any]:
    return {"source": source, "notes": notes, "context": context}


class Session:
    """One file while it is read: which conversation a line belongs to."""

    def __init__(self, source: Source, notes: Notes, context: Context) -> None:
        self.out: list[tape.Record] = []
        self._source = source
        self._notes = notes
        self._context = context
        self._session: str | None = None
        self._agent: str | None = None
        self._main: Thread | None = None
        self._children: dict[str, Thread] = {}
        self._calls_of_children: dict[str, str] = {}
        self._returned: dict[str, bool] = {}
        self._side_chains: dict[str, str] = {}
        self._summaries: dict[str, str] = {}
        self._title: str | None = None
        self._fallback_id: str | None = None
        self._own_files: dict[str, bool] = {}

    def is_noise(self, raw: bytes) -> bool:
        """True for a line that need not be decoded."""
        return self._main is not None and not self._summaries and said.is_noise(raw)

    def runs(self) -> dict[str, int]:
        """The runs told so far, each with its number of turns."""
        threads = [*([self._main] if self._main else []), *self._children.values()]
        return {t.start["run"]: t.talk.turns for t in threads}

    def go_on(self) -> bool:
        """The file has grown; False when what came says that it is another session's."""
        own = self._agent is None
        if self._main is None or (own and self._named(self._session or "") != self._session):
            return False
        self._own_files = {agent: True for agent, own in self._own_files.items() if own}
        for thread in (self._main, *self._children.values()):
            thread.resumed()
        return True

    def line(self, line: dict[str, Any]) -> None:
        """One object of the file."""
        kind = line.get("type")
        if not isinstance(kind, str):
            self._notes.strange("line without a type")
            return
        leaf = line.get("uuid")
        if isinstance(leaf, str) and leaf in self._summaries:
            self._title = self._summaries[leaf]
        if kind == "summary":
            self._summary(line)
        elif kind == "progress":
            self._progress(line)
        elif kind in ("assistant", "user", "system"):
            self._spoken(kind, line)
        elif kind in said.NOISE:
            self._fallback_id = self._fallback_id or _text(line.get("messageId"))
            self._identify(line)
        else:
            self._identify(line)
            self._notes.strange(kind[:80])

    def finish(self) -> None:
        """The end of the file: every run gets its end."""
        main = self._main
        if main is None:
            if not self._notes.counts["objects"] or self._source.growth is not None:
                return  # of a file that grows it is not known yet whose it is
            main = self._start_main(self._fallback_id or digest(self._source.label), None, {})
        title = self._title or (next(reversed(self._summaries.values()), None) if not main.title else None)
        if title:
            main.name(title)
        for key, child in self._children.items():
            child.finish(self._is_shorter(child), self._ending_of(key, child))
        main.finish(self._is_shorter(main))

    def _spoken(self, kind: str, line: dict[str, Any]) -> None:
        self._identify(line)
        if self._main is None:
            main = self._start_main(self._fallback_id or digest(self._source.label), None, line)
        else:
            main = self._main
        thread = main
        if line.get("isSidechain") is True and self._agent is None:
            thread = self._side_thread(main, line)
        getattr(thread, kind)(line)
        if kind == "user" and thread is main:
            self._note_agents(main, line)

    def _summary(self, line: dict[str, Any]) -> None:
        text, leaf = _text(line.get("summary")), _text(line.get("leafUuid"))
        if text and leaf and len(self._summaries) < 1000:
            self._summaries[leaf] = said.title_line(text)
            self._fallback_id = self._fallback_id or leaf

    def _progress(self, line: dict[str, Any]) -> None:
        self._identify(line)
        data = line.get("data")
        if not isinstance(data, dict) or data.get("type") != "agent_progress":
            return
        inner, call = data.get("message"), _text(line.get("parentToolUseID"))
        agent = _text(data.get("agentId")) or call
        if not isinstance(inner, dict) or agent is None or self._main is None or self._has_own_file(agent):
            return
        if inner.get("type") not in ("user", "assistant"):
            return
        child = self._child(self._main, agent, call)
        getattr(child, inner["type"])({"version": line.get("version"), **inner})

    def _identify(self, line: dict[str, Any]) -> None:
        if self._main is not None:
            return
        session = _text(line.get("sessionId"))
        if session is None:
            return
        agent = _text(line.get("agentId")) if line.get("isSidechain") is True else None
        self._start_main(self._named(session), agent, line)

    def _named(self, session: str) -> str:
        """A fork may keep the lines of the session it came from: then the file's own name says which it is."""
        path = self._source.path
        if path and path.stem != session and _UUID.fullmatch(path.stem) and mentions(path, path.stem):
            return path.stem
        return session

    def _start_main(self, session: str, agent: str | None, line: dict[str, Any]) -> Thread:
        self._session, self._agent = session, agent
        parts = [FORMAT, session] + ([agent] if agent else [])
        branch = _text(line.get("gitBranch"))
        start: dict[str, Any] = {
            "run": stable_id(*parts),
            "agent": "claude-code",
            "project": _text(line.get("cwd")),
            "session": session,
            "tags": {"git_branch": branch} if branch else None,
        }
        if agent:
            start.update(self._file_of_agent(session, agent))
        self._main = Thread(start, self.out, self._notes, own=True)
        return self._main

    def _file_of_agent(self, session: str, agent: str) -> dict[str, Any]:
        """Agent name and parent of a sub-agent that has a file of its own."""
        facts = _meta(self._source.path)
        call = _text(facts.get("toolUseId")) or self._context.agents.get((session, agent))
        found: dict[str, Any] = {"agent": _text(facts.get("agentType")) or "sub-agent"}
        run, turn = self._context.calls.get(call or "", (stable_id(FORMAT, session), None))
        found["parent"] = {"run": run, "turn": turn, "call": call, "kind": "sub-agent"}
        return found

    def _side_thread(self, main: Thread, line: dict[str, Any]) -> Thread:
        """The conversation of a side-chain line: by its agent id, else by the chain of its parents."""
        agent = _text(line.get("agentId"))
        uuid, before = _text(line.get("uuid")), _text(line.get("parentUuid"))
        key = agent or self._side_chains.get(before or "") or uuid or "side chain"
        if uuid and not agent:
            self._side_chains[uuid] = key
            if len(self._side_chains) > _MAX_CHAINS:
                del self._side_chains[next(iter(self._side_chains))]
        call = None
        if key not in self._children:
            message = line.get("message")
            prompt = said.text_of(message.get("content")) if isinstance(message, dict) else ""
            taken = set(self._calls_of_children.values())
            same = [c for c, task in main.tasks.items() if task.get("prompt") == prompt and c not in taken]
            call = same[0] if prompt and len(same) == 1 else None
        return self._child(main, key, call)

    def _child(self, main: Thread, key: str, call: str | None) -> Thread:
        if key in self._children:
            return self._children[key]
        task = main.tasks.get(call or "", {})
        turn = main.talk.owners.get(call or "")
        start = {
            "run": stable_id(FORMAT, self._session or "", key),
            "agent": task.get("subagent_type") or "sub-agent",
            "project": main.start.get("project"),
            "session": self._session,
            "parent": {"run": main.start["run"], "turn": turn, "call": call, "kind": "sub-agent"},
        }
        child = self._children[key] = Thread(start, self.out, self._notes, own=False)
        if "description" in task:
            child.name(said.title_line(task["description"]))
        if call:
            self._calls_of_children[key] = call
        return child

    def _note_agents(self, main: Thread, line: dict[str, Any]) -> None:
        returned = line.get("toolUseResult")
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list) or not main.tasks:
            return
        for block in content:
            call = _text(block.get("tool_use_id")) if isinstance(block, dict) else None
            if call is None or call not in main.tasks:
                continue
            turn = main.talk.owners.get(call)
            if turn is not None:
                self._context.calls[call] = (main.start["run"], turn)
            agent = _text(returned.get("agentId")) if isinstance(returned, dict) else None
            if agent and self._session:
                self._context.agents[self._session, agent] = call
                self._link(stable_id(FORMAT, self._session, agent), main.start["run"], turn, call)
            if not (isinstance(returned, dict) and returned.get("isAsync")):
                self._returned[call] = block.get("is_error") is True

    def _link(self, child: str, run: str, turn: int | None, call: str) -> None:
        """Tells whose sub-agent a run is that came in before its call had a result."""
        if child in self._context.unlinked:
            self._context.unlinked.discard(child)
            parent = {"run": run, "turn": turn, "call": call, "kind": "sub-agent"}
            self.out.append({"kind": "run_start", "run": child, "parent": parent})

    def _ending_of(self, key: str, child: Thread) -> tuple[str, str] | None:
        """How a sub-agent ended when its call tells: progress lines leave out its last answer."""
        call = self._calls_of_children.get(key)
        if call not in self._returned or child.talk.last is None:
            return None
        if self._returned[call]:
            return "failed", f"the call {call} that started it ended in an error"
        return "completed", "the call that started it has its result"

    def _has_own_file(self, agent: str) -> bool:
        """True when this sub-agent's lines lie in a file beside the session: that is the better copy."""
        if agent not in self._own_files:
            path, session = self._source.path, self._session or ""
            plain = path is not None and _PLAIN.fullmatch(agent) and _PLAIN.fullmatch(session)
            folder = path.parent if path else Path()
            places = (
                (folder, folder / session / "subagents", folder / path.stem / "subagents") if path and plain else ()
            )
            self._own_files[agent] = any((p / f"agent-{agent}.jsonl").is_file() for p in places)
        return self._own_files[agent]

    def _is_shorter(self, thread: Thread) -> bool:
        known = self._context.ended.get(thread.start["run"])
        return known is not None and thread.talk.ended_at is not None and thread.talk.ended_at < known


# what a session consists of
KEPT = (Session, Thread, Conversation, Turn, Result, Numbers, OrderedDict, Answer, AnswerCall, Usage)


def _meta(path: Path | None) -> dict[str, Any]:
    """What stands in ``agent-<id>.meta.json`` beside the file of a sub-agent."""
    if path is None:
        return {}
    try:
        value = json.loads(path.with_name(f"{path.stem}.meta.json").read_bytes()[: 1 << 20])
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
