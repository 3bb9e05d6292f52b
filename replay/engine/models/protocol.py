"""What the loop asks of a model: one request body in, one response body out, failures that say their kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came back for a request.

    Attributes:
        body: The response body, decoded, in the wire format that was asked in.
        status, headers, request_id: As the server told them; None and empty where there was no server.
        recorded: True when it is a recording's, so that it costs nothing a second time.
    """

    body: dict[str, Any]
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    request_id: str | None = None
    recorded: bool = False


class ModelError(Exception):
    """A model call that failed.

    Args:
        message: One sentence, as the server said it where it did.
        status: HTTP status, None when there was no answer.
        kind: The provider's word (``rate_limit_error``), or the exception's class.
        transient: The same request may succeed a little later.
        retry_after: Seconds that the server asked to wait, None when it did not say.
        too_long: The request is over the model's context window.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        kind: str = "model_error",
        transient: bool = False,
        retry_after: float | None = None,
        too_long: bool = False,
        headers: Mapping[str, str] | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.transient = transient
        self.retry_after = retry_after
        self.too_long = too_long
        self.headers = dict(headers or {})
        self.request_id = request_id


class ModelMiss(Exception):
    """A recorded or scripted model has no answer to this request; the text says why and what to do."""


class Model(Protocol):
    """Answers request bodies of one wire format."""

    @property
    def apis(self) -> tuple[str, ...]:
        """The wire formats it answers in; empty: any."""

    @property
    def limited_as(self) -> str | None:
        """What shares one rate limit: equal texts wait for each other. None: nothing limits it."""

    def ask(self, body: Mapping[str, Any], *, api: str, turn: int, timeout: float) -> ModelAnswer:
        """The answer to a request.

        Args:
            turn: The number that this turn has in its run.
            timeout: Seconds to wait at most.

        Raises:
            ModelError: It failed.
            ModelMiss: Nothing can answer this.
        """

    def spec(self) -> dict[str, Any]:
        """How to make it again, as JSON (no secrets); ``{"kind": ...}``."""

    def fresh(self, turns_made: int = 0) -> Model:
        """The same for another run, of which ``turns_made`` turns were answered before."""

    def close(self) -> None:
        """Lets go of connections."""
