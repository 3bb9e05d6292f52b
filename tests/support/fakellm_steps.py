"""What a fake server is told to say: Call, Step, Scenario; and the ids it gives."""

import base64
import itertools
import json
import threading
import time
import uuid
from dataclasses import dataclass, field

DEFAULT_USAGE = {"input": 10, "output": 5, "cache_read": 0, "cache_write": 0, "reasoning": 0}


@dataclass
class Call:
    """A tool call to make. ``args`` as a text is sent as it is, so that it may be malformed."""

    name: str
    args: dict | str
    id: str = ""

    @property
    def raw(self):
        return self.args if isinstance(self.args, str) else json.dumps(self.args, ensure_ascii=False)


@dataclass
class Step:
    """One answer of the model.

    usage        input, output, cache_read, cache_write, reasoning: disjoint but for reasoning, which is in output
    stop         the raw stop reason (Responses: "failed" or an incomplete reason); default: what fits the calls
    errors       sent first, one per request: {"kind": "overloaded", "message", "headers"} | {"disconnect": True} |
                 {"cut_stream": n} (n events, then a closed connection) | {"sse_error": True} |
                 {"hold": True} (nothing is said until the server ends)
    extra_blocks content blocks (Anthropic) or output items (Responses) to put before the text
    raw_sse      the text of a stream to send instead, cut into events at its blank lines
    chunk_delay  seconds between events; None: the server's
    pause_after  freeze the stream after so many events: ``reached`` is set, then ``gate`` is waited for
    gzip         encode the answer, event by event when streamed
    """

    text: str = ""
    thinking: str = ""
    calls: list = field(default_factory=list)
    usage: dict = field(default_factory=dict)
    stop: str = ""
    errors: list = field(default_factory=list)
    extra_blocks: list = field(default_factory=list)
    raw_sse: str | None = None
    chunk_delay: float | None = None
    pause_after: int | None = None
    gate: threading.Event | None = None
    gzip: bool = False
    reached: threading.Event = field(default_factory=threading.Event)

    def tokens(self):
        """The usage with its defaults, and ``prompt``: everything that was read."""
        u = {**DEFAULT_USAGE, **self.usage}
        return {**u, "prompt": u["input"] + u["cache_read"] + u["cache_write"]}


class Scenario:
    """A conversation: the n-th successful reply plays step n, the last one again and again."""

    def __init__(self, steps, sidecar_text=None):
        self.steps = steps
        self.sidecar_text = sidecar_text  # reply for requests without tools (titles etc.), no step used
        self.pos = 0
        self.pending = [list(s.errors) for s in steps]
        self.lock = threading.Lock()

    def next(self, has_tools):
        """("step" | "error", what, index of the step or -1)."""
        with self.lock:
            if self.sidecar_text is not None and not has_tools:
                return "step", Step(text=self.sidecar_text, usage={"input": 5, "output": 3}), -1
            i = min(self.pos, len(self.steps) - 1)
            if self.pending[i]:
                return "error", self.pending[i].pop(0), i
            self.pos += 1
            return "step", self.steps[i], i


class Ids:
    """Ids of answers: random, or counted so that two recordings are equal byte for byte."""

    def __init__(self, kind="random"):
        if kind not in ("random", "counter"):
            raise ValueError(f"ids={kind!r}: random or counter")
        self.fixed = kind == "counter"
        self._numbers = itertools.count(1)  # next() of a count is atomic

    def new(self, prefix):
        return prefix + (f"{next(self._numbers):020d}" if self.fixed else uuid.uuid4().hex[:20])

    def now(self):
        """Seconds since the epoch, for ``created``."""
        return 1_780_000_000 if self.fixed else int(time.time())


def signature(text):
    """A stable stand-in for the signature of a thinking block."""
    return base64.b64encode(text.encode("utf-8", "replace")[:12]).decode() + "c2ln"


def pieces(text, size=9):
    """A text in the pieces that a stream sends."""
    return [text[i : i + size] for i in range(0, len(text), size)]
