"""Secrets out, before anything is written: a chain of plain functions over text.

What looks like a key becomes ``[redacted:TYPE]``: stable, without number or hash. Every pattern has
literal words that must occur before its regular expression is tried, so that clean text costs
a few substring searches.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

Redact = Callable[[str], str]


def _word(start: str) -> str:
    """A pattern for ``start`` (of fixed width) at a word's beginning, which in JSON text may be the end of an escape.

    The look-behind stands after the text it guards: so the engine can search for the text itself,
    which is twenty times faster.
    """
    return start + rf"(?:(?<![A-Za-z0-9]{start})|(?<=\\[bfnrt]{start})|(?<=\\u[0-9a-fA-F]{{4}}{start}))"


_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, words, re.compile(pattern))
    for kind, words, pattern in (
        (
            "private-key",
            ("PRIVATE KEY-----",),
            # one that is cut off ends with its JSON string
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?:(?s:.*?)-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----|(?s:\\.|[^\"\\])*)",
        ),
        ("anthropic-key", ("sk-ant-",), _word("sk-ant-") + r"[A-Za-z0-9_\-]{8,}"),
        ("openrouter-key", ("sk-or-",), _word("sk-or-") + r"[A-Za-z0-9_\-]{16,}"),
        (
            "openai-key",
            ("sk-",),
            _word("sk-") + r"(?!ant-|or-)(?:proj-|svcacct-|admin-|live-|test-)?[A-Za-z0-9_\-]{20,}",
        ),
        ("stripe-key", ("k_live_", "k_test_"), _word("[rsp]k_(?:live|test)_") + r"[A-Za-z0-9]{16,}"),
        ("aws-key", ("AKIA", "ASIA"), _word("A(?:KI|SI)A") + r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("google-key", ("AIza",), _word("AIza") + r"[A-Za-z0-9_\-]{35}"),
        ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _word("gh[pousr]_") + r"[A-Za-z0-9]{30,}"),
        ("github-token", ("github_pat_",), _word("github_pat_") + r"[A-Za-z0-9_]{40,}"),
        ("gitlab-token", ("glpat-",), _word("glpat-") + r"[A-Za-z0-9_\-]{20,}"),
        ("slack-token", ("xox", "xapp-"), _word("x(?:ox[abeoprs]|app)-") + r"[A-Za-z0-9\-]{10,}"),
        ("npm-token", ("npm_",), _word("npm_") + r"[A-Za-z0-9]{36}"),
        ("pypi-token", ("pypi-Ag",), _word("pypi-Ag") + r"[A-Za-z0-9_\-]{50,}"),
        ("huggingface-token", ("hf_",), _word("hf_") + r"[A-Za-z0-9]{30,}"),
        ("jwt", ("eyJ",), _word("eyJ") + r"[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
        ("bearer-token", ("earer ",), r"earer (?<=[Bb]earer )[A-Za-z0-9_\-\.=+/~]{16,}"),
        ("url-password", ("://",), r"://[^\s/:@\"'\\\[\]]{1,64}:[^\s/@\"'\\\[\]]{1,256}(?=@)"),
    )
)

# what a pattern names for the sake of speed and the text keeps
_KEPT = {"bearer-token": "earer ", "url-password": "://"}

_marks = {kind: f"{_KEPT.get(kind, '')}[redacted:{kind}]" for kind, _, _ in _PATTERNS}
_QUOTE = re.compile(r'(?<!\\)"')
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{16,}")

_known: tuple[str, ...] = ()  # replaced, never changed: other threads may be going through it
_added: list[Redact] = []
_MAX_KNOWN = 200
_lock = threading.Lock()


def redact(text: str) -> str:
    """The text without what looks like a secret; the same object when nothing was found.

    Works on plain and on JSON text (no placeholder needs escaping). The caller's own functions,
    given through `configure`, run after the built-in patterns; one that raises costs the whole
    text, so that nothing it should have removed is written.
    """
    for secret in _known:
        if secret in text:
            text = text.replace(secret, "[redacted:api-key]")
    for kind, words, pattern in _PATTERNS:
        for word in words:
            if word in text:
                text = pattern.sub(_private if kind == "private-key" else _marks[kind], text)
                break
    for function in _added:
        try:
            result = function(text)
        except Exception:  # the user's function failed: better to lose the text than to leak it
            return "[redacted:failed]"
        text = result if isinstance(result, str) else "[redacted:failed]"
    return text


def _private(match: re.Match[str]) -> str:
    """A private key's placeholder. Where it is written in several strings (a line each) those stay strings."""
    mark = _marks["private-key"]
    return _BASE64.sub(mark, match[0]) if _QUOTE.search(match[0]) else mark


def scrub(data: bytes) -> bytes:
    """Finished records without the secrets that are known: what no function before has looked at."""
    for secret in _known:
        if (found := secret.encode()) in data:
            data = data.replace(found, b"[redacted:api-key]")
    return data


def remember(secret: str) -> None:
    """Removes this exact text wherever it turns up from now on (the client's own key, in this process).

    Given as a header has it, with or without its scheme. The one not used for the longest goes beyond 200.
    """
    global _known
    words = secret.split()
    if not words or words[0].startswith("AWS4-"):  # a signature: another one each time, and no secret
        return
    secret = words[-1]
    if len(secret) < 12 or not secret.isascii() or (secret in _known[:1]):
        return
    with _lock:
        _known = (secret, *(s for s in _known if s != secret))[:_MAX_KNOWN]


def add(functions: list[Redact]) -> None:
    """Appends the user's own functions ``str -> str`` to the chain."""
    _added.extend(functions)


def forget() -> None:
    """Back to the built-in patterns (tests)."""
    global _known
    _known = ()
    _added.clear()
