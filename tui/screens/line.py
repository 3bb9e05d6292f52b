"""A line one types at the foot of a screen, with what it could become above it: commands, paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from ..widgets.cells import Column, Spans
from ..widgets.filter_bar import CleanInput
from ..widgets.painted import Bar
from ..widgets.virtual_list import VirtualList

MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Offer:
    """What the line could become.

    Attributes:
        text: The whole line then; one that ends in a blank or a slash wants more behind it.
        help: What it means.
        key: The key that does the same.
    """

    text: str
    help: str = ""
    key: str = ""


class _Sign(Bar):
    """What stands before the line."""

    background = "surface"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.styles.width = len(text) + 2

    def spans_of(self, _y: int, _width: int) -> Spans:
        """The sign in the accent colour."""
        return ((f" {self._text} ", "accent_strong"),)


class Line(ModalScreen[str | None]):
    """Gives back what was typed, None when it was left with Esc.

    Args:
        sign: What stands before the line: ``:``, ``file``, ``folder``.
        value: What stands in it at first.
        offers: What a line could become; asked at each key, so it must be quick.
        placeholder: What is to be typed, while there is nothing.
        only_offers: Enter takes the offer that is selected, whatever was typed to find it.
    """

    DEFAULT_CSS = """
    Line { align: left bottom; }
    Line > Vertical { height: auto; background: $background; border-top: solid $primary; }
    Line VirtualList { height: auto; }
    Line Horizontal { height: 1; background: $surface; }
    Line _Sign { height: 1; }
    Line Input { width: 1fr; border: none; height: 1; padding: 0; background: $surface; }
    Line Input:focus { border: none; }
    """

    def __init__(
        self,
        sign: str,
        value: str = "",
        *,
        offers: Callable[[str], Sequence[Offer]] = lambda _line: (),
        placeholder: str = "",
        only_offers: bool = False,
    ) -> None:
        super().__init__()
        self._sign, self._value, self._offers, self._placeholder = sign, value, offers, placeholder
        self._only_offers = only_offers
        self._moved = False

    def ask(self, app: App[Any], then: Callable[[str], object]) -> None:
        """Open it; ``then`` is told the line, and nothing where there was none."""

        def told(text: str | None) -> None:
            if text is not None:
                then(text)

        app.push_screen(self, told)

    def compose(self) -> ComposeResult:
        """The offers, and the line below them."""
        wide = self._only_offers
        columns = [
            Column("text", "", 40 if wide else 12, grow=3 if wide else 1, most=70 if wide else 40, keep=9),
            Column("key", "", 6, keep=3),
            Column("help", "", 10, grow=3, keep=5),
        ]
        with Vertical():
            yield VirtualList[Offer](columns, lambda o: o.text, _cells, head=False)
            with Horizontal():
                yield _Sign(self._sign)
                yield CleanInput(self._value, placeholder=self._placeholder, compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """The line takes the keys."""
        self.listing.can_focus = False
        self.set_focus(self.query_one(Input))
        self._show()

    @property
    def listing(self) -> VirtualList[Offer]:
        """The offers."""
        return self.query_one(VirtualList)

    def on_key(self, event: events.Key) -> None:
        """Tab takes the offer, the arrows choose one, Esc leaves."""
        if event.key in ("down", "up", "shift+tab"):
            self._moved = self._moved or bool(self.listing.rows)
            self.listing.action_move(1 if event.key == "down" else -1)
        elif event.key in ("ctrl+n", "ctrl+p"):
            self.listing.action_move(1 if event.key == "ctrl+n" else -1)
            self._moved = True
        elif event.key == "tab":
            self._take()
        elif event.key == "escape":
            self.dismiss(None)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """A click on an offer takes it."""
        message.stop()
        self._take()
        if self._only_offers:
            self.dismiss(message.key)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Other letters, other offers."""
        event.stop()
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: the offer that was chosen with the arrows, else what stands there."""
        event.stop()
        chosen = self.listing.selected
        text = chosen.text if (self._moved or self._only_offers) and chosen is not None else event.value
        if text != event.value and text.endswith((" ", "/")):
            self._take()
        else:
            self.dismiss(text)

    def renew(self) -> None:
        """There is more to offer now; what was chosen meanwhile stays."""
        if self.is_current and not self._moved:  # it may have been left meanwhile
            self._show()

    def _take(self) -> None:
        offer = self.listing.selected
        if offer is not None:
            line = self.query_one(Input)
            line.value = offer.text
            line.cursor_position = len(offer.text)

    def _show(self) -> None:
        self._moved = False
        offers = list(self._offers(self.query_one(Input).value))
        room = max(1, min(MOST_SHOWN, self.app.size.height - 4))
        self.listing.display = bool(offers)
        self.listing.styles.height = min(len(offers), room)
        self.listing.show(offers, select=offers[0].text if offers else None)


def _cells(offer: Offer, column: str) -> Spans:
    if column == "text":
        return ((offer.text, "strong"),)
    return ((offer.key, "accent"),) if column == "key" else ((offer.help, "dim"),)
