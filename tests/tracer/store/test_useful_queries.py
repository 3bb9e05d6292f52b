"""Every query of the page of useful queries runs as it stands, and says what it promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from composed import Composed, Step, healthy
from looptape.tracer.store import memory_store

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "queries.md").read_text("utf-8")
QUERIES = dict(re.findall(r"\n([^\n]+)(?:\([^\n]*\))?:\n```sql\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture(scope="module")
def store():
    with memory_store() as made:
        for number in range(4):
            dear = 12 if number == 3 else 1
            steps = [
                *healthy(5),
                *[Step(arguments={"path": "a"}, result="same", output=3000)] * 4 * dear,
                Step(tool=None),
            ]
            run = Composed(
                f"{number:016x}", steps, task="refund", outcome="pass" if number else "fail",
                more={"tags": {"customer": "4711"}, "git_commit": f"{number % 2}" * 40},
            )  # fmt: skip
            made.ingest(run.records())
        yield made


@pytest.mark.parametrize("title", QUERIES)
def test_every_query_of_the_page_runs(store, title):
    names, _, _ = store.sql(QUERIES[title])
    assert names
    assert len(QUERIES) >= 18


def one(title: str) -> str:
    return next(q for t, q in QUERIES.items() if t.startswith(title))


def test_queries_find_what_they_promise(store):
    rows = store.sql(one("Runs that cost more than three times"))[2]
    assert [r[0] for r in rows] == [f"{3:016x}"]
    rows = store.sql(one("The same call with the same result"))[2]
    assert rows[0][3] == 48
    rows = store.sql(one("Money by customer"))[2]
    assert rows[0][:2] == ("4711", 4)
