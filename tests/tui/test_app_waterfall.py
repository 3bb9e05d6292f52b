"""The run over time: bars, waits, pauses, parallel calls, sub-agents; zoom and pan; in step with the turn list."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from timed_tape import RUN, Asked, Did, at, records, store
from tui_driver import Seat, drive
from tui_fakes import EVIL, HOSTILE

TAPES = ("parallel", "rate_limit", "sub_agent", "missing_result")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("samples")
    with open_store(home) as opened:
        for tape in demo.tapes():
            if tape.stem in TAPES:
                import_path(opened, tape)
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


class Forgetful(StoreSource):
    """A store beside which the screen remembers nothing: each test begins with the turn list."""

    @property
    def home(self) -> Path | None:
        return None


def source(home: Path) -> StoreSource:
    return Forgetful(home, place="~/x")


def bar(seat: Seat, words: str) -> str:
    """The signs of the chart in the line with these words."""
    return "".join(c for c in seat.line(words) if c in "▒▓█░·━┊")


def test_parallel_calls_stand_on_lines_of_their_own(samples: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w")
        assert "┬ weather" in seat.line("Bergen")
        assert "├ weather" in seat.line("Porto")
        assert "└ weather" in seat.line("3.0 s")
        assert "✗ cancelled" in seat.line("└ weather")
        first, longest = bar(seat, "┬ weather"), bar(seat, "└ weather")
        assert first.startswith("▒▒")
        assert "▓" in first  # since the first token
        assert 2 * first.count("█") < longest.count("█")
        assert seat.line("┬ weather").index("█") == seat.line("└ weather").index("█")
        assert "▒ model" in seat.text  # the signs are explained
        assert "a cell" in seat.text

    drive(source(samples), steps, run=source(samples).find("weather"))


def test_refused_tries_and_the_waits_between_them_are_seen(samples: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w")
        line = seat.line("search_docs")
        assert "✗ 429, 529 waited 14 s" in line
        assert line.count("░") > 20
        assert line.index("✗") < line.index("░") < line.index("▓") < line.index("█")
        assert "0s" in seat.line("tool")

    drive(source(samples), steps, run=source(samples).find("handbook"), size=(140, 30))


def test_a_sub_agent_has_a_line_and_enter_opens_its_run(samples: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w", "j")
        assert "↳ research" in seat.chosen
        assert "━━" in seat.chosen
        assert "2 turns" in seat.chosen
        await seat.press("enter", "v", "v")
        assert "sub-agent of" in seat.text

    drive(source(samples), steps, run=source(samples).find("suppliers"))


def test_a_session_of_five_hours_is_legible(home: Path) -> None:
    turns = [
        Asked(0, 20), Asked(20, 30, [Did("edit", 30, 31)]), Asked(9000, 9030, more={"user_turn": True}),
        Asked(9030, 9040), Asked(18_000, 18_020), Asked(18_021, 18_030),
    ]  # fmt: skip

    async def steps(seat: Seat) -> None:
        await seat.press("w", "0")
        assert "user 2:29:29" in seat.line("    3 ›")
        assert "pause 2:29:20" in seat.line("    5 ")
        assert seat.line("    1 ").count("┊") == 2  # a break mark at each pause, on every line
        assert "┊ pause cut short" in seat.text
        assert len(bar(seat, "    1 ").strip("┊")) > 5

    drive(source(store(home, records(turns))), steps, run=RUN)


def test_times_that_are_not_known_are_never_invented(home: Path) -> None:
    turns = [Asked(0, 4, [Did("silent"), Did("look_up", 4, 6)]), Asked(None, None), Asked(10, 12)]

    async def steps(seat: Seat) -> None:
        await seat.press("w")
        assert "✗ no result" in seat.line("silent")
        assert "█" not in seat.line("silent")
        assert "time not known" in seat.line("silent")
        assert "· times not recorded" in seat.line("    2 ")
        assert "█" in seat.line("look_up")

    drive(source(store(home, records(turns))), steps, run=RUN)


def test_times_taken_from_the_requests_around_a_call_are_dots(tmp_path: Path) -> None:
    from claude_session import SessionLines, call

    session = SessionLines()
    session.user("count the files")
    session.answer("m1", call("c1", command="ls /src/app/files"))
    session.result("c1", "three")
    session.answer("m2", "three")
    with open_store(tmp_path / "home") as opened:
        import_path(opened, session.write(tmp_path / "projects" / "x" / f"{session.session}.jsonl"))

    async def steps(seat: Seat) -> None:
        await seat.press("w")
        assert "··" in seat.line("Bash")
        assert "█" not in seat.line("Bash")
        assert "≤ 2.0 s" in seat.line("Bash")
        assert "ls /src/app/files" in seat.line("Bash")
        assert "· not measured" in seat.text

    drive(source(tmp_path / "home"), steps, run=_only(tmp_path))


def _only(folder: Path) -> str:
    with open_store(folder / "home") as opened:
        return opened.runs()[0].id


STEADY = [Asked(10 * i, 10 * i + 6, [Did("look", 10 * i + 6, 10 * i + 9)]) for i in range(60)]


def test_plus_and_minus_zoom_and_zero_shows_all(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w", "0")
        assert "13 s a cell" in seat.text
        whole = bar(seat, "    1 ")
        await seat.press("+", "+", "+")
        near = bar(seat, "    1 ")
        assert len(near) > 3 * len(whole)
        assert "›" in seat.line("   30 ")  # off to the right
        await seat.press("-")
        assert len(whole) < len(bar(seat, "    1 ")) < len(near)
        await seat.press("0")
        assert bar(seat, "    1 ") == whole
        await seat.press("L")
        assert "the whole run is shown" in seat.text

    drive(source(store(home, records(STEADY))), steps, run=RUN, size=(100, 40))


@pytest.mark.parametrize(("later", "earlier"), [("L", "H"), ("shift+right", "shift+left")], ids=["letters", "arrows"])
def test_the_chart_pans(home: Path, later: str, earlier: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w", "0", "+", "+", "+")
        before = seat.text
        await seat.press(later)
        assert "‹" in seat.line("    1 ")
        await seat.press(earlier)
        assert seat.text == before

    drive(source(store(home, records(STEADY))), steps, run=RUN, size=(100, 40))


def test_the_selection_is_one_with_the_turn_list(home: Path) -> None:
    turns = [*STEADY[:30], Asked(300, 306, [Did("look", 306, 309, is_error=True)]), *STEADY[31:]]

    async def steps(seat: Seat) -> None:
        await seat.press("j", "j", "w")
        assert " 3 " in seat.chosen
        await seat.press("j")
        assert " 4 " in seat.chosen
        await seat.press("J")
        assert " 31 ✗" in seat.chosen
        assert "✗ error" in seat.chosen
        assert "▒" in seat.chosen  # the chart came along
        await seat.press("k", "w")
        assert " 30 " in seat.chosen
        assert "turn 30 of 60" in seat.text

    drive(source(store(home, records(turns))), steps, run=RUN)


def test_enter_opens_the_turn(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w", "j", "enter")
        assert "conversation" in seat.text
        await seat.press("q")
        assert " 2 " in seat.chosen

    drive(source(store(home, records(STEADY))), steps, run=RUN)


def test_what_comes_in_while_one_looks_is_drawn(home: Path) -> None:
    store(home, records(STEADY[:2]))
    seen = source(home)

    async def steps(seat: Seat) -> None:
        await seat.press("w", "j")
        store(home, records([*STEADY[:2], Asked(20, 25, [Did("news", 25, 29)])]))
        await seat.until("news")
        assert "█" in seat.line("news")
        assert " 2 " in seat.chosen

    drive(seen, steps, run=RUN)


def test_the_keys_of_the_chart_are_in_the_menu_of_keys(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w", "question_mark", "slash", *"scale")
        assert "nearer: twice the scale" in seat.text

    drive(source(store(home, records(STEADY))), steps, run=RUN)


def test_hostile_names_and_arguments_are_shown_as_they_are(home: Path) -> None:
    calls = [Did(text, 1, 2, arguments='{"a": "' + text + '"}', is_error=True) for text in HOSTILE]

    async def steps(seat: Seat) -> None:
        await seat.press("w", "G", "g", "+")
        raw = [
            c for line in seat.lines for c in line if c < " " or "\x7f" <= c < "\xa0" or c in "\u202e\u2066\u200b\ufeff"
        ]
        assert raw == []
        assert "[/ unclosed" in seat.text
        assert all(len(set(map(len, [line]))) == 1 for line in seat.lines)

    drive(source(store(home, records([Asked(0, 1, calls, text=EVIL)]))), steps, run=RUN, size=(120, 40))


def test_thirty_thousand_turns_make_only_the_lines_that_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from looptape.tracer.store.times import CallTimes, TurnTimes
    from looptape.tui.widgets import waterfall_lines

    calls = (CallTimes("a", "", at(1), at(2)), CallTimes("b", "", at(1), at(2)))
    turns = [TurnTimes(n, "ok", at(n * 5), None, at(n * 5 + 1), calls=calls) for n in range(1, 30_001)]
    made = []
    real = waterfall_lines._line
    monkeypatch.setattr(waterfall_lines, "_line", lambda *given: made.append(given) or real(*given))
    chart = waterfall_lines.chart_of(turns, ())
    assert len(chart.lines) == 60_000
    assert chart.lines.index_of(29_000) == 57_998
    assert chart.lines[57_999].tree == "└ "
    assert len(made) == 1
