"""What a tool's result was in Python: kept beside its JSON, and made again of both."""

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid

import pytest

from looptape.tracer import tape
from looptape.tracer.shapes import again, shape


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: tuple[int, ...] = ()

    def __post_init__(self):
        made.append(self.x)


made = []
Pair = collections.namedtuple("Pair", "a b")

KINDS = {
    "text": "a text",
    "text-that-is-json": '{"a": 1}',
    "none": None,
    "number": 5,
    "dict": {"a": [1, {"b": None}]},
    "list": [1, "2"],
    "tuple": (1, ("a", [2])),
    "set": {1, 2},
    "dataclass": Point(1, (2, 3)),
    "inside": {"points": [Point(1), Point(2)], "when": datetime.datetime(2026, 11, 2, 9, 0)},
    "mixed": [Point(1), "plain", Pair(1, Point(2))],
    "number-keys": {1: "a", 2: (3,)},
    "date": datetime.date(2026, 11, 2),
    "decimal": decimal.Decimal("1.10"),
    "uuid": uuid.UUID(int=7),
    "path": pathlib.Path("a/b"),
    "bytes": b"abc",
    "enum": Colour.RED,
}


@pytest.mark.parametrize("seen", [False, True], ids=["recorded", "as the model saw it"])
@pytest.mark.parametrize("name", KINDS)
def test_a_result_is_made_again_as_it_was(name, seen):
    value = KINDS[name]
    kept = tape.plain(value)
    told = json.dumps(kept) if seen and not isinstance(kept, str) else kept
    found, lost = again(told, json.loads(json.dumps(shape(value))))
    assert (found, type(found), lost) == (value, type(value), ())


def test_a_path_has_one_name_in_every_python():
    there = type("PosixPath", (), {"__module__": "pathlib._local"})  # as Python 3.13 has it
    assert shape(there())["is"] == shape(pathlib.PosixPath("a"))["is"] == "pathlib.PosixPath"


def test_the_constructor_of_a_dataclass_does_not_run_again():
    value = Point(3)
    made.clear()
    assert again(tape.plain(value), shape(value))[0] == value
    assert made == []


def test_a_pydantic_model_comes_back_with_what_was_none():
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        n: int

    class Found(pydantic.BaseModel):
        title: str = pydantic.Field(alias="Title")
        note: str | None
        inner: list[Inner]

    globals()["Found"] = Found
    Found.__qualname__ = "Found"
    value = Found(Title="a", note=None, inner=[Inner(n=1)])
    found, lost = again(tape.plain(value), shape(value))
    assert (found, lost) == (value, ())


def test_a_class_that_is_gone_gives_its_fields_and_is_named():
    found, lost = again([{"x": 1}], {"is": "json", "all": {"is": "gone_module.Point"}})
    assert (found, lost) == ([{"x": 1}], ("gone_module.Point",))


def test_many_results_of_one_class_have_one_shape():
    assert shape([Point(n) for n in range(500)]) == {
        "is": "json",
        "all": {"is": f"{__name__}.Point", "in": {"y": {"is": "builtins.tuple"}}},
    }


def test_a_result_that_holds_itself_or_shares_its_parts_a_million_times_is_looked_at_briefly():
    ring: dict = {}
    ring["a"] = ring["b"] = [ring, {"c": ring}]
    assert shape(ring) == {"is": "json"}
    shared: object = 1
    for _ in range(50):
        shared = [shared, shared, {"x": shared}]
    assert shape(shared) == {"is": "json"}
