"""What the detector sees, each kind on a small loop of its own, and what it must not cry at."""

import pytest

from loop_turns import call, findings, turn
from looptape.replay.cycles import Declared, kinds

PAGE = "\n".join(f"line {n} of the page says something about topic {n * 7}" for n in range(12))


def one(turns, **more):
    found = findings(turns, **more)
    assert len(found) == 1, [f.sentence for f in found]
    return found[0]


def test_the_same_call_with_the_same_result_five_times_is_one_finding_of_five_laps():
    found = one([turn(call("read", {"f": "a.py"}, PAGE))] * 5)
    assert (found.kind, found.period, found.laps) == ("exact", 1, 5)
    assert (found.first_turn, found.last_turn, found.detected_turn) == (1, 5, 3)


def test_a_poll_that_progresses_and_ends_is_no_cycle():
    states = ["queued", "running 10%", "running 40%", "running 90%", "done"]
    assert not findings([turn(call("job_status", {"id": 7}, s)) for s in states])


def test_read_failing_edit_failing_test_is_one_cycle_of_period_three_with_the_errors_quoted():
    lap = [
        turn(call("read", {"f": "a.py"}, "code")),
        turn(call("edit", {"f": "a.py", "old": "x", "new": "y"}, "old text not found", error=True)),
        turn(call("bash", {"command": "pytest -q"}, "1 failed: assert 3 == 4", error=True)),
    ]
    found = one(lap * 4)
    assert (found.kind, found.period, found.laps, found.first_turn, found.last_turn) == ("period", 3, 4, 1, 12)
    assert any("old text not found" in c for c in found.calls)
    assert any("assert 3 == 4" in c for c in found.calls)


def test_a_fan_out_in_another_order_each_round_is_one_finding_with_all_its_calls():
    calls = [call("get", {"id": n}, f"record {n}") for n in range(3)]
    found = one([turn(*(calls[n % 3 :] + calls[: n % 3])) for n in range(5)])
    assert (found.kind, found.laps, len(found.calls)) == ("fan_out", 5, 3)


def test_equal_calls_made_in_parallel_count_once():
    assert not findings([turn(*[call("read", {"f": "a"}, PAGE)] * 6)])


def test_times_ids_and_durations_in_a_result_do_not_hide_a_repeat():
    said = "-rw-r--r-- 1 root root 512 cache.py\ntook 1.{0}7s pid=5{0}479 at 2026-03-0{1}T10:0{0}:00Z"
    found = one([turn(call("bash", {"command": "ls -la cache.py"}, said.format(n, n + 1))) for n in range(4)])
    assert found.kind == "exact"


def test_thinking_between_does_not_hide_a_refused_call():
    lap = [
        turn(call("book", {"id": 7, "amount": 8}, "Error: the amount does not add up")),
        turn(call("think", {"thought": "once more, carefully"}, "")),
    ]
    turns = [t for n in range(4) for t in (lap[0], turn(call("think", {"thought": f"plan {n} differs"}, "")))]
    found = one(turns)
    assert found.kind in ("exact", "error")
    assert found.laps == 4


def test_hardly_other_queries_with_the_same_hits_are_near_duplicates():
    words = ("jasper", "harbor", "onyx", "granite", "velvet")
    queries = [f"find saffron notes about carbon indigo {w}" for w in words]
    found = one([turn(call("web_search", {"query": q, "limit": 10}, PAGE)) for q in queries])
    assert (found.kind, found.laps) == ("near", 5)


def test_one_error_class_through_other_arguments_is_found_at_the_third():
    turns = [
        turn(call("query", {"text": f"w{n} x{n}", "id": n * 977}, "Error: field `filter` is required", error=True))
        for n in range(4)
    ]
    found = one(turns)
    assert (found.kind, found.detected_turn) == ("error", 3)


def test_one_build_error_through_other_commands_is_found():
    commands = ("make", "make clean && make", "rm -rf build && make", "make -j1")
    said = "make: *** [Makefile:{}: build] Error 2\ncannot find /srv/build"
    found = one([turn(call("bash", {"command": c}, said.format(n), error=True)) for n, c in enumerate(commands)])
    assert found.kind == "error"


def test_unknown_tools_under_other_names_are_one_error():
    names = ("lookup_a", "lookup_b", "lookup_c", "lookup_d")
    turns = [turn(call(n, {"q": n}, f"Error: unknown tool '{n}'", error=True)) for n in names]
    assert one(turns).kind == "error"


def test_the_same_failing_check_after_seven_edits_is_found_and_after_three_is_not():
    def laps(count):
        for n in range(count):
            yield turn(call("edit", {"path": "a.py", "new": f"try {n}"}, "done"))
            yield turn(call("bash", {"command": "pytest -q"}, f"a.py:{10 + n}: AssertionError: 3 != 4", error=True))

    assert not findings(list(laps(3)))
    assert one(list(laps(9))).kind == "check"


def test_edits_with_a_new_error_each_time_are_work():
    turns = []
    for n in range(9):
        turns.append(turn(call("edit", {"path": "a.py", "new": f"try {n}"}, "done")))
        turns.append(
            turn(call("bash", {"command": "pytest -q"}, f"NameError: name 'v{n}x' is not defined", error=True))
        )
    assert not findings(turns)


def test_six_searches_without_a_hit_are_found():
    found = one([turn(call("grep", {"pattern": f"word{n}", "path": f"d{n}"}, "")) for n in range(7)])
    assert (found.kind, found.detected_turn) == ("empty", 6)


def test_reading_what_was_read_before_for_eight_rounds_is_stagnation():
    pages = [f"alpha {n}\nbeta {n}\ngamma {n}" for n in range(9)]
    first = [turn(call("read", {"f": f"f{n}"}, p)) for n, p in enumerate(pages)]
    again = [turn(call("read", {"f": f"f{n}", "part": 1}, p)) for n, p in enumerate(reversed(pages))]
    assert [f.kind for f in findings(first + again)] == ["stagnation"]


def test_the_same_plan_three_times_is_bookkeeping():
    assert one([turn(call("todo_write", {"todos": ["a", "b"]}, "saved"))] * 4).kind == "bookkeeping"


def test_the_same_words_three_times_without_a_tool_are_found():
    found = one([turn(text=f"I will now look into the parser of module {n}.") for n in (1, 1, 1)])
    assert (found.kind, found.laps) == ("text", 3)


def test_one_answer_that_chants_is_found_in_its_own_turn():
    found = one([turn(text="The result is ready. " * 40)])
    assert (found.kind, found.first_turn, found.last_turn) == ("chant", 1, 1)


@pytest.mark.parametrize(
    "text",
    ["| a | ok |\n" * 60, "```\nprint(1)\nprint(1)\n" + "x = 1\n" * 60 + "```\n", "- item\n" * 60, "ok " * 20],
    ids=["table", "code", "list", "short"],
)
def test_tables_code_and_lists_do_not_chant(text):
    assert not findings([turn(text=text)])


def test_doing_again_what_was_compacted_away_is_found():
    work = [turn(call("read", {"f": f"f{n}"}, f"body {n}")) for n in range(5)]
    again = [turn(call("read", {"f": "f0"}, "body 0"), compaction=True), *work[1:]]
    found = one(work + again + again)
    assert (found.kind, found.laps) == ("compaction", 3)


def test_agents_that_hand_over_to_each_other_without_work_are_found_whatever_reason_they_give():
    def handover(agent, to, n):
        return turn(call("transfer", {"agent": to, "reason": f"reason {n} in other words"}, f"now {to}"), agent=agent)

    turns = [handover("sales" if n % 2 else "help", "help" if n % 2 else "sales", n) for n in range(8)]
    assert [f.kind for f in findings(turns)] == ["ping_pong"]


def test_hardly_the_same_sub_agent_started_again_and_again_is_found():
    task = "Find out why the login test fails in the billing module and report the cause number {}"
    turns = [turn(call("task", {"prompt": task.format(n)}, f"could not find it ({n})")) for n in range(4)]
    assert [f.kind for f in findings(turns)] == ["sub_agent"]


def test_sub_agents_for_other_files_at_once_are_no_cycle():
    calls = [call("task", {"prompt": f"Review the file src/part{n}.py for errors"}, f"fine {n}") for n in range(6)]
    assert not findings([turn(*calls)])


def test_a_revert_made_three_times_is_found_though_the_edits_between_differ():
    turns = []
    for n in range(4):
        turns.append(turn(call("bash", {"command": f"sed -i '{n}d' a.py"}, "")))
        turns.append(turn(call("bash", {"command": "sed -n '1,9p' a.py"}, f"view {n}\nof the file")))
        turns.append(turn(call("bash", {"command": "git checkout a.py"}, "Updated 1 path from the index")))
    found = one(turns)
    assert "git checkout" in found.calls[0]


CLEAN = {
    "paging": [turn(call("read", {"f": "a", "offset": n * 100}, f"text {n} a\ntext {n} b")) for n in range(20)],
    "scrolling": [
        turn(call("scroll", {"direction": "down"}, f"at {n}\nparagraph {n} of it\nand {n} more")) for n in range(8)
    ],
    "enumeration": [turn(call("get_user", {"id": n}, f"user {n} is called name{n}x")) for n in range(20)],
    "missing ids": [turn(call("get_user", {"id": n}, f"404 user {n} not found", error=True)) for n in range(5)],
    "declared waiting": [turn(call("bash", {"command": "sleep 30; cat log"}, "still running"))] * 6,
    "a person asks again": [
        t
        for n in range(5)
        for t in (turn(call("get_account", {"id": 1}, PAGE), user=f"and topic {n}?"), turn(text=f"answer {n} is {n}"))
    ],
    "asked to repeat": [
        turn(user="run the benchmark 8 times"),
        *[turn(call("bash", {"command": "./bench"}, "ok"))] * 8,
    ],
    "install what is missing": [
        t
        for n in range(6)
        for t in (
            turn(call("bash", {"command": "python a.py"}, f"ModuleNotFoundError: No module named 'm{n}'", error=True)),
            turn(call("bash", {"command": f"pip install m{n}"}, "Successfully installed")),
        )
    ],
    "acknowledgements": [turn(call("send_mail", {"to": f"p{n}@x.org", "text": "hello"}, "sent")) for n in range(9)],
    "silent builds after edits": [
        t
        for n in range(5)
        for t in (
            turn(call("edit", {"f": f"f{n}", "new": "x"}, "done")),
            turn(call("bash", {"command": "make -s"}, "")),
        )
    ],
    "a person refuses": [
        turn(call("edit", {"f": f"f{n}"}, "the user does not want this", error=True, error_class="denied"))
        for n in range(4)
    ],
}


@pytest.mark.parametrize("name", CLEAN)
def test_it_does_not_cry_at(name):
    assert not findings(CLEAN[name]), [f.sentence for f in findings(CLEAN[name])]


def test_retries_of_a_transient_error_get_longer_when_the_waits_grow():
    def tries(gaps):
        at, turns = 0, []
        for gap in gaps:
            at += int(gap * 1e6)
            turns.append(
                turn(call("http_get", {"url": "u"}, "503 unavailable", error=True), started_at=at, ended_at=at)
            )
        return turns

    assert not findings(tries([1, 1, 1, 1]))
    assert findings(tries([1] * 7))
    assert not findings(tries([1.5**n for n in range(1, 5)]))


def test_a_declared_poller_and_declared_keys_are_believed():
    same = [turn(call("peek_at", {"id": 1}, PAGE))] * 6
    assert findings(same)
    assert not findings(same, declared=Declared({"peek_at": "poll"}))
    assert not findings(same, declared=Declared({"peek_at": "ignore"}))
    noisy = [turn(call("ask", {"q": "same", "note": f"other {n} words here"}, "short")) for n in range(5)]
    assert not findings(noisy)
    assert findings(noisy, declared=Declared(keys={"ask": ("q",)}))


def test_a_loop_key_of_the_tool_itself_tells_calls_apart():
    turns = [turn(call("act", {"n": n}, "same answer", loop_key="k")) for n in range(4)]
    assert findings(turns)
    assert not findings([turn(call("act", {"n": 1}, "same answer", loop_key=f"k{n}")) for n in range(4)])


def test_get_reservation_details_is_no_poller_for_the_tail_in_it():
    assert findings([turn(call("get_reservation_details", {"id": "A"}, PAGE))] * 4)


def test_results_that_are_not_known_prove_nothing():
    assert not findings([turn(call("read", {"f": "a"}, None))] * 9)


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_order", "read"), ("read_page", "read"), ("update_reservation_flights", "mutate"), ("book_seat", "mutate"),
        ("return_order", "mutate"), ("orderDetails", "read"), ("browser_click", "actuate"), ("job_status", "poll"),
        ("wait_output", "poll"), ("update_status", "mutate"), ("think", "bookkeeping"), ("frobnicate", "unknown"),
    ],
)  # fmt: skip
def test_what_a_tool_does_is_read_off_the_verb_in_its_name(name, effect):
    assert kinds.effect_of(name, {}) == effect
