"""The rules of `looptape lint`: one loop fault a file, each with its page in docs/rules.

    report = lint(store, runs)
    report.findings, report.unknown
"""

from __future__ import annotations

from typing import Any

from .lint import Report, lint, lint_facts
from .rule import Finding, Unknown

RULES: tuple[Any, ...] = ()
"""Our rules in the order of their ids. Those of other distributions come by the entry-point group ``looptape.rules``."""

__all__ = ["RULES", "Finding", "Report", "Unknown", "lint", "lint_facts"]
