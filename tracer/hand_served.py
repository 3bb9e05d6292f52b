"""Model calls that a loop records by hand, while somebody stands in for the model: the recorded answer instead."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from typing import Any

from .errors import LooptapeStop
from .exchange import REPLAYED
from .live import OpenTurn
from .providers import manual
from .served import NotServed, stopping
from .substitute import Asked, Substitute


class NotTaken(LooptapeStop):
    """The program asked its model itself although the recorded answer was there."""

    exit_code = 1

    def __init__(self, number: int) -> None:
        super().__init__(
            f"looptape: replay stopped: the program made the model call of turn {number} itself. A turn that is recorded by "
            "hand is answered with: answer = turn.served or my_model(messages)"
        )


def answer(standing_in: Substitute, turn: OpenTurn, raw: bytes) -> Mapping[str, Any] | BaseException | None:
    """The recorded answer of a turn, as `turn.response` was told it; the exception that its model call ended with.

    None: the model is to be asked for real.

    Raises:
        LooptapeStop: The request is not in the recording.
    """
    said = turn.wording
    if said is None:
        raise NotServed(f"looptape: turn {turn.number} cannot be replayed, because recording could not read it")
    asked = Asked(
        provider=manual, url="", headers={}, raw=raw, run=turn.run, turn=turn, attempt=1, hashes=said.hashes,
        fresh=said.fresh, parts=said.parts, model=said.model, stream=False, mode=said.mode, part_hashes=said.part_hashes,
    )  # fmt: skip
    reply = stopping(standing_in.answer, asked)
    turn.served = reply is not None
    if reply is None:
        return None
    turn.flags.append(REPLAYED)
    if reply.hold is not None:
        reply.hold.release()  # nobody tells when it is taken: it holds nobody up
    if reply.error is not None:
        known = getattr(builtins, reply.error.kind, None)
        if not (isinstance(known, type) and issubclass(known, Exception)):
            known = type(reply.error.kind, (RuntimeError,), {})
        error: BaseException = known(reply.error.message)
        return error
    found: dict[str, Any] = json.loads(b"".join(reply.chunks))
    return found


__all__ = ["NotTaken", "answer"]
