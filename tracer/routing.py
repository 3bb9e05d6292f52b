"""Which run does a request belong to? The run of its context; else the open run that it extends; else a new one.

"Extends" is judged by what is certain: the earlier messages stand unchanged at its head, or it names the
earlier response, or it answers calls that only that run has open.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .bodies import extends
from .live import Chain, OpenRun, PendingCall, Where, strand_given
from .providers import Provider

MAX_CHAINS = 256
MAX_OF_RUN = 16
FEW = 4
_NAMED = re.compile(rb'"(?:tool_use_id|tool_call_id|call_id|id)"\s*:\s*"([^"]{1,200})"')
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes.

    Attributes:
        run: The run, None for a new one.
        chain: The conversation it extends (or repeats), None when it begins one.
        extended: The earlier messages are known to stand unchanged at its head.
        retry: The same request again after a failure: another attempt of the same turn.
        resume: A new prompt after the run was over: a new run in the same session.
        parent: For a new run inside a call or a run: who started it.
    """

    run: OpenRun | None = None
    chain: Chain | None = None
    extended: bool = False
    retry: bool = False
    resume: OpenRun | None = None
    parent: tuple[OpenRun, PendingCall | None] | None = None


class Chains:
    """The conversations of this process that may go on; the longest unused are forgotten first."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, Chain] = OrderedDict()
        self._by_response: OrderedDict[str, Chain] = OrderedDict()
        self._bytes = 0

    def add(self, chain: Chain) -> list[Chain]:
        """Keeps a conversation as the most recent one; gives those of other runs that were forgotten for it."""
        own = chain.run.chains
        if chain in own:
            own.remove(chain)
        own.append(chain)
        if len(own) > MAX_OF_RUN:
            self._remove(own[0])
        self._open[id(chain)] = chain
        self._open.move_to_end(id(chain))
        self._bytes += chain.size - chain.counted
        chain.counted = chain.size
        forgotten = []
        while len(self._open) > 1 and (len(self._open) > MAX_CHAINS or self._bytes > MAX_BYTES):
            old = next(iter(self._open.values()))
            self._remove(old)
            if not old.run.chains:
                forgotten.append(old)
        return forgotten

    def answered(self, chain: Chain, response_id: str | None) -> None:
        """Remembers which conversation a response id stands for."""
        if response_id:
            self._by_response[response_id] = chain
            while len(self._by_response) > 4 * MAX_CHAINS:
                self._by_response.popitem(last=False)

    def drop(self, run: OpenRun) -> None:
        """Forgets the conversations of a run that is over for good."""
        for chain in list(run.chains):
            self._remove(chain)
        for name in [n for n, c in self._by_response.items() if c.run is run]:
            del self._by_response[name]

    def clear(self) -> None:
        """Forgets all (a forked child)."""
        self._open.clear()
        self._by_response.clear()
        self._bytes = 0

    def of(self, runs: Iterable[OpenRun]) -> list[Chain]:
        """The conversations of these runs, the most recent first."""
        return sorted((c for r in runs for c in r.chains), key=lambda c: -c.touched)

    def all(self) -> list[Chain]:
        """Every conversation, the most recent first."""
        return list(reversed(self._open.values()))

    def continued_by(self, previous: str | None) -> Chain | None:
        """The conversation whose answer has this response id."""
        return self._by_response.get(previous) if previous else None

    def _remove(self, chain: Chain) -> None:
        chain.run.chains.remove(chain)
        if self._open.pop(id(chain), None) is not None:
            self._bytes -= chain.counted
        chain.body = None  # a response id may still lead to it; for that its hashes are enough


def find(chains: Chains, here: Where | None, provider: Provider, raw: bytes, retries: int = 0) -> Route:
    """Decides where a request goes.

    Args:
        here: The place in the code's context.
        retries: How often the SDK says that it has sent this request before.
    """
    candidates = chains.all() if here is None else _reachable(chains, here)
    candidates = [c for c in candidates if c.api == provider.API]
    failed = _retried(candidates, raw, retries)
    if failed is not None:
        return Route(run=failed.run, chain=failed, retry=True)
    found = _by_content(chains, candidates, provider, raw)
    if here is None:
        return found or Route()
    if here.call is not None:
        return found or Route(parent=(here.run, here.call))
    if found and not (found.chain and found.chain.run is here.run and here.run.in_flight):
        return found
    return _inside(here.run, provider, raw)


def _reachable(chains: Chains, here: Where) -> list[Chain]:
    """The conversations that a request made here can go on with: of the running call's children, or of the run's own."""
    if here.call is not None:
        return chains.of(here.run.children.get(here.call.id, []))
    return chains.of([here.run, *here.run.children.get("", [])])


def _inside(run: OpenRun, provider: Provider, raw: bytes) -> Route:
    """A request that extends no conversation of the `run()` block it is made in."""
    if run.in_flight:
        return Route(parent=(run, None))
    waiting = [c for c in run.pending.values() if not c.measured]
    if waiting and run.chain is not None:
        return Route(parent=(run, waiting[0] if len(waiting) == 1 else None))
    if run.chain is not None and run.chain.api == provider.API and not _same_tools(run.chain, provider, raw):
        return Route(parent=(run, None))
    return Route(run=run)


def _by_content(chains: Chains, same_api: list[Chain], provider: Provider, raw: bytes) -> Route | None:
    extended = [c for c in same_api if c.body is not None and c.body.ends and extends(raw, c.body)]
    chain = _best(extended, raw) or _by_calls(same_api, raw) or _by_previous(chains, same_api, provider, raw)
    if chain is None:
        return None
    if chain.run.ended and not chain.run.explicit and _has_new_prompt(chain, provider, raw):
        return Route(chain=chain, resume=chain.run)
    return Route(run=chain.run, chain=chain, extended=bool(extended))


def _retried(candidates: list[Chain], raw: bytes, retries: int) -> Chain | None:
    """The conversation whose failed request this is again: what this thread or task sent itself before what others did."""
    found = [c for c in candidates if _is_retry(c, raw, retries)]
    own = strand()
    return next((c for c in found if c.run.last is not None and c.run.last.strand == own), found[0] if found else None)


def _is_retry(chain: Chain, raw: bytes, retries: int) -> bool:
    """The identical body again, after the last turn failed in a way that is tried again, from the same thread or task.

    Others may send the same body at the same time: theirs are calls of their own. Where the thread has
    changed, the SDK's count of retries must fit.
    """
    turn = chain.run.last
    if turn is None or turn.number != chain.turn or turn.in_flight or turn.status not in ("error", "cancelled"):
        return False
    if chain.body is None or chain.body.whole != raw:
        return False
    if turn.strand == strand():
        return retries > 0 or turn.may_be_retried
    return retries > 0 and retries == len(turn.attempts)


def strand() -> tuple[int, int]:
    """What runs here: the thread and the asyncio task."""
    given = strand_given.get()
    if given is not None:
        return given
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        task = None
    return threading.get_ident(), id(task) if task is not None else 0


def _best(chains: list[Chain], raw: bytes) -> Chain | None:
    """Of several conversations that a request could extend, the one whose answer it carries."""
    if len(chains) < 2:
        return chains[0] if chains else None
    return max(chains, key=lambda c: (_carries_answer(c, raw), c.touched))


def _carries_answer(chain: Chain, raw: bytes) -> bool:
    if chain.answer is None or chain.body is None:
        return False
    rest = raw[chain.body.end :]
    ids = [c.id for c in chain.answer.calls if c.id]
    if ids:
        return all(i.encode() in rest for i in ids)
    text = (chain.answer.text or "").strip()
    return bool(text) and json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace") in rest


def _by_calls(chains: list[Chain], raw: bytes) -> Chain | None:
    """The one conversation whose open calls this request answers (its history may have been rewritten)."""
    waiting = [(c, next(reversed(c.run.pending))) for c in chains if c.run.pending]
    if len(waiting) > FEW:
        named = set(_NAMED.findall(raw))  # one look at a long body instead of one for each conversation
        found = [c for c, call in waiting if call.encode() in named]
    else:
        found = [c for c, call in waiting if f'"{call}"'.encode() in raw]
    return max(found, key=lambda c: c.touched) if found else None


def _by_previous(chains: Chains, allowed: list[Chain], provider: Provider, raw: bytes) -> Chain | None:
    if b'"previous_' not in raw:
        return None
    body = _decode(raw)
    found = chains.continued_by(provider.request(body).previous) if body else None
    return found if found is not None and any(found is c for c in allowed) else None


def _has_new_prompt(chain: Chain, provider: Provider, raw: bytes) -> bool:
    body = _decode(raw)
    messages = body.get(provider.LIST_KEY) if body else None
    if isinstance(messages, str):
        return True
    if not isinstance(messages, list):
        return False
    known = len(chain.hashes) if body and provider.request(body).mode == "full" else 0
    return any(provider.is_prompt(m) for m in messages[known:])


def _same_tools(chain: Chain, provider: Provider, raw: bytes) -> bool:
    """True when a request offers the same tools as the conversation's last one."""
    body = chain.body
    if body is not None and body.ends and raw.endswith(body.tail) and raw.startswith(body.upto(body.head)):
        return True
    value = _decode(raw)
    return value is not None and json.dumps(provider.request(value).tools, sort_keys=True) == chain.tools_key


def _decode(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
