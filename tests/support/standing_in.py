"""A substitute as small as can be: the turns of a recording in their order, its tool calls by id; for tests of the seam."""

import threading
from contextlib import contextmanager

from looptape.replay.player import serving, tape_runs
from looptape.tracer import errors, substitute

DEAD = "http://127.0.0.1:9"
"""Nobody answers there: what is not served fails."""


class Miss(errors.LooptapeStop):
    """Nothing recorded answers this."""


class StandIn:
    """Answers turn n of the first run with what turn n of the recording got. ``asked`` and ``tools`` say what for."""

    def __init__(self, records, *, hold=None):
        self.recorded = tape_runs.read(records)
        self.turns = sorted(self.recorded.turns(), key=lambda t: t.started_at)
        self.calls = {c.id: c for c in self.recorded.calls()}
        self.asked, self.tools, self.runs = [], [], []
        self.hold = hold or (lambda asked: None)
        self.lock = threading.Lock()

    def prepare(self, provider, raw):
        return raw

    def opened(self, run):
        self.runs.append(run.id)
        run.source, run.parent = "replay", {"run": self.turns[0].run, "turn": 1, "call": None, "kind": "fork"}

    def answer(self, asked):
        with self.lock:
            self.asked.append(asked)
        turn = self.turn_of(asked)
        if turn is None or asked.attempt > len(turn.attempts):
            raise Miss(f"turn {asked.turn.number}, attempt {asked.attempt}")
        return serving.reply(turn.attempts[asked.attempt - 1], asked, self.hold(asked))

    def turn_of(self, asked):
        number = asked.turn.number
        return self.turns[number - 1] if number <= len(self.turns) else None

    def tool(self, asked):
        with self.lock:
            self.tools.append(asked)
        call = self.calls.get(asked.call)
        if call is None:
            raise Miss(f"tool {asked.name} {asked.arguments}")
        return substitute.ToolReply(call.value)


@contextmanager
def installed(who):
    """Stands in while the block runs."""
    former = substitute.install(who)
    try:
        yield who
    finally:
        substitute.install(former)
