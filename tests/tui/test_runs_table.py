"""Cells of the list of runs that must hold what they say."""

from __future__ import annotations

import pytest

from looptape.tui.screens.runs import table


@pytest.mark.parametrize(
    ("number", "width", "said"),
    [(9_840, 5, "9,840"), (30_000, 5, "30k"), (144, 3, "144"), (1_200, 3, "1k"), (None, 5, "-")],
    ids=["fits", "a long run", "three digits", "more errors than fit", "unknown"],
)
def test_a_count_is_never_cut_in_its_column(number: int | None, width: int, said: str) -> None:
    assert table.counted(number, width) == said


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(4_906_000, "4,906"), (402_345_000, "402 M"), (None, "-")],
    ids=["thousands", "millions", "unknown"],
)
def test_tokens_are_never_cut_in_their_column(tokens: int | None, said: str) -> None:
    assert table.in_k(tokens, 6) == said


@pytest.mark.parametrize(
    ("project", "said"), [("/home/dev/shop", "shop"), ("C:\\work\\proj", "proj"), ("/", "/"), (None, "-")]
)
def test_a_project_is_called_by_its_folder(project: str | None, said: str) -> None:
    assert table.project_name(project) == said
