"""gzip and zstd are opened for every importer; damage and bombs are named and nothing of them is kept."""

from __future__ import annotations

import gzip
import importlib.util
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_session import SessionLines
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import compressed, context, import_path
from looptape.tracer.store import Store, memory_store

zstd = None
for _name in ("compression", "backports"):
    if importlib.util.find_spec(_name) and importlib.util.find_spec(f"{_name}.zstd"):
        zstd = importlib.import_module(f"{_name}.zstd")
        break


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


def _session() -> bytes:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", "done", stop="end_turn")
    return "".join(line + "\n" for line in lines.lines).encode()


def test_a_gzip_file_is_read_like_the_file_in_it(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl.gz"
    file.write_bytes(gzip.compress(_session()))

    (report,) = import_path(store, file)

    assert (report.path, report.format, report.turns) == (str(file), "claude-code", 1)


def test_a_zstd_file_is_read_like_the_file_in_it(store: Store, tmp_path: Path) -> None:
    if zstd is None:
        pytest.skip("no zstd module: Python before 3.14 without backports.zstd")
    file = tmp_path / "session.zst"
    file.write_bytes(zstd.compress(_session()))

    (report,) = import_path(store, file)

    assert (report.format, report.turns) == ("claude-code", 1)


def test_gzip_on_standard_input_is_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(_session()))))

    (report,) = import_path(store, "-")

    assert (report.path, report.turns) == ("-", 1)


def test_the_name_does_not_matter(store: Store, tmp_path: Path) -> None:
    packed, plain = tmp_path / "session.jsonl", tmp_path / "other.gz"
    packed.write_bytes(gzip.compress(_session()))
    plain.write_bytes(_session())

    assert [r.turns for r in import_path(store, tmp_path)] == [1, 1]


@pytest.mark.parametrize("way", ["truncated", "corrupt", "checksum"])
@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_a_damaged_file_is_named_and_nothing_of_it_is_kept(store: Store, tmp_path: Path, way: str, packer: str) -> None:
    if packer == "zstd" and zstd is None:
        pytest.skip("no zstd module: Python before 3.14 without backports.zstd")
    content = _session() * 400 + bytes(range(256)) * 300
    data = bytearray(gzip.compress(content) if packer == "gzip" else _zstd_with_checksum(content))
    if way == "truncated":
        data = data[: len(data) // 2]
    else:
        data[len(data) // 2 if way == "corrupt" else -3] ^= 0xFF
    file = tmp_path / "session.packed"
    file.write_bytes(data)

    with pytest.raises(LooptapeError, match=r"session\.packed: the compressed file is damaged or cut") as caught:
        import_path(store, file, format="claude-code")
    assert caught.value.slug == "damaged-archive"
    assert store.runs() == []


def test_a_damaged_file_of_a_folder_is_listed_and_the_others_are_imported(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(_session())[:-20])
    (tmp_path / "b.gz").write_bytes(gzip.compress(_session()))

    bad, good = import_path(store, tmp_path)

    assert bad.error is not None
    assert "damaged or cut" in bad.error
    assert good.turns == 1


def test_a_bomb_is_stopped_at_a_limit_that_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "FREE_BYTES", 2 << 20)
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(_session() + b" " * (8 << 20)))

    with pytest.raises(LooptapeError, match=r"bomb\.gz: unpacks to more than \d+ MB, over 300 times its size"):
        import_path(store, file)
    assert store.runs() == []


def test_what_shrinks_well_but_is_small_is_no_bomb(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "small.gz"
    file.write_bytes(gzip.compress(_session() + (b" " * 1023 + b"\n") * 4096))

    assert import_path(store, file)[0].turns == 1


def test_without_a_zstd_module_the_cure_is_one_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    file = tmp_path / "session.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 40)

    with pytest.raises(LooptapeError) as caught:
        import_path(store, file)
    assert "pip install 'looptape[zstd]'" in caught.value.cure


def test_a_document_over_the_limit_is_refused_with_the_limit(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context.Source.whole, "__defaults__", (1 << 20,))
    file = tmp_path / "large.json"
    file.write_text('[\n{"role": "user", "content": "' + "x" * (1 << 20) + '"}]')

    with pytest.raises(LooptapeError, match=r"large\.json: larger than 1 MB, the limit for one document"):
        import_path(store, file, format="messages")


def _zstd_with_checksum(content: bytes) -> bytes:
    assert zstd is not None
    packed: bytes = zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 1})
    return packed
