"""What every screen has: a head, a line for notices, the keys at the foot; readings in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from textual import events
from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from ...tracer.errors import LooptapeError
from .. import keymap
from ..messages import Failed
from ..safe_text import clean
from ..source import Source, Trouble
from ..widgets.bars import KeyBar, NoticeBar
from ..widgets.cells import Spans

if TYPE_CHECKING:
    from ..app import LooptapeApp


class Page(Screen[int]):
    """A screen of the app. Subclasses give ``KEYS`` and compose their own middle."""

    KEYS: Sequence[keymap.Key] = ()
    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__()
        self._busy: set[str] = set()

    @property
    def loop_app(self) -> LooptapeApp:
        """The app, with its own type."""
        return cast("LooptapeApp", self.app)

    @property
    def source(self) -> Source:
        """Where the data comes from."""
        return self.loop_app.source

    def key_bar(self) -> KeyBar:
        """The footer of this screen."""
        return KeyBar((*self.KEYS, *keymap.EVERYWHERE))

    def all_keys(self) -> Sequence[keymap.Key]:
        """Every key valid now: those of the focused widget, of the screen, of the app."""
        focused = self.focused
        own: Sequence[keymap.Key] = ()
        if focused is not None:
            from ..widgets.text_pane import TextPane
            from ..widgets.virtual_list import VirtualList

            own = (
                keymap.LIST
                if isinstance(focused, VirtualList)
                else keymap.TEXT
                if isinstance(focused, TextPane)
                else ()
            )
        return (*self.KEYS, *own, *keymap.EVERYWHERE)

    @property
    def waiting(self) -> bool:
        """True while a reading is on its way."""
        return bool(self._busy)

    def say(self, text: str) -> None:
        """A line that stays until the next key."""
        self.query_one(NoticeBar).passing(text)

    def notices(self, lines: Sequence[str]) -> None:
        """What the store has to say."""
        shown: list[Spans] = [(("! ", "accent_strong"), (line, "text")) for line in lines]
        self.query_one(NoticeBar).lasting(*shown)

    def on_key(self, _event: events.Key) -> None:
        """A key was pressed: what was said is read."""
        self.query_one(NoticeBar).passing("")

    def poll(self, job: Callable[[], Message], group: str) -> None:
        """Like ``read``, but not while the last one of the group is still on its way."""
        if group not in self._busy:
            self._busy.add(group)
            self.read(job, group)

    def read(self, job: Callable[[], Message], group: str) -> None:
        """Run a reading in a thread and post what it gives; a newer reading of the group replaces it."""

        def work() -> None:
            worker = get_current_worker()
            try:
                message = job()
            except LooptapeError as error:
                message = Failed(Trouble(error.what, error.cure))
            except Exception as error:  # a screen must outlive whatever a reading runs into
                self.log.error(f"{group}: {type(error).__name__}: {error}")
                message = Failed(
                    Trouble(f"Reading failed: {type(error).__name__}: {error}", "looptape doctor looks at the store")
                )
            finally:
                self._busy.discard(group)
            if not worker.is_cancelled:
                self.post_message(message)

        self.run_worker(work, thread=True, exclusive=True, group=group, exit_on_error=False)

    def on_failed(self, message: Failed) -> None:
        """Say what could not be read; what is shown stays."""
        trouble = message.trouble
        self.query_one(NoticeBar).trouble(f"{trouble.what}. {trouble.cure}" if trouble.cure else trouble.what)

    def action_keys(self) -> None:
        """The menu of keys valid here."""
        from .keys import KeysMenu

        self.app.push_screen(KeysMenu(self.all_keys()), self._run_key)

    def _run_key(self, action: str | None) -> None:
        if action:
            target = self.focused if self.focused is not None and action.split("(")[0] in _OF_WIDGETS else self
            self.call_later(target.run_action, action)

    def copy(self, text: str) -> None:
        """Hand an id to the terminal's clipboard, in honest words: nobody answers whether it arrived."""
        text = clean(text)
        self.app.copy_to_clipboard(text)
        self.say(f"{text} sent to the terminal's clipboard")


_OF_WIDGETS = frozenset({"move", "page", "top", "bottom", "open"})
