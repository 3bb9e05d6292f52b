"""Small drawings of numbers in one line: a sparkline, and the phases of a turn as a bar. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .cells import Span, Spans

STEPS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The values as at most ``width`` bars. More values than bars: each bar shows the highest of its share.

    Unknown values are blanks; heights start at zero, so that equal heights mean equal values.
    """
    if width <= 0 or not values:
        return ""
    values = peaks(values, width)
    top = max((v for v in values if v is not None), default=0)
    if top <= 0:
        return "".join(" " if v is None else STEPS[0] for v in values)
    return "".join(" " if v is None else STEPS[min(7, int(max(0.0, v) / top * 7.999))] for v in values)


def peaks(values: Sequence[float | None], most: int) -> Sequence[float | None]:
    """At most ``most`` values: where there are more, each is the highest of its share, None where none is known."""
    if len(values) <= most:
        return values
    shares = (values[i * len(values) // most : (i + 1) * len(values) // most] for i in range(most))
    return [max((v for v in share if v is not None), default=None) for share in shares]


def phase_bar(
    generate_ms: float | None, execute_ms: float | None, longest_ms: float, width: int, *, bad: bool = False
) -> Spans:
    """GENERATE as ▒ and EXECUTE as █, to the scale of the longest turn; each known phase is at least one cell."""
    cells = [_cells(generate_ms, longest_ms, width), _cells(execute_ms, longest_ms, width)]
    while sum(cells) > width:
        cells[0 if cells[0] >= cells[1] else 1] -= 1
    spans: list[Span] = []
    if cells[0]:
        spans.append(("▒" * cells[0], "bar_dim"))
    if cells[1]:
        spans.append(("█" * cells[1], "bar_bad" if bad else "bar"))
    return tuple(spans)


def _cells(ms: float | None, longest: float, width: int) -> int:
    if ms is None or ms <= 0 or longest <= 0:
        return 0
    return max(1, round(ms / longest * width))
