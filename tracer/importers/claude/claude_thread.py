"""One conversation of a Claude Code session, the main one or a sub-agent's: its lines into its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import tape
from ..reading import micros
from ..report import Notes
from . import claude_lines as said
from .conversation import Conversation, Result, Turn

AGENT_TOOLS = ("Task", "Agent")
MAX_TASKS = 500  # the prompts of so many are kept, to know the sub-agents that follow
OUTPUT_UNRELIABLE = "output tokens unreliable"


class Thread:
    """Takes lines in the order of the file and puts the records of one run into ``out``.

    ``own`` is True for what the file is about; the lines of sub-agents found in it are counted apart.
    """

    def __init__(self, start: Mapping[str, Any], out: list[tape.Record], notes: Notes, *, own: bool) -> None:
        self.talk = Conversation(start["run"], out, None if own else start.get("agent") or "sub-agent")
        self.start = {"kind": "run_start", "source": "claude-code", "list_price": True, **start}
        self.tasks: dict[str, dict[str, str]] = {}
        self.title: str | None = None
        self._faint_title: str | None = None
        self._notes = notes
        self._own = own
        self._versions: dict[str, None] = {}
        self._unreliable = 0
        self._doubted: Turn | None = None
        self._usage: tuple[Any, Any] = (None, None)
        self._told = (0, 0, 0)
        self._stopped: tuple[str, str] | None = None
        self._refused = False
        self._boundary = False
        notes.runs[start["run"]] = None
        out.append({k: v for k, v in self.start.items() if v is not None})

    def assistant(self, line: dict[str, Any]) -> None:
        """A line with one block (or more) of an answer; lines that the client made up are events."""
        at = self._see(line)
        message = said.assistant_message(line, self._sane)
        if message is None:
            self._notes.strange("assistant without a message id")
            return
        if message["model"] == said.SYNTHETIC:
            self._synthetic(line, said.text_of(message["content"]), at)
            return
        self._count("assistant_lines")
        for kind in said.unknown_blocks(message["content"]):
            self._notes.strange(kind)
        request = line.get("requestId")
        turn = self.talk.answer(message, at, request if isinstance(request, str) else None)
        if turn is None:
            self._notes.warn("lines of an answer that ended long before were left out")
            return
        self._stopped = None
        self._remember_tasks(message["content"])
        self._doubt(turn, line.get("version"), (message["usage"] or {}).get("output_tokens"))

    def user(self, line: dict[str, Any]) -> None:
        """A prompt, results, a compaction summary, or what the client says in a person's place."""
        at = self._see(line)
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, (str, list)):
            self._notes.strange("user without content")
            return
        text = said.text_of([b for b in content if not _is_result(b)]) if isinstance(content, list) else content
        meta = line.get("isMeta") is True
        if isinstance(content, list) and any(map(_is_result, content)):
            self._results(line, content, at, prompt=bool(text) and not meta and said.is_said(text))
        elif line.get("isCompactSummary"):
            self._summary(content, at)
        elif not line.get("isVisibleInTranscriptOnly"):
            self._prompt(content, text, at, meta=meta)

    def system(self, line: dict[str, Any]) -> None:
        """Compaction boundaries and API trouble; the rest is the client's own business."""
        at = self._see(line)
        kind = line.get("subtype")
        if kind == "compact_boundary":
            facts = _dict(line.get("compactMetadata"))
            self._compact(at, {"pre_tokens": facts.get("preTokens"), "trigger": facts.get("trigger")})
            self._boundary = True
        elif kind == "microcompact_boundary":
            facts = _dict(line.get("microcompactMetadata"))
            saved, ids = facts.get("tokensSaved"), facts.get("compactedToolIds")
            self.talk.event("microcompaction", at, {"tokens_saved": saved, "calls": ids})
        elif kind == "api_error":
            self._count("api_errors")
            error = {k: v for k, v in _dict(line.get("error")).items() if k != "headers"}
            names = {"retryInMs": "retry_ms", "retryAttempt": "attempt", "maxRetries": "max_attempts"}
            self.talk.event("api_error", at, {"error": error, **{new: line.get(old) for old, new in names.items()}})
        elif kind not in said.QUIET_SYSTEM:
            self._notes.strange(f"system {str(kind)[:60]}")

    def finish(self, shorter: bool, ending: tuple[str, str] | None = None) -> None:
        """Ends the run. ``shorter``: the store holds a longer copy, so nothing is said about the end."""
        talk = self.talk
        said_before = len(talk.out)
        talk.close()
        self._sum_up()
        if shorter:
            del talk.out[said_before:]
            return
        versions = {"claude-code": ", ".join(self._versions)} if self._versions else None
        start = {**self.start, "at": talk.started_at, "versions": versions}
        talk.out.append({k: v for k, v in start.items() if v is not None})
        title = self.title or self._faint_title
        talk.put("run_update", at=talk.ended_at, title=title, warnings=self._warnings() or None)
        status, reason = ending or self._ending()
        talk.put("run_end", at=talk.ended_at, status=status, reason=reason)

    def name(self, title: str) -> None:
        """A title that was given, not derived from the first prompt."""
        self.title = title

    def resumed(self) -> None:
        """The file has grown: what was counted up to here is not counted again."""
        self._told = (self.talk.turns, self.talk.calls, self.talk.parallel)
        self._notes.runs[self.start["run"]] = None

    def _sane(self, usage: dict[str, Any]) -> Any:
        """The usage of an answer, which each of its lines repeats."""
        if usage != self._usage[0]:
            self._usage = (usage, said.sane(usage))
        return self._usage[1]

    def _doubt(self, turn: Turn, version: Any, tokens: Any) -> None:
        early = said.counts_early(version)
        if early or said.too_few_tokens(tokens, turn.content):
            self._unreliable += "output_unreliable" not in turn.flags
            turn.flags["output_unreliable"] = None
            # further lines of an answer may tell more tokens; a version that counts early stays one
            self._doubted = None if early or turn.message.get("stop_reason") else turn
        elif "output_unreliable" in turn.flags:
            del turn.flags["output_unreliable"]
            self._unreliable -= 1

    def _see(self, line: dict[str, Any]) -> int | None:
        at = micros(line.get("timestamp"))
        self.talk.see(at)
        version = line.get("version")
        if isinstance(version, str) and version not in self._versions and len(self._versions) < 50:
            self._versions[version] = None
        return at

    def _count(self, name: str, by: int = 1) -> None:
        if self._own:
            self._notes.counts[name] += by

    def _synthetic(self, line: dict[str, Any], text: str, at: int | None) -> None:
        self._count("synthetic_lines")
        failed = line.get("isApiErrorMessage") is True
        self.talk.event("synthetic", at, {"text": text, "api_error": failed, "error": line.get("error")})
        if failed:
            self._stopped = ("failed", said.title_line(text) or "the last model call failed")

    def _remember_tasks(self, content: list[Any]) -> None:
        for block in content:
            if isinstance(block, dict) and block.get("name") in AGENT_TOOLS and isinstance(block.get("id"), str):
                given = _dict(block.get("input"))
                names = ("subagent_type", "description", "prompt")
                self.tasks[block["id"]] = {n: given[n] for n in names if isinstance(given.get(n), str)}
                if len(self.tasks) > MAX_TASKS:
                    del self.tasks[next(iter(self.tasks))]

    def _results(self, line: dict[str, Any], content: list[Any], at: int | None, *, prompt: bool) -> None:
        results, beside = [], []
        blocks = [b for b in content if _is_result(b)]
        for block in content:
            if not _is_result(block):
                beside.append(block)
                continue
            call, text = block["tool_use_id"], said.text_of(block.get("content"))
            failed = block.get("is_error") is True
            self._count("tool_errors", int(failed))
            self._count("tool_results", int(self.talk.answers(call)))
            kind = said.error_class(text) if failed else None
            self._refused = kind == "denied"
            returned = line.get("toolUseResult") if len(blocks) == 1 else None
            if isinstance(returned, str) and returned.removeprefix("Error: ") == text:
                returned = None  # the same words once more
            results.append(Result(call, block, at, kind, returned))
        self.talk.results(results, beside, at, prompt=prompt)

    def _summary(self, content: Any, at: int | None) -> None:
        if not self._boundary:
            self._compact(at, {"pre_tokens": None, "trigger": None})
        self._boundary = False
        self.talk.say({"role": "user", "content": content}, at, prompt=False)

    def _compact(self, at: int | None, detail: dict[str, Any]) -> None:
        self._count("compactions")
        self.talk.compact(at, detail)

    def _prompt(self, content: Any, text: str, at: int | None, *, meta: bool) -> None:
        self._count("prompts", int(not meta))
        person = not meta and said.is_said(text)
        if said.is_interruption(text):
            self.talk.event("interrupted_by_user", at, {"text": text})
            self._stopped = ("halted", "interrupted by the user")
        title, telling = (said.title_of(text) if person else None) or (None, person)
        if person and telling:
            self._stopped = None
            self.title = self.title or title
        self._faint_title = self._faint_title or title
        # a bare /clear or /exit is the client's business: nobody waits for its answer
        self.talk.say({"role": "user", "content": content}, at, prompt=person and telling)

    def _sum_up(self) -> None:
        talk, notes = self.talk, self._notes
        turns, calls, parallel = talk.turns - self._told[0], talk.calls - self._told[1], talk.parallel - self._told[2]
        if self._own:
            notes.turns += turns
            notes.tool_calls += calls
            self._count("calls_without_result", talk.silent)
            self._count("parallel_turns", parallel)
        else:
            notes.counts["sub_agents"] += 1
            notes.counts["sub_agent_turns"] += turns
            notes.counts["sub_agent_calls"] += calls

    def _warnings(self) -> list[str]:
        if not self._unreliable:
            return []
        if self._own:
            part = f"{self._unreliable} of {self.talk.turns} turns record fewer tokens than were written"
            self._notes.warn(f"{OUTPUT_UNRELIABLE}: {part}")
        # without figures, and not for an answer that may go on: a longer copy of the session must say the same
        sure = self._unreliable - (self._doubted is not None and self._doubted is self.talk.last)
        return [OUTPUT_UNRELIABLE] if sure else []

    def _ending(self) -> tuple[str, str]:
        talk = self.talk
        if talk.last is None:
            return "unknown", "no model call in the file"
        if talk.unanswered:
            calls = ", ".join(f"{name} ({call})" for call, name in list(talk.unanswered.items())[:3])
            return "interrupted", f"no result for {calls} of turn {talk.last.number}: the run ended before it came"
        if self._stopped:
            return self._stopped
        if talk.heard_since:
            return "interrupted", "the last prompt has no answer"
        answer = talk.last_answer
        if any(not c.provider_side for c in answer.calls):
            if self._refused:
                return "halted", "the user refused the last call"
            return "interrupted", f"no request follows the results of turn {talk.last.number}"
        if answer.end == "limit":
            return "limit", str(answer.stop_reason)
        return "completed", answer.stop_reason or "an answer without calls"


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
