"""One turn's request as a curl command: the recorded body, the API's usual address, a key only by the name of its variable."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from ..tracer.errors import UsageError
from ..tracer.redaction import secrets_out
from .export_messages import request_body

if TYPE_CHECKING:
    from ..tracer.model import Run, Turn
    from ..tracer.store import Store


@dataclass(frozen=True, slots=True)
class _Address:
    """Where an API is asked.

    Attributes:
        base: Variable that holds another server, and the usual one.
        path: Behind it; ``{model}`` is the model's name.
        headers: As curl takes them; ``$NAME`` is filled in by the shell.
    """

    base: tuple[str, str]
    path: str
    headers: tuple[str, ...]


_OPENAI = ("OPENAI_BASE_URL", "https://api.openai.com/v1")
_BEARER = ("authorization: Bearer $OPENAI_API_KEY",)
_ADDRESSES = {
    "anthropic.messages": _Address(
        ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        "/v1/messages",
        ("x-api-key: $ANTHROPIC_API_KEY", "anthropic-version: 2023-06-01"),
    ),
    "openai.chat": _Address(_OPENAI, "/chat/completions", _BEARER),
    "openai.responses": _Address(_OPENAI, "/responses", _BEARER),
    "google.generate_content": _Address(
        ("GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
        "/v1beta/models/{model}:generateContent",
        ("x-goog-api-key: $GEMINI_API_KEY",),
    ),
}


def curl(store: Store, run: Run, number: int | None = None) -> str:
    """The command that sends a turn's request again (the last one's, by default).

    The body is the recorded text where there is one, else the request put together from its parts. Nothing secret is
    in it: keys are named by their variables, ``[redacted:TYPE]`` stays.

    Raises:
        UsageError: There is no such turn, or its API is not known.
        LooptapeError: Its content was not recorded.
    """
    turn = _turn(store, run, number)
    address = _ADDRESSES.get(turn.api or "")
    if address is None:
        raise UsageError(
            "no-curl",
            f"turn {turn.number} is of no API that has an address ({turn.api or 'unknown'})",
            "Copy it as JSON",
        )
    body = secrets_out(_body(store, run, turn))
    model = quote(turn.request_model or turn.model or "MODEL", safe="")
    name, usual = address.base
    lines = [f'curl -sS "${{{name}:-{usual}}}{address.path.format(model=model)}"']
    lines += [f'-H "{header}"' for header in ("content-type: application/json", *address.headers)]
    mark = _mark(body)
    lines.append(f"--data-binary @- <<'{mark}'")
    return " \\\n  ".join(lines) + f"\n{body}\n{mark}\n"


def _turn(store: Store, run: Run, number: int | None) -> Turn:
    turns = store.turns(run.id, number, number) if number is not None else store.turns(run.id, run.turns, run.turns)
    if not turns:
        raise UsageError("no-turn", f"run {run.id} has no turn {number or ''}".rstrip())
    return turns[-1]


def _body(store: Store, run: Run, turn: Turn) -> str:
    """What was sent; a request that leaned on what the server held is put together whole."""
    wire = store.wire(run.id, turn.number).request_text
    if wire and turn.mode == "full":
        return wire.replace("\r\n", "\n")
    return json.dumps(request_body(store, run, turn.number), ensure_ascii=True, indent=2)


def _mark(body: str) -> str:
    """A line that does not stand in the text: there the shell's text ends."""
    lines, mark, count = set(body.split("\n")), "JSON", 0
    while mark in lines:
        count += 1
        mark = f"JSON_{count}"
    return mark
