"""The pages of the rules, as they ship: what, why, evidence, fix, example."""

from __future__ import annotations

import difflib
from pathlib import Path

from ...tracer.errors import UsageError
from ..cycles.finding import KINDS

CYCLE = "cycle-"
"""How the names of cycles begin that are told like findings."""
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "rules"


def has_page(rule: str) -> bool:
    """True for a rule whose page is here (one of another distribution has none)."""
    return (FOLDER / f"{rule}.md").is_file()


def page(rule: str) -> str:
    """The page of a rule, Markdown.

    Raises:
        UsageError: There is no such rule, or its page is not installed (a rule of another distribution).
    """
    known = sorted(file.stem for file in FOLDER.glob("[A-Z][0-9][0-9].md"))
    wanted = rule.strip().upper()
    if wanted in known:
        return (FOLDER / f"{wanted}.md").read_text("utf-8")
    close = difflib.get_close_matches(wanted, known, 1)
    cure = f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}"
    raise UsageError("unknown-rule", f"there is no page of a rule {rule!r}", cure)


def about(rule: str) -> str:
    """The page of a rule or of a kind of cycle (``cycle-exact``), Markdown.

    Raises:
        UsageError: As `page`.
    """
    kind = rule.removeprefix(CYCLE)
    if kind == rule or kind not in KINDS:
        return page(rule)
    said = f"# Cycle: {KINDS[kind]}\n\n**What.** The detector saw the loop go round: {KINDS[kind]}."
    return f"{said} Waste is counted after the first lap.\n\nWhat can be done is told with the rule that tells of cycles nobody noticed.\n\n{page('L05')}"
