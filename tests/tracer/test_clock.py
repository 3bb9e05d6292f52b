"""The clock of recordings."""

from __future__ import annotations

import time

from looptape.tracer import clock


def test_set_back_it_goes_on_and_set_forward_it_follows(monkeypatch):
    wall, steady = [1_000_000_000], [0]
    monkeypatch.setattr(time, "time_ns", lambda: wall[0])
    monkeypatch.setattr(time, "monotonic_ns", lambda: steady[0])
    source = clock.Source()

    def passed(seconds, jump=0):
        wall[0] += (seconds + jump) * 10**9
        steady[0] += seconds * 10**9
        return source.now()

    assert passed(0) == 1_000_000
    assert passed(1) == 2_000_000
    assert passed(1, jump=-30) == 3_000_000
    assert passed(1) == 4_000_000
    assert passed(1, jump=90) == 65_000_000
