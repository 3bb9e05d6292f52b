"""A request that is over the model's window: handled by a policy that has a name, and told each time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...tracer.paths import make_private
from ...tracer.providers import by_api
from ..fork.shapes import calls_of, is_answer, results_of
from .conversation import Conversation
from .outcome import Ending
from .policy import Policy

BYTES_PER_TOKEN = 4
FULL = 0.9
"""Share of the window from which a request counts as over it: the estimate is not exact."""
AFTER = 0.6
"""Share that a policy brings it down to, so that it has not to work again at once."""
HEAD = 1000
MARK = "[looptape: "

Told = Callable[..., None]
Summarise = Callable[[str], "str | None"]


@dataclass(slots=True)
class Window:
    """Keeps one run's requests inside the model's window.

    Attributes:
        told: Writes an event: ``told("context", turn, policy=..., ...)``.
        summarise: Asks the model for a summary of a text; None when it gives none.
        folder: Where bulky results go.
        known_tokens, known_bytes: What the last answered request took, by the server's count, and its size.
    """

    policy: Policy
    api: str
    told: Told
    summarise: Summarise
    folder: Path
    known_tokens: int | None = None
    known_bytes: int = 0
    _worked: int = 0

    def estimate(self, conversation: Conversation) -> int:
        """Tokens that the next request will take: the server's last count and what came since, else by size."""
        size = conversation.size
        if self.known_tokens is not None:
            return max(0, self.known_tokens + (size - self.known_bytes) // BYTES_PER_TOKEN)
        rest = len(json.dumps(conversation.rest, ensure_ascii=False))
        return (size + rest) // BYTES_PER_TOKEN

    def answered(self, conversation: Conversation, context_tokens: int | None) -> None:
        """The server counted a request: the conversation as it stands now was it."""
        if context_tokens is not None:
            self.known_tokens, self.known_bytes = context_tokens, conversation.size

    def fit(self, conversation: Conversation, turn: int, *, refused: str | None = None) -> Ending | None:
        """Brings the request under the window if it is over it; an ending when that cannot be.

        Args:
            refused: The server's words, when it refused the request as too long.
        """
        window = self.policy.window_tokens
        before = self.estimate(conversation)
        if refused is None and (window is None or before <= self._room(conversation, window)):
            return None
        said = refused or f"about {before} tokens, the window has {window}"
        if self.policy.context == "stop":
            self.told("context", turn, policy="stop", tokens=before, window=window, why=said)
            return Ending("context", "limit", f"{said}. Another policy goes on: context drop, summarise or offload")
        goal = int(min(window or before, before) * AFTER)
        detail = _WORK[self.policy.context](self, conversation, goal)
        after = self.estimate(conversation)
        self.told(
            "context", turn, policy=self.policy.context, tokens=before, after=after, window=window, why=said, **detail
        )
        if detail.get("changed") and (window is None or after <= self._room(conversation, window)):
            return None
        what = (
            f"{self.policy.context} brought it to about {after} tokens"
            if detail.get("changed")
            else "nothing could be taken out"
        )
        return Ending("context", "limit", f"{said}; {what}")

    def _room(self, conversation: Conversation, window: int) -> int:
        """Tokens that a request may take: the answer needs its part of the window too."""
        caps = (conversation.rest.get(k) for k in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
        answer = next((c for c in caps if isinstance(c, int)), 0)
        return int(window * FULL) - min(answer, window // 4)

    def drop(self, conversation: Conversation, goal: int) -> dict[str, Any]:
        """Old results become a line that says what stood there; calls and results stay paired."""
        names = _names(conversation)

        def shorter(call: str, content: Any) -> str | None:
            text = _text(content)
            line = (
                f"{MARK}the result of {names.get(call, 'a call')} was dropped to save context, {len(text)} characters]"
            )
            return line if len(text) > len(line) else None

        return {"results": self._each(conversation, goal, shorter)} | {"changed": self._changed}

    def offload(self, conversation: Conversation, goal: int) -> dict[str, Any]:
        """Bulky results move to files; their head and the file's name stay."""
        files: list[str] = []

        def shorter(call: str, content: Any) -> str | None:
            text = _text(content)
            if len(text) < self.policy.bulky or text.startswith(MARK):
                return None
            file = _kept(make_private(self.folder), text)
            files.append(str(file))
            return f"{MARK}{len(text)} characters, the whole result is in the file {file}; it begins:]\n{text[:HEAD]}"

        moved = self._each(conversation, goal, shorter, stop_early=False)
        return {"results": moved, "files": files, "changed": self._changed}

    def summary(self, conversation: Conversation, goal: int) -> dict[str, Any]:
        """What lies between the task and the latest turns becomes a summary by the model itself."""
        first, last = _middle(conversation, self.policy.keep_results)
        if last - first < 2:
            return {"changed": False}
        text = self.summarise(_transcript(conversation, first, last))
        if not text:
            return {"changed": False}
        message = {"role": "user", "content": f"{MARK}summary of {last - first} earlier messages]\n{text}"}
        conversation.cut(first, last, [message])
        return {"changed": True, "messages": last - first, "summary": text}

    @property
    def _changed(self) -> bool:
        return bool(self._worked)

    def _each(
        self,
        conversation: Conversation,
        goal: int,
        shorter: Callable[[str, Any], str | None],
        *,
        stop_early: bool = True,
    ) -> list[str]:
        """Rewrites results, the oldest first, until the request is short enough; gives the ids of their calls."""
        places = [(i, at.call) for i, m in enumerate(conversation.messages) for at in results_of(m)]
        changed: list[str] = []
        for index, call in places[: max(0, len(places) - self.policy.keep_results)]:
            if stop_early and self.estimate(conversation) <= goal:
                break
            copy = json.loads(json.dumps(conversation.messages[index]))
            for at in results_of(copy):
                instead = shorter(call, at.holder.get(at.key)) if at.call == call else None
                if instead is not None:
                    at.holder[at.key] = instead
                    conversation.replace(index, copy)
                    changed.append(call)
        self._worked = len(changed)
        return changed


_WORK: Mapping[str, Callable[[Window, Conversation, int], dict[str, Any]]] = {
    "drop": Window.drop,
    "offload": Window.offload,
    "summarise": Window.summary,
}


def _kept(folder: Path, text: str) -> Path:
    """A new file with the text, for its owner alone. What is there already is never written over."""
    number = sum(1 for _ in folder.iterdir())
    while True:
        file = folder / f"{number:04d}.txt"
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as whole:
            whole.write(text)
        return file


def _names(conversation: Conversation) -> dict[str, str]:
    return {c.id: f"{c.name}({c.raw[:80]})" for m in conversation.messages for c in calls_of(m)}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _middle(conversation: Conversation, keep: int) -> tuple[int, int]:
    """The messages that a summary replaces: after the first prompt, before the latest answers; no pair is parted."""
    provider, messages = by_api(conversation.api), conversation.messages
    first = next((i + 1 for i, m in enumerate(messages) if provider.is_prompt(m)), 0)
    answers = [i for i, m in enumerate(messages) if is_answer(m) and i >= first]
    starts = [i for i in answers if i == 0 or not is_answer(messages[i - 1])]
    last = starts[-max(1, min(keep, len(starts) - 1))] if len(starts) > 1 else first
    return first, last


def _transcript(conversation: Conversation, first: int, last: int) -> str:
    return "\n".join(_lines(conversation, first, last))


def _lines(conversation: Conversation, first: int, last: int) -> Iterator[str]:
    for message in conversation.messages[first:last]:
        text = json.dumps(message, ensure_ascii=False)
        yield text if len(text) <= 4000 else f"{text[:3000]} […] {text[-800:]}"
