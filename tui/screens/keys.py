"""The menu of the keys valid here: read it, or choose one and press Enter."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from .. import keymap
from ..widgets.bars import HeadBar, KeyBar
from ..widgets.cells import Column, Spans
from ..widgets.virtual_list import VirtualList

COLUMNS = (Column("key", "", 8, right=True, keep=9), Column("help", "", 20, grow=1, keep=8))
_CLOSE = (
    keymap.Key("enter", "open", "menu.run", "do it", "do it"),
    keymap.Key("escape,q,question_mark", "close", "menu.close", "close", "close", "Esc"),
)


class KeysMenu(ModalScreen[str | None]):
    """Gives back the action of the chosen key, None when it was only read."""

    BINDINGS = keymap.bindings(_CLOSE[1:])

    def __init__(self, keys: Sequence[keymap.Key]) -> None:
        super().__init__()
        self._keys = [k for k in keys if k.action not in ("keys", "tab_at")]

    def compose(self) -> ComposeResult:
        """A box with a list."""
        with Vertical(id="menu"):
            yield HeadBar()
            yield VirtualList[keymap.Key](COLUMNS, lambda k: k.name, _cells, head=False)
            yield KeyBar(_CLOSE)

    def on_mount(self) -> None:
        """Fill it; as high as it has keys, as far as there is room."""
        self.query_one(HeadBar).show(((("keys valid here", "strong"),), ()))
        self.query_one("#menu").styles.height = min(len(self._keys) + 4, max(8, self.app.size.height - 2))
        listing = self.query_one(VirtualList)
        listing.show(self._keys)
        self.set_focus(listing)

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """Close and run it."""
        message.stop()
        action = next((k.action for k in self._keys if k.name == message.key), None)
        self.dismiss(action)

    def action_close(self) -> None:
        """Only read."""
        self.dismiss(None)


def _cells(key: keymap.Key, column: str) -> Spans:
    return ((key.label, "accent_strong"),) if column == "key" else ((key.help, "text"),)
