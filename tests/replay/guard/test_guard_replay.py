"""A guarded run can be replayed: the guard says and does the same again, nothing is asked twice."""

from __future__ import annotations

import pytest

import looptape
from guarded import Counted, circling, drive
from recorded import recording


@pytest.fixture
def home(tmp_path, monkeypatch):
    with recording(tmp_path) as home:
        monkeypatch.setenv("LOOPTAPE_HOME", str(home.path))
        yield home


def program(cycles, model, tool):
    with looptape.run("guarded", guard=looptape.Guard(cycles=cycles)):
        try:
            drive(model.client(), {"search": tool.tool})
        except looptape.LoopStopped as stopped:
            return stopped.reason
    return None


@pytest.mark.parametrize("cycles", ["note", "notice", "block", "stop"])
def test_a_replay_goes_the_same_way(home, cycles):
    model, tool = circling(turns=9), Counted()
    reason = program(cycles, model, tool)
    recorded = home.run()
    again, idle = circling(turns=9), Counted()

    with looptape.replaying(recorded.id, into=home.path) as replay:
        assert program(cycles, again, idle) == reason

    assert replay.verdict.ok, replay.verdict
    assert (idle.ran, again.requests) == (0, [])
