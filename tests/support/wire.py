"""Talking to the fake server without any SDK, and events made by hand."""

import gzip
import json
import urllib.error
import urllib.request


def post(url, body, timeout=60):
    """Status, headers and decoded text of one POST."""
    headers = {"content-type": "application/json", "x-api-key": "test"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            status, told, raw = reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        status, told, raw = error.code, error.headers, error.read()
    if told.get("content-encoding") == "gzip":
        raw = gzip.decompress(raw)
    return status, told, raw.decode("utf-8")


def stream(*events):
    """Events given as JSON values, in the shape `assemble` takes."""
    return [
        (e.get("type") if isinstance(e, dict) else None, e if isinstance(e, str) else json.dumps(e)) for e in events
    ]
