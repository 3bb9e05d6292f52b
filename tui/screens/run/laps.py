"""Cycles as brackets beside the turns: where a cycle begins and ends, and where each lap begins. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....replay.cycles import CycleFinding

WIDTH = 3
"""Cells of a bracket: the number of the lap, and the line."""


def brackets(cycles: Iterable[CycleFinding]) -> Mapping[int, str]:
    """By turn, the cells beside it: `` ↻┌`` where a cycle begins, `` 2├`` where its second lap does, ``  └`` at its end.

    Where cycles overlap the wider one is drawn; a cycle inside one turn is a single ``↻``.
    """
    drawn: dict[int, str] = {}
    for cycle in sorted(cycles, key=lambda c: (c.first_turn - c.last_turn, c.first_turn)):
        span = range(cycle.first_turn, cycle.last_turn + 1)
        if any(n in drawn for n in (span[0], span[-1])):
            continue
        laps = _laps(cycle)
        for number in span:
            drawn[number] = f"{_sign(laps.get(number, 0)):>2}{_line(number, cycle, number in laps)}"
    return drawn


def lap_of(cycle: CycleFinding, number: int) -> int | None:
    """In which lap a turn stands, from 1; 0 where laps are not to be told apart; None outside of the cycle."""
    if not cycle.first_turn <= number <= cycle.last_turn:
        return None
    laps = _laps(cycle)
    if len(laps) != cycle.laps:
        return 0
    return max((lap for start, lap in laps.items() if start <= number), default=1)


def _laps(cycle: CycleFinding) -> dict[int, int]:
    """The first turn of each lap, with the lap's number; without numbers where there are other turns than laps."""
    step = max(1, cycle.period)
    starts = cycle.turns[::step]
    if len(starts) != cycle.laps and len(cycle.turns) == cycle.laps:
        starts = cycle.turns  # the turns of the list are the laps themselves
    if len(starts) != cycle.laps:  # a call that was made twice in a turn, or for something else between
        return dict.fromkeys(starts, 0) | {cycle.first_turn: 1}
    return {turn: lap for lap, turn in enumerate(starts, 1)}


def _sign(lap: int) -> str:
    return "" if not lap else "↻" if lap == 1 else str(lap) if lap < 100 else "+"


def _line(number: int, cycle: CycleFinding, lap: bool) -> str:
    if cycle.first_turn == cycle.last_turn:
        return " "
    if number == cycle.first_turn:
        return "┌"
    return "└" if number == cycle.last_turn else "├" if lap else "│"
