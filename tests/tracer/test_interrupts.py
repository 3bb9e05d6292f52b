"""Ctrl+c ends what the known connections work on, whatever other threads do meanwhile."""

from __future__ import annotations

import pytest

from looptape.tracer import interrupts


class Connection:
    def __init__(self):
        self.ended = False

    def interrupt(self):
        self.ended = True


def test_a_connection_that_a_thread_opens_while_they_are_counted_does_not_hide_the_interrupt(monkeypatch):
    first, second = Connection(), Connection()

    class Growing:
        looks = 0

        def __iter__(self):
            self.looks += 1
            yield first
            if self.looks == 1:
                raise RuntimeError("Set changed size during iteration")
            yield second

    monkeypatch.setattr(interrupts, "_open", Growing())
    with pytest.raises(KeyboardInterrupt):
        interrupts._end(2, None)
    assert (first.ended, second.ended) == (True, True)
