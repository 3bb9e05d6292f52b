"""How often the turns before asked each tool for the same: a fork's next such call is one more, not the first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from ...tracer.live import call_key
from ...tracer.model import Turn


def asked(turns: Sequence[Turn], last: int, *, dropped: Collection[int], waiting: Collection[str]) -> dict[str, int]:
    """Counts by `call_key` of the calls of turns up to ``last``.

    Args:
        dropped: Turns that were taken out of the request.
        waiting: Ids of calls that are still to be run.
    """
    return dict(
        Counter(
            call_key(call.name, call.arguments if call.arguments is not None else _loads(call.arguments_raw))
            for turn in turns
            if turn.number <= last and turn.number not in dropped
            for call in turn.tool_calls
            if call.id not in waiting and call.origin != "provider"
        )
    )


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
