"""Streams as they are written: unchanged where nothing is secret, never a secret however it was split, flushed in time."""

from __future__ import annotations

import itertools
import json
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.tracer import redaction, streams
from looptape.tracer.redaction import redact
from looptape.tracer.streams import StreamLog, Unzip, clean_parts, sse_events

KEY = "sk-" + "ant-" + "api03-AbCdEf0123456789_-xyz"
BEARER = "Bearer " + "abcDEF0123456789" * 2
PRIVATE = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow IBAAKCAQ\n\nEA7 bq\n-----END RSA " + "PRIVATE KEY-----"
URL = "postgres://admin:" + "p,a;s)s}w0rd" + "@db/x"
OWN = "own-client-key-9,8;7)6"
SECRETS = {
    KEY: KEY,
    BEARER: BEARER[7:],
    PRIVATE: "MIIEow",
    URL: "p,a;s)s}w0rd",
    OWN: OWN,
}

plain = st.text(st.sampled_from("abc xyz.,;\n\"'\\/é😀-_0{}[]:"), max_size=60)
few = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def _own_key():
    redaction.remember(OWN)
    yield
    redaction.forget()


def anthropic_event(index: int, text: str, kind: str = "text") -> str:
    delta = {"type": f"{kind}_delta", "partial_json" if kind == "input_json" else kind: text}
    data = {"type": "content_block_delta", "index": index, "delta": delta}
    return f"event: content_block_delta\ndata: {json.dumps(data)}\n\n"


def chat_event(index: int, text: str, kind: str = "text") -> str:
    delta = {"content": text} if kind == "text" else {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
    return f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': delta, 'finish_reason': None}]}, ensure_ascii=False)}\n\n"


def responses_event(index: int, text: str, kind: str = "text") -> str:
    data = {"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text}
    return f"event: response.output_text.delta\ndata: {json.dumps(data)}\r\n\r\n"


DIALECTS = {"anthropic": anthropic_event, "chat": chat_event, "responses": responses_event}


def texts_of(written: str) -> dict[str, str]:
    """What a reader puts together from the events: the text of every block."""
    found: dict[str, str] = {}
    for _, data in sse_events(written):
        value = json.loads(data)
        if "choices" in value:
            delta = value["choices"][0]["delta"]
            for key, text in [
                ("t", delta.get("content")),
                *((f"c{c['index']}", c["function"]["arguments"]) for c in delta.get("tool_calls", ())),
            ]:
                found[key] = found.get(key, "") + (text or "")
        elif isinstance(value.get("delta"), str):
            key = str(value["output_index"])
            found[key] = found.get(key, "") + value["delta"]
        elif "delta" in value:
            key = str(value["index"])
            found[key] = found.get(key, "") + next(v for k, v in value["delta"].items() if k != "type")
    return found


def recorded(wire: list[str], monkeypatch, seconds=lambda n: 0.1) -> list[tuple[list[streams.Part], bool]]:
    """The chunk records of a stream that came in these pieces; ``seconds``: the clock at each look."""
    looks = iter(range(10**9))
    monkeypatch.setattr(streams, "monotonic", lambda: seconds(next(looks)))
    records: list[tuple[list[streams.Part], bool]] = []
    log = StreamLog(0.0, lambda parts, altered: records.append((parts, altered)))
    for piece in wire:
        log.feed(piece.encode("utf-8", "surrogatepass"))
    assert log.finish() == "".join(wire)
    return records


def joined(records) -> str:
    return "".join(t for parts, _ in records for _, t in parts)


@st.composite
def pieces_of(draw, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [p for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if (p := text[a:b])]


@st.composite
def secret_streams(draw):
    """Events of two blocks that take turns, one with a secret in it; in pieces of the wire."""
    event = DIALECTS[draw(st.sampled_from(sorted(DIALECTS)))]
    secret = draw(st.sampled_from(sorted(SECRETS)))
    first = draw(pieces_of(f"{draw(plain)} {secret} {draw(plain)}"))
    second = draw(pieces_of(draw(plain)))
    events = []
    while first or second:
        take = first if first and (not second or draw(st.booleans())) else second
        events.append(event(0 if take is first else 1, take.pop(0), "input_json" if take is second else "text"))
    whole = "".join(events)
    wire = events if draw(st.booleans()) else draw(pieces_of(whole))
    return secret, wire, draw(st.sampled_from([0.05, 0.3, 1.0]))


@given(case=secret_streams())
@few
def test_a_secret_split_at_any_place_is_in_nothing_that_was_written(case, monkeypatch):
    secret, wire, step = case
    hidden = SECRETS[secret]
    records = recorded(wire, monkeypatch, lambda n: n * step)
    written = joined(records)
    assert hidden not in written
    assert json.dumps(hidden)[1:-1] not in written
    for text in texts_of(written).values():
        assert hidden not in text
    assert any(altered for _, altered in records)


@st.composite
def clean_streams(draw):
    event = DIALECTS[draw(st.sampled_from(sorted(DIALECTS)))]
    count = draw(st.integers(0, 12))
    events = [
        event(draw(st.integers(0, 1)), draw(plain), draw(st.sampled_from(["text", "input_json"]))) for _ in range(count)
    ]
    whole = "".join([": comment\n\n", *events, "data: [DONE]\n\n", draw(st.sampled_from(["", "data: cut"]))])
    return draw(pieces_of(whole)), draw(st.sampled_from([0.05, 0.3, 1.0]))


@given(case=clean_streams())
@few
def test_a_stream_without_secrets_is_written_piece_by_piece_as_it_came(case, monkeypatch):
    wire, step = case
    records = recorded(wire, monkeypatch, lambda n: n * step)
    assert [t for parts, _ in records for _, t in parts] == wire
    assert not any(altered for _, altered in records)


def test_where_a_secret_is_taken_out_the_events_stay_and_say_so(monkeypatch):
    events = [anthropic_event(0, t) for t in ("the key is ", KEY[:9], KEY[9:], ", said ", "he")]
    other = anthropic_event(1, "untouched", "thinking")
    ((parts, altered),) = recorded([events[0], *events[1:3], other, *events[3:]], monkeypatch)
    assert altered
    written = "".join(t for _, t in parts)
    assert [name for name, _ in sse_events(written)] == ["content_block_delta"] * 6
    assert texts_of(written) == {"0": "the key is [redacted:anthropic-key], said he", "1": "untouched"}


def test_two_finished_answers_in_one_event_are_not_mixed_up(monkeypatch):
    output = [{"content": [{"type": "output_text", "text": t}]} for t in (f"key {KEY} here", "second")]
    event = f"data: {json.dumps({'type': 'response.completed', 'response': {'output': output}})}\n\n"
    ((parts, _),) = recorded([event], monkeypatch)
    value = json.loads(sse_events(parts[0][1])[0][1])
    assert [o["content"][0]["text"] for o in value["response"]["output"]] == [
        "key [redacted:anthropic-key] here",
        "second",
    ]


def test_a_long_answer_is_flushed_while_it_comes(monkeypatch):
    wire = [anthropic_event(0, f" word{n}") for n in range(100)]
    records = recorded(wire, monkeypatch, lambda n: n * 0.05)
    assert len(records) > 10
    stop = 'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    blocks = [anthropic_event(0, "Done."), stop, *(anthropic_event(1, f'"a{n}"', "input_json") for n in range(50))]
    assert len(recorded(blocks, monkeypatch, lambda n: n * 0.05)) > 5


def test_a_text_that_could_still_become_a_secret_is_held_back_without_looking_again_and_again(monkeypatch):
    looks = []
    real = streams._safe_count
    monkeypatch.setattr(streams, "_safe_count", lambda parts: looks.append(len(parts)) or real(parts))
    wire = [anthropic_event(0, "abcdefgh") for _ in range(5000)]
    ((parts, altered),) = recorded(wire, monkeypatch, lambda n: n * 0.25)
    assert not altered
    assert len(parts) == 5000
    assert sum(looks) < 4 * 5000


@given(text=plain, cuts=st.lists(st.integers(0, 400), max_size=8))
@few
def test_compressed_streams_are_undone_piece_by_piece(text, cuts):
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(text.encode()) + packer.flush()
    unzip = Unzip("gzip")
    edges = [0, *sorted(c for c in cuts if c < len(data)), len(data)]
    assert b"".join(unzip.feed(data[a:b]) or b"" for a, b in itertools.pairwise(edges)).decode() == text
    assert Unzip("br").feed(data) is None


def test_a_character_cut_in_two_by_the_wire_is_whole_in_the_record(monkeypatch):
    monkeypatch.setattr(streams, "monotonic", lambda: 0.0)
    records: list = []
    log = StreamLog(0.0, lambda parts, altered: records.append(parts))
    data = 'data: {"text":"😀"}\n\n'.encode()
    log.feed(data[:17])
    log.feed(data[17:])
    assert log.finish() == data.decode()
    assert "".join(t for parts in records for _, t in parts) == data.decode()


def test_parts_without_secrets_are_the_same_objects():
    parts = [(0, anthropic_event(0, "hello")), (5, anthropic_event(0, " there"))]
    assert clean_parts(parts)[0] is parts
    assert redact(parts[0][1]) is parts[0][1]


CARD = "4111 1111 1111 1111"


def stop_event(index: int) -> str:
    return f'event: content_block_stop\ndata: {{"type":"content_block_stop","index":{index}}}\n\n'


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("own", ["function", "key"])
def test_a_secret_with_blanks_is_in_nothing_that_was_written_however_slowly_it_came(monkeypatch, dialect, own):
    if own == "function":
        redaction.add([lambda text: text.replace(CARD, "[card]")])
    else:
        redaction.remember(CARD)
    pieces = ["Hello ", "pay ", "4111", " 1111", " 1111", " 1111", " ok"]
    events = [DIALECTS[dialect](0, piece) for piece in pieces]
    records = recorded(events, monkeypatch, lambda n: n * 0.5)
    mark = "[card]" if own == "function" else "[redacted:api-key]"
    assert texts_of(joined(records)) == {next(iter(texts_of(joined(records)))): f"Hello pay {mark} ok"}


def test_with_own_functions_a_block_is_written_when_it_ends_and_not_only_at_the_streams_end(monkeypatch):
    redaction.add([lambda text: text.replace(CARD, "[card]")])
    blocks = [[anthropic_event(n, f"word {m} ") for m in range(5)] + [stop_event(n)] for n in range(4)]
    records = recorded([e for block in blocks for e in block], monkeypatch, lambda n: n * 0.5)
    assert len(records) > 1
    assert not any(altered for _, altered in records)


def test_a_block_too_long_to_be_held_leaves_a_word_in_place_of_its_chunks(monkeypatch):
    redaction.add([lambda text: text.replace(CARD, "[card]")])
    monkeypatch.setattr(streams, "HELD_CHARACTERS", 10_000)
    events = [anthropic_event(0, f"some more text of {n} ") for n in range(400)]
    events += [anthropic_event(0, piece) for piece in ("4111", " 1111", " 1111", " 1111")]
    records = recorded([*events, stop_event(0)], monkeypatch, lambda n: n * 0.5)
    assert [t for parts, _ in records for _, t in parts] == [streams.TOO_LONG]
    assert [altered for _, altered in records] == [True]
    assert sse_events(joined(records)) == []
