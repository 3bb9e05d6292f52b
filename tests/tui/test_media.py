"""Blobs are named with type and size; text stays text."""

from __future__ import annotations

import pytest

from looptape.tui.told.media import media, plain, without_blobs

PNG = "iVBORw0KGgo" + "Ab3/" * 3000


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, "image image/png, 9.0 kB"),
        ({"type": "image", "source": {"type": "url", "url": "https://x.invalid/a.png"}}, "image, https://x.invalid/a.png"),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, "image image/png, 9.0 kB"),
        ({"type": "input_image", "image_url": f"data:image/jpeg;base64,{PNG}"}, "image image/jpeg, 9.0 kB"),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}}, "document text/plain, 3 B"),
        ({"type": "document", "source": {"type": "file", "file_id": "file_1"}}, "document, file_1"),
        ({"type": "input_audio", "input_audio": {"format": "wav", "data": PNG}}, "audio wav, 9.0 kB"),
        ({"inlineData": {"mimeType": "image/webp", "data": PNG}}, "blob image/webp, 9.0 kB"),
        ({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/a"}}, "blob video/mp4, gs://b/a"),
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, "image image/png, 9.0 kB"),
        ({"type": "text", "text": "words"}, None),
        ({"type": ["odd"]}, None),
        ({"type": "image", "source": 7}, "image"),
    ],
)  # fmt: skip
def test_a_block_that_is_no_text_is_named_in_every_dialect(block, wanted) -> None:
    assert media(block) == wanted


def test_data_uris_and_whole_blobs_in_texts_are_named() -> None:
    assert plain(f"before data:image/png;base64,{PNG} after") == "before [image/png, 9.0 kB] after"
    assert plain(PNG) == "[image/png, 9.0 kB]"
    assert without_blobs({"a": [PNG, "b"], "n": 1}) == {"a": ["[image/png, 9.0 kB]", "b"], "n": 1}


@pytest.mark.parametrize(
    "text", ["x" * 5000, "a sentence. " * 400, "deadbeef" * 400, "/usr/lib/" * 100, "漢字" * 500, "ABC123" * 100 + " end", "", "data:image/png;base64,short"]
)  # fmt: skip
def test_what_is_no_blob_stays_as_it_is(text: str) -> None:
    assert plain(text) == text
