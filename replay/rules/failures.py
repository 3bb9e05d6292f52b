"""What kind of failure a text tells: passing by itself, lasting, of the work itself, or somebody's no."""

from __future__ import annotations

import re

TRANSIENT, PERMANENT, SEMANTIC, DENIED, CANCELLED = "transient", "permanent", "semantic", "denied", "cancelled"
CLASSES = (TRANSIENT, PERMANENT, SEMANTIC, DENIED, CANCELLED)

TRANSIENT_STATUSES = frozenset({408, 425, 429, 499, 500, 502, 503, 504, 520, 522, 524, 529})
"""HTTP answers that say "not now": the same request may pass later."""
RATE_STATUSES = frozenset({429, 529})
"""HTTP answers that say "slower"."""

_READ = 4_000
_TRANSIENT = re.compile(
    r"\b(?:HTTP|status|code|error)\W{0,3}(?:408|429|500|502|503|504|529)\b|rate.?limit|too many requests|timed? ?out\b"
    r"|\btimeout\b|temporar(?:y|ily)|connection (?:was )?(?:reset|refused|aborted|lost|closed)|econnreset|etimedout"
    r"|overloaded|service unavailable|try again (?:later|in \d)|broken pipe|network is unreachable",
    re.IGNORECASE,
)
_PERMANENT = re.compile(
    r"\b(?:HTTP|status|code|error)\W{0,3}(?:400|401|403|404|405|410|422)\b|unauthori[sz]ed|forbidden|permission denied"
    r"|not permitted|not allowed|access denied|(?:invalid|unknown|unexpected|missing|unsupported|unrecogni[sz]ed) "
    r"(?:\w+ ){0,2}(?:argument|parameter|option|field|key|tool|function|action|request|value|input|id)"
    r"|not found|no such|does(?:n't| not) exist|validation error|schema|required (?:property|argument|parameter|field)"
    r"|(?:argument|parameter|field|property) (?:\S+ )?is required|must be (?:one of|a|an|of type)\b|(?:Type|Value|Key|Attribute)Error\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"user (?:doesn't want|declined|rejected|denied|refused)|rejected by (?:the )?user|denied by (?:the )?user"
    r"|requires approval|not approved",
    re.IGNORECASE,
)
_CANCELLED = re.compile(
    r"interrupted by (?:the )?user|request interrupted|cancell?ed by|was cancell?ed|abort(?:ed)? by", re.IGNORECASE
)


def failure_class(said: str | None, text: str | None, *, command: bool) -> str:
    """One of `CLASSES` for a failed call.

    Args:
        said: What the recording says; what is none of ours ("unknown") counts as not said.
        text: The result as the model saw it.
        command: The tool runs a command line: its exit code and output are the work's own business, so a failure is
            semantic unless the text speaks of the network.
    """
    if said in CLASSES:
        return said
    head = (text or "")[:_READ]
    if _CANCELLED.search(head):
        return CANCELLED
    if _DENIED.search(head):
        return DENIED
    if _TRANSIENT.search(head):
        return TRANSIENT
    if command:
        return SEMANTIC
    return PERMANENT if _PERMANENT.search(head) else SEMANTIC


def failure_of_status(status: int | None, error: str | None) -> str | None:
    """The class of a failed model call by its HTTP status, else by its text; None when neither tells."""
    if status is not None:
        if status in TRANSIENT_STATUSES or status >= 500:
            return TRANSIENT
        return PERMANENT if status >= 400 else None
    if not error:
        return None
    if _TRANSIENT.search(error) or re.search(r"Timeout|ConnectionError|ConnectError|ReadError|APIConnection", error):
        return TRANSIENT
    return PERMANENT if _PERMANENT.search(error) else None
