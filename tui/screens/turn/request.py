"""The request tab: what the model really saw, part by part, against the turn before; where the cache broke. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....replay.message_parts import plain_text
from ....tracer.model import Request
from ...data.views import Trouble, TurnView
from ...format import count
from ...told.context_text import broke
from ...widgets.blocks import Block, Body, Document, Fold, Head
from ...widgets.cells import Span, Spans
from ...widgets.json_text import compact, pretty
from . import messages
from .changes import AROUND, PATH, broke_here, by_message, edits, in_words, kind_of, note_of, of_part, standing
from .content import json_block, words
from .conversation import phase
from .reading import LONG, Changes, Want

if TYPE_CHECKING:
    from ....replay.context import Break, Context
    from ....replay.diff import Change

_LEGEND = (
    ("same", "as before"), ("appended", "new"), ("edited", "edited"), ("truncated", "truncated"), ("dropped", "dropped"),
    ("reordered", "moved"),
)  # fmt: skip


def request(view: TurnView, extras: Mapping[str, Any], want: Want) -> Document:
    """What the model really saw. ``extras``: ``changes`` and ``context``, once they are read."""
    seen = view.request
    if seen is None:
        return (Head((("The request of this turn is not known. ", "text"), (view.request_trouble or "", "dim"))),)
    told = extras.get("changes")
    changes = told if isinstance(told, Changes) else None
    context = extras.get("context")
    tokens = None if context is None or isinstance(context, Trouble) else context
    broken = next((b for b in tokens.breaks if b.turn == view.turn.number), None) if tokens is not None else None
    rows = [
        *_lacking(tokens),
        *_system(seen, changes, tokens, broken, want),
        *_tools(seen, changes, tokens, broken, want),
        *_params(seen, changes, want),
        *_messages(seen, changes, tokens, broken, want),
    ]
    return (*_top(view, told, context, broken, rows), *rows)


def _top(view: TurnView, told: Any, context: Any, broken: Break | None, rows: Sequence[Block]) -> Iterator[Block]:
    use = view.turn.usage
    written = (use.cache_write_5m or 0) + (use.cache_write_1h or 0)
    facts: list[str | Span | None] = [f"{count(use.context)} tokens" if use.context is not None else "tokens not known"]
    facts += [f"{count(use.cache_read)} from cache"] if use.cache_read else []
    facts += [f"{count(written)} written to the cache"] if written else []
    facts += [f"{count(use.input)} new"] if (use.cache_read or written) and use.input is not None else []
    yield phase("REQUEST", *facts)
    if broken is not None:
        bad = bool(broken.tokens)
        yield phase("CACHE", (("✗ " if bad else "") + broke(broken), "bad" if bad else "dim"))
    for name, what in ((told, "What changed"), (context, "How many tokens each part has")):
        if isinstance(name, Trouble):
            yield Head(((f"{what} is not known: {name.what}", "dim"),))
    if context is None and view.turn.number > LONG:
        yield Head((("in a run this long the parts are weighed when you ask: x", "dim"),))
    yield Head(_legend(view.turn.number, rows))
    yield Head(())


def _legend(number: int, rows: Sequence[Block]) -> Spans:
    """The signs that stand below, in words."""
    used = {span[0].strip() for block in rows if isinstance(block, Fold) for span in block.head[:1]}
    spans: list[Span] = []
    for kind, what in _LEGEND:
        sign, role = messages.SIGNS[kind]
        if sign in used:
            said = f"as in turn {number - 1}" if kind == "same" else what
            spans += [(sign, role), (f" {said}   ", "faint")]
    return (*spans, ("} { ", "faint"), ("more or less around what changed", "faint"))


# the parts


def _lacking(context: Context | None) -> Iterator[Block]:
    """What the request held beyond what was recorded."""
    tokens = _tokens(context, "unrecorded")
    if tokens:
        said = "system text and tools were not kept"
        yield Head((("  ", "text"), *messages.row("", "not recorded", tokens, (said, "dim"))), 0, 31)


def _system(
    seen: Request, told: Changes | None, context: Context | None, broken: Break | None, want: Want
) -> list[Block]:
    if not seen.system:
        return []
    text = plain_text(seen.system)
    mine = of_part("system", told)
    kind = kind_of(mine, told)
    body: Block = json_block(seen.system, indent=4, raw=True) if want.raw else words(text, indent=4)
    first = "" if mine else _first_line(text)
    head = messages.row(kind, "system", _tokens(context, "system"), *note_of(mine, broken, "system"), (first, "dim"))
    inner = (*edits(mine, want), body)
    return [
        Fold("request.system", head, inner, False, lasting=True, value=text, what="system text", hang=31, cut=not mine)
    ]


def _tools(
    seen: Request, told: Changes | None, context: Context | None, broken: Break | None, want: Want
) -> list[Block]:
    tools = seen.tools if isinstance(seen.tools, list) else [seen.tools] if seen.tools else []
    if not tools:
        return []
    mine = of_part("tools", told)
    names = [_tool(tool)[0] for tool in tools]
    called = None if told is None else sum(1 for name in names if name in told.called)
    said = "" if called is None else f"{called} of {len(tools)} ever called"
    head = messages.row(
        kind_of(mine, told),
        f"tools {len(tools)}",
        _tokens(context, "tools"),
        *note_of(mine, broken, "tools"),
        (said, "dim"),
    )
    inner: list[Block] = [*edits(mine, want)]
    inner += [json_block(seen.tools, indent=4, raw=True)] if want.raw else [_one_tool(t, told) for t in tools]
    return [Fold("request.tools", head, tuple(inner), False, lasting=True, value=seen.tools, what="tools", hang=31)]


def _one_tool(tool: Any, told: Changes | None) -> Block:
    name, about, schema = _tool(tool)
    used = "" if told is None else "called   " if name in told.called else "never    "
    head: Spans = ((f"{name:<24} ", "strong"), (used, "faint"), (_first_line(about), "dim"))
    inner: list[Block] = [Body(about, "text", 6)] if "\n" in about.strip() or len(about) > 80 else []
    inner.append(Body(pretty(schema if schema is not None else tool), "dim", 6, "json"))
    return Fold(f"tool.{name}", head, tuple(inner), False, 2, lasting=True, value=tool, what=f"tool {name}", cut=True)


def _params(seen: Request, told: Changes | None, want: Want) -> list[Block]:
    if not seen.params:
        return []
    mine = of_part("params", told) + of_part("model", told)
    said = ", ".join(f"{k} {v if isinstance(v, str) else compact(v)}" for k, v in seen.params.items())
    head = messages.row(
        kind_of(mine, told), f"parameters {len(seen.params)}", "", *note_of(mine, None, "params"), (said[:400], "dim")
    )
    inner = (*edits(mine, want), json_block(dict(seen.params), indent=4, raw=want.raw))
    return [
        Fold(
            "request.params",
            head,
            inner,
            False,
            lasting=True,
            value=dict(seen.params),
            what="parameters",
            hang=31,
            cut=not mine,
        )
    ]


# messages


def _messages(
    seen: Request, told: Changes | None, context: Context | None, broken: Break | None, want: Want
) -> list[Block]:
    total, weights = len(seen.messages), context.by_message if context is not None else ()
    if len(weights) != total:
        weights = ()
    whole = sum(weights) if weights else None
    kinds, gone = standing(seen, told)
    said = _counts(kinds, sum(len(some) for some in gone.values()))
    out: list[Block] = [Head((("  ", "text"), *messages.row("", f"messages {total}", whole, (said, "dim"))))]
    near = AROUND[want.around][0]
    changed = [range(i - near, i + near + 1) for i, kind in enumerate(kinds) if kind != "same"]
    changed += [range(i - near, i + near) for i in gone]
    alone = {j for some in changed for j in some} if near < total else set(range(total))
    inside = by_message(told)
    run: list[Fold] = []
    for index, value in enumerate(seen.messages):
        out_of_place = gone.get(index, ())
        weight = weights[index] if weights else None
        mine = inside.get(index + 1, ())
        hit = broken is not None and broken.message == index + 1
        kind = kinds[index]
        note = (*in_words(mine), *((broke_here(broken),) if hit and broken is not None else ()))
        fold = messages.message(
            index + 1,
            value,
            kind,
            tokens=weight,
            open_=kind != "same",
            note=note,
            before=edits(mine, want),
            raw=want.raw,
        )
        if run and (index in alone or out_of_place):
            out.append(_collapsed(run, weights, kinds, want.number))
            run = []
        out += [_dropped(change, want) for change in out_of_place]
        if index in alone:
            out.append(fold)
        else:
            run.append(fold)
    if run:
        out.append(_collapsed(run, weights, kinds, want.number))
    return [*out, *(_dropped(change, want) for change in gone.get(total, ()))]


def _counts(kinds: Sequence[str], gone: int) -> str:
    """``2 new``; ``1 truncated, 2 edited, 4 dropped``."""
    words = (("appended", "new"), ("inserted", "put in"), ("truncated", "truncated"), ("edited", "edited"))
    counts = [(kinds.count(kind), word) for kind, word in (*words, ("reordered", "moved"))] + [(gone, "dropped")]
    return ", ".join(f"{n:,} {word}" for n, word in counts if n)


def _collapsed(run: Sequence[Fold], weights: Sequence[int], kinds: Sequence[str], number: int) -> Fold:
    numbers = [int(fold.key.rsplit(".", 1)[1]) for fold in run]
    first, last = numbers[0], numbers[-1]
    weight = sum(weights[first - 1 : last]) if weights else None
    return messages.together(first, last, run, weight, f"as in turn {number - 1}")


def _dropped(change: Change, want: Want) -> Block:
    found = PATH.fullmatch(change.path)
    number = int(found[1]) if found is not None else 0
    note: Spans = ((f"dropped: [{number}] of turn {want.number - 1}", "bad"),)
    return messages.message(number, change.a, "dropped", note=note, raw=want.raw)


def _tokens(context: Context | None, origin: str) -> int | str | None:
    if context is None:
        return None
    return sum(share.tokens for share in context.shares if share.origin == origin)


def _tool(tool: Any) -> tuple[str, str, Any]:
    """Name, description and schema of a tool in any dialect."""
    inner = tool.get("function") if isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping) else tool
    if not isinstance(inner, Mapping):
        return str(tool)[:80], "", None
    about = inner.get("description")
    schema = next((inner[k] for k in ("input_schema", "parameters", "parametersJsonSchema") if inner.get(k)), None)
    return str(inner.get("name") or inner.get("type") or "?"), about if isinstance(about, str) else "", schema


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:200]
