"""What rules and the cycle detector say of one run or many, with what it cost; found step by step."""

from __future__ import annotations

import threading

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.worker import get_current_worker

from ....replay.rules import Finding, Unknown
from ....replay.rules.circles import TITLES
from ....replay.rules.together import together
from ....tracer.model import Run
from ... import keymap
from ...format import counted, run_title
from ...messages import Failed
from ...place import Place, Scope, Subject
from ...told.lint_text import wasted
from ...widgets.bars import HeadBar, NoticeBar
from ...widgets.blocks import Head
from ...widgets.cells import Span, Spans, width_of
from ...widgets.filter_bar import FilterBar
from ...widgets.text_pane import TextPane
from ...widgets.virtual_list import VirtualList
from ..menu import Choice, Menu
from ..page import Page
from . import rows as findings_rows
from .reading import Begun, Ended, Stepped, look
from .rows import Row


class FindingsScreen(Page):
    """Findings of the runs of a scope."""

    KEYS = (*keymap.FINDINGS, *keymap.HERE)
    OPENS = "go there"
    BINDINGS = keymap.bindings(KEYS)
    CSS = """
    #finding { height: 1fr; border-top: solid $panel; }
    #finding:focus { border-top: solid $primary; }
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope
        self._stop = threading.Event()
        self._runs: dict[str, tuple[int, Run]] = {}
        self._titles: dict[str, str] = dict(TITLES)
        self._findings: list[Finding] = []
        self._unknown: list[Unknown] = []
        self._troubles: list[str] = []
        self._rows: list[Row] = []
        self._done = 0
        self._state = "reading"  # looking, stopped, done, failed
        self._sort = "severity"

    def compose(self) -> ComposeResult:
        """Head, filter, findings, the selected one whole, notices, keys."""
        yield HeadBar()
        yield FilterBar("words of a finding: rule, run, message")
        with Vertical():
            yield VirtualList[Row](findings_rows.COLUMNS, lambda r: r.key, findings_rows.cells, id="findings")
            yield TextPane(id="finding")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Begin to look."""
        known = dict(findings_rows.SORTS)
        self._sort = (
            wanted if (wanted := self.loop_app.memory.get("findings.sort", "severity")) in known else "severity"
        )
        self.set_focus(self.listing)
        self._head()
        source, scope, stop = self.source, self._scope, self._stop

        def job() -> Ended:
            worker = get_current_worker()
            return look(source, scope, self.post_message, lambda: stop.is_set() or worker.is_cancelled)

        self.read(job, "findings")

    def on_unmount(self) -> None:
        """Nobody waits for more."""
        self._stop.set()

    @property
    def listing(self) -> VirtualList[Row]:
        """The findings."""
        return self.query_one("#findings", VirtualList)

    @property
    def pane(self) -> TextPane:
        """The selected one whole."""
        return self.query_one("#finding", TextPane)

    # what was found

    def on_begun(self, message: Begun) -> None:
        """The runs are known."""
        self._runs = {run.id: (place, run) for place, run in enumerate(message.runs)}
        self._titles.update(message.titles)
        self._state = "looking"
        self._head()

    def on_stepped(self, message: Stepped) -> None:
        """Some more."""
        report = message.step.report
        self._done = message.step.done
        self._findings += report.findings
        self._unknown += report.unknown
        self._troubles += report.troubles
        self._rows = findings_rows.rows_of(self._findings, self._unknown, self._runs, self._titles)
        self._show()

    def on_ended(self, message: Ended) -> None:
        """All, or as far as it came."""
        self._state = "stopped" if message.stopped else "done"
        self.notices(list(dict.fromkeys(self._troubles)))
        self._show()

    def on_failed(self, message: Failed) -> None:
        """Say so; what was found stays."""
        self._state = "failed"
        self._show()

    def _show(self) -> None:
        rows = findings_rows.filtered(self._rows, self.query_one(FilterBar).text)
        rows = findings_rows.ordered(rows, self._sort)
        self.listing.set_columns(findings_rows.columns(self._rows))
        self.listing.sorted_by = {"severity": "sign", "waste": "usd", "turn": "turns"}.get(self._sort, self._sort)
        self._share(len(rows))
        at_top = not self.listing.cursor and rows  # nobody chose another: what is worst stays selected
        self.listing.show(rows, select=rows[0].key if at_top else None)
        self._head()
        if not rows:
            self.pane.show((Head(((self._nothing(), "dim"),)),))

    def _share(self, rows: int) -> None:
        """The list takes what it needs, at most a good half; the text the rest."""
        self.listing.styles.height = min(rows + 1, max(6, (self.size.height - 4) * 6 // 10))

    def _nothing(self) -> str:
        if self.query_one(FilterBar).text:
            return "no finding has these words; Esc clears them"
        return "nothing found" if self._state == "done" else "nothing found yet" if self._state == "looking" else ""

    def _head(self) -> None:
        left: list[Span] = [("findings", "accent_strong"), (f"  {self._about()}", "strong")]
        findings = [r.finding for r in self.listing.rows if r.finding is not None]
        facts: list[Spans] = []
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "remark")):
            count = sum(f.severity == severity for f in findings)
            if count:
                facts.append(((f"{findings_rows.SIGNS[severity]} {counted(count, noun)}", "bad" if severity == "error" else "text"),))  # fmt: skip
        part = len(findings) != len(self._findings)
        if part:
            facts.append(((f"{len(findings):,} of {len(self._findings):,} shown", "dim"),))
        waste = wasted(together(findings))
        second: Spans = (("wasted ", "dim"), (waste, "strong")) if waste else ()
        note: Span = ("  turns told twice count once", "faint")
        if waste and width_of((*second, note, *self._progress())) + 4 <= self.size.width:
            second = (*second, note)
        self.query_one(HeadBar).show((tuple(left), facts), (second, [self._progress()]))

    def _about(self) -> str:
        if len(self._scope.runs) == 1:
            run = self._runs.get(self._scope.runs[0])
            return f"{run_title(run[1])} {run[1].id[:8]}" if run is not None else self._scope.runs[0]
        if self._scope.runs:
            return counted(len(self._scope.runs), "run")
        return self._scope.filter.strip() or "all runs"

    def _progress(self) -> Spans:
        count = len(self._runs)
        if self._state == "looking":
            return ((f"◐ {self._done:,} of {count:,} runs looked at", "accent"), ("  Esc stops", "dim"))
        if self._state == "stopped":
            return ((f"stopped: {self._done:,} of {count:,} runs looked at", "bad"),)
        if self._state == "failed":
            return ((f"{self._done:,} runs looked at", "bad"),)
        return ((counted(count, "run") + " looked at", "dim"),) if self._state == "done" else (("reading …", "dim"),)

    def on_virtual_list_moved(self, _message: VirtualList.Moved) -> None:
        """Tell the selected one whole."""
        row = self.listing.selected
        if row is not None:
            self.pane.show(findings_rows.document(row), name=row.key)

    def on_resize(self, _event: events.Resize) -> None:
        """Head and list take the room there is."""
        self._head()
        self._share(len(self.listing.rows))

    # keys

    def on_virtual_list_opened(self, _message: VirtualList.Opened) -> None:
        """The run, at the turn."""
        row = self.listing.selected
        if row is not None:
            turn = row.finding.first_turn if row.finding is not None else None
            self.loop_app.open_run(row.run, turn or None)

    def action_filter(self) -> None:
        """Type words."""
        self.query_one(FilterBar).open()

    def on_filter_bar_changed(self, _message: FilterBar.Changed) -> None:
        """Narrow while typing."""
        self._show()

    def on_filter_bar_left(self) -> None:
        """Back to the list."""
        self.query_one(FilterBar).settle()
        self.set_focus(self.listing)

    def action_sort(self) -> None:
        """Choose an order."""
        choices = [Choice(name, text, name[0]) for name, text in findings_rows.SORTS if name != "run"]
        choices.insert(3, Choice("run", dict(findings_rows.SORTS)["run"], "n"))
        Menu("sort findings", choices, verb="sort", selected=self._sort).ask(self.app, self.sort_by)

    def sort_columns(self) -> tuple[str, ...]:
        """What can be sorted by."""
        return tuple(name for name, _ in findings_rows.SORTS)

    def sort_by(self, name: str) -> None:
        """Another order."""
        if name not in self.sort_columns():
            self.say(f"findings are sorted by {', '.join(self.sort_columns())}")
            return
        self._sort = name
        self.loop_app.memory.put("findings.sort", name)
        self._show()

    def on_virtual_list_sorted(self, message: VirtualList.Sorted) -> None:
        """A title was clicked."""
        order = {"sign": "severity", "usd": "waste", "lost": "waste", "tokens": "waste", "turns": "turn"}
        self.sort_by(order.get(message.column, message.column))

    def action_explain(self) -> None:
        """The page of the rule."""
        row = self.listing.selected
        if row is None:
            self.say("no finding is selected")
        else:
            self.loop_app.open_rule(row.rule)

    def subject(self) -> Subject:
        """The turn of the selected finding."""
        row = self.listing.selected
        if row is None:
            return Subject(Place(self._scope.runs[0]) if len(self._scope.runs) == 1 else None)
        f = row.finding
        if f is None:
            return Subject(Place(row.run))
        return Subject(Place(row.run, f.first_turn or None), f.message, f"finding {f.rule}", f.as_json(), f.caller)

    def scope(self) -> Scope:
        """The same runs."""
        return self._scope

    def action_findings(self) -> None:
        """They are here."""
        self.say("these are the findings; $ leads to the costs of the same runs")

    def action_back(self) -> None:
        """First the filter goes, then the search ends, then back."""
        if self.query_one(FilterBar).text:
            self.query_one(FilterBar).clear()
            self.set_focus(self.listing)
        elif self.pane.has_focus:
            self.set_focus(self.listing)
        elif self._state == "looking" and not self._stop.is_set():
            self._stop.set()
        else:
            self.loop_app.back()
