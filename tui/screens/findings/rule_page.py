"""The page of a rule: what it looks at, why, the evidence, the cure."""

from __future__ import annotations

import re

from textual.app import ComposeResult
from textual.message import Message

from ....replay.rules.pages import about
from ... import keymap
from ...place import Subject
from ...widgets.bars import HeadBar, NoticeBar
from ...widgets.blocks import Body, Document, Head
from ...widgets.text_pane import TextPane
from ..page import Page

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


class PageRead(Message):
    """The page was read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class RulePage(Page):
    """A page to read."""

    KEYS = (keymap.FINDINGS[-1], *(key for key in keymap.HERE if key.name in ("copy", "open-in")))
    BINDINGS = keymap.bindings(KEYS)
    CSS = "#page { height: 1fr; margin-top: 1; }"

    def __init__(self, rule: str) -> None:
        super().__init__()
        self._rule = rule
        self._text = ""

    def compose(self) -> ComposeResult:
        """Head, text, notices, keys."""
        yield HeadBar()
        yield TextPane(id="page")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Read it."""
        self.query_one(HeadBar).show(((("rule ", "dim"), (self._rule, "accent_strong")), [(("docs/rules", "dim"),)]))
        pane = self.query_one("#page", TextPane)
        self.set_focus(pane)
        self.read(lambda: PageRead(about(self._rule)), "page")

    def on_page_read(self, message: PageRead) -> None:
        """Show it."""
        self._text = message.text
        self.query_one("#page", TextPane).show(document(message.text), name=self._rule)

    def subject(self) -> Subject:
        """The text."""
        return Subject(None, self._text or None, f"page of {self._rule}")

    def action_back(self) -> None:
        """Back."""
        self.loop_app.back()


def document(text: str) -> Document:
    """Our own Markdown as lines: headings stand out, code is set in, a paragraph is one text, a table has no bars."""
    blocks: list[Head | Body] = []
    code = False
    open_ = False  # a paragraph that goes on
    for line in text.split("\n"):
        if line.startswith("```"):
            code = not code
        elif code:
            blocks.append(Body(line, role="accent", indent=4))
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not all(set(cell) <= set("-: ") for cell in cells):
                blocks.append(Head(_spans(f"  {cells[0]:<12}" + "   ".join(cells[1:])), hang=14))
        elif line.startswith("#"):
            blocks.append(Head(((line.lstrip("# "), "strong"),)))
        elif open_ and line and isinstance(before := blocks[-1], Head):
            blocks[-1] = Head((*before.spans, (" ", "text"), *_spans(line)), hang=0)
        else:
            blocks.append(Head(_spans(line), hang=0))
        open_ = bool(line) and not code and line[0] not in "|#`"
    return tuple(blocks)


def _spans(line: str) -> tuple[tuple[str, str], ...]:
    """``**bold**`` and `code` as roles."""
    spans: list[tuple[str, str]] = []
    for place, part in enumerate(_LINK.sub(r"\1", line).split("**")):
        for inner, piece in enumerate(part.split("`")):
            role = "strong" if place % 2 else "accent" if inner % 2 else "text"
            if piece:
                spans.append((piece, role))
    return tuple(spans)
