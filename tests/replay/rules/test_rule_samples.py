"""Each rule has a sample tape with its fault in it, that no other rule speaks of, and its page says how to look at it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from commandline import looptape
from looptape.replay.rules import RULES, lint
from looptape.replay.rules.pages import page
from looptape.sample_traces import demo, faults
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, memory_store
from testdata import REPOSITORY

FOLDER = REPOSITORY / "sample_traces" / "rules"
IDS = [rule.ID for rule in RULES]


def test_every_rule_has_one_sample_and_every_sample_a_rule() -> None:
    assert [rule for rule, _ in faults.FAULTS] == IDS
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(f"{rule}.jsonl" for rule in IDS)


@pytest.mark.parametrize("rule", IDS)
def test_the_sample_has_the_fault_of_its_rule_and_no_other(rule: str) -> None:
    store = memory_store()
    import_path(store, FOLDER / f"{rule}.jsonl")
    found = lint(store, store.runs(Filter(limit=0)))
    assert found.troubles == ()
    assert [f.rule for f in found.findings] == [rule], [f.message for f in found.findings]


def test_the_files_are_what_the_generator_writes() -> None:
    """When the tape format or a fault changed on purpose: python -m looptape.sample_traces, and look at the difference."""
    made = faults.make()
    assert made == faults.make()
    assert [name for name, data in made.items() if (FOLDER.parent / name).read_bytes() != data] == []


def test_the_samples_are_small_and_the_demo_leaves_them_out() -> None:
    assert max(file.stat().st_size for file in FOLDER.iterdir()) < 60_000
    assert not {file.parent for file in demo.tapes()} & {FOLDER}


@pytest.mark.parametrize("rule", IDS)
def test_the_commands_on_the_page_show_the_finding(rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    monkeypatch.chdir(REPOSITORY)
    (line,) = (line for line in page(rule).splitlines() if line.startswith("Sample: "))
    assert f"sample_traces/rules/{rule}.jsonl" in line
    commands = [shlex.split(said) for said in re.findall(r"`looptape ([^`]+)`", line)]
    *before, last = commands
    assert [looptape(*words).code for words in before] == [0] * len(before)
    assert [f["rule"] for f in looptape(*last, "--json").json["findings"]] == [rule]
