"""The colours: one accent, red only for what is wrong, dim for context; and how roles become styles."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

DARK = Theme(
    name="looptape-dark",
    primary="#5cc2b6",
    secondary="#5cc2b6",
    accent="#5cc2b6",
    foreground="#d7dbe0",
    background="#111418",
    surface="#181c22",
    panel="#222831",
    error="#ff6b66",
    warning="#d7dbe0",
    success="#5cc2b6",
    dark=True,
)
LIGHT = Theme(
    name="looptape-light",
    primary="#0b7a6f",
    secondary="#0b7a6f",
    accent="#0b7a6f",
    foreground="#20262d",
    background="#fbfaf7",
    surface="#f1efe9",
    panel="#e4e1d8",
    error="#b3261e",
    warning="#20262d",
    success="#0b7a6f",
    dark=False,
)
CONTRAST = Theme(
    name="looptape-contrast",
    primary="#ffd43b",
    secondary="#ffd43b",
    accent="#ffd43b",
    foreground="#ffffff",
    background="#000000",
    surface="#1c1c1c",
    panel="#5a5a5a",
    error="#ff8a80",
    warning="#ffffff",
    success="#ffd43b",
    dark=True,
    variables={"looptape-dim": "86%", "looptape-faint": "68%"},
)
TERMINAL = Theme(
    name="looptape-terminal",
    ansi=True,
    primary="ansi_cyan",
    secondary="ansi_cyan",
    accent="ansi_cyan",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_bright_black",
    boost="ansi_default",
    error="ansi_red",
    warning="ansi_default",
    success="ansi_cyan",
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "border": "ansi_cyan",
        "border-blurred": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_cyan",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "scrollbar-corner-color": "ansi_default",
        "screen-selection-background": "ansi_cyan",
        "screen-selection-foreground": "ansi_black",
    },
)
"""The colours that the terminal has, and its own background: for those who chose them with care."""
THEMES = (DARK, LIGHT, CONTRAST, TERMINAL)
NAMES = ("dark", "light", "contrast", "terminal")
"""What a person calls them."""

Styles = Mapping[str, Style]


def styles(variables: Mapping[str, str]) -> dict[str, Style]:
    """Rich styles by role, from a theme's variables (``App.theme_variables``), whichever theme it is.

    Roles: text, strong, dim, faint, accent, bad, key, number, head, bar, chip, changed, hit; and as backgrounds
    page, surface, selected, selected_off.
    """
    if variables.get("background", "").startswith("ansi"):
        return dict(_OF_TERMINAL)
    text = _colour(variables, "foreground", "#d7dbe0")
    page = _colour(variables, "background", "#111418")
    surface = _colour(variables, "surface", "#181c22")
    accent = _colour(variables, "accent", "#5cc2b6")
    bad = _colour(variables, "error", "#ff6b66")
    dim = page.blend(text, _share(variables, "looptape-dim", 0.60))
    faint = page.blend(text, _share(variables, "looptape-faint", 0.34))
    return {
        "text": Style(color=text.rich_color),
        "strong": Style(color=text.rich_color, bold=True),
        "dim": Style(color=dim.rich_color),
        "faint": Style(color=faint.rich_color),
        "accent": Style(color=accent.rich_color),
        "accent_strong": Style(color=accent.rich_color, bold=True),
        "bad": Style(color=bad.rich_color),
        "bad_strong": Style(color=bad.rich_color, bold=True),
        "key": Style(color=page.blend(accent, 0.85).rich_color),
        "number": Style(color=text.rich_color, bold=True),
        "head": Style(color=dim.rich_color),
        "bar": Style(color=page.blend(accent, 0.72).rich_color),
        "bar_bad": Style(color=page.blend(bad, 0.85).rich_color),
        "bar_dim": Style(color=page.blend(text, 0.42).rich_color),
        "changed": Style(color=accent.rich_color, bold=True, underline=True),
        "hit": Style(color=page.rich_color, bgcolor=accent.rich_color, bold=True),
        "tab": Style(color=page.rich_color, bgcolor=accent.rich_color, bold=True),
        "page": Style(bgcolor=page.rich_color),
        "surface": Style(bgcolor=surface.rich_color),
        "selected": Style(bgcolor=page.blend(accent, 0.20).rich_color),
        "selected_off": Style(bgcolor=page.blend(text, 0.10).rich_color),
    }


def called(theme: str) -> str:
    """What a person calls a theme of ours: ``dark``; others have their own names."""
    short = theme.removeprefix("looptape-")
    return short if short in NAMES else theme


def meant(name: str) -> str:
    """The theme that a person means by a name."""
    ours = _OTHER_WORDS.get(name, name)
    return f"looptape-{ours}" if ours in NAMES else name


_OTHER_WORDS = {"high-contrast": "contrast", "ansi": "terminal"}
_OF_TERMINAL = {
    "text": Style(),
    "strong": Style(bold=True),
    "dim": Style(dim=True),
    "faint": Style(dim=True),
    "accent": Style(color="cyan"),
    "accent_strong": Style(color="cyan", bold=True),
    "bad": Style(color="red"),
    "bad_strong": Style(color="red", bold=True),
    "key": Style(color="cyan"),
    "number": Style(bold=True),
    "head": Style(dim=True),
    "bar": Style(color="cyan"),
    "bar_bad": Style(color="red"),
    "bar_dim": Style(dim=True),
    "changed": Style(bold=True, underline=True),
    "hit": Style(bold=True, reverse=True),
    "tab": Style(bold=True, reverse=True),
    "page": Style(),
    "surface": Style(),
    "selected": Style(reverse=True),
    "selected_off": Style(underline=True),
}
"""Roles by the terminal's own colours and attributes; without any colour they still differ."""


def _share(variables: Mapping[str, str], name: str, usual: float) -> float:
    """How far towards the text's colour, as a theme says it."""
    given = variables.get(name, "")
    return int(given[:-1]) / 100 if given[:-1].isdecimal() and given.endswith("%") else usual


def _colour(variables: Mapping[str, str], name: str, fallback: str) -> Color:
    try:
        return Color.parse(variables.get(name, fallback))
    except Exception:  # a theme may say "auto 60%" or an ANSI name we cannot blend
        return Color.parse(fallback)
