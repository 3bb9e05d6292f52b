"""What every screen has: a head, a line for notices, the keys at the foot; readings in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from textual import events
from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from ...tracer.errors import LooptapeError
from .. import crash, keymap
from ..data.source import Source
from ..data.views import Trouble
from ..messages import Answered, Failed, Unchanged
from ..place import Scope, Subject
from ..themes import NAMES, called
from ..widgets.bars import KeyBar, NoticeBar, act
from ..widgets.cells import Spans
from .host import Host


class Page(Screen[int]):
    """A screen of the app. Subclasses give ``KEYS`` and compose their own middle.

    Attributes:
        OPENS: What Enter does in its list, as the footer says it; empty where it does nothing.
        SIGNS: Signs of its list with what they mean, for the menu of keys.
    """

    KEYS: Sequence[keymap.Key] = ()
    OPENS = ""
    SIGNS: Sequence[tuple[str, str]] = ()
    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__()
        self._busy: set[str] = set()
        self._newest: dict[str, object] = {}
        self._own: Source | None = None

    @property
    def loop_app(self) -> Host:
        """The app, with what screens may ask of it."""
        return cast("Host", self.app)

    @property
    def source(self) -> Source:
        """The store that this screen is of, whatever is shown above it meanwhile."""
        if self._own is None:
            self._own = self.loop_app.source
        return self._own

    def on_screen_resume(self) -> None:
        """What is opened from here is of this store."""
        self.loop_app.take(self.source)

    def key_bar(self) -> KeyBar:
        """The footer of this screen."""
        return KeyBar(self.foot(self.KEYS))

    def foot(self, keys: Sequence[keymap.Key]) -> Sequence[keymap.Key]:
        """What the footer says of these keys: what Enter does in the list of the screen comes first."""
        opens = (replace(keymap.OPEN, short=self.OPENS),) if self.OPENS else ()
        return (*opens, *keys, *keymap.EVERYWHERE)

    def all_keys(self) -> Sequence[keymap.Key]:
        """Every key valid now: those of the focused widget, of the screen, of the app."""
        own: list[keymap.Key] = []
        if self.focused is not None:
            for widget in self.focused.ancestors_with_self:
                if widget is not self:
                    own += getattr(widget, "KEYS", ())
        return (*self.KEYS, *own, *keymap.EVERYWHERE)

    @property
    def waiting(self) -> bool:
        """True while a reading is on its way."""
        return bool(self._busy)

    def say(self, text: str) -> None:
        """A line that stays until the next key; of what is said while the screen is being left nothing."""
        for bar in self.query(NoticeBar):
            bar.passing(text)

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
        mark = self._newest[group] = object()

        def work() -> None:
            worker = get_current_worker()
            message: Message = Unchanged()
            try:
                message = job()
            except LooptapeError as error:
                message = self._failed(group, Trouble(error.what, error.cure))
            except Exception as error:  # a screen must outlive whatever a reading runs into
                where = crash.log(self.source.home, f"{group} failed", error)
                cure = f"More in {where}" if where else "looptape doctor looks at the store"
                message = self._failed(group, Trouble(f"{group} failed: {type(error).__name__}: {error}", cure))
            finally:
                self.post_message(Answered(lambda: self._arrived(group, mark, message, wanted=not worker.is_cancelled)))

        self.run_worker(work, thread=True, exclusive=True, group=group, exit_on_error=False)

    def _arrived(self, group: str, mark: object, message: Message, *, wanted: bool) -> None:
        """A reading is over. Whether a newer one took its place meanwhile is known for sure only here, where both begin."""
        if self._newest.get(group) is mark:
            self._busy.discard(group)
            if wanted:
                self.post_message(message)

    def _failed(self, group: str, trouble: Trouble) -> Message:
        """A reading that failed; what a key asked for is said until the next key, and nothing else is touched."""
        if group in _OF_KEYS:
            return Answered(lambda: self.say(told(trouble)))
        return Failed(trouble)

    def on_answered(self, message: Answered) -> None:
        """A job is done: what follows from it."""
        message.then()

    def on_failed(self, message: Failed) -> None:
        """Say what could not be read; what is shown stays."""
        self.query_one(NoticeBar).trouble(told(message.trouble))

    # what one can do anywhere; what a key needs is loaded when it is pressed: the first picture does not wait for it

    def subject(self) -> Subject:
        """What y, o, e, m, d and r are about now. Screens say it."""
        return Subject()

    def scope(self) -> Scope:
        """The runs that ! and $ are about."""
        place = self.subject().place
        return Scope() if place is None else Scope(runs=(place.run,))

    def action_keys(self) -> None:
        """The menu of keys valid here."""
        from .menu import Choice, Menu

        keys = [k for k in self.loop_app.rebound(self.all_keys()) if k.action not in ("keys", "tab_at")]
        choices = [Choice(k.name, k.help, k.label, keymap.group_of(k.name)) for k in keys]
        choices += [Choice(f"sign {sign}", says, sign, "sign") for sign, says in self.SIGNS]
        actions = {k.name: k.action for k in keys}
        title = "keys valid here, and signs" if self.SIGNS else "keys valid here"
        self.app.push_screen(
            Menu(title, choices, verb="do it"), lambda name: self.do(actions[name]) if name in actions else None
        )

    def do(self, action: str) -> None:
        """Run an action as its key would."""
        act(self, action)

    def action_mark(self) -> None:
        """Mark the place for a comparison, or take the mark away."""
        place = self.subject().place
        if place is None:
            self.say("nothing to mark here")
            return
        self.say(self.loop_app.toggle_mark(place))
        self.marks_changed()

    def marks_changed(self) -> None:
        """Marks were set or taken away: screens that show them paint anew."""

    def action_diff(self) -> None:
        """Compare the place with what is marked."""
        place = self.subject().place
        others = [p for p in self.loop_app.marks if p != place]
        if place is None:
            self.say("nothing to compare here")
        elif not others:
            marked = (
                "only this one is marked: go to another"
                if self.loop_app.marks
                else "mark one first: m on a run or turn"
            )
            self.say(f"{marked}, then d")
        elif len(others) > 1:
            self.loop_app.open_compare_many(place, others)
        else:
            self.loop_app.open_compare(others[-1], place)

    def action_fork(self) -> None:
        """Run on from here."""
        place = self.subject().place
        if place is None:
            self.say("choose a run or a turn first")
        else:
            self.loop_app.open_fork(place)

    def action_findings(self) -> None:
        """Findings of what is shown."""
        self.loop_app.open_findings(self.scope())

    def action_costs(self) -> None:
        """Costs of what is shown."""
        self.loop_app.open_costs(self.scope())

    def action_copy(self) -> None:
        """The copy menu."""
        from .doing import copying

        copying.offer(self)

    def action_open_in(self) -> None:
        """What is selected in another program."""
        from .doing import opening

        opening.offer(self)

    def action_export(self) -> None:
        """What is selected into a file."""
        from .doing import exporting

        exporting.offer(self)

    def action_resume(self) -> None:
        """The session in its own tool."""
        from .doing import resume

        resume.offer(self)

    def action_command(self) -> None:
        """Type a command."""
        from .doing import command_line

        command_line.open_line(self)

    def action_theme(self) -> None:
        """Other colours."""
        from .menu import Choice, Menu

        now = called(self.app.theme)
        choices = [Choice(name, name, note="now" if name == now else "") for name in NAMES]
        Menu("colours", choices, selected=now).ask(self.app, self.loop_app.dress)

    def copy(self, text: str, what: str = "") -> None:
        """Copy a text exactly; says, once it has gone, which way it went.

        Args:
            what: What it is, in two or three words; the text itself where it is short.
        """
        from .doing import copying

        copying.send(self, text, what)


_OF_KEYS = frozenset({"copy", "open", "export", "command", "resume"})
"""Jobs that a key began, and that no screen waits for."""


def told(trouble: Trouble) -> str:
    """What happened and what to do, in one line."""
    what = trouble.what.rstrip(".")
    return f"{what}. {trouble.cure}" if trouble.cure else what
