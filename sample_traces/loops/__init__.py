"""The sample loops, each a program of its own: `python -m looptape.sample_traces.loops.revenue`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec
from typing import Any


@dataclass(frozen=True)
class Sample:
    """A loop and its tape. ``began``: when the recording of the tape says that it ran, ISO 8601."""

    name: str
    began: str
    shows: str

    def load(self) -> Callable[[], Any]:
        """The loop's ``main``, sync or async, from a fresh copy of its program: a script is played once."""
        spec = find_spec(f"{__name__}.{self.name}")
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"the sample loop {self.name} is missing from this installation")
        program = module_from_spec(spec)
        spec.loader.exec_module(program)
        main: Callable[[], Any] = program.main
        return main


SAMPLES = (
    Sample("revenue", "2026-09-07T08:14:03Z", "a good run: search, calculator, answer"),
    Sample("cycle", "2026-09-08T13:41:50Z", "the same call with the same error, again and again, until the cap"),
    Sample("tool_errors", "2026-09-09T09:02:11Z", "tools that fail, and a model that finds its way"),
    Sample("malformed_call", "2026-09-09T15:27:36Z", "arguments that are no JSON, then of a wrong type, then right"),
    Sample("parallel", "2026-09-10T06:30:00Z", "three calls at once, one of which times out"),
    Sample("compaction", "2026-09-11T10:05:42Z", "a context that grows, is summarised, and begins anew"),
    Sample("rate_limit", "2026-09-14T16:59:58Z", "429, then 529, then an answer: the waits of the SDK"),
    Sample("interrupted", "2026-09-15T22:48:07Z", "the process was killed while a tool ran"),
    Sample("sub_agent", "2026-09-16T11:20:30Z", "a tool that runs a loop of its own, twice"),
    Sample("streaming", "2026-09-17T14:33:19Z", "streams with thinking, whose signatures go back unchanged"),
    Sample("missing_result", "2026-09-18T07:55:25Z", "a loop that answers one call of two, and the API's refusal"),
)
