"""A message list told as a run: every answer in it is a turn; and lists that grow from line to line, told once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...providers import by_api, openai_chat, openai_responses
from ...providers.answer import mapping, objects, text_of
from ..builder import RunBuilder
from ..document import seconds
from ..report import Notes
from . import raw_shapes
from .raw_shapes import Talk

KEPT = 256
_TITLE = 200
_MARKED_DEPTH = 6


class Growing:
    """Talks without responses. One that begins with all of an earlier one takes its place."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._kept: OrderedDict[str, Talk] = OrderedDict()

    def add(self, talk: Talk) -> Iterator[Talk]:
        """Takes a talk; gives the one that has waited longest for a longer one when there are many."""
        marks = _marks(talk)
        earlier = next((m for m in reversed(marks) if m in self._kept), None)
        if earlier is not None:
            del self._kept[earlier]
            self._notes.counts["shorter_copies"] += 1
        self._kept[marks[-1]] = talk
        if len(self._kept) > KEPT:
            yield self._kept.popitem(last=False)[1]

    def rest(self) -> Iterator[Talk]:
        """All that are left, in order."""
        while self._kept:
            yield self._kept.popitem(last=False)[1]


def records(talk: Talk, notes: Notes, source: str) -> Iterator[tape.Record]:
    """The run of a talk. A run that the file holds twice is told once."""
    run = _name(talk, source)
    if run in notes.runs:
        notes.counts["repeated_runs"] += 1
        return
    built = RunBuilder(run, api=talk.api, provider=talk.provider or "", source=source, title=_title(talk))
    _Teller(talk, built, notes).tell()
    notes.runs[run] = None
    notes.turns += built.turns
    notes.tool_calls += built.calls
    yield from built.drain()


class _Teller:
    """Walks along a talk and tells the builder."""

    def __init__(self, talk: Talk, run: RunBuilder, notes: Notes) -> None:
        self._talk = talk
        self._run = run
        self._notes = notes
        self._provider = by_api(talk.api)
        self._waiting = bool(talk.messages)

    def tell(self) -> None:
        """The whole talk. What stood beside the messages in the request stands beside all its answers."""
        talk, at = self._talk, 0
        if talk.parts:
            self._run.context(system=talk.parts.system, tools=talk.parts.tools, params=talk.parts.params or None)
        while at < len(talk.messages):
            said = self._said(at)
            if not said:
                self._heard(talk.messages[at])
            else:
                self._turn(raw_shapes.response_of(talk.api, said))
                for message in said:
                    self._run.message(_as_sent(message))
            at += len(said) or 1
        if talk.response is not None:
            self._turn(talk.response, last=True)
        if self._waiting and not self._run.unanswered:
            self._run.end("unknown", "the file ends before the answer to its last message")
        else:
            self._run.end()

    def _said(self, at: int) -> list[Any]:
        """The messages of the answer that begins here; Responses splits one into items."""
        api, messages = self._talk.api, self._talk.messages
        end = at
        while end < len(messages) and raw_shapes.is_answer(api, messages[end]):
            end += 1
            if api != openai_responses.API:
                break
        prefilled = end == len(messages) and self._talk.response is not None  # the client wrote how the answer begins
        return [] if prefilled else messages[at:end]

    def _turn(self, response: dict[str, Any], *, last: bool = False) -> None:
        talk = self._talk
        self._run.turn(
            response=response,
            usage=talk.usage if last else None,
            model=talk.parts.model if talk.parts else None,
            at=_seconds(response, "created", "created_at"),
            ended_at=_seconds(response, "completed_at"),
            stream=talk.parts.stream if talk.parts and last else None,
        )
        usage = (talk.usage if last else None) or self._run.last.usage
        self._notes.counts["answers_without_tokens"] += not usage.raw
        self._waiting = False

    def _heard(self, message: Any) -> None:
        prompt = self._provider.is_prompt(message)
        self._run.message(message, prompt=prompt)
        self._notes.counts["prompts"] += prompt
        self._waiting = True
        for seen in self._provider.results(message):
            # Chat has no mark for a failure: not told is not "no"
            failed = True if seen.is_error else None if self._talk.api == openai_chat.API else False
            known = self._run.result(seen.call, message=message, path=seen.path, is_error=failed, join=False)
            self._notes.counts["tool_results" if known else "results_without_call"] += 1
            self._notes.counts["tool_errors"] += seen.is_error


def _as_sent(message: Any) -> Any:
    """A whole Anthropic response that stands in the list goes back to the model as role and content."""
    return {k: message[k] for k in ("role", "content")} if "stop_reason" in message and "role" in message else message


def _name(talk: Talk, source: str) -> str:
    """From the id of the first answer that has one, else from the content: there is nothing else to go by."""
    said = [m for m in talk.messages if raw_shapes.is_answer(talk.api, m)]
    for body in [*said, *([talk.response] if talk.response else [])]:
        found = text_of(mapping(body).get("id"))
        if found:
            # beside others of its conversation a pair is one turn (`assemble`); alone, its history has turns too
            return stable_id(source, found, "history") if said and talk.response else stable_id(source, found)
    return stable_id(source, _marks(talk)[-1], canonical(talk.response))


def _marks(talk: Talk) -> list[str]:
    """A digest for every length of the list, beginning with the first message, under its system prompt."""
    marks = [digest(canonical(_essence(talk.parts.system if talk.parts else None)))]
    for message in talk.messages:
        marks.append(digest(marks[-1] + canonical(_essence(message))))
    return marks[1:] or marks


def _essence(value: Any, depth: int = 0) -> Any:
    """Without cache marks, which move along with the conversation; they stand on blocks, not deep inside."""
    if depth > _MARKED_DEPTH:
        return value
    if isinstance(value, list):
        return [_essence(v, depth + 1) for v in value]
    if not isinstance(value, dict):
        return value
    return {k: _essence(v, depth + 1) for k, v in value.items() if k != "cache_control"}


def _title(talk: Talk) -> str | None:
    for message in talk.messages:
        if mapping(message).get("role") == "user" and not by_api(talk.api).results(message):
            content = message.get("content")
            texts = [content] if isinstance(content, str) else [b.get("text") for b in objects(content)]
            text = next((t for t in reversed(texts) if isinstance(t, str) and t.strip()), None)
            return text.strip()[:_TITLE] if text else None
    return None


def _seconds(body: dict[str, Any], *names: str) -> int | None:
    """A time in seconds of a response; Anthropic's have none."""
    return next((at for at in (seconds(body.get(n)) for n in names) if at), None)
