"""The rules of `looptape lint`: one loop fault a file, each with its page in docs/rules.

report = lint(store, runs)
report.findings, report.unknown
"""

from __future__ import annotations

from typing import Any

from . import (
    l01_self_report,
    l02_raw_errors,
    l03_context,
    l04_lifecycle,
    l05_late_cycle,
    l06_parallel,
    l07_record,
    l08_cost,
    l09_toolkit,
    l10_malformed,
    l11_one_limit,
    l12_all_alike,
    l13_rate_limits,
    l14_memory_only,
    t01_serial_calls,
    t02_counted_twice,
    t03_usage_above_leaves,
    t04_truncated,
    t05_stream_usage,
)
from .lint import Report, lint, lint_facts
from .rule import Finding, Unknown

RULES: tuple[Any, ...] = (
    l01_self_report,
    l02_raw_errors,
    l03_context,
    l04_lifecycle,
    l05_late_cycle,
    l06_parallel,
    l07_record,
    l08_cost,
    l09_toolkit,
    l10_malformed,
    l11_one_limit,
    l12_all_alike,
    l13_rate_limits,
    l14_memory_only,
    t01_serial_calls,
    t02_counted_twice,
    t03_usage_above_leaves,
    t04_truncated,
    t05_stream_usage,
)
"""Our rules in the order of their ids. Those of other distributions come by the entry-point group ``looptape.rules``."""

__all__ = ["RULES", "Finding", "Report", "Unknown", "lint", "lint_facts"]
