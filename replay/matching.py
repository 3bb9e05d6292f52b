"""What counts as the same request and what differs: the player's comparison, for those who have no player."""

from .player.differences import (
    DIALOGUE,
    NOTHING,
    Difference,
    in_message,
    in_part,
    json_path,
    likeness,
    part_path,
    shown,
    shown_both,
)

__all__ = [
    "DIALOGUE",
    "NOTHING",
    "Difference",
    "in_message",
    "in_part",
    "json_path",
    "likeness",
    "part_path",
    "shown",
    "shown_both",
]
