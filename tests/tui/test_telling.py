"""What is said of an event reads as words."""

from __future__ import annotations

from looptape.tracer.model import Event
from looptape.tui.told.telling import of_event

DETAIL = {
    "start": {"run": "r1", "turn": 2, "edits": []},
    "tools": {"kind": "mixed", "by_name": {}, "rest": {"kind": "recorded"}},
    "policy": {"max_turns": 0, "max_cost_usd": None, "stop": False},
    "results": {"t1": None},
    "notes": [],
    "calls": ["a", "b"],
}


def test_an_event_is_told_in_words_without_what_is_empty_in_it() -> None:
    line = of_event(Event("engine", detail=DETAIL))
    assert "".join(part if isinstance(part, str) else part.text for part in line.parts) == (
        "▤ engine start (run r1, turn 2), tools (kind mixed, rest (kind recorded)), policy (max_turns 0, stop false)"
        ', calls ["a", "b"]'
    )
