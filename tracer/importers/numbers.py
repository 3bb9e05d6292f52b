"""A number for each of very many texts, in a few bytes each: what an importer keeps for every call of a file of any size."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from itertools import islice

_FEWEST = 64
_RECENT = 1024


class Numbers:
    """Texts to numbers below 2**32, as a dict would have it, at 24 to 48 bytes an entry whatever the text.

    Of all but the last thousand only 64 bits of a hash are kept: entries can be asked for but not listed, and among
    a million two are taken for one with a chance of 1 to 30 million. A pickle of it is mostly two runs of bytes.
    """

    __slots__ = ("_count", "_keys", "_recent", "_values")

    def __init__(self) -> None:
        self._recent: dict[str, int] = {}
        self._keys = array("Q", bytes(8 * _FEWEST))
        self._values = array("I", bytes(4 * _FEWEST))
        self._count = 0

    def __contains__(self, text: str) -> bool:
        return text in self._recent or (self._count > 0 and self._old(text) is not None)

    def get(self, text: str, default: int | None = None) -> int | None:
        """The number of a text; ``default`` where it has none."""
        found = self._recent.get(text)
        if found is None and self._count:
            found = self._old(text)
        return default if found is None else found

    def __setitem__(self, text: str, number: int) -> None:
        self._recent[text] = number
        if len(self._recent) > _RECENT:
            self._put_away()

    def add(self, text: str) -> bool:
        """As of a set: True when the text was not there yet."""
        if text in self:
            return False
        self[text] = 1
        return True

    def __getstate__(self) -> tuple[dict[str, int], bytes, bytes, int]:
        return self._recent, self._keys.tobytes(), self._values.tobytes(), self._count

    def __setstate__(self, state: tuple[dict[str, int], bytes, bytes, int]) -> None:
        self._recent, keys, values, self._count = state
        self._keys, self._values = array("Q", keys), array("I", values)

    def _old(self, text: str) -> int | None:
        key = _key(text)
        place = self._place(key)
        return self._values[place] if self._keys[place] == key else None

    def _put_away(self) -> None:
        """The older half of the recent ones."""
        for text in list(islice(self._recent, _RECENT // 2)):
            self._put(_key(text), self._recent.pop(text))

    def _put(self, key: int, number: int) -> None:
        if 2 * self._count >= len(self._keys):
            self._grow()
        place = self._place(key)
        self._count += self._keys[place] != key
        self._keys[place], self._values[place] = key, number

    def _place(self, key: int) -> int:
        """Where a key stands, or the free place where it belongs."""
        keys = self._keys
        mask = len(keys) - 1
        place = key & mask
        while keys[place] not in (0, key):
            place = (place + 1) & mask
        return place

    def _grow(self) -> None:
        old = zip(self._keys, self._values, strict=True)
        self._keys = array("Q", bytes(16 * len(self._keys)))
        self._values = array("I", bytes(8 * len(self._values)))
        for key, value in old:
            if key:
                place = self._place(key)
                self._keys[place], self._values[place] = key, value


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
