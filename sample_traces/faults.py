"""One small tape for each rule of `looptape lint`, with the fault that the rule is for and no other, in `rules/`.

The shop and its figures are invented. Token counts that a fault needs are larger than the texts, which stand for long ones.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from .writing import SECOND, Call, Run, Try, Turn, steps, write

BEGAN = int(datetime.fromisoformat("2026-09-14T08:00:00+00:00").timestamp()) * SECOND
HOUR = 3_600 * SECOND

ORDER = Call("find_order", {"number": "A-1042"}, "A-1042: six bowls, celadon, sent on 9 September")
STOCK = Call("count_stock", {"item": "bowl"}, "17 bowls on the shelf, 4 of them seconds")
PRICE = Call("look_up_price", {"item": "celadon bowl"}, "38 euros, 34 from six on")
MAIL = Call("read_mail", {"sender": "maren"}, "Maren asks for six more bowls by the end of the month")


def no_backstop() -> bytes:
    """L01: no limit of any kind, ended by the model's own word."""
    turns = steps(
        "Can Maren have six more bowls?", [MAIL], [ORDER], [STOCK], [PRICE], "Yes: six bowls at 34 euros each."
    )
    return write(Run("more-bowls", turns, BEGAN, limits={}))


def hollow_error() -> bytes:
    """L02: an error that says nothing of its cause."""
    failed = Call("book_kiln", {"day": "Friday"}, "An error occurred.", error=True, effect="mutate")
    turns = steps("Book the kiln for Friday.", [failed], "The kiln could not be booked, and I was not told why.")
    return write(Run("book-kiln", turns, BEGAN))


def growing_context() -> bytes:
    """L03: every turn adds as much again, and nothing is ever taken out."""
    tools = ("read_ledger", "scan_receipts", "list_returns")
    turns = [
        Turn((Call(tools[n % 3], {"part": f"{n:02}-{37 * n % 101}"}, f"{417 * n % 1009} entries: plates, glazes, {311 * n % 97} crates"),),
             fresh=10_500, cached=10_500 * n)
        for n in range(11)
    ]  # fmt: skip
    last = Turn(text="The year closes with 41,180 euros.", fresh=10_500, cached=10_500 * 11)
    return write(Run("close-the-year", steps("Close the books of this year.", *turns, last), BEGAN))


def full_disk() -> bytes:
    """L04: the disk of the container is full, and the model is asked to cope."""
    text = "OSError: [Errno 28] No space left on device"
    names = ("export_photos", "save_catalogue", "write_index", "store_thumbnails")
    calls = [
        [Call(n, {"folder": n.partition("_")[2]}, f"{text}: /srv/{n}", error=True, effect="mutate")] for n in names
    ]
    return write(
        Run("catalogue", steps("Make the autumn catalogue.", *calls, "The disk is full; nothing was saved."), BEGAN)
    )


def circle() -> bytes:
    """L05: the same look-up with the same answer until the cap ends it."""
    same = [Call("track_parcel", {"number": "P-77"}, "no news since Monday")]
    turns = steps("When does parcel P-77 arrive?", [ORDER], *[same] * 7)
    return write(Run("parcel", turns, BEGAN, status="limit", reason="turns: 8 of 8", limits={"turns": 8}))


def blamed_sibling() -> bytes:
    """L06: one of three parallel calls failed, and the others were failed with it."""
    lost = "not run: another parallel call failed"
    calls = [
        Call("read_weather", {"town": "Faenza"}, "Faenza: the station sends nothing today", error=True),
        Call("count_stock", {"item": "bowl"}, lost, error=True),
        Call("find_order", {"number": "A-1042"}, lost, error=True),
    ]
    return write(
        Run("market-day", steps("Is the market worth it?", calls, "I cannot say: three look-ups failed."), BEGAN)
    )


def lost_turn() -> bytes:
    """L07: the third turn was never written down."""
    turns = steps("What does Maren owe?", [MAIL], [ORDER], Turn((STOCK,), lost=True), [PRICE], "She owes 204 euros.")
    return write(Run("what-is-owed", turns, BEGAN))


def lost_cache() -> bytes:
    """L08: the beginning of the prompt is not found in the cache again, and nothing recorded says why."""
    turns = steps(
        "Compare this year's glazes.", Turn((STOCK,), fresh=900, cached=42_000),
        Turn((PRICE,), fresh=41_200, cached=2_100), Turn(text="Celadon sells best.", fresh=700, cached=43_300),
    )  # fmt: skip
    return write(Run("glazes", turns, BEGAN))


def confused_tools() -> bytes:
    """L09: twice the one tool is tried where the other was meant."""
    turns: list[list[Call]] = []
    for number, owed in (("C-31", "204 euros since May"), ("D-43", "nothing, paid in June")):
        turns.append([Call("get_customer", {"ref": number}, f"no customer {number}: not found", error=True)])
        turns.append([Call("get_account", {"ref": number}, f"account {number}: {owed}")])
    return write(
        Run("accounts", steps("What do C-31 and D-43 owe?", *turns, "C-31 owes 204 euros, D-43 nothing."), BEGAN)
    )


def silent_repair() -> bytes:
    """L10: arguments that are no JSON, and the tool ran all the same."""
    guessed = Call("list_orders", {}, "12 orders of March", raw='{"month": "Mar')
    return write(Run("orders-of-march", steps("How many orders in March?", [guessed], "Twelve orders."), BEGAN))


def one_limit() -> bytes:
    """L11: five turns for a mail that needs one and for a stock-taking that needs more; eight runs."""
    runs = []
    for n, room in enumerate("ABCD"):
        answer = steps(
            f"Answer Maren: is there anything new in room {room}?", f"Dear Maren, room {room} has new bowls."
        )
        runs.append(Run("answer-mail", answer, BEGAN + 2 * n * HOUR, limits={"turns": 5}))
        capped = room in "AC"
        shelves = [
            [Call(("count_shelf", "read_labels")[s % 2], {"shelf": f"{room}{7 * s % 11}"}, f"{131 * (s + 2) * (n + 3) % 89} pieces")]
            for s in range(5 if capped else 3)
        ]  # fmt: skip
        turns = steps(f"Count room {room}.", *shelves, *([] if capped else ["All counted."]))
        status, reason = ("limit", "turns: 5 of 5") if capped else ("completed", "end_turn")
        runs.append(Run("stock-taking", turns, BEGAN + (2 * n + 1) * HOUR, status, reason, limits={"turns": 5}))
    return write(*runs)


def constant_gaps() -> bytes:
    """L12: a service in trouble is asked again every second."""
    tries = (Try(503, 0, "unavailable"), Try(503, 1, "unavailable"), Try(502, 1, "bad gateway"), Try(200, 1))
    return write(
        Run("greeting", steps("Write a greeting.", Turn(text="Good morning from the shop!", tries=tries)), BEGAN)
    )


def hasty() -> bytes:
    """L13: told to wait 20 seconds, it waited one."""
    tries = (Try(429, 0, "rate_limit_error", {"retry-after": "20"}), Try(200, 1))
    return write(Run("opening-hours", steps("When are we open?", Turn(text="From ten to six.", tries=tries)), BEGAN))


def begun_again() -> bytes:
    """L14: a run that broke off is begun again from nothing, and books the courier a second time; two runs."""
    courier = Call("book_courier", {"order": "A-1042"}, "courier booked for Friday", effect="mutate")
    asked, work = "Send the order of Maren.", ([MAIL], [ORDER], [courier])
    label = [Call("print_label", {"order": "A-1042"}, "label printed", effect="mutate")]
    return write(
        Run("send-order", steps(asked, *work), BEGAN, status="interrupted", reason="the process ended without a word"),
        Run("send-order", steps(asked, *work, label, "The parcel is ready."), BEGAN + HOUR),
    )


def one_by_one() -> bytes:
    """T01: six look-ups that the question names, a turn each."""
    items = ("bowls", "plates", "mugs", "vases", "tiles", "jugs")
    calls = [[Call("count_stock", {"item": i}, f"{23 * n % 41} on the shelf")] for n, i in enumerate(items, 1)]
    return write(
        Run("count-six", steps(f"How many {', '.join(items)} are there?", *calls, "Counted, see above."), BEGAN)
    )


def told_twice() -> bytes:
    """T02: a second instrumentation has a span of its own for the same model call."""
    detail = {"span_name": "chat", "scope": "tracing.for.everything", "inner_scope": "tracing.of.the.sdk",
              "input_total": 460, "output": 12}  # fmt: skip
    turns = steps("Is there a bowl left?", [STOCK], "Yes, seventeen.")
    return write(Run("bowl-left", turns, BEGAN, source="otlp", events=((1, "wrapper", detail),)))


def summed_above() -> bytes:
    """T03: the agent's span carries the sum of the calls below it."""
    detail = {"span_name": "shop_agent", "scope": "tracing.of.the.sdk", "input_total": 1_040, "output": 40}
    turns = steps("What is a bowl?", [PRICE], "38 euros.")
    return write(Run("bowl-price", turns, BEGAN, source="otlp", events=((1, "span_usage", detail),)))


def cut_at_source() -> bytes:
    """T04: the producer of the trace had a limit of attributes."""
    cut = Turn((ORDER,), start={"flags": ["truncated_at_source"]})
    return write(
        Run("order-state", steps("Where is A-1042?", cut, "It was sent on 9 September."), BEGAN, source="otlp")
    )


def silent_stream() -> bytes:
    """T05: streamed answers, and usage was not asked for."""
    chat = {"provider": "openai", "api": "openai.chat", "model": "gpt-4.1-mini", "stream": True}
    end = {
        "model": "gpt-4.1-mini",
        "stop_reason": "stop",
        "usage": {"origin": "missing", "partial": False},
        "response": None,
    }
    turns = (
        Turn(text="From ten to six.", asked="When are you open?", start=chat, end=end),
        Turn(text="Yes, from noon.", asked="On Sundays too?", start=chat, end=end),
    )
    return write(Run("chat", turns, BEGAN))


FAULTS: tuple[tuple[str, Callable[[], bytes]], ...] = (
    ("L01", no_backstop),
    ("L02", hollow_error),
    ("L03", growing_context),
    ("L04", full_disk),
    ("L05", circle),
    ("L06", blamed_sibling),
    ("L07", lost_turn),
    ("L08", lost_cache),
    ("L09", confused_tools),
    ("L10", silent_repair),
    ("L11", one_limit),
    ("L12", constant_gaps),
    ("L13", hasty),
    ("L14", begun_again),
    ("T01", one_by_one),
    ("T02", told_twice),
    ("T03", summed_above),
    ("T04", cut_at_source),
    ("T05", silent_stream),
)


def make() -> dict[str, bytes]:
    """Every rule's tape by its file name below this folder: ``rules/L01.jsonl``."""
    return {f"rules/{rule}.jsonl": fault() for rule, fault in FAULTS}
