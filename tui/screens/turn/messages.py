"""Messages of a request as lines that open: sign, number, speaker, tokens, and their first words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....replay.message_parts import role
from ...format import count
from ...widgets.blocks import Block, Fold
from ...widgets.cells import Span, Spans, fit
from .content import message_blocks, preview

LABEL, TOKENS = 18, 9
SIGNS = {
    "same": ("≡", "faint"),
    "appended": ("+", "accent_strong"),
    "inserted": ("+", "accent_strong"),
    "edited": ("✎", "accent_strong"),
    "truncated": ("✂", "bad_strong"),
    "dropped": ("-", "bad_strong"),
    "reordered": ("↕", "accent_strong"),
    "": (" ", "dim"),
}
"""How a part of a request stands to the one of the turn before: its sign and role."""


def row(kind: str, label: str, tokens: int | str | None, *rest: Span) -> Spans:
    """A line of the request: sign, label, tokens, and what there is to say."""
    sign, sign_role = SIGNS[kind]
    quiet = kind == "same"
    figure = tokens if isinstance(tokens, str) else "" if tokens is None else count(tokens)
    spans: list[Span] = [(f"{sign} ", sign_role), *fit(((label, "dim" if quiet else "strong"),), LABEL)]
    spans.append((f"{figure:>{TOKENS}}  ", "dim" if quiet else "text"))
    return (*spans, *rest)


def message(
    number: int,
    value: Any,
    kind: str,
    *,
    tokens: int | str | None = None,
    open_: bool = False,
    note: Spans = (),
    before: Sequence[Block] = (),
    indent: int = 0,
    raw: bool = False,
) -> Fold:
    """One message, folded or open.

    Args:
        note: Goes before the first words.
        before: Blocks that stand above its content: what was edited.
    """
    said = () if open_ or before else preview(value)
    space: Spans = (("  ", "dim"),) if note and said else ()
    key = f"message.{'gone.' if kind == 'dropped' else ''}{number}"
    inner = (*before, *message_blocks(value, indent=indent + 6, role="dim" if kind == "same" else "text", raw=raw))
    who = role(value)
    head = row(kind, f"[{number}] {who}", tokens, *note, *space, *said)
    hang = LABEL + TOKENS + 4
    return Fold(key, head, inner, open_, indent, hang, not note, value=value, what=f"message {number}")


def together(first: int, last: int, folds: Sequence[Fold], tokens: int | str | None, note: str) -> Fold:
    """Several messages under one line."""
    label = f"[{first}..{last}]" if last > first else f"[{first}]"
    inner = tuple(_deeper(fold) for fold in folds)
    return Fold(f"same.{first}-{last}", row("same", label, tokens, (note, "dim")), inner, False)


def _deeper(fold: Fold) -> Fold:
    return replace(fold, indent=fold.indent + 2)
