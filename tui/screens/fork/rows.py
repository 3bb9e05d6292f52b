"""The lines of the fork screen: who answers, what the model sees, what it answered; and each of them whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual.message import Message

from ....replay.diff.side_lines import folded, side_lines
from ....replay.diff.words import Run as Piece
from ....replay.engine.forks.telling import ERROR, LIVE, RECORDED, STUB, ToolFact
from ....replay.fork.parts import Part
from ...format import counted
from ...widgets.blocks import Block, Body, Document, Head
from ...widgets.cells import Column, Spans
from .reading import Edits, Reading, Sketch

COLUMNS = (Column("section", "", 8, keep=4), Column("name", "", 15, grow=1, most=22, keep=9), Column("now", "", 20, grow=3, keep=8))  # fmt: skip
MOST_COMPARED = 200_000
"""Characters up to which an edit is shown word by word."""
_AROUND = 2
_REQUEST = ("system", "tools", "model", "parameter")
_SHORT = 400


class Sketched(Message):
    """What an order would come to, with its lines."""

    def __init__(self, sketch: Sketch, lines: Sequence[Row]) -> None:
        super().__init__()
        self.sketch = sketch
        self.rows = tuple(lines)


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        id: ``@model``, ``@sources``, ``@limits``, ``@seen``, ``@drop``, ``@add``, ``tool NAME``, ``lacks N``, or a path.
        section: Its kind, as the first line of a kind says it.
    """

    id: str
    section: str
    name: str
    now: Spans
    first: bool = False
    part: Part | None = None
    fact: ToolFact | None = None
    words: str = ""


def rows(reading: Reading, sketch: Sketch, edits: Edits) -> tuple[Row, ...]:
    """All lines, in their order."""
    made = [*_lacks(sketch), *_answering(reading, sketch), *_seen(reading, sketch, edits)]
    out: list[Row] = []
    for row in made:
        begins = not out or out[-1].section != row.section
        out.append(replace(row, first=begins))
    return tuple(out)


def cells(row: Row, column: str) -> Spans:
    """A line's spans in a column."""
    if column == "section":
        return ((row.section, "dim"),) if row.first else ()
    return ((row.name, "strong" if row.id in ("@model", "@sources", "@limits") else "text"),) if column == "name" else row.now  # fmt: skip


def _lacks(sketch: Sketch) -> list[Row]:
    """What the recording lacks, and what was done about it."""
    if sketch.ready is None:
        return []
    start = sketch.ready.start
    lacks = [_remark(f"lacks {i}", "lacks", f"! {text}", "text") for i, text in enumerate(start.lacks, 1)]
    return lacks + [_remark(f"note {i}", "notes", f"· {text}", "dim") for i, text in enumerate(start.notes, 1)]


def _remark(key: str, section: str, text: str, role: str) -> Row:
    """A sentence behind its sign, unbroken; whole beside the list."""
    return Row(key, section, "", ((text, role),), words=text[2:])


def _answering(reading: Reading, sketch: Sketch) -> list[Row]:
    wanted = sketch.order
    found = [Row("@model", "answers", "model", _model(sketch))]
    found += [Row(f"tool {f.name}", "answers", f.name, _tool(f), fact=f) for f in sketch.facts]
    named = [*wanted.modules, *(f"MCP {c}" for c in wanted.commands)]
    found.append(Row("@sources", "answers", "live tools from", ((", ".join(named) or "nowhere", "text" if named else "dim"),)))  # fmt: skip
    if sketch.ready is not None and _derivable(reading):
        now = "offered, derived from the arguments seen" if wanted.seen_tools else "not offered"
        found.append(Row("@seen", "answers", "tools seen", ((now, "accent" if wanted.seen_tools else "dim"),)))
    found.append(Row("@limits", "answers", "limits", ((limits_words(sketch), "text"),)))
    return found


def _derivable(reading: Reading) -> bool:
    before = reading.plan.before
    return not before.body.get("tools") and any(t.tool_calls for t in before.turns)


def limits_words(sketch: Sketch) -> str:
    """``50 turns, 30 min, no limit of cost; stops when the window is full``."""
    policy = sketch.order.policy()
    seconds = policy.max_seconds or 0
    time = f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
    cost = "no limit of cost" if policy.max_cost_usd is None else f"${policy.max_cost_usd:g}"
    full = {"stop": "stops", "drop": "drops stale results", "summarise": "summarises", "offload": "offloads bulk"}
    return f"{counted(policy.max_turns or 0, 'turn')}, {time}, {cost}; {full[policy.context]} when the window is full"


def _model(sketch: Sketch) -> Spans:
    ready = sketch.ready
    if ready is None:
        return ((sketch.order.model, "text"),)
    if ready.model.live:
        return (("LIVE", "accent_strong"), (f"  {ready.model_name or '(no name)'} at {ready.model.host}", "text"))
    if ready.model.kind == "recorded":
        return ((RECORDED, "text"), (", else stop", "dim"))
    return ((sketch.order.model, "text"),)


def _tool(fact: ToolFact) -> Spans:
    calls = f"{counted(fact.calls, 'call')} in the recording" if fact.calls else "never called"
    change = "  changes things" if fact.effect == "mutate" else ""
    if fact.how == LIVE:
        return (("LIVE", "accent_strong"), (change or "  runs for real", "text"))
    if fact.how in (STUB, ERROR):
        return ((fact.how, "accent"), (f"  {fact.text[:_SHORT]}", "text"))
    return ((RECORDED, "text"), (f", else stop  {calls}{change}", "dim"))


def _seen(reading: Reading, sketch: Sketch, edits: Edits) -> list[Row]:
    """The parts of the request, then its messages, then the answer of the turn."""
    added = [p for p, _ in edits.values() if p.kind == "parameter" and p not in reading.parts]
    sections: dict[str, list[Row]] = {"request": [], "messages": [], "answer": []}
    for part in (*reading.parts, *added):
        section = "answer" if part.steps[0] == "turn" else "request" if part.kind in _REQUEST else "messages"
        name = f"tool {part.title}" if part.kind == "tools" and len(part.steps) > 1 else part.title
        sections[section].append(Row(part.path, section, name, _part(part, edits.get(part.path)), part=part))
    return [*sections["request"], *_asked_rows(sketch), *sections["messages"], *sections["answer"]]


def _asked_rows(sketch: Sketch) -> list[Row]:
    dropped = ", ".join(map(str, sketch.order.drop))
    now: Spans = ((f"turns {dropped} taken out", "accent"),) if dropped else (("none", "dim"),)
    return [
        Row("@add", "request", "another …", (("NAME=VALUE, a parameter that was not sent", "dim"),)),
        Row("@drop", "request", "turns taken out", now),
    ]


def _part(part: Part, edited: tuple[Part, str] | None) -> Spans:
    if edited is not None:
        return (("✎ ", "accent_strong"), (edited[1][:_SHORT] or "(empty)", "accent"))
    if not part.there:
        return (({"result": "not in the recording", "response": "no words"}.get(part.kind, "none"), "dim"),)
    size = f"{len(part.text):,} characters  " if len(part.text) > _SHORT else ""
    text = part.text[:_SHORT]
    return ((size, "dim"), (" ".join(text.split()) if part.json else text, "text" if text else "dim"))


# one of them whole


def whole(row: Row, sketch: Sketch, edits: Edits) -> Document:
    """The selected line, whole: the text of a part or how it is edited; what else a choice means."""
    if row.part is not None:
        return _whole_part(row.part, edits.get(row.part.path))
    if row.words:
        return (Body(row.words),)
    if row.fact is not None:
        return tuple(_whole_tool(row.fact))
    return tuple(_HELP.get(row.id, ())) + tuple(_whole_plan(row, sketch))


def _whole_part(part: Part, edited: tuple[Part, str] | None) -> Document:
    head = Head(((part.path, "key"), ("   e edits it" if edited is None else "   edited; u takes it back", "dim")))
    if edited is not None:
        return (head, *difference(part.text if part.there else "", edited[1]))
    if not part.there:
        return (head, Head((("nothing stands there", "dim"),)))
    return (head, Body(part.text, syntax="json" if part.json else ""))


def difference(old: str, new: str) -> list[Block]:
    """An edit as lines with ``-`` and ``+``; within them the words that differ stand out."""
    if max(len(old), len(new)) > MOST_COMPARED:
        return [Head(((f"{len(old):,} characters became {len(new):,}: too long to compare here", "dim"),)), Body(new, most=200)]  # fmt: skip
    blocks: list[Block] = []
    if not old:
        return [Head((("+ ", "accent_strong"), (line, "accent"))) for line in new.split("\n")]
    added: list[Block] = []
    for line in folded(side_lines(old, new), _AROUND):
        if isinstance(line, int):
            blocks += [*_flushed(added), Head(((f"  … {counted(line, 'line')} the same", "faint"),))]
        elif line.same:
            blocks += [*_flushed(added), Head((("  ", "text"), *_pieces(line.a or (), "dim", "dim")))]
        else:
            if line.a is not None:
                blocks.append(Head((("- ", "bad_strong"), *_pieces(line.a, "bad", "bad_strong"))))
            if line.b is not None:
                added.append(Head((("+ ", "accent_strong"), *_pieces(line.b, "accent", "changed"))))
    return [*blocks, *_flushed(added)]


def _flushed(waiting: list[Block]) -> list[Block]:
    """The new lines stand after all old ones of their stretch."""
    found = list(waiting)
    waiting.clear()
    return found


def _pieces(pieces: Sequence[Piece], same: str, other: str) -> Spans:
    return tuple((p.text, same if p.kind == "same" else other) for p in pieces)


def _whole_tool(fact: ToolFact) -> list[Block]:
    told = [Head(((fact.name, "strong"), (f"   {fact.how if fact.how != LIVE else 'LIVE'}", "accent")))]
    calls = counted(fact.calls, "call") + " in the recording" if fact.calls else "The recording has no call of it"
    ends = "; a call that it has not ends the fork" if fact.how == RECORDED else ""
    told.append(Head(((calls + ends + ".", "dim"),)))
    effects = {"mutate": "It changes things.", "read": "It only reads.", "poll": "It only looks whether something is done.", "bookkeeping": "It only keeps the agent's own books.", "unknown": "Nothing says whether it changes things."}  # fmt: skip
    told.append(Head(((effects[fact.effect], "dim"),)))
    if not fact.able:
        told.append(Head((("No source here can run it live: Enter on “live tools from” names one.", "dim"),)))
    if fact.how in (STUB, ERROR):
        return [*told, Head((("every call gets" + (" the error" if fact.how == ERROR else ""), "dim"),)), Body(fact.text)]  # fmt: skip
    return list(told)


def _whole_plan(row: Row, sketch: Sketch) -> list[Block]:
    if sketch.cost is not None and row.id in ("@model", "@limits"):
        return [Head(((sketch.cost.words(), "text"),))]
    return []


_HELP: dict[str, tuple[Block, ...]] = {
    "@model": (
        Head((("Who answers", "strong"),)),
        Body("The recording answers as long as each request is still the recorded one; after an edit of what the model sees it cannot, and the fork stops there. Live sends requests.", "dim"),
    ),
    "@sources": (
        Head((("Where live tools come from", "strong"),)),
        Body("A list or mapping of tools in a Python module (MODULE:TOOLS, found from here), or the command of an MCP server. Naming one imports or starts it; its tools run only where they are chosen to.", "dim"),
    ),
    "@limits": (Head((("When it stops by itself", "strong"),)),),
    "@seen": (
        Head((("Tools of which the recording has no definitions", "strong"),)),
        Body("They can be offered with schemas derived from the arguments that were seen.", "dim"),
    ),
    "@add": (
        Head((("Another parameter", "strong"),)),
        Body("e asks for NAME=VALUE, for example temperature=0 or max_tokens=2000.", "dim"),
    ),
    "@drop": (
        Head((("Turns taken out of the request", "strong"),)),
        Body("e asks for their numbers, for example 2-4. Their answers and results go; what a person said stays.", "dim"),
    ),
}  # fmt: skip
