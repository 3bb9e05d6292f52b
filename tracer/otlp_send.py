"""OTLP/HTTP out: posts export requests to a collector that the user named; the only file that sends recordings anywhere."""

from __future__ import annotations

import gzip
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from .errors import LooptapeError, UsageError

BATCH_BYTES = 1 << 20  # collectors refuse bodies of more than a few MB
TRIES = 4
_AGAIN = frozenset({429, 502, 503, 504})
_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_PATH = "/v1/traces"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a collector took and refused; ``said`` is its reason."""

    spans: int = 0
    rejected: int = 0
    said: str = ""


def post(endpoint: str, requests: Iterable[dict[str, Any]], timeout: float = 30.0) -> Sent:
    """Posts the requests as gzipped JSON, several in one body, in order.

    Headers come from OTEL_EXPORTER_OTLP_HEADERS (``key=value,key2=value2``, values percent-encoded). An answer of 429
    or 502 to 504 is tried again a few times. Redirects are not followed.

    Raises:
        UsageError: The endpoint is no http(s) URL, or the variable cannot be read.
        LooptapeError: The collector cannot be reached or says no; what was posted before stays there.
    """
    url, headers = target(endpoint), headers_of(os.environ)
    spans = rejected = 0
    said = ""
    for body, count in _bodies(requests):
        answer = _send(url, headers, body, timeout)
        spans += count
        refused, why = _partial(answer)
        rejected += refused
        said = said or why
    return Sent(spans, rejected, said)


def target(endpoint: str) -> str:
    """The URL to post to: a bare collector address gets ``/v1/traces``. Raises UsageError."""
    try:
        parts = urllib.parse.urlsplit(endpoint)
        parts.port  # noqa: B018 - raises when it is none
    except ValueError:
        parts = urllib.parse.SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not parts.hostname or not endpoint.isprintable() or " " in endpoint:
        raise UsageError(
            "bad-endpoint", "--endpoint is no http or https URL", "Write it like http://localhost:4318/v1/traces"
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "bad-endpoint", "--endpoint holds a user name or password", f"Put them into {_VARIABLES[0]} instead"
        )
    return urllib.parse.urlunsplit(parts._replace(path=_PATH if parts.path in ("", "/") else parts.path, fragment=""))


def headers_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Headers that the standard variables ask for. Raises UsageError, which never tells a value."""
    found: dict[str, str] = {}
    for variable in _VARIABLES:
        for pair in environment.get(variable, "").split(","):
            if not pair.strip():
                continue
            name, equals, value = pair.partition("=")
            name, value = urllib.parse.unquote(name.strip()), urllib.parse.unquote(value.strip())
            if not equals or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
                raise UsageError("bad-headers", f"{variable} cannot be read", "Write it like key=value,key2=value2")
            if not value.isprintable() or not value.isascii():
                raise UsageError("bad-headers", f"{variable}: {name} has a value that is no header", "Use plain ASCII")
            found[name] = value
    return found


def _bodies(requests: Iterable[dict[str, Any]]) -> Iterator[tuple[bytes, int]]:
    """Bodies of about a megabyte, and how many spans each holds."""
    waiting: list[str] = []
    size = count = 0
    for request in requests:
        for resource in request["resourceSpans"]:
            text = json.dumps(resource, separators=(",", ":"))
            if waiting and size + len(text) > BATCH_BYTES:
                yield _body(waiting), count
                waiting, size, count = [], 0, 0
            waiting.append(text)
            size += len(text)
            count += sum(len(scope["spans"]) for scope in resource["scopeSpans"])
    if waiting:
        yield _body(waiting), count


def _body(resources: list[str]) -> bytes:
    return gzip.compress(('{"resourceSpans":[' + ",".join(resources) + "]}").encode(), 5)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: the recordings go to the address that was named and to no other."""


def _send(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> bytes:
    opener = urllib.request.build_opener(_NoRedirect)
    given = {"Content-Type": "application/json", "Content-Encoding": "gzip", "User-Agent": "looptape", **headers}
    for attempt in range(1, TRIES + 1):
        request = urllib.request.Request(url, data=body, headers=given, method="POST")  # noqa: S310 - checked in target
        try:
            with opener.open(request, timeout=timeout) as answer:
                return bytes(answer.read(1 << 20))
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in _AGAIN or attempt == TRIES:
                    raise _refused(url, error) from None
                wait = _pause(error.headers.get("Retry-After"), attempt)
        except urllib.error.URLError as error:
            raise _unreachable(url, error.reason) from None
        except (OSError, HTTPException) as error:
            raise _unreachable(url, error) from None
        time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _pause(asked: str | None, attempt: int) -> float:
    given = float(asked) if asked and asked.isdecimal() else 0.25 * 2**attempt
    return min(given, 20.0)


def _refused(url: str, error: urllib.error.HTTPError) -> LooptapeError:
    try:
        said = " ".join(error.read(2000).decode("utf-8", "replace").split())[:200]
    except (OSError, HTTPException):
        said = ""
    cures = {
        401: f"Set {_VARIABLES[0]}",
        403: f"Set {_VARIABLES[0]}",
        404: f"Is the path right? OTLP/HTTP is usually at {_PATH}",
        405: f"Is the path right? OTLP/HTTP is usually at {_PATH}",
        413: "Export fewer turns at once (RUN:N-M)",
        415: "It must take OTLP/HTTP as JSON",
    }
    cure = "Name the address it points to" if 300 <= error.code < 400 else cures.get(error.code, "")
    what = f"{url} answered {error.code} {error.reason}".rstrip()
    return LooptapeError("collector-refused", f"{what}: {said}" if said else what, cure)


def _unreachable(url: str, reason: object) -> LooptapeError:
    said = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason) or type(reason).__name__
    return LooptapeError("collector-unreachable", f"{url} cannot be reached ({said})", "Does the collector run there?")


def _partial(answer: bytes) -> tuple[int, str]:
    """Rejected spans and the reason out of an answer; a collector's odd answer after 200 is no trouble."""
    try:
        found = json.loads(answer)["partialSuccess"]
        return int(found.get("rejectedSpans") or 0), str(found.get("errorMessage") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0, ""
