"""Secrets out, before anything is written: a chain of plain functions over text.

What looks like a key becomes ``[redacted:TYPE]``: stable, without number or hash. Every pattern has
literal words that must occur before its regular expression is tried, so that clean text costs
a few substring searches.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Redact = Callable[[str], str]

# at a word's beginning, which in JSON text may be the end of an escape such as \n
_B = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, words, re.compile(pattern))
    for kind, words, pattern in (
        (
            "private-key",
            ("PRIVATE KEY-----",),
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?s:.*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----|\Z)",
        ),
        ("anthropic-key", ("sk-ant-",), _B + r"sk-ant-[A-Za-z0-9_\-]{8,}"),
        ("openrouter-key", ("sk-or-",), _B + r"sk-or-[A-Za-z0-9_\-]{16,}"),
        ("openai-key", ("sk-",), _B + r"sk-(?!ant-|or-)(?:proj-|svcacct-|admin-|live-|test-)?[A-Za-z0-9_\-]{20,}"),
        ("stripe-key", ("k_live_", "k_test_"), _B + r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("aws-key", ("AKIA", "ASIA"), _B + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("google-key", ("AIza",), _B + r"AIza[A-Za-z0-9_\-]{35}"),
        (
            "github-token",
            ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
            _B + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})",
        ),
        ("gitlab-token", ("glpat-",), _B + r"glpat-[A-Za-z0-9_\-]{20,}"),
        ("slack-token", ("xox", "xapp-"), _B + r"(?:xox[abeoprs]-|xapp-)[A-Za-z0-9\-]{10,}"),
        ("npm-token", ("npm_",), _B + r"npm_[A-Za-z0-9]{36}"),
        ("pypi-token", ("pypi-Ag",), _B + r"pypi-Ag[A-Za-z0-9_\-]{50,}"),
        ("huggingface-token", ("hf_",), _B + r"hf_[A-Za-z0-9]{30,}"),
        ("jwt", ("eyJ",), _B + r"eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
        ("bearer-token", ("earer ",), r"(?<=[Bb]earer )[A-Za-z0-9_\-\.=+/~]{16,}"),
        ("url-password", ("://",), r"(?<=://)[^\s/:@\"'\\\[\]]{1,64}:[^\s/@\"'\\\[\]]{1,256}(?=@)"),
    )
)

_known: dict[str, None] = {}
_added: list[Redact] = []
_MAX_KNOWN = 200


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
                text = pattern.sub(f"[redacted:{kind}]", text)
                break
    for function in _added:
        try:
            result = function(text)
        except Exception:  # the user's function failed: better to lose the text than to leak it
            return "[redacted:failed]"
        text = result if isinstance(result, str) else "[redacted:failed]"
    return text


def remember(secret: str) -> None:
    """Removes this exact text wherever it turns up from now on (the client's own key, in this process)."""
    secret = secret.removeprefix("Bearer ").strip()
    if len(secret) >= 12 and secret not in _known and len(_known) < _MAX_KNOWN:
        _known[secret] = None


def add(functions: list[Redact]) -> None:
    """Appends the user's own functions ``str -> str`` to the chain."""
    _added.extend(functions)


def forget() -> None:
    """Back to the built-in patterns (tests)."""
    _known.clear()
    _added.clear()
