"""Record into a folder of one's own, end as a process would, and read back through the store."""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from looptape.tracer import process, quiet, redaction, tape
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import Filter, open_store


@dataclass
class Recorded:
    """One run as a reader of the store sees it."""

    run: object
    turns: list
    requests: list

    def __getattr__(self, name):
        return getattr(self.run, name)


class Home:
    """A store directory and the recorder that writes into it."""

    def __init__(self, path: Path):
        self.path = path
        self.recorder = Recorder(Journal(path))

    def end(self):
        """What happens when the process ends."""
        self.recorder.at_exit()

    def records(self):
        """The journal's records as they stand."""
        found = []
        for file in sorted((self.path / "journal").glob("*.jsonl")):
            with open(file, "rb") as lines:
                found += [record for _, record in tape.read_lines(lines)]
        return found

    def runs(self):
        """Every run, the earliest first (ends the process first)."""
        self.end()
        with open_store(self.path) as store:
            runs = sorted(store.runs(Filter(limit=0, include_empty=True)), key=lambda r: (r.started_at, r.id))
            found = []
            for run in runs:
                turns = store.turns(run.id)
                found.append(Recorded(run, turns, [store.request(run.id, t.number) for t in turns]))
            return found

    def run(self):
        """The only run."""
        runs = self.runs()
        assert len(runs) == 1, [(r.name, r.status, len(r.turns), r.parent) for r in runs]
        return runs[0]


@contextmanager
def recording(path: Path):
    """Everything recorded in the block goes to a store directory below this path."""
    quiet.forget()  # another test's trouble must not keep this one's silent
    home = Home(path / "looptape-home")
    former = process.replace(home.recorder)
    try:
        yield home
    finally:
        process.replace(former)
        redaction.forget()
        home.recorder.journal.close()


def asked(turn, *names, arguments=None):
    """The model asks for these tools."""
    turn.request("question")
    calls = [{"id": f"c{i}", "name": n, "arguments": arguments or {}} for i, n in enumerate(names, 1)]
    turn.response("on it", tool_calls=calls, stop_reason="tool_use")


def calls_of(home):
    """Every tool call of the only run."""
    return [c for t in home.run().turns for c in t.tool_calls]
