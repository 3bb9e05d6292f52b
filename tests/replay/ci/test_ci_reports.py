"""JUnit, annotations and the summary page of a gate: whatever a recording says, it stays inside its place."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from looptape.replay.ci.annotations import commands_of
from looptape.replay.ci.gate import Case, Problem, exit_code, problems
from looptape.replay.ci.junit import junit
from looptape.replay.ci.summary import summary
from looptape.tracer.errors import LooptapeError

NASTY = "a\x00b\x1b[31m\ud800\u2028 ]]> <b>&amp; 100%\r\n::error::x"


def unusable(label, what="it is empty"):
    return Case(
        label, Path(label), trouble=LooptapeError("recording-unusable", f"{label}: line 7: {what}", "Record it again")
    )


def problem(number, severity="error", title="turn 2 differs", text="text"):
    return Problem(severity, f"t{number}.tape.jsonl", title, text, 2, f"t{number}.tape.jsonl", 9)


def test_junit_is_read_by_an_xml_parser_whatever_the_recording_says():
    case = unusable(NASTY, NASTY)
    root = ElementTree.fromstring(junit([case], problems([case])))
    found = root.find("testsuite/testcase")
    assert "100%" in found.get("name")
    assert "<b>" in found.find("error").text
    assert {root.get(n) for n in ("tests", "errors")} == {"1"}
    assert found.get("time") == "0"  # nothing in it changes from run to run


def test_the_ten_worst_are_annotated_and_the_others_counted():
    many = [problem(n, "warning") for n in range(5)] + [problem(n) for n in range(8)]
    ordered = sorted(many, key=lambda p: p.severity != "error")
    lines = list(commands_of(ordered))
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 8 + ["::warning"] * 2 + ["::notice"]
    assert "3 more problems, 13 in all" in lines[-1]
    assert list(commands_of(many[:5]))[-1].startswith("::warning")


@pytest.mark.parametrize("field", ["case", "title", "text", "file"])
def test_no_text_can_begin_a_workflow_command_of_its_own(field):
    given = {
        "severity": "error",
        "case": "c",
        "title": "t",
        "text": "x",
        "turn": 1,
        "file": "f",
        "line": 1,
        field: NASTY,
    }
    (line,) = commands_of([Problem(**given)])
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert "100%25" in line
    if field != "text":
        assert "%3A%3Aerror%3A%3Ax" in line


def test_a_table_cell_of_the_page_holds_what_it_is_given():
    case = unusable("a|b.tape.jsonl", "x | y\n| new row | <img src=x>")
    page = summary([case], problems([case]), {})
    rows = [line for line in page.splitlines() if "\\|b" in line]
    assert len(rows) == 2
    assert not any(re.search(r"(?<!\\)<img", line) for line in rows)
    assert not any(line.startswith("| new row") for line in page.splitlines())


def test_a_page_of_many_rows_says_how_many_it_leaves_out():
    cases = [unusable(f"t{n}.tape.jsonl") for n in range(60)]
    assert "10 more rows are left out." in summary(cases, problems(cases), {})


@pytest.mark.parametrize(
    ("codes", "together"),
    [((0, 0), 0), ((0, 7), 7), ((7, 1), 1), ((3, 0), 3), ((1, 3), 1), ((2, 3), 3), ((1, 130), 130)],
)
def test_of_several_exit_codes_the_worst_is_the_gates(codes, together):
    class Fixed(Case):
        exit_code = 0

    cases = []
    for code in codes:
        case = type("One", (Fixed,), {"exit_code": code})("x")
        cases.append(case)
    assert exit_code(cases) == together
