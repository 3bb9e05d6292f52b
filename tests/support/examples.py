"""How many examples a property test takes: two fifths of its number, or all of them when somebody asks for them."""

from __future__ import annotations

import os

SHARE = 0.4
FEWEST = 5  # what has no more than these keeps them all


def full() -> bool:
    """Whether LOOPTAPE_TEST_EXAMPLES=full stands in the environment."""
    return os.environ.get("LOOPTAPE_TEST_EXAMPLES") == "full"


def examples(number: int) -> int:
    """The examples to take where a thorough run takes ``number``."""
    return number if full() else min(number, max(FEWEST, round(number * SHARE)))
