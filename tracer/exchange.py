"""One HTTP exchange of a model call, from the request to the last byte of its answer.

The transport tells it what happens; it turns that into attempts, chunks and the end of the turn.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from . import credentials, tape
from .clock import monotonic, now
from .live import OpenTurn, unrecorded
from .process import here, quietly, recorder
from .providers import Answer, Provider, by_path
from .quiet import words
from .recorder import Recorder
from .redaction import redact
from .streams import Part, StreamLog, Unzip, sse_events
from .substitute import Asked

KEPT_HEADERS = frozenset(
    {
        "content-type", "content-encoding", "retry-after", "retry-after-ms", "x-should-retry", "request-id",
        "x-request-id", "openai-processing-ms", "openai-version", "anthropic-version", "server",
    }
)  # fmt: skip
KEPT_PREFIXES = ("anthropic-ratelimit-", "x-ratelimit-")
REPLAYED = "replayed"
"""Flag of a turn whose answer came from a recording."""
KEPT_BODY = 64 << 10
"""Characters of a refused answer's body that are kept with its attempt."""


@quietly
def begin(method: str, path: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Exchange | None:
    """An exchange for a request that is a model call, None for everything else."""
    provider = by_path(path) if method == "POST" and not unrecorded.get() else None
    active = recorder() if provider is not None and body is not None else None
    if provider is None or active is None or body is None:
        return None
    credentials.learn(url, headers)
    turn = active.request(provider, body, place=here(), url=redact(url.split("?", 1)[0]), retries=_retries(headers))
    return Exchange(active, provider, turn, body) if turn is not None else None


class Exchange:
    """What is known of one attempt. Every method is quiet: trouble here is not the agent's trouble."""

    def __init__(self, active: Recorder, provider: Provider, turn: OpenTurn, body: bytes) -> None:
        self._recorder = active
        self._body = body
        self._provider = provider
        self._turn = turn
        self._started = monotonic()
        started_at = now()
        wait = 0.0
        if turn.attempts and turn.attempts[-1].get("ended_at"):
            wait = (started_at - turn.attempts[-1]["ended_at"]) / 1000
        self._attempt: dict[str, Any] = {"status": None, "error": None, "error_type": None, "wait_ms": wait}
        self._attempt |= {"started_at": started_at, "ended_at": None, "request_id": None, "headers": {}}
        turn.attempts.append(self._attempt)
        self._number = len(turn.attempts)
        self._sequence = 0
        self._first_chunk_at: int | None = None
        self._unzip = Unzip("")
        self._raw: list[bytes] = []
        self._log: StreamLog | None = None
        self._done = False
        self._ending = threading.Lock()
        self._pid = os.getpid()

    @quietly
    def asked(self, url: str, headers: Mapping[str, str]) -> Asked | None:
        """What is asked here, for one who stands in for the model."""
        said = self._turn.wording
        if said is None:  # its first attempt was sent before anybody stood in
            return None
        return Asked(
            provider=self._provider,
            url=redact(url),
            headers=headers,
            raw=self._body,
            run=self._turn.run,
            turn=self._turn,
            attempt=self._number,
            hashes=said.hashes,
            fresh=said.fresh,
            parts=said.parts,
            model=said.model,
            stream=said.stream or ":streamgeneratecontent" in url.lower(),
            mode=said.mode,
            part_hashes=said.part_hashes,
        )

    @quietly
    def served(self, from_recording: bool) -> None:
        """Whether the answer that follows is a recorded one: then the turn costs nothing once more."""
        self._turn.served = from_recording
        if from_recording and REPLAYED not in self._turn.flags:
            self._turn.flags.append(REPLAYED)

    @quietly
    def responded(self, status: int, headers: Mapping[str, str]) -> None:
        """The response head is here; its body follows through `chunk`."""
        self._attempt["status"] = status
        self._attempt["request_id"] = headers.get("request-id") or headers.get("x-request-id")
        self._attempt["headers"] = {k: redact(v) for k, v in headers.items() if _kept(k)}
        self._unzip = Unzip(headers.get("content-encoding", ""))
        if status < 300 and "text/event-stream" in headers.get("content-type", ""):
            self._log = StreamLog(self._started, self._write_chunk)

    @quietly
    def chunk(self, data: bytes) -> None:
        """Bytes of the body as they came over the wire."""
        if self._over():
            return
        if self._first_chunk_at is None:
            self._first_chunk_at = now()
        plain = self._unzip.feed(data)
        if plain is None:
            self._raw.append(data)
        elif self._log is not None:
            self._log.feed(plain)
        else:
            self._raw.append(plain)

    @quietly
    def loaded(self, data: bytes) -> None:
        """The whole body at once, its content-encoding already undone."""
        self._unzip = Unzip("")
        self.chunk(data)
        self.finished()

    @quietly
    def finished(self) -> None:
        """The whole body has been read."""
        self._once(self._whole)

    def _whole(self) -> None:
        if (self._attempt["status"] or 0) >= 300:
            self._refused()
        elif self._log is not None:
            self._streamed(self._log, "ok", None)
        else:
            self._plain()

    @quietly
    def broken(self, error: BaseException, *, cancelled: bool = False) -> None:
        """The transport raised, before or during the body."""
        self._once(lambda: self._broke(error, cancelled=cancelled))

    def _broke(self, error: BaseException, *, cancelled: bool) -> None:
        status = "cancelled" if cancelled else "error"
        kind = type(error).__name__
        self._attempt |= {"error": redact(words(error)) or kind, "error_type": kind}
        if self._log is not None:
            self._streamed(self._log, status, (words(error) or kind, kind))
            return
        self._close(status, None, Answer(), error=words(error) or kind, error_type=kind)

    @quietly
    def abandoned(self) -> None:
        """The caller stopped reading before the end."""
        self._once(self._left)

    def _left(self) -> None:
        if self._log is not None:
            self._streamed(self._log, "abandoned", None)
        elif (self._attempt["status"] or 0) >= 300:
            self._refused()
        else:
            self._close("abandoned", None, Answer(), partial=True)

    def _over(self) -> bool:
        """True when its end is written, or is another's to write: a forked child holds only a copy of it."""
        return self._done or self._pid != os.getpid()

    def _once(self, write: Callable[[], None]) -> None:
        """Writes its end, unless that is written or another thread is at it: one may close what another reads to its end.

        Nobody waits here: the garbage collector comes by in the middle of anything.
        """
        if self._over() or not self._ending.acquire(blocking=False):
            return
        try:
            if not self._done:
                write()
        finally:
            self._ending.release()

    def _plain(self) -> None:
        """A whole JSON body; some APIs say in it that the call failed after all."""
        text = self._whole_text()
        answer = self._provider.answer(_decode(text))
        if answer.error_type or answer.error:
            self._attempt |= {"error": redact(answer.error or ""), "error_type": answer.error_type}
            self._close("error", text, answer, error=answer.error, error_type=answer.error_type)
        else:
            self._close("ok", text, answer)

    def _refused(self) -> None:
        text = self._whole_text()
        answer = self._provider.answer(_decode(text))
        kind = answer.error_type or f"http_{self._attempt['status']}"
        message = answer.error or text[:500] or kind
        self._attempt |= {"error": redact(message), "error_type": kind}
        if text and self._recorder.content:
            self._attempt["body"] = redact(text)[:KEPT_BODY]
        self._attempt["request_id"] = self._attempt["request_id"] or answer.request_id
        self._close("error", text or None, Answer(), error=message, error_type=kind)

    def _streamed(self, log: StreamLog, status: str, trouble: tuple[str, str] | None) -> None:
        body, whole = self._provider.assemble(sse_events(log.finish()))
        answer = self._provider.answer(body)
        error, error_type = trouble or (None, None)
        if answer.error_type or answer.error:
            # the stream ended with an error event: the HTTP status was fine, the turn is not
            status, error, error_type = "error", answer.error, answer.error_type
            self._attempt |= {"error": redact(error or ""), "error_type": error_type}
            self._attempt["request_id"] = answer.request_id or self._attempt["request_id"]
        elif whole and status == "abandoned":
            status = "ok"  # everything had come; only the connection's end was not read
        elif not whole and status == "ok":
            status, error, error_type = "error", "the stream ended before its last event", "incomplete_stream"
            self._attempt |= {"error": error, "error_type": error_type}
        text = json.dumps(body, ensure_ascii=False) if body is not None else None
        self._close(status, text, answer, error=error, error_type=error_type, partial=not whole)

    def _close(
        self,
        status: str,
        text: str | None,
        answer: Answer,
        *,
        error: str | None = None,
        error_type: str | None = None,
        partial: bool = False,
    ) -> None:
        self._done = True
        self._attempt["ended_at"] = now()
        if not self._recorder.content:
            self._attempt["error"] = None
        self._recorder.answered(
            self._turn,
            text,
            answer,
            status=status,
            error=error,
            error_type=error_type,
            partial=partial,
            first_chunk_at=self._first_chunk_at,
        )

    def _whole_text(self) -> str:
        data = b"".join(self._raw)
        if not self._unzip.plain and self._unzip.feed(b"") is None:
            data = _decompress(self._unzip.encoding, data)
        return data.decode("utf-8", "replace")

    def _write_chunk(self, parts: list[Part], altered: bool) -> None:
        if not self._recorder.content:
            return
        record: tape.Record = {
            "kind": "chunk",
            "run": self._turn.run.id,
            "turn": self._turn.number,
            "attempt": self._number,
            "seq": self._sequence,
            "parts": [list(p) for p in parts],
        }
        if altered:
            record["altered"] = True
        self._sequence += 1
        self._recorder.journal.write([record])


def _kept(name: str) -> bool:
    lowered = name.lower()
    return lowered in KEPT_HEADERS or lowered.startswith(KEPT_PREFIXES)


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _decompress(encoding: str, data: bytes) -> bytes:
    """Encodings that the SDK's own HTTP library undoes (br, zstd), with that library."""
    import importlib
    import sys

    for library in ("httpx2", "httpx"):
        if library in sys.modules:
            response = importlib.import_module(library).Response(
                200, headers={"content-encoding": encoding}, content=data
            )
            return bytes(response.content)
    return data


def _retries(headers: Mapping[str, str]) -> int:
    """How often the SDK has sent this request before, as its own header says."""
    told = headers.get("x-stainless-retry-count", "")
    return int(told) if told.isdecimal() else 0
