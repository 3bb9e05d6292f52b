"""What `looptape doctor` runs in a process of its own: one turn through a real SDK, with a scripted transport."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

ANTHROPIC = {
    "id": "msg_doctor", "type": "message", "role": "assistant", "model": "claude-doctor",
    "content": [{"type": "text", "text": "recorded"}], "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 7},
}  # fmt: skip
OPENAI = {
    "id": "chatcmpl_doctor", "object": "chat.completion", "created": 0, "model": "gpt-doctor",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "recorded"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10},
}  # fmt: skip


def main(name: str) -> None:
    """Records one turn into LOOPTAPE_HOME; raises what the SDK or the recorder raises."""
    import looptape

    sdk = importlib.import_module(name)
    question = [{"role": "user", "content": "does recording work?"}]
    if name == "anthropic":
        client = looptape.wrap(
            sdk.Anthropic(api_key="none", base_url="http://127.0.0.1:9", http_client=_http(sdk, ANTHROPIC))
        )
        client.messages.create(model="claude-doctor", max_tokens=10, messages=question)
    else:
        client = looptape.wrap(
            sdk.OpenAI(api_key="none", base_url="http://127.0.0.1:9/v1", http_client=_http(sdk, OPENAI))
        )
        client.chat.completions.create(model="gpt-doctor", messages=question)


def _http(sdk: Any, body: dict[str, Any]) -> Any:
    """A client of the HTTP library that this SDK version uses (httpx or httpx2), answering without a network."""
    library = next(
        importlib.import_module(base.__module__.split(".")[0])
        for base in sdk.DefaultHttpxClient.__mro__
        if base.__name__ == "Client" and base.__module__.split(".")[0] in ("httpx", "httpx2")
    )
    headers = {"content-type": "application/json", "request-id": "req_doctor"}

    def answer(request: Any) -> Any:
        return library.Response(
            200, headers=headers, content=iter([json.dumps(body).encode()])
        )  # unread, as from a wire

    return library.Client(transport=library.MockTransport(answer))


if __name__ == "__main__":
    main(sys.argv[1])
