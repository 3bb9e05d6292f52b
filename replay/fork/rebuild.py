"""What the model saw at a turn, as the start of a fork: `rebuild(store, run, n)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .draft import draft
from .faithful import start
from .start import Start

if TYPE_CHECKING:
    from ...tracer.store import Store


def rebuild(
    store: Store, run: str, number: int, *, seen_tools: bool = False, api: str | None = None, run_open: bool = False
) -> Start:
    """The exact request of turn ``number``, unedited, with what it lacks; see `Start`.

    Args:
        number: From 1; one more than the run has turns goes on after its last turn.
        seen_tools: Offer tools whose definitions are missing, derived from the arguments seen.
        api: Another wire format (``anthropic.messages``, ``openai.chat``).
        run_open: After the last turn its calls without a result are to be run (a run that is resumed), instead of
            getting an error result.

    Raises:
        UsageError: There is no such turn, or nothing to go on with.
        LooptapeError: The content was not recorded (exit 3).
    """
    return start(draft(store, run, number), seen=seen_tools, api=api, run_open=run_open)
