"""The example of docs/guard.md does what the page says."""

from __future__ import annotations

from recorded import recording
from testdata import REPOSITORY


def test_the_first_example_is_stopped_with_the_line_that_it_shows(tmp_path, capsys):
    page = (REPOSITORY / "docs" / "guard.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    with recording(tmp_path) as home:
        exec(compile(code, "docs/guard.md", "exec"), {})
        assert home.run().status == "halted"

    said = capsys.readouterr().out
    promised = code.rpartition("# ")[2].strip().removesuffix(" ...")
    assert said.splitlines()[-1].startswith(promised)
