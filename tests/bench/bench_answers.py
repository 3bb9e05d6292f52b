"""Questions to a large store: the list, cost by model and day, a run, a turn, repeated calls, search; beside a sqlite copy.

    python tests/bench/bench_answers.py                    100,000 turns, 300,000 calls, 100 MB of results
    python tests/bench/bench_answers.py --runs 20000       1,000,000 turns, 3,000,000 calls, 1 GB of results: the size that
                                                           the aims are for; takes minutes and 5 GB of disk
    python tests/bench/bench_answers.py --home FOLDER      keeps the store there, or asks the one that is there

Nothing fails here. Wall times are the best of some rounds with everything in the page cache; where other programs keep the
cores busy the CPU seconds of all threads say more.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import big_store
from looptape.replay import analytics
from looptape.replay.search import Search, needle
from looptape.tracer.store import Filter, Store, open_store

ROUNDS = 3
REPEATED = "select run, name, arguments_raw, count(*) as n from base.calls group by all having count(*) >= 4 order by n desc limit 50"
COPIED = {  # what sqlite gets, with the indexes that one would give it
    "runs": ("select id, name, task, status, started_at, ended_at, turns, tool_calls, errors, models_json, input, output, cost_usd::double as cost from base.runs", "id", "started_at"),
    "turns": ("select run, number, model, status, started_at, input, cache_read, output, cost_usd::double as cost, text, thinking, generate_ms from base.turns", "run, number"),
    "calls": ("select run, turn, position, id, name, arguments_raw, is_error, state, seen_blob from base.calls", "run, turn"),
    "messages": ("select b.id, s.run, s.position, s.first_turn, b.role, b.text from base.spans as s join base.blobs as b on b.id = s.blob", "run, position"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: of us as a function, of sqlite as SQL with its values; ``aim`` in ms at a million turns."""

    name: str
    aim: str
    ours: Callable[[Store], object]
    sql: str
    values: tuple[Any, ...] = ()


def questions(run: str) -> list[Question]:
    """All of them; ``run`` is the one that is looked at."""
    whole = "select * from turns where run = ?1 order by number"
    day = "date(started_at / 1000000, 'unixepoch', 'localtime')"
    like = "select run, first_turn from messages where role = 'user' and instr(text, ?)"
    return [
        Question("run list, newest 50", "50", lambda s: s.runs(Filter()), "select * from runs order by started_at desc limit 50"),
        Question("run list of one model, by cost", "50", lambda s: s.runs(Filter(model="gpt-4o", sort="cost")), "select * from runs where models_json like '%\"gpt-4o\"%' order by cost desc limit 50"),
        Question("cost by model and day", "100", analytics.costs, f"select model, {day}, sum(cost), count(*) from turns group by 1, 2"),
        Question("one run, its list of turns", "10", lambda s: s.turn_rows(run), whole, (run,)),
        Question("one run with all texts", "10", lambda s: s.turns(run), "select t.*, c.*, m.text from turns as t left join calls as c on c.run = t.run and c.turn = t.number left join messages as m on m.run = t.run and m.id = c.seen_blob where t.run = ?", (run,)),
        Question("one turn", "10", lambda s: s.turns(run, 7, 7), f"select * from ({whole}) where number = 7", (run,)),
        Question("what the model saw at turn 40", "10", lambda s: s.request(run, 40), "select text from messages where run = ? and first_turn <= 40 order by position", (run,)),
        Question("repeated calls", "1500", lambda s: s.rows(REPEATED), REPEATED.replace("base.", "").replace("group by all", "group by 1, 2, 3")),
        Question("search of results, a literal", "2000", lambda s: _search(s, big_store.NEEDLE, ("results",)), like, (big_store.NEEDLE,)),
        Question("search of results, any case", "2000", lambda s: _search(s, big_store.NEEDLE.lower(), ("results",)), "select run, first_turn from messages where role = 'user' and text like ?", (f"%{big_store.NEEDLE}%",)),
        Question("search everywhere, a literal", "", lambda s: _search(s, big_store.NEEDLE), "select run, first_turn from messages where instr(text, ?)", (big_store.NEEDLE,)),
        Question("first hits of a word of every run", "", lambda s: _first(s, "its state is settled"), f"{like} limit 50", ("its state is settled",)),
    ]  # fmt: skip


def _search(store: Store, text: str, places: tuple[str, ...] | None = None) -> int:
    found = Search(store, needle(text), Filter(limit=0), *([places] if places else []))
    return sum(len(run.hits) for run in found)


def _first(store: Store, text: str) -> int:
    for count, _ in enumerate(Search(store, needle(text), Filter(limit=0), ("results",)), 1):
        if count == 5:  # ten hits of each are shown
            return count
    return 0


def measured(work: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """Best wall ms, and CPU ms of that kind, after one round to warm up."""
    work()
    walls, used = [], []
    for _ in range(rounds):
        began, before = time.perf_counter(), time.process_time()
        work()
        walls.append(1000 * (time.perf_counter() - began))
        used.append(1000 * (time.process_time() - before))
    return min(walls), min(used)


def copy_to_sqlite(home: Path, file: Path) -> float:
    """Puts the same rows into a sqlite file; returns the seconds that it took."""
    import duckdb

    began = time.perf_counter()
    there = sqlite3.connect(file)
    there.execute("pragma journal_mode = off")
    there.execute("pragma synchronous = off")
    with duckdb.connect(str(home / "store.duckdb"), read_only=True) as here:
        for name, (query, *indexes) in COPIED.items():
            rows = here.execute(query)
            columns = [d[0] for d in rows.description]
            there.execute(f"create table {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            while some := rows.fetchmany(20_000):
                there.executemany(f"insert into {name} values ({marks})", some)
            for number, index in enumerate(indexes):
                there.execute(f"create index {name}_{number} on {name} ({index})")
    there.commit()
    there.execute("analyze")
    there.close()
    return time.perf_counter() - began


@contextmanager
def folder(given: Path | None) -> Iterator[Path]:
    """The folder of the store: one that stays, or one that goes."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="looptape-bench-") as made:
        yield Path(made)


def main() -> None:
    """Prints one line for each question."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--runs", type=int, default=2_000, help="runs of 50 turns and 150 calls each")
    asked.add_argument("--result-bytes", type=int, default=380, help="about how long a tool result is")
    asked.add_argument("--home", type=Path, help="keep the store in this folder, or use the one that is there")
    asked.add_argument("--no-sqlite", action="store_true", help="leave the sqlite copy out")
    given = asked.parse_args()
    size = big_store.Size(given.runs, given.result_bytes)
    need, room = 6 * size.calls * size.result_bytes, shutil.disk_usage(given.home or tempfile.gettempdir()).free
    if room < need:
        sys.exit(
            f"{need / 1e9:.1f} GB of disk are needed, {room / 1e9:.1f} are free: give another --home, or fewer --runs"
        )
    with folder(given.home) as home:
        if not (home / "store.duckdb").exists():
            seconds = big_store.make(home, size)
            print(f"store made in {seconds:.0f} s")
        other = home / "copy.sqlite"
        if not given.no_sqlite and not other.exists():
            print(f"sqlite copy made in {copy_to_sqlite(home, other):.0f} s, {other.stat().st_size / 1e9:.2f} GB")
        _ask(home, None if given.no_sqlite else other)


def _ask(home: Path, other: Path | None) -> None:
    with open_store(home) as store:
        facts = store.rows(
            "select count(*) as runs, sum(turns) as turns, sum(tool_calls) as calls, "
            "(select sum(seen_length) from base.calls) as bytes from base.runs"
        )[0]
        print(
            f"{facts['turns']:,} turns of {facts['runs']:,} runs, {facts['calls']:,} calls, about {facts['bytes'] / 1e9:.2f} GB of results, "
            f"store {(home / 'store.duckdb').stat().st_size / 1e9:.2f} GB"
        )
        print(f"{'':36}{'aim ms':>8}{'wall ms':>10}{'CPU ms':>10}{'sqlite ms':>12}")
        copy = sqlite3.connect(f"file:{other}?mode=ro", uri=True) if other else None
        for one in questions(big_store.run_id(facts["runs"] * 5 // 8)):
            wall, used = measured(lambda one=one: one.ours(store))  # type: ignore[misc]
            beside = ""
            if copy is not None:
                beside = f"{measured(lambda one=one: copy.execute(one.sql, one.values).fetchall(), 1)[0]:,.1f}"  # type: ignore[misc]
            print(f"{one.name:36}{one.aim:>8}{wall:>10,.1f}{used:>10,.1f}{beside:>12}", flush=True)


if __name__ == "__main__":
    main()
