"""VCR cassettes (vcrpy, pytest-recording, pydantic-ai, Ruby's VCR) as plain interactions, whatever their dialect."""

from __future__ import annotations

import base64
import binascii
import importlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from ...errors import LooptapeError
from ...providers.answer import mapping
from ..context import Source
from ..document import document
from ..report import Notes

# PyYAML builds objects at some 5 MB/s and fifty times the text's size: a longer cassette is a mistake
MAX_YAML_BYTES = 64 << 20
MAX_BODY_BYTES = 64 << 20
# aliases let a few bytes of YAML stand for any number of values
MAX_VALUES = 2_000_000
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Interaction:
    """A request and its response.

    Attributes:
        request, response: Decoded JSON where the body is JSON, else text or bytes; None for an empty body.
        headers: Of the response, names in lower case; the first value of each.
        at: When the response was recorded (its Date header, Ruby's recorded_at), µs.
        trouble: Why a body could not be read.
    """

    number: int
    method: str
    url: str
    request: Any
    response: Any
    status: int | None
    headers: Mapping[str, str]
    at: int | None
    trouble: str | None = None

    @property
    def path(self) -> str:
        """Path of the URL."""
        try:
            return urlsplit(self.url).path
        except ValueError:
            return ""


def interactions(source: Source, notes: Notes) -> Iterator[Interaction]:
    """The interactions of a cassette; odd ones are noted.

    Raises:
        LooptapeError: PyYAML is missing, or a limit is hit; both say what to do.
    """
    whole = _loaded(source, notes)
    listed = mapping(whole).get("interactions", mapping(whole).get("http_interactions"))
    if not isinstance(listed, list):
        if whole is not None:
            notes.skip(1, "no list of interactions")
        return
    for number, value in enumerate(listed, 1):
        request, response = mapping(mapping(value).get("request")), mapping(mapping(value).get("response"))
        if not request:
            notes.skip(1, f"interaction {number} has no request")
            continue
        notes.counts["objects"] += 1
        yield _interaction(number, mapping(value), request, response)


def _interaction(
    number: int, value: Mapping[str, Any], request: Mapping[str, Any], response: Mapping[str, Any]
) -> Interaction:
    trouble: list[str] = []
    headers = _headers(response.get("headers"))
    sent = _body(request, _headers(request.get("headers")), trouble)
    came = _body(response, headers, trouble)
    status = response.get("status", response.get("status_code"))
    code = mapping(status).get("code", status)
    return Interaction(
        number,
        str(request.get("method", "")).upper(),
        str(request.get("uri", request.get("url", ""))),
        sent,
        came,
        code if isinstance(code, int) and not isinstance(code, bool) else None,
        headers,
        _date(headers.get("date") or value.get("recorded_at")),
        "; ".join(trouble) or None,
    )


def _loaded(source: Source, notes: Notes) -> Any:
    """The document without what JSON cannot hold; None (noted) when it cannot be read."""
    if source.head().lstrip()[:1] == b"{":
        return document(source, notes)
    data = source.whole(MAX_YAML_BYTES)
    notes.counts["lines"] += data.count(b"\n") + 1
    yaml = _yaml(source.label)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(data, Loader=loader)
        return _Plain(source.label).of(value, 0)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        notes.skip(mark.line + 1 if mark else 1, f"not YAML ({getattr(error, 'problem', None) or str(error)[:120]})")
    except RecursionError:
        notes.skip(1, "nested too deeply")
    except (ValueError, OverflowError) as error:  # a date that there is not
        notes.skip(1, f"not YAML ({str(error)[:120]})")
    return None


def _yaml(label: str) -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise LooptapeError(
            "no-yaml", f"{label}: a YAML cassette needs PyYAML", "Install it with: pip install 'looptape[vcr]'"
        ) from None


class _Plain:
    """YAML's values as JSON's and bytes, with a limit on how much aliases may unfold to."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._left = MAX_VALUES

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            limit = f"{_MAX_DEPTH} levels" if depth > _MAX_DEPTH else f"{MAX_VALUES:,} values"
            raise LooptapeError(
                "too-large",
                f"{self._label}: the cassette unfolds to more than {limit}",
                "Nothing of it was imported; if it is no attack, store it as JSON",
            )
        if isinstance(value, dict):
            return {str(k): self.of(v, depth + 1) for k, v in value.items()}
        if isinstance(value, (list, tuple, set)):
            return [self.of(v, depth + 1) for v in value]
        if value is None or isinstance(value, (str, bytes, bool, int)):
            return value
        if isinstance(value, float):
            return value if value == value and abs(value) != float("inf") else str(value)
        return str(value)


def _headers(given: Any) -> dict[str, str]:
    found = {}
    for name, value in mapping(given).items():
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, bytes):
            first = first.decode("latin-1")
        if isinstance(first, (str, int)):
            found[name.lower()] = str(first)
    return found


def _body(part: Mapping[str, Any], headers: Mapping[str, str], trouble: list[str]) -> Any:
    """A body in any of the ways in which cassettes keep it."""
    if part.get("parsed_body") is not None:
        return part["parsed_body"]
    body = part.get("body", part.get("content"))
    if isinstance(body, dict):
        packed = body.get("base64_string")
        try:
            body = base64.b64decode(packed) if isinstance(packed, (str, bytes)) else body.get("string")
        except (binascii.Error, ValueError) as error:
            trouble.append(f"not base64 ({error})")
            return None
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    if not isinstance(body, bytes) or not body:
        return body or None
    return _decoded(_unpacked(body, headers, trouble))


def _unpacked(body: bytes, headers: Mapping[str, str], trouble: list[str]) -> bytes:
    """Without its content coding; many recorders decode the body and leave the header."""
    coding = headers.get("content-encoding", "")
    if body.startswith(b"\x1f\x8b"):
        window = 31
    elif coding == "deflate" and not body.lstrip().startswith((b"{", b"[", b"event", b"data")):
        window = 15
    else:
        if coding in ("br", "zstd") and not body.isascii():
            trouble.append(f"a body in the coding {coding}, which is not read")
        return body
    unpacker = zlib.decompressobj(window)
    try:
        whole = unpacker.decompress(body, MAX_BODY_BYTES)
    except zlib.error as error:
        trouble.append(f"a damaged body ({error})")
        return b""
    if unpacker.unconsumed_tail:
        trouble.append(f"a body that unpacks to more than {MAX_BODY_BYTES >> 20} MB")
        return b""
    if not unpacker.eof:
        trouble.append("a body that is cut")
    return whole


def _decoded(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, parse_constant=lambda name: name)
        except (ValueError, RecursionError):
            pass
    return text


def _date(value: Any) -> int | None:
    try:
        return round(parsedate_to_datetime(str(value)).timestamp() * 1_000_000) if value else None
    except (ValueError, TypeError, OverflowError):
        return None
