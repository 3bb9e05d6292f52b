"""Other programs: how each editor is told a line, which pager, and files that nobody else reads and nothing keeps."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from looptape.tracer.errors import UsageError
from looptape.tui.outside import handover

FILE = Path("/p/agent.py")
FORMS = {
    "vim": ["vim", "+88", "/p/agent.py"],
    "nvim -u NONE": ["nvim", "-u", "NONE", "+88", "/p/agent.py"],
    "/usr/bin/nano": ["/usr/bin/nano", "+88", "/p/agent.py"],
    "emacsclient -nw": ["emacsclient", "-nw", "+88", "/p/agent.py"],
    "code": ["code", "--wait", "--goto", "/p/agent.py:88"],
    "code --wait": ["code", "--wait", "--goto", "/p/agent.py:88"],
    "cursor": ["cursor", "--wait", "--goto", "/p/agent.py:88"],
    "subl": ["subl", "--wait", "/p/agent.py:88"],
    "zed": ["zed", "--wait", "/p/agent.py:88"],
    "hx": ["hx", "/p/agent.py:88"],
    "idea": ["idea", "--line", "88", "/p/agent.py"],
    "'/my apps/pycharm'": ["/my apps/pycharm", "--line", "88", "/p/agent.py"],
    "kate": ["kate", "--line", "88", "/p/agent.py"],
}


@pytest.mark.parametrize(("editor", "command"), FORMS.items(), ids=[e.replace("/", "_") for e in FORMS])
def test_an_editor_is_told_the_line_in_its_own_form(editor: str, command: list[str]) -> None:
    assert handover.editor(FILE, 88, {"EDITOR": editor}) == command


def test_visual_comes_before_editor_and_without_a_line_the_file_stands_alone() -> None:
    assert handover.editor(FILE, None, {"VISUAL": "vim", "EDITOR": "ed"}) == ["vim", "/p/agent.py"]
    assert handover.editor(FILE, None, {"VISUAL": " ", "EDITOR": "subl"}) == ["subl", "--wait", "/p/agent.py"]


def test_without_an_editor_or_a_pager_it_is_said_what_to_set() -> None:
    with pytest.raises(UsageError, match="EDITOR is not set"):
        handover.editor(FILE, 1, {"PATH": "/nowhere"})
    with pytest.raises(UsageError, match="PAGER is not set"):
        handover.pager(FILE, {"PATH": "/nowhere"})
    with pytest.raises(UsageError, match="a quote is open"):
        handover.editor(FILE, 1, {"EDITOR": "vim '"})


def test_a_pager_keeps_its_options() -> None:
    assert handover.pager(FILE, {"PAGER": "less -S"}) == ["less", "-S", "/p/agent.py"]


def test_a_relative_caller_lies_in_the_runs_project(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("")
    assert handover.caller_place("agent.py:88", str(tmp_path)) == (tmp_path / "agent.py", 88)
    assert handover.caller_place(f"{tmp_path}/agent.py:3", None) == (tmp_path / "agent.py", 3)


@pytest.mark.parametrize("caller", ["gone.py:88", "agent.py", "/nowhere/x.py:1"])
def test_a_caller_that_is_not_here_is_said(caller: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        handover.caller_place(caller, str(tmp_path))


def test_the_passing_file_is_private_exact_and_gone_afterwards() -> None:
    text = "a\r\n\x1b[31m\ud83e"
    with handover.passing_file(text, "../../result of get_order.json") as path:
        assert path.name == "result-of-get_order.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert path.read_bytes() == text.encode("utf-8", "surrogatepass")
    assert not path.parent.exists()
