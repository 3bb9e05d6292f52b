"""Which headers and parameters of a request carry a secret: all that say so, and what looks random elsewhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from urllib.parse import parse_qsl

from .redaction import guess, remember

KEY_PARAMETERS = ("key", "api_key", "api-key", "apikey", "access_token", "token", "subscription-key", "sig")
_HARMLESS = frozenset(
    {
        "host", "connection", "user-agent", "accept", "content-type", "content-length", "content-encoding",
        "transfer-encoding", "te", "expect", "date", "origin", "referer", "cache-control", "pragma", "via", "forwarded",
        "anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access", "openai-beta",
        "openai-organization", "openai-project", "http-referer", "x-title", "traceparent", "tracestate", "baggage",
        "idempotency-key", "x-idempotency-key", "x-amz-date", "x-amz-content-sha256", "x-amz-target", "sentry-trace",
        "x-cloud-trace-context", "x-amzn-trace-id", "x-goog-user-project", "x-should-retry",
    }
)  # fmt: skip
_HARMLESS_STARTS = ("accept-", "content-", "x-stainless-", "x-b3-", "x-datadog-", "x-forwarded-", "sec-", "if-")
_TELLING = (
    "key", "token", "secret", "auth", "authorization", "cookie", "signature", "sig", "credential", "credentials",
    "password", "passwd", "pwd", "jwt", "bearer", "pat",
)  # fmt: skip
_TELLING_ENDS = ("key", "token", "secret", "auth", "password")
# what such headers carry is another one each time, or is what people group their runs by
_NAMING = frozenset({"id", "ids", "uuid", "trace", "span", "version", "timestamp", "hash", "model", "name"})
_RUN = re.compile(r"[A-Za-z0-9]{8,}")


def learn(url: str, headers: Mapping[str, str]) -> None:
    """Remembers what this request carries, so that it is removed wherever it turns up."""
    query = url.partition("?")[2].partition("#")[0]
    for name, value in parse_qsl(query) if query else ():
        if name.lower() in KEY_PARAMETERS or _says_secret(name):
            remember(value)
    for name, value in headers.items():
        kind = _kind(name.lower())
        if kind == "secret":
            _secret(name.lower(), value)
        elif kind == "unknown" and looks_random(value):
            guess(name.lower(), value.strip())


def looks_random(value: str) -> bool:
    """True for one word with letters and digits in turn, as keys have them; False for words, versions, dates, names."""
    if len(value) > 4096 or " " in value.strip() or "://" in value:
        return False
    return any(_turns(run) >= 3 for run in _RUN.findall(value))


def _turns(run: str) -> int:
    """How often letters and digits take turns; in a long run without digits: how often its case does."""
    turns = sum(a.isdigit() != b.isdigit() for a, b in pairwise(run))
    return turns if len(run) < 20 or turns else sum(a.isupper() != b.isupper() for a, b in pairwise(run)) // 3


@lru_cache(maxsize=512)
def _kind(name: str) -> str:
    """secret, harmless or unknown, by the name (in small letters) alone."""
    if name in _HARMLESS or name.startswith(_HARMLESS_STARTS):
        return "harmless"
    if _says_secret(name):
        return "secret"
    return "harmless" if not _NAMING.isdisjoint(re.split(r"[-_.]", name)) else "unknown"


def _says_secret(name: str) -> bool:
    return any(part in _TELLING or part.endswith(_TELLING_ENDS) for part in re.split(r"[-_.]", name.lower()))


def _secret(name: str, value: str) -> None:
    if name == "cookie":
        for pair in value.split(";"):
            one = pair.partition("=")[2].strip().strip('"')
            if len(one) >= 16 or looks_random(one):
                remember(one)
        return
    if value.strip().isalpha() and not name.endswith(("authorization", "api-key")):
        return  # `x-auth-provider: organization` is a word that texts may need
    remember(value)
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() == "basic":
        remember(_password(rest.strip()))


@lru_cache(maxsize=64)
def _password(encoded: str) -> str:
    """The password in a basic authorization, empty when it cannot be read."""
    try:
        return base64.b64decode(encoded).decode().partition(":")[2]
    except ValueError:
        return ""
