"""`looptape replay TAPE... -- COMMAND` as a gate: exit codes, JUnit, annotations at the turn's line, a page of what changed."""

import json
from xml.etree import ElementTree

import pytest

from commandline import looptape
from fakellm import FakeLLM, Scenario
from launched import Launcher
from replayed import MAIN, recorded, replay, runs, steps

GOOD = MAIN.replace("sys.exit(7)", "sys.exit(0)")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A program, and two tapes of it in the form that is kept beside tests."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "work").mkdir()
    with FakeLLM({"a": Scenario(steps())}) as server:
        launcher = Launcher(folder / "work", folder / "home", server.url("a"))
        recorded(launcher, server, 0, GOOD)
    launcher.url = "http://127.0.0.1:1"
    export = ["-m", "looptape.tui.cli", "export", "last", "--to", "ci-tape", "-o"]
    from replayed import PYTHON

    for name in ("one", "two"):
        code, _, err = launcher.run(*export, f"{name}.tape.jsonl", by=[PYTHON, "-P"])
        assert code == 0, err
    return launcher


def test_every_recording_is_replayed_by_itself_and_the_program_finds_which(here):
    here.write("agent.py", GOOD + "")
    here.write("told.py", "import os; open('named', 'a').write(os.environ['LOOPTAPE_TAPE'] + '\\n')\n" + GOOD)
    code, _, err = replay(here, "two.tape.jsonl", run="one.tape.jsonl", command=("told.py",))
    assert code == 0, err
    assert (here.work / "named").read_text().split() == ["one.tape.jsonl", "two.tape.jsonl"]
    assert "one.tape.jsonl: replay ok: 4 of 4 model calls" in err
    assert "2 of 2 recordings hold" in err
    (original,) = (r.id for r in runs(here) if r.source == "sdk")
    assert {r.parent.run for r in runs(here) if r.source == "replay"} == {original}, "not its name in the tapes"


def test_a_miss_is_in_the_junit_file_the_annotations_and_the_page(here):
    here.write("broken.tape.jsonl", "nothing\n")
    options = ("broken.tape.jsonl", "--junit", "j.xml", "--github", "--summary", "page.md")
    code, out, err = replay(here, *options, run="one.tape.jsonl", PROMPT="100% of\n::error::x, y | z?")
    assert code == 1, err
    root = ElementTree.fromstring((here.work / "j.xml").read_bytes())
    suite = root.find("testsuite")
    assert (root.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("testsuites", "2", "1", "1")
    good, bad = suite.findall("testcase")
    lines = (here.work / "one.tape.jsonl").read_text().splitlines()
    turn = next(i for i, text in enumerate(lines, 1) if json.loads(text)["kind"] == "turn_start")
    assert (good.get("file"), good.get("line"), good.find("failure").get("type")) == (
        "one.tape.jsonl",
        str(turn),
        "ReplayMismatch",
    )
    assert "messages[0].content" in good.find("failure").text
    assert bad.find("error").get("type") == "recording-unusable"
    annotations = [text for text in out.splitlines() if text.startswith("::")]
    assert [a.partition(" title")[0].partition(",title")[0] for a in annotations] == [
        f"::error file=one.tape.jsonl,line={turn}", "::error file=broken.tape.jsonl,line=1",
    ]  # fmt: skip
    assert "100%25 of" in annotations[0]
    page = (here.work / "page.md").read_text()
    assert "0 of 2 recordings hold" in page
    assert "| one.tape.jsonl | failed | 0 of 4 | 0 of 3 | not priced | $0.000000 |" in page
    assert "\\| z?" in page
    assert "| one.tape.jsonl | search | 3 | 0 | 0 |" in page


def test_without_a_usable_recording_it_ends_with_3_and_with_an_unknown_one_with_2(here):
    here.write("broken.tape.jsonl", "nothing\n")
    assert replay(here, "--junit", "j.xml", run="broken.tape.jsonl")[0] == 3
    assert replay(here, "one.tape.jsonl", run="nowhere.tape.jsonl")[0] == 2


def test_the_programs_own_code_is_the_gates_when_every_answer_was_served(here):
    code, _, err = replay(
        here, "two.tape.jsonl", run="one.tape.jsonl", command=("-c", GOOD.replace("sys.exit(0)", "sys.exit(5)"))
    )
    assert code == 5, err
    assert "one.tape.jsonl: the program ended with code 5" in err


def test_github_writes_the_page_behind_what_a_step_has_said_before(here):
    (here.work / "step.md").write_text("before\n")
    code, out, err = replay(here, "--github", run="one.tape.jsonl", GITHUB_STEP_SUMMARY=str(here.work / "step.md"))
    assert code == 0, err
    assert "::" not in out
    assert (here.work / "step.md").read_text().startswith("before\n## looptape replay: 1 of 1 recordings hold\n")


def test_a_transcript_that_does_not_agree_is_a_warning(here):
    page = here.work / "two.tape.md"
    whole = page.read_text()
    page.write_text(whole + "more\n")
    try:
        code, out, err = replay(here, "--github", run="two.tape.jsonl", GITHUB_STEP_SUMMARY="")
    finally:
        page.write_text(whole)
    assert code == 0, err
    assert "::warning file=two.tape.md,line=1,title=" in out


def test_json_is_one_object_behind_the_programs_own_output(here):
    code, out, _ = replay(here, "two.tape.jsonl", "--json", run="one.tape.jsonl")
    said = json.loads(out.splitlines()[-1])
    assert (code, said["version"], said["ok"]) == (0, 1, True)
    assert [(r["recording"], r["ok"], r["exit_code"], r["verdict"]["served"]["model"]) for r in said["replays"]] == [
        ("one.tape.jsonl", True, 0, 4), ("two.tape.jsonl", True, 0, 4),
    ]  # fmt: skip


def test_the_reports_are_the_same_bytes_in_another_folder_time_zone_and_hash_order(here):
    reports = []
    for number, (zone, seed) in enumerate((("UTC", "0"), ("Asia/Kathmandu", "4242"))):
        folder = here.work / f"copy {number}"
        folder.mkdir()
        for name in ("one.tape.jsonl", "one.tape.md", "agent.py"):
            (folder / name).write_bytes((here.work / name).read_bytes())
        other = Launcher(folder, here.home, here.url)
        for prompt in ("What is the revenue?", "What is the cost?"):
            options = ("--junit", "j.xml", "--github", "--summary", f"{prompt}.md")
            _, out, err = replay(other, *options, run="one.tape.jsonl", TZ=zone, PYTHONHASHSEED=seed, PROMPT=prompt)
            page = (folder / f"{prompt}.md").read_bytes()
            reports.append((number, prompt, out, err, (folder / "j.xml").read_bytes(), page))
    assert [r[1:] for r in reports if r[0] == 0] == [r[1:] for r in reports if r[0] == 1]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("a.tape.jsonl", "b.tape.jsonl"), "are for a program that is replayed"),
        (("a.tape.jsonl", "--junit", "x.xml"), "are for a program that is replayed"),
        (("a.tape.jsonl", "--github", "--json", "--", "true"), "--github and --json both want stdout"),
    ],
    ids=["no-program", "report-without-program", "two-for-stdout"],
)
def test_what_does_not_go_together_is_a_usage_error(arguments, what):
    ran = looptape("replay", *arguments)
    assert ran.code == 2
    assert what in ran.err
    assert ran.err.count("\n") == 1


def test_the_new_runs_are_recorded_as_replays(here):
    assert replay(here, run="one.tape.jsonl")[0] == 0
    assert {r.source for r in runs(here)} == {"sdk", "replay"}
