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
THEMES = (DARK, LIGHT)

Styles = Mapping[str, Style]


def styles(variables: Mapping[str, str]) -> dict[str, Style]:
    """Rich styles by role, from a theme's variables (``App.theme_variables``), whichever theme it is.

    Roles: text, strong, dim, faint, accent, bad, key, number, head, bar, chip, hit; and as backgrounds
    page, surface, selected, selected_off.
    """
    text = _colour(variables, "foreground", "#d7dbe0")
    page = _colour(variables, "background", "#111418")
    surface = _colour(variables, "surface", "#181c22")
    accent = _colour(variables, "accent", "#5cc2b6")
    bad = _colour(variables, "error", "#ff6b66")
    dim = page.blend(text, 0.60)
    faint = page.blend(text, 0.34)
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
        "hit": Style(color=page.rich_color, bgcolor=accent.rich_color, bold=True),
        "tab": Style(color=page.rich_color, bgcolor=accent.rich_color, bold=True),
        "page": Style(bgcolor=page.rich_color),
        "surface": Style(bgcolor=surface.rich_color),
        "selected": Style(bgcolor=page.blend(accent, 0.20).rich_color),
        "selected_off": Style(bgcolor=page.blend(text, 0.10).rich_color),
    }


def _colour(variables: Mapping[str, str], name: str, fallback: str) -> Color:
    try:
        return Color.parse(variables.get(name, fallback))
    except Exception:  # a theme may say "auto 60%" or an ANSI name we cannot blend
        return Color.parse(fallback)
