"""What every widget that paints its own lines shares: styles by role from the theme in force."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from ..themes import Styles, styles
from .cells import Spans, fit, segments


class Painted(Widget):
    """Mixin: role styles, remembered until the theme changes."""

    _looks: Styles | None = None
    _looks_of: str = ""

    @property
    def looks(self) -> Styles:
        """Rich styles by role (see ``themes.styles``)."""
        theme = f"{self.app.theme}{self.app.ansi_color}"
        if self._looks is None or self._looks_of != theme:
            self._looks = styles(self.app.theme_variables)
            self._looks_of = theme
        return self._looks

    def strip(self, spans: Spans, width: int, background: str = "page", extra: Style | None = None) -> Strip:
        """Spans as one line of exactly ``width`` cells on the named background."""
        base = self.looks[background] + (extra or Style.null())
        return Strip(segments(fit(spans, width), self.looks, base), width)

    def blank(self, width: int, background: str = "page") -> Strip:
        """An empty line."""
        return Strip([Segment(" " * width, self.looks[background])], width)


class Bar(Painted):
    """A widget of painted lines without scrolling. Subclasses give ``spans_of(y, width)``."""

    background = "page"

    def spans_of(self, y: int, width: int) -> Spans:
        """The spans of line ``y``."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """One line, as Textual asks for it."""
        return self.strip(self.spans_of(y, self.size.width), self.size.width, self.background)


class PaintedScroll(ScrollView, Painted, inherit_bindings=False):
    """A ScrollView whose lines are painted on demand; moves at once, never animated."""

    DEFAULT_CSS = """
    PaintedScroll { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def jump(self, y: float) -> None:
        """Show line ``y`` at the top, as far as there is something to scroll."""
        self.scroll_to(y=max(0, y), animate=False, force=True)
