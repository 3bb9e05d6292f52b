"""`lint`: all wanted rules over runs of a store, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...tracer.canonical import digest
from ...tracer.model import Run
from ..cycles import masks
from . import plugins
from .config import Config
from .facts import RunFacts
from .group import Group, group_of
from .load import Loader
from .rule import SEVERITIES, Finding, Said, Unknown

if TYPE_CHECKING:
    from ...tracer.store import Store

HEAVY_TURNS, HEAVY_SHARE = 10, 0.25
"""A warning that wasted so many turns, a quarter of the run or more, is an error: it was the run's main expense."""
HEAVY_USD, HEAVY_TOKENS = 1.0, 1_000_000
"""So is one that wasted a dollar or a million tokens, whatever the length of the run."""


@dataclass(frozen=True, slots=True)
class Report:
    """What lint says.

    Attributes:
        findings: By severity, then by run and turn; each with its fingerprint.
        unknown: What rules could not judge.
        runs: The runs looked at.
        rules: Ids of the rules that looked.
        troubles: Faults of rules themselves: one line each.
        old: Findings that a baseline knows; they are no part of ``findings``.
    """

    findings: tuple[Finding, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    runs: tuple[Run, ...] = ()
    rules: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    old: tuple[Finding, ...] = ()

    def worst(self) -> str | None:
        """The highest severity among the findings."""
        found = {f.severity for f in self.findings}
        return next((s for s in reversed(SEVERITIES) if s in found), None)


def all_rules() -> plugins.Loaded:
    """Our rules and those of other distributions, with the troubles of the latter."""
    from . import RULES

    ours: tuple[Any, ...] = RULES
    foreign = plugins.installed([rule.ID for rule in ours])
    return plugins.Loaded((*ours, *foreign.rules), foreign.troubles)


def lint(
    store: Store,
    runs: Sequence[Run],
    config: Config | None = None,
    *,
    progress: Callable[[int], None] | None = None,
    rules: Sequence[Any] | None = None,
) -> Report:
    """What the rules say of these runs. A rule that fails is told in ``troubles`` and leaves the others alone.

    Args:
        progress: Called with the number of runs done.
        rules: These rules in place of all.
    """
    config = config or Config()
    loaded = plugins.Loaded(tuple(rules)) if rules is not None else all_rules()
    wanted = [rule for rule in loaded.rules if config.wants(rule.ID)]
    overrides = {rule: dict(numbers) for rule, numbers in config.overrides.items()}
    group = group_of(store, runs, overrides=overrides)
    loader = Loader(store, group=group, declared=config.declared, overrides=overrides)
    said: list[Said] = []
    troubles = list(loaded.troubles)
    for done, facts in enumerate(loader.facts(runs), 1):
        said += judge(wanted, facts, troubles)
        if progress is not None:
            progress(done)
    said += judge_among(wanted, group, runs, troubles)
    return report_of(said, group, runs, wanted, troubles)


def judge(rules: Iterable[Any], facts: RunFacts, troubles: list[str]) -> list[Said]:
    """What rules of one run say of it; the faults of rules go into ``troubles``."""
    found: list[Said] = []
    for rule in rules:
        if hasattr(rule, "check"):
            found += _checked(rule.ID, rule.check, facts, troubles, facts)
    return found


def judge_among(rules: Iterable[Any], group: Group, runs: Sequence[Run], troubles: list[str]) -> list[Said]:
    """What rules of many runs say of these."""
    wanted = {run.id for run in runs}
    among = replace(group, runs=tuple(r for r in group.runs if r.run.id in wanted))
    found: list[Said] = []
    for rule in rules:
        if hasattr(rule, "check_group"):
            found += _checked(rule.ID, rule.check_group, among, troubles, None)
    return found


def lint_facts(facts: RunFacts, rules: Iterable[Any] | None = None) -> Report:
    """What the rules of one run say of facts in memory."""
    chosen = [r for r in (rules if rules is not None else all_rules().rules) if hasattr(r, "check")]
    troubles: list[str] = []
    return report_of(judge(chosen, facts, troubles), facts.group, [facts.run], chosen, troubles)


def _checked(
    rule: str, ask: Callable[[Any], Iterator[Said]], what: RunFacts | Group, troubles: list[str], facts: RunFacts | None
) -> list[Said]:
    """What a rule says; what it said before it failed is kept."""
    found: list[Said] = []
    try:
        for one in ask(what):
            found.append(_graded(one, facts) if isinstance(one, Finding) else one)
    except Exception as error:  # one rule's fault must not hide what the others found
        where = f" in run {facts.run.id}" if facts is not None else ""
        troubles.append(f"rule {rule} failed{where}: {type(error).__name__}: {str(error)[:200]}")
    return found


def _graded(finding: Finding, facts: RunFacts | None) -> Finding:
    """A warning whose waste is heavy is an error; every finding names the line of the loop that asked."""
    turn = facts.turn(finding.first_turn) if facts is not None else None
    finding = replace(finding, caller=turn.caller) if turn is not None else finding
    if finding.severity != "warning":
        return finding
    waste, turns = finding.wasted, len(facts.turns) if facts is not None else 0
    heavy = (
        (waste.turns >= HEAVY_TURNS and waste.turns >= HEAVY_SHARE * turns)
        or (waste.usd or 0) >= HEAVY_USD
        or (waste.tokens or 0) >= HEAVY_TOKENS
    )
    return replace(finding, severity="error") if heavy else finding


def report_of(
    said: Sequence[Said], group: Group, runs: Sequence[Run], rules: Sequence[Any], troubles: Sequence[str]
) -> Report:
    """What was said of runs, in order, each finding with its fingerprint."""
    loops = {light.run.id: light.task or light.run.id for light in group.runs}
    loops.update({run.id: run.task or run.name or run.id for run in runs})
    findings = [replace(f, fingerprint=_fingerprint(f, loops)) for f in said if isinstance(f, Finding)]
    unknown = tuple(u for u in said if isinstance(u, Unknown))
    return Report(
        ordered(findings, runs), unknown, tuple(runs), tuple(r.ID for r in rules), tuple(dict.fromkeys(troubles))
    )


def ordered(findings: Iterable[Finding], runs: Sequence[Run]) -> tuple[Finding, ...]:
    """Findings by severity, then by run, turn and rule."""
    places = {run.id: place for place, run in enumerate(runs)}
    key = {s: -n for n, s in enumerate(SEVERITIES)}
    return tuple(sorted(findings, key=lambda f: (key[f.severity], places.get(f.run, 0), f.first_turn, f.rule)))


def _fingerprint(finding: Finding, loops: dict[str, str]) -> str:
    """The rule, the loop (not the run: the next one of it has another id) and the message without its figures."""
    return digest(f"{finding.rule}\x1f{loops.get(finding.run, finding.run)}\x1f{masks.shape_of_error(finding.message)}")
