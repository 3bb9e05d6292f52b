"""Lint as a whole: which rules look, what settings change, baselines, foreign rules, rules that fail."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import small_tape
from looptape.replay.rules import RULES, Finding, Unknown, lint, lint_facts, plugins
from looptape.replay.rules import baseline as baselines
from looptape.replay.rules import l02_raw_errors as raw
from looptape.replay.rules.config import Config, read_config
from looptape.replay.rules.lint import Report
from looptape.replay.rules.pages import FOLDER, page
from looptape.replay.rules.rule import span, thresholds_of
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, Store, memory_store
from rule_runs import call, run_of, turn, work
from testdata import REPOSITORY


def stored(tmp_path: Path, *runs: list[dict[str, Any]]) -> Store:
    store = memory_store()
    import_path(store, small_tape.write(tmp_path / "runs.jsonl", *runs))
    return store


def rule(name: str = "X01", *, says: Any = (), raises: Exception | None = None) -> Any:
    def check(facts: Any) -> Iterator[Any]:
        yield from says
        if raises is not None:
            raise raises

    return types.SimpleNamespace(ID=name, TITLE="a test", check=check)


def finding(message: str = "it went wrong 3 times", **more: Any) -> Finding:
    return Finding(**{"rule": "X01", "severity": "warning", "run": small_tape.RUN, "first_turn": 1, "last_turn": 2, "message": message} | more)  # fmt: skip


def test_every_rule_has_its_own_id_title_file_and_page() -> None:
    ids = [r.ID for r in RULES]
    assert ids == sorted(set(ids))
    for one in RULES:
        file = Path(one.__file__).stem
        assert file.startswith(one.ID.lower() + "_")
        assert page(one.ID).startswith(f"# {one.ID}: {one.TITLE}\n")
        assert one.__doc__.startswith(f"{one.ID}: ")
    assert {file.stem for file in FOLDER.glob("*.md")} == set(ids)


def test_every_page_tells_what_why_evidence_cure_and_names_the_rules_numbers() -> None:
    for one in RULES:
        text = page(one.ID)
        for part in ("**What.**", "**Why.**", "**Evidence.**", "**Fix.**"):
            assert part in text, (one.ID, part)
        for name in thresholds_of(one):
            assert f"`{name}`" in text, (one.ID, name)


def test_a_finding_is_in_the_shape_that_callers_rely_on() -> None:
    facts = run_of(turn(call("fetch", {}, "Error", error=True)), turn(text="Done."))
    (one,) = lint_facts(facts, [raw]).findings
    told = one.as_json()
    assert {
        "rule",
        "severity",
        "run",
        "first_turn",
        "last_turn",
        "message",
        "evidence",
        "wasted",
        "confidence",
        "fix",
    } <= told.keys()
    assert told["wasted"].keys() == {"turns", "tokens", "usd", "seconds"}
    assert (REPOSITORY / one.url).is_file()


def test_a_rule_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    store = stored(tmp_path, small_tape.records())
    rules = [rule("X00", says=[finding(rule="X00")], raises=KeyError("no such thing")), rule("X01", says=[finding()])]
    found = lint(store, store.runs(Filter()), rules=rules)
    assert [f.rule for f in found.findings] == ["X00", "X01"]
    assert found.troubles == (f"rule X00 failed in run {small_tape.RUN}: KeyError: 'no such thing'",)


@pytest.mark.parametrize(
    ("waste", "severity"),
    [((10, None, None), "error"), ((9, None, None), "warning"), ((0, 1_000_000, None), "error"), ((1, 100, 1.0), "error")],
    ids=["ten turns of twenty", "nine", "a million tokens", "a dollar"],
)  # fmt: skip
def test_a_warning_that_wasted_much_is_an_error(waste: tuple[Any, Any, Any], severity: str) -> None:
    from looptape.replay.cycles import Waste

    one = finding(wasted=Waste(waste[0], waste[1], waste[2]))
    assert lint_facts(run_of(*work(20)), [rule(says=[one])]).findings[0].severity == severity


def test_a_remark_stays_one_however_much_was_wasted() -> None:
    from looptape.replay.cycles import Waste

    one = finding(severity="info", wasted=Waste(20, 9_000_000, 50.0))
    assert lint_facts(run_of(*work(20)), [rule(says=[one])]).findings[0].severity == "info"


# -- settings ------------------------------------------------------------------------------------------------


def settings(tmp_path: Path, text: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(text)
    return tmp_path


def test_settings_choose_rules_change_numbers_and_declare_tools(tmp_path: Path) -> None:
    here = settings(
        tmp_path,
        '[tool.looptape.lint]\nselect = ["L0"]\nignore = ["L07"]\nL02 = { long = 100 }\n'
        '[tool.looptape.tools]\npeek = "poll"\n',
    )
    config = read_config(RULES, cwd=here)
    assert [r.ID for r in RULES if config.wants(r.ID)] == [f"L0{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9)]
    assert config.overrides == {"L02": {"long": 100.0}}
    assert config.declared.effects == {"peek": "poll"}


def test_the_command_line_selects_in_place_of_settings_and_ignores_on_top(tmp_path: Path) -> None:
    here = settings(tmp_path, '[tool.looptape.lint]\nselect = ["L01"]\nignore = ["L02"]\n')
    config = read_config(RULES, select=["l02,L03"], ignore=["L05"], cwd=here)
    assert (config.select, config.ignore) == (("L02", "L03"), ("L02", "L05"))


def test_a_number_from_settings_is_used() -> None:
    error = call("fetch", {}, "the page has no table of that name. " * 5, error=True)
    turns = [turn(error), *work(2)]
    assert lint_facts(run_of(*turns), [raw]).findings == ()
    strict = run_of(*turns, more={"overrides": {"L02": {"long": 100}}})
    assert [f.rule for f in lint_facts(strict, [raw]).findings] == ["L02"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('select = ["L99"]', "no rule 'L99'"),
        ("ignore = 7", "is no list of rule ids"),
        ("L02 = { lnog = 5 }", "no threshold 'lnog'"),
        ('L02 = { long = "much" }', "is 'much'"),
        ("L02 = 5", "is no table"),
        ("L2 = { long = 5 }", "no rule 'L2'"),
    ],
    ids=["unknown rule", "no list", "unknown number", "no number", "no table", "mistyped rule"],
)
def test_settings_that_mean_nothing_are_refused_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    here = settings(tmp_path, f"[tool.looptape.lint]\n{text}\n")
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        read_config(RULES, cwd=here)
    assert str(here / "pyproject.toml") in str(caught.value)


# -- baselines -----------------------------------------------------------------------------------------------


def report_of(*findings: Finding, name: str = "job", run: str = small_tape.RUN) -> Report:
    return lint_facts(run_of(*work(5), id=run, name=name), [rule(says=findings)])


def test_a_known_finding_is_known_in_the_next_run_of_the_same_loop(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    assert baselines.write(report_of(finding("it failed 3 times at turn 2")), file) == 1
    later = report_of(finding("it failed 8 times at turn 5", run="f" * 16), run="f" * 16)
    told = baselines.apply(later, file)
    assert (told.findings, len(told.old)) == ((), 1)


def test_another_loop_another_fault_and_one_more_of_the_same_count(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    baselines.write(report_of(finding()), file)
    assert len(baselines.apply(report_of(finding(), name="other"), file).findings) == 1
    assert len(baselines.apply(report_of(finding("it never began")), file).findings) == 1
    twice = baselines.apply(report_of(finding(), finding(first_turn=4, last_turn=5)), file)
    assert (len(twice.findings), len(twice.old)) == (1, 1)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"looptape_baseline": 9, "findings": []}', '{"looptape_baseline": 1, "findings": [1]}']
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(LooptapeError) as caught:
        baselines.apply(report_of(), tmp_path / "known.json")
    assert caught.value.slug == "bad-baseline"


# -- rules of other distributions ----------------------------------------------------------------------------


class Entry:
    """An entry point as an installed distribution would give it."""

    dist = None
    value = "house_rules.mail"

    def __init__(self, name: str, module: Any) -> None:
        self.name, self._module = name, module

    def load(self) -> Any:
        if isinstance(self._module, BaseException):
            raise self._module
        return self._module


def install(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
    entries = [Entry(f"rule{n}", m) for n, m in enumerate(modules)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries if group == plugins.GROUP else [])


def documented() -> types.ModuleType:
    """The rule of docs/lint.md, as it stands there."""
    text = (REPOSITORY / "docs" / "lint.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    module = types.ModuleType("mail")
    exec(compile(code, "mail.py", "exec"), module.__dict__)
    return module


def test_the_documented_rule_of_ones_own_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, documented())
    store = stored(tmp_path, small_tape.records(tool="send_mail", arguments={"to": "vale"}, result="sent"))
    (one,) = lint(store, store.runs(Filter()), Config(select=("HOUSE1",))).findings
    assert (one.rule, one.severity, one.first_turn) == ("HOUSE1", "error", 1)
    more = Config(select=("HOUSE1",), overrides={"HOUSE1": {"mails": 3}})
    assert lint(store, store.runs(Filter()), more).findings == ()


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (ImportError("no module named house"), "ImportError: no module named house"),
        (types.SimpleNamespace(ID="X9", TITLE="t"), "it has no check"),
        (types.SimpleNamespace(ID=9, TITLE="t", check=print), "it has no ID"),
        (types.SimpleNamespace(ID="L05", TITLE="t", check=print), "the id L05 is taken"),
    ],
    ids=["cannot be loaded", "no check", "no id", "our id"],
)
def test_a_foreign_rule_that_does_not_work_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, said: str
) -> None:
    install(monkeypatch, module)
    store = stored(tmp_path, small_tape.records())
    found = lint(store, store.runs(Filter()))
    assert len(found.troubles) == 1
    assert said in found.troubles[0]
    assert found.rules == tuple(r.ID for r in RULES)


def test_unknowns_are_kept_apart_from_findings() -> None:
    one = Unknown("X01", "r", ("turns.usage",))
    found = lint_facts(run_of(*work(2)), [rule(says=[one])])
    assert (found.findings, found.unknown, found.worst()) == ((), (one,), None)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [([3], "turn 3"), ([3, 4, 5], "turns 3 to 5"), ([3, 9], "turns 3 and 9"), ([1, 3, 5, 7, 9, 11, 13], "7 turns from 1 to 13")],
)  # fmt: skip
def test_turn_numbers_are_told_as_people_say_them(numbers: list[int], said: str) -> None:
    assert span(numbers) == said
