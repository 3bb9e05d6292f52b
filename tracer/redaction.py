"""Secrets out, before anything is written: a chain of plain functions over text.

What looks like a key becomes ``[redacted:TYPE]``: stable, without number or hash. Every pattern has
literal words that must occur before its regular expression is tried, so that clean text costs
a few substring searches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Set

from .fork_lock import ForkLock

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


def shortest(words: Set[str]) -> list[str]:
    """The words that hold none of the others, sorted: a text that holds any word holds one of them."""
    return sorted(w for w in words if not any(other in w for other in words - {w}))


# what finished lines must hold before their fields are looked at: fewer, shorter and rarer than the patterns' words
_SHORTER = {"aws-key": ("IA",), "url-password": ("@",)}
_ALIKE = tuple(re.compile(p).search for p in (rb"gh[pousr]_", rb"k_(?:live|test)_"))
_WORDS = {
    w for kind, words, _ in _PATTERNS for w in _SHORTER.get(kind, words) if not any(a(w.encode()) for a in _ALIKE)
}
_HINTS = tuple(w.encode() for w in shortest(_WORDS))


def _by_piece(words: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Words by a rarer piece that some of them share: in a text without the piece none of them is looked for."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(next((p for p in "-_A" if p in word), word), []).append(word)
    return tuple((piece, tuple(found)) for piece, found in groups.items())


_GROUPS = _by_piece(shortest({w for _, words, _ in _PATTERNS for w in words}))

_secrets: dict[str, tuple[str, ...]] = {}  # every secret with the forms it is written in, the latest used last
_guesses: dict[str, str] = {}  # what only looks like one, with the header that carried it
# both replaced, never changed: other threads may be going through them
_known: tuple[str, ...] = ()
_known_hints: tuple[bytes, ...] = ()
_any_with_blanks = False
_added: list[Redact] = []
_MAX_KNOWN = 200
_MAX_GUESSES = 16
_MAX_OF_ONE_HEADER = 3
_SURE = 12
_SHORTEST = 6
_SCHEMES = frozenset({"bearer", "basic", "token", "apikey", "api-key", "key", "digest"})
_lock = ForkLock()


def redact(text: str) -> str:
    """The text without what looks like a secret; the same object when nothing was found.

    Works on plain and on JSON text (no placeholder needs escaping). The caller's own functions,
    given through `configure`, run after the built-in patterns; one that raises costs the whole
    text, so that nothing it should have removed is written.
    """
    text = secrets_out(text)
    for function in _added:
        try:
            result = function(text)
        except Exception:  # the user's function failed: better to lose the text than to leak it
            return "[redacted:failed]"
        text = result if isinstance(result, str) else "[redacted:failed]"
    return text


def secrets_out(text: str) -> str:
    """`redact` without the caller's own functions: for ids and names, which must stay apart."""
    for secret in _known:
        if secret in text:
            text = text.replace(secret, "[redacted:api-key]")
    return _patterned(text) if _has_word(text) else text


def _has_word(text: str) -> bool:
    """True for a text that some pattern may change."""
    for piece, words in _GROUPS:
        if piece in text:
            for word in words:
                if word in text:
                    return True
    return False


def _patterned(text: str) -> str:
    for kind, words, pattern in _PATTERNS:
        for word in words:
            if word in text:
                text = pattern.sub(_private if kind == "private-key" else _marks[kind], text)
                break
    return text


def suspicious(lines: bytes) -> bool:
    """False when no field of these finished records can hold a secret: a few searches, and most are done with."""
    for hint in _HINTS:
        if hint in lines:
            return True
    return any(alike(lines) for alike in _ALIKE) or holds_known(lines)


def holds_known(lines: bytes) -> bool:
    """True when finished records hold a secret that is known."""
    return any(hint in lines for hint in _known_hints)


def wants_whole_texts() -> bool:
    """True when a secret may have blanks in it: then no place inside a text is safe to cut it at."""
    return bool(_added) or _any_with_blanks


def has_own_functions() -> bool:
    """True when the caller gave functions of their own."""
    return bool(_added)


def words() -> tuple[str, ...]:
    """Literal words: every text that a built-in pattern changes holds at least one (``://`` for passwords in URLs)."""
    return tuple(dict.fromkeys(word for _, those, _ in _PATTERNS for word in those))


def known() -> tuple[str, ...]:
    """The exact texts that are removed as well, in every form they are written in; another tuple when they change."""
    return _known


def _private(match: re.Match[str]) -> str:
    """A private key's placeholder. Where it is written in several strings (a line each) those stay strings."""
    mark = _marks["private-key"]
    return _BASE64.sub(mark, match[0]) if _QUOTE.search(match[0]) else mark


def remember(secret: str) -> None:
    """Removes this exact text wherever it turns up from now on (the client's own key, in this process).

    Given as a header has it, with or without its scheme. What is short must hold letters and digits:
    a placeholder ("ollama", "none") is a word that texts may need. The one not used for the longest goes beyond 200.
    """
    bare = _bare(secret)
    if bare is not None:
        _learn(bare)


def guess(header: str, value: str) -> None:
    """The same for a value that only looks like a secret: few of them, and few of one header (it may change each time)."""
    with _lock:
        if value in _guesses or value in _secrets:
            return
        _guesses[value] = header
        of_it = [v for v, h in _guesses.items() if h == header]
        for old in (of_it[:-_MAX_OF_ONE_HEADER], list(_guesses)[:-_MAX_GUESSES]):
            for v in old:
                _guesses.pop(v, None)
        _renew()


def _bare(value: str) -> str | None:
    """The secret in a header's value; None when it is none, or one that texts may hold for other reasons."""
    words = value.split()
    if not words or words[0].startswith("AWS4-"):  # a signature: another one each time, and no secret
        return None
    if len(words) > 1 and words[0].lower() in _SCHEMES:
        value = value.strip()[len(words[0]) :]
    elif len(words) == 2 and len(words[1]) >= _SURE:
        value = words[1]
    secret = value.strip()
    mixed = any(c.isdigit() for c in secret) and any(c.isalpha() for c in secret)
    return secret if len(secret) >= _SURE or (len(secret) >= _SHORTEST and mixed) else None


def _learn(secret: str) -> None:
    with _lock:
        forms = _secrets.pop(secret, None)
        _secrets[secret] = forms or _forms(secret)
        if forms is None:
            while len(_secrets) > _MAX_KNOWN:
                del _secrets[next(iter(_secrets))]
            _renew()


def _renew() -> None:
    """What to look for, the longest first: one secret may be the beginning of another."""
    global _known, _known_hints, _any_with_blanks
    forms = {form for all_of_it in _secrets.values() for form in all_of_it} | set(_guesses)
    _known = tuple(sorted(forms, key=len, reverse=True))
    _known_hints = tuple(json.dumps(form)[1:-1].encode() for form in _known)
    _any_with_blanks = any(" " in secret or "\t" in secret for secret in _secrets)


def _forms(secret: str) -> tuple[str, ...]:
    """A secret as plain text, JSON text and JSON text in JSON text have it; most have one form."""
    forms = {secret, secret.replace("/", "\\/")}
    for _ in range(2):
        forms |= {json.dumps(f, ensure_ascii=ascii_only)[1:-1] for f in forms for ascii_only in (True, False)}
    return tuple(forms)


def add(functions: list[Redact]) -> None:
    """Appends the user's own functions ``str -> str`` to the chain."""
    _added.extend(functions)


def forget() -> None:
    """Back to the built-in patterns (tests)."""
    with _lock:
        _secrets.clear()
        _guesses.clear()
        _renew()
    _added.clear()
