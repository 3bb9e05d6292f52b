"""The form of a tape that is kept beside tests: an unchanged run recorded again changes its first line only.

Times, span ids, places and versions are moved out of the records into the header, run ids and the provider's random
ids become numbers, a stream's pieces are its events, without times. `settled` makes the form, `restored` undoes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .canonical import canonical, digest
from .tape import Record, header
from .version import __version__

FORM = "ci"
_MOVED = {
    "run_start": ("at", "project", "session", "versions", "git_commit"),
    "turn_start": (
        "at", "caller", "url", "trace_id", "span_id", "parent_span_id", "chat_trace_id", "chat_span_id",
    ),
    "turn_end": ("at", "first_chunk_at", "request_id"),
    "chunk": (),
}  # fmt: skip
_OTHERS = ("at",)
_ATTEMPT = ("wait_ms", "started_at", "ended_at", "request_id", "headers")
_STAY = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")
_HASHES = ("system", "tools", "params", "response", "message")
_ID = re.compile(r'"(?:id|call_id|item_id|response_id|tool_use_id|tool_call_id)"\s*:\s*"([A-Za-z0-9_-]{12,80})"')
_PREFIX = re.compile(r"([A-Za-z]{1,16}[_-])[A-Za-z0-9_-]*\d")
_CREATED = re.compile(r'("(?:created|created_at|completed_at)"\s*:\s*)\d{9,11}(?:\.\d+)?')
_PING = re.compile(r"^(?:event: ping\n[^\n]*\n|:[^\n]*\n)\n", re.MULTILINE)


def settled(records: Iterable[Record], name: str) -> Iterator[Record]:
    """Exported records in the form that is kept beside tests.

    Args:
        records: One or more runs, each whole (`store.export.records_of`, one after the other).
        name: What the recording is called. Run ids are made of it, so that they are the same next time.
    """
    blobs, runs = _by_run(records)
    ordered = [record for run in _in_order(runs) for record in run]
    ids = _Ids(blobs, ordered)
    names = {run: digest(f"{name}\0{at}")[:16] for at, run in enumerate(_named(ordered))}
    body = [_renamed(record, names, ids) for record in _whole_chunks(ordered)]
    texts = {key: ids.in_text(text, answer=key in ids.answers) for key, text in blobs.items()}
    moved = [_move(record) for record in body]
    started = min((at for r in ordered if (at := _time(r)) is not None), default=None)
    begun = {"form": FORM, "name": name, "looptape": __version__, "started_at": started}
    yield header(**begun, runs={new: old for old, new in names.items()}, moved=moved)
    sent: set[str] = set()
    for record in body:
        for key in _references(record):
            if key not in sent and key in texts:
                sent.add(key)
                yield {"kind": "blob", "hash": digest(texts[key]), "text": texts[key]}
        yield _rehashed(record, texts)


def restored(numbered: Iterable[tuple[int, Record]], *, ids: bool = False) -> Iterator[tuple[int, Record]]:
    """The records of any tape; of one in this form with what the header holds back in its place.

    A tape of this form that was edited so that header and records no longer fit stays as it is: without times, in the
    order in which it is written.

    Args:
        numbered: Line numbers and records.
        ids: The original run ids too; otherwise they stay those of the form.
    """
    waiting: list[tuple[int, Record]] = []
    head: Record | None = None
    for number, record in numbered:
        if record.get("kind") == "header":
            yield from _back(head, waiting, ids)
            head, waiting = (record if record.get("form") == FORM else None), []
            yield number, record
        elif head is None:
            yield number, record
        else:
            waiting.append((number, record))
    yield from _back(head, waiting, ids)


def _back(head: Record | None, body: list[tuple[int, Record]], ids: bool) -> Iterator[tuple[int, Record]]:
    if head is None:
        return
    body = [(number, _copy(record)) for number, record in body]  # the records may be somebody's
    moved, runs = head.get("moved"), head.get("runs")
    told = [record for _, record in body if record.get("kind") != "blob"]
    fits = isinstance(moved, list) and len(moved) == len(told)
    if fits:
        for record, values in zip(told, moved or (), strict=True):
            _put_back(record, values)
    names = {str(new): str(old) for new, old in runs.items()} if ids and isinstance(runs, dict) else {}
    for number, record in body:
        yield number, _with_runs(record, names) if names else record


def _move(record: Record) -> list[Any]:
    """Takes out of a record what changes from recording to recording; gives it back as a list."""
    taken = [record.pop(key, None) for key in _MOVED.get(record["kind"], _OTHERS)]
    if record["kind"] == "turn_end":
        taken.append([_move_attempt(attempt) for attempt in record.get("attempts") or ()])
    while taken and taken[-1] in (None, []):
        taken.pop()
    return taken


def _move_attempt(attempt: dict[str, Any]) -> list[Any]:
    headers = attempt.get("headers") or {}
    taken = [attempt.pop(key, None) for key in _ATTEMPT]
    taken[-1] = {k: v for k, v in headers.items() if k.lower() not in _STAY}
    attempt["headers"] = {k: v for k, v in headers.items() if k.lower() in _STAY}
    return taken


def _put_back(record: Record, values: Any) -> None:
    if not isinstance(values, list):
        return
    keys = _MOVED.get(record["kind"], _OTHERS)
    record.update({k: v for k, v in zip(keys, values, strict=False) if v is not None})
    attempts = values[len(keys)] if record["kind"] == "turn_end" and len(values) > len(keys) else ()
    for attempt, given in zip(record.get("attempts") or (), attempts, strict=False):
        told = dict(zip(_ATTEMPT, given, strict=False))
        told["headers"] = {**(told.get("headers") or {}), **(attempt.get("headers") or {})}
        attempt.update({k: v for k, v in told.items() if v is not None})


def _by_run(records: Iterable[Record]) -> tuple[dict[str, str], dict[str, list[Record]]]:
    blobs: dict[str, str] = {}
    runs: dict[str, list[Record]] = {}
    for record in records:
        if record["kind"] == "blob" and isinstance(record.get("text"), str):
            blobs[record["hash"]] = record["text"]
        elif "run" in record:
            runs.setdefault(record["run"], []).append(_copy(record))
    return blobs, runs


def _in_order(runs: dict[str, list[Record]]) -> Iterator[list[Record]]:
    """Runs by the call that started them, then by their start; those that ran at the same time by what they ask."""
    children: dict[str | None, list[str]] = {}
    for run, records in runs.items():
        parent = records[0].get("parent") or {}
        above = parent.get("run") if parent.get("kind") == "sub-agent" and parent.get("run") in runs else None
        children.setdefault(above, []).append(run)
    order: Callable[[str], Any] = lambda run: (_place(runs, run), _times(runs[run]))  # noqa: E731
    waiting = _parted(sorted(children.get(None, []), key=order), runs)
    while waiting:
        run = waiting.pop(0)
        yield runs[run]
        waiting = _parted(sorted(children.get(run, []), key=order), runs) + waiting


def _parted(siblings: list[str], runs: dict[str, list[Record]]) -> list[str]:
    """Siblings in order of their start, but those of one call that overlap by what they ask: their race tells nothing."""
    groups: list[list[str]] = []
    end = 0
    for run in siblings:
        start, stop = _times(runs[run])
        same = bool(groups) and _place(runs, groups[-1][0]) == _place(runs, run)
        if same and start < end:
            groups[-1].append(run)
            end = max(end, stop)
        else:
            groups.append([run])
            end = stop
    return [run for group in groups for run in sorted(group, key=lambda r: _asks(runs[r]))]


def _place(runs: dict[str, list[Record]], run: str) -> tuple[int, int]:
    """Turn and position of the call that started a run."""
    parent = runs[run][0].get("parent") or {}
    turn, call = parent.get("turn") or 0, parent.get("call")
    above = runs.get(str(parent.get("run")), [])
    ends = [r for r in above if r["kind"] == "turn_end" and r.get("turn") == turn]
    listed = [c.get("id") for c in (ends[-1].get("calls") or ())] if ends else []
    return turn, listed.index(call) if call in listed else -1


def _asks(records: list[Record]) -> tuple[Any, ...]:
    first = next((r for r in records if r["kind"] == "turn_start"), {})
    return str(records[0].get("name")), canonical([first.get(k) for k in ("append", "system", "params")])


def _times(records: list[Record]) -> tuple[int, int]:
    known = [at for r in records if (at := _time(r)) is not None]
    return (min(known), max(known)) if known else (0, 0)


def _time(record: Record) -> int | None:
    at = record.get("at")
    return at if isinstance(at, int) else None


def _named(records: Iterable[Record]) -> list[str]:
    """Runs in order, then those that are only named as somebody's parent."""
    own = [r["run"] for r in records]
    parents = [p["run"] for r in records if isinstance(p := r.get("parent"), dict) and isinstance(p.get("run"), str)]
    return list(dict.fromkeys([*own, *parents]))


def _whole_chunks(records: list[Record]) -> Iterator[Record]:
    """The chunks of an attempt as one record, a part an event: how a network cut a stream tells nothing of the run."""
    held: Record | None = None
    for record in records:
        if record["kind"] != "chunk":
            if held is not None:
                yield _split(held)
                held = None
            yield record
            continue
        if held is not None and (held["turn"], held["attempt"]) == (record["turn"], record["attempt"]):
            held["parts"] = [*held["parts"], *record["parts"]]
            held["altered"] = bool(held.get("altered") or record.get("altered"))
            continue
        if held is not None:
            yield _split(held)
        held = record
    if held is not None:
        yield _split(held)


def _split(chunk: Record) -> Record:
    text = _PING.sub("", "".join(str(part) for _, part in chunk["parts"]).replace("\r\n", "\n"))
    pieces = re.split(r"(?<=\n\n)", text)
    return {**chunk, "seq": 0, "parts": [[0, piece] for piece in pieces if piece]}


class _Ids:
    """The ids that a provider made up, and what they are called here: `toolu_01Ab…` becomes `toolu_0001`."""

    def __init__(self, blobs: dict[str, str], records: list[Record]) -> None:
        self.answers = {r["response"] for r in records if r["kind"] == "turn_end" and r.get("response")}
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        taken = {i for text in blobs.values() for i in re.findall(r'"([A-Za-z]{1,16}[_-]\d{4})"', text)}
        for record in records:
            if record["kind"] == "turn_end":
                told = [record.get("response_id"), *(c.get("id") for c in record.get("calls") or ())]
                for found in [*told, *_ID.findall(blobs.get(record.get("response") or "", ""))]:
                    self._add(found, taken)
        longest = sorted(self._names, key=len, reverse=True)
        self._all = re.compile(r'(?<!\\)"(' + "|".join(map(re.escape, longest)) + r')"') if longest else None

    def _add(self, given: Any, taken: set[str]) -> None:
        if not isinstance(given, str) or len(given) < 12 or given in self._names:
            return
        match = _PREFIX.match(given)
        prefix = match[1] if match else "id_"
        while True:
            self._counts[prefix] = self._counts.get(prefix, 0) + 1
            name = f"{prefix}{self._counts[prefix]:04d}"
            if name not in taken:
                break
        self._names[given] = name

    def of(self, given: Any) -> Any:
        """The name of an id; anything else as it is."""
        return self._names.get(given, given) if isinstance(given, str) else given

    def in_text(self, text: str, *, answer: bool = False) -> str:
        """A JSON text with the ids that stand in it as whole strings renamed; of an answer without its time."""
        if self._all is not None:
            text = self._all.sub(lambda m: f'"{self._names[m[1]]}"', text)
        return _CREATED.sub(r"\g<1>0", text) if answer else text


def _renamed(record: Record, runs: dict[str, str], ids: _Ids) -> Record:
    done = _with_runs(record, runs)
    for key in ("call", "response_id"):
        if key in done:
            done[key] = ids.of(done[key])
    if isinstance(done.get("parent"), dict):
        done["parent"] = {**done["parent"], "call": ids.of(done["parent"].get("call"))}
    if record["kind"] == "chunk":
        done["parts"] = [[0, ids.in_text(text, answer=True)] for _, text in done["parts"]]
    if record["kind"] == "turn_end":
        done["calls"] = [{**c, "id": ids.of(c.get("id"))} for c in done.get("calls") or ()]
        done["attempts"] = [_renamed_attempt(a, ids) for a in done.get("attempts") or ()]
    return done


def _renamed_attempt(attempt: dict[str, Any], ids: _Ids) -> dict[str, Any]:
    if isinstance(attempt.get("body"), str):
        body = re.sub(r'("request_id"\s*:\s*)"[^"\\]*"', r'\g<1>"req_0000"', ids.in_text(attempt["body"]))
        return {**attempt, "body": body}
    return dict(attempt)


def _with_runs(record: Record, names: dict[str, str]) -> Record:
    done = dict(record)
    if "run" in done:
        done["run"] = names.get(done["run"], done["run"])
    if isinstance(done.get("parent"), dict):
        done["parent"] = {**done["parent"], "run": names.get(done["parent"].get("run"), done["parent"].get("run"))}
    return done


def _references(record: Record) -> list[str]:
    given = [record.get(key) for key in ("system", "tools", "params")] if record["kind"] == "turn_start" else []
    given += [*(record.get("append") or ()), record.get("response"), record.get("message")]
    return [key for key in given if isinstance(key, str)]


def _rehashed(record: Record, texts: dict[str, str]) -> Record:
    def new(key: Any) -> Any:
        return digest(texts[key]) if isinstance(key, str) and key in texts else key

    done = {**record, **{k: new(record[k]) for k in _HASHES if k in record}}
    if isinstance(record.get("append"), list):
        done["append"] = [new(key) for key in record["append"]]
    return done


def _copy(record: Record) -> Record:
    done = dict(record)
    if isinstance(done.get("attempts"), list):
        done["attempts"] = [dict(a) for a in done["attempts"]]
    return done
