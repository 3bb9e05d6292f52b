"""The errors of the product: each says what happened, where, and what to do about it."""

from __future__ import annotations


class LooptapeError(Exception):
    """Something a person can act on.

    Args:
        slug: Stable short name of the kind of trouble (``store-held``, ``bad-tape``).
        what: One sentence that names the thing and the place.
        cure: One sentence that says what to do; empty when there is nothing to do.
        exit_code: The exit status of a command that ends with this error (contract: 2 usage,
            3 unusable input or a held store).
    """

    exit_code = 3

    def __init__(self, slug: str, what: str, cure: str = "", *, exit_code: int | None = None) -> None:
        self.slug = slug
        self.what = what
        self.cure = cure
        if exit_code is not None:
            self.exit_code = exit_code
        super().__init__(f"{what}. {cure}" if cure else what)


class UsageError(LooptapeError):
    """The caller asked for something that does not exist or cannot be combined."""

    exit_code = 2


class LooptapeStop(BaseException):
    """A deliberate stop of the user's loop (a guard, a replay mismatch).

    A ``BaseException``, because SDKs turn an ``Exception`` from a transport into a connection
    error after their retries, while a ``BaseException`` reaches the loop as it is.
    """


class LoopStopped(LooptapeStop):
    """A guard has stopped the loop, before its next model call went out.

    Attributes:
        reason: ``turns``, ``seconds``, ``tokens``, ``cost`` (the run ends with status ``limit``), ``consecutive-errors``,
            ``same-error``, ``cycle`` or ``goal`` (status ``halted``).
        detail: One sentence.
        run: The id of the run.
        finding: Of a cycle: the finding as JSON; None otherwise.
    """

    def __init__(self, reason: str, detail: str, *, run: str | None = None, finding: object = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.run = run
        self.finding = finding

    @property
    def status(self) -> str:
        """The status with which the run ends."""
        return "limit" if self.reason in ("turns", "seconds", "tokens", "cost") else "halted"
