"""The sign of a turn, the same on every screen. Pure."""

from __future__ import annotations

from ..data.views import TurnRow
from ..widgets.cells import Span, Spans

MEANT = (
    ("✗", "a turn with an error"),
    ("●", "a turn that goes on"),
    ("◌", "a turn that was cut short"),
    ("›", "a word of the user came in"),
    ("▤", "compaction: the history was replaced"),
    ("⟳", "tried more than once"),
    ("⎇", "inherited from the parent run"),
)
"""Every sign of a turn in words."""


def mark(row: TurnRow) -> Spans:
    """One sign for what is special about a turn; what is wrong comes first."""
    return (wrong(row) or special(row) or ("", "dim"),)


def wrong(row: TurnRow) -> Span | None:
    """The sign of what is wrong: an error, an answer that is still open or was cut short."""
    if row.bad:
        return ("✗", "bad_strong")
    if row.status == "open":
        return ("●", "accent")
    return ("◌", "dim") if row.status in ("abandoned", "cancelled", "interrupted") else None


def special(row: TurnRow) -> Span | None:
    """The sign of what is special: a compaction, a word of the user, retries, inherited."""
    if "compaction" in row.flags:
        return ("▤", "accent")
    if row.user_turn:
        return ("›", "accent")
    if row.attempts > 1:
        return ("⟳", "dim")
    return ("⎇", "faint") if row.inherited else None
