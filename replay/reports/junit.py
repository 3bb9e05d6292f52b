"""JUnit XML: the one writer of it. Nothing in a file changes from run to run, so it has no times and no host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, in no spelling."""


@dataclass(frozen=True, slots=True)
class Result:
    """One test case.

    Attributes:
        outcome: ``error``: it could not be judged; ``skipped``: nothing was judged, on purpose or for want of facts.
        title: One line of a failure, an error or a skip; ``kind`` its type, ``text`` the whole report.
        output: What else was said.
    """

    group: str
    name: str
    outcome: Literal["passed", "failure", "error", "skipped"] = "passed"
    title: str = ""
    kind: str = ""
    text: str = ""
    output: str = ""
    file: str | None = None
    line: int | None = None


def xml(suite: str, results: Sequence[Result]) -> str:
    """The file's text, without an end of line; characters beyond ASCII are references."""
    of = {kind: sum(r.outcome == kind for r in results) for kind in ("failure", "error", "skipped")}
    counts = {
        "tests": len(results),
        "failures": of["failure"],
        "errors": of["error"],
        "skipped": of["skipped"],
        "time": 0,
    }
    told = {k: str(v) for k, v in counts.items()}
    root = Element("testsuites", {"name": suite, **told})
    inner = SubElement(root, "testsuite", {"name": suite, **told})
    for result in results:
        _case(inner, result)
    indent(root)
    text: str = tostring(root, encoding="us-ascii", xml_declaration=False).decode()
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + text


def _case(suite: Element, result: Result) -> None:
    named = {"classname": _clean(result.group), "name": _clean(result.name), "time": "0"}
    if result.file is not None:
        named["file"] = _clean(result.file)
        if result.line is not None:
            named["line"] = str(result.line)
    element = SubElement(suite, "testcase", named)
    if result.outcome != "passed":
        told = {"message": _clean(result.title)} | ({"type": result.kind} if result.kind else {})
        SubElement(element, result.outcome, told).text = _clean(result.text) or None
    if result.output:
        SubElement(element, "system-out").text = _clean(result.output)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
