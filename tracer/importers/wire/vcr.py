"""VCR cassettes: the model calls among recorded HTTP interactions, whole requests and responses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from ... import tape
from ...canonical import canonical, digest
from ...providers import anthropic, by_api, by_path
from ...providers.answer import mapping
from ...redaction import redact
from ...streams import sse_events
from ..calls.assembly import assemble
from ..calls.model_call import ModelCall
from ..context import Context, Source
from ..document import glimpse
from ..report import Notes
from . import raw_shapes
from .cassettes import Interaction, interactions

FORMAT = "vcr"
TITLE = "VCR cassette"

_YAML = re.compile(rb"^(?:http_)?interactions:", re.MULTILINE)
_REQUEST = re.compile(rb"^[ -]*request:", re.MULTILINE)
_BEDROCK = re.compile(r"/model/([^/]+)/(converse|invoke)(-stream|-with-response-stream)?$")
_REQUEST_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id")


def recognise(head: bytes) -> bool:
    """True for a list of interactions with requests, as YAML or JSON."""
    if head.lstrip()[:1] == b"{":
        value = mapping(glimpse(head))
        listed = value.get("interactions", value.get("http_interactions"))
        return isinstance(listed, list) and bool(listed) and "request" in mapping(listed[0])
    return _YAML.search(head) is not None and _REQUEST.search(head) is not None


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """Every model call is a turn; calls whose messages extend each other are one run."""
    calls: dict[int, ModelCall] = {}
    failed: dict[str, int] = {}
    for one in interactions(source, notes):
        call = _call(one, notes)
        if call is None:
            notes.counts["other_requests"] += 1
            continue
        asked = canonical(one.request)
        # the same request again: what failed before was an attempt at this call
        earlier = calls.pop(failed.pop(asked)).attempts if asked in failed else ()
        calls[one.number] = replace(call, attempts=(*earlier, _attempt(one, call)))
        if call.status == "error":
            failed[asked] = one.number
    if not calls and notes.counts["other_requests"]:
        notes.warn(f"none of the {notes.counts['other_requests']} requests is a model call that looptape knows")
    yield from assemble(calls.values(), source=FORMAT, notes=notes)


def _call(one: Interaction, notes: Notes) -> ModelCall | None:
    """The model call of an interaction, None when it is none."""
    if one.method not in ("POST", ""):
        return None
    bedrock = _BEDROCK.search(one.path)
    provider = by_path(one.path)
    if bedrock is None and provider is None:
        return None
    if not isinstance(one.request, dict):
        notes.skip(
            1, f"interaction {one.number}: the request body is no JSON object ({one.trouble or 'or is missing'})"
        )
        return None
    model = unquote(bedrock[1]) if bedrock else None
    if bedrock is None or bedrock[2] == "invoke":
        api = provider.API if provider else anthropic.API
        if bedrock and "messages" not in one.request:
            return None  # another vendor's body
    else:
        api = "bedrock.converse"
    response = _response(one, api, notes)
    talk = raw_shapes.talk(one.request, response, api, model)
    failing = one.status is not None and one.status >= 400
    said = by_api(talk.api).answer(talk.response) if talk.response is not None else None
    parts = talk.parts
    return ModelCall(
        key=_key(one, said.id if said else None),
        api=talk.api,
        messages=tuple(talk.messages),
        system=parts.system if parts else None,
        tools=parts.tools if parts else None,
        params=parts.params if parts else None,
        response=talk.response,
        usage=talk.usage,
        provider="aws" if bedrock else talk.provider,
        model=model or (parts.model if parts else None),
        mode=parts.mode if parts else "full",
        previous=parts.previous if parts else None,
        stream=bool(parts and parts.stream) or (bedrock is not None and bedrock[3] is not None),
        response_id=said.id if said else None,
        request_id=_request_id(one),
        lossless=True,
        ended_at=one.at,
        status="error" if failing else "ok",
        error=((said.error if said else None) or f"HTTP {one.status}") if failing else None,
        error_type=(said.error_type if said else None) if failing else None,
        url=redact(one.url.partition("?")[0]),
        flags=("answer_not_read",) if response is None and not failing else (),
    )


def _response(one: Interaction, api: str, notes: Notes) -> dict[str, Any] | None:
    """The response body; a stream is put together. What cannot be read is said."""
    body = one.response
    if isinstance(body, dict):
        return body
    if isinstance(body, str) and ("data:" in body[:4096] or "event:" in body[:4096]):
        whole, complete = by_api(api).assemble(sse_events(body))
        notes.counts["streams"] += 1
        notes.counts["streams_cut"] += not complete
        return whole if isinstance(whole, dict) else None
    if isinstance(body, bytes) or one.trouble:
        kind = one.trouble or f"a binary body ({one.headers.get('content-type', 'of no named type')})"
        notes.warn(f"interaction {one.number}: the answer is not read: {kind}")
    return None


def _key(one: Interaction, response: str | None) -> str:
    return response or _request_id(one) or digest(canonical([one.request, one.response and str(one.response)]))


def _request_id(one: Interaction) -> str | None:
    return next((one.headers[n] for n in _REQUEST_IDS if one.headers.get(n)), None)


def _attempt(one: Interaction, call: ModelCall) -> dict[str, Any]:
    found = {
        "status": one.status,
        "error": call.error,
        "error_type": call.error_type,
        "ended_at": one.at,
        "request_id": call.request_id,
    }
    return {k: v for k, v in found.items() if v is not None}
