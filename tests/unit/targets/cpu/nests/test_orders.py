"""Rows that are sorted: by keys of any width, one or several, along any axis, of any length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fuseline.targets.cpu.families.sequential import order as family
from fuseline.targets.cpu.families.sequential.kept_order import rooms_of
from fuseline.targets.cpu.families.sequential.order import OrderFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.target import Refusal
from tests.draws import RNG

from .orders import order
from .texts import build, check, parse

KEYS = [("i32",), ("i64",), ("i8",), ("i16", "i64"), ("i32", "i8", "i64")]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(
    ("shape", "axis", "room"),
    [((3, 5, 19), 2, 19), ((3, 19, 5), 1, 19), ((7, 3), 0, 2), ((2, 71), 1, 3), ((41,), 0, 40), ((3, 1), 1, 1)],
)
def test_along_any_axis(shape: tuple[int, ...], axis: int, room: int, keys: Sequence[str]) -> None:
    check(order(shape, axis, room, keys), family="order", compiled=True)


@pytest.mark.parametrize("keys", [("i32",), ("i64",), ("i8", "i32")])
@pytest.mark.parametrize(("size", "room"), [(137, 1), (201, 9), (170, 70), (170, 170)])
def test_rows_longer_than_what_is_kept(size: int, room: int, keys: Sequence[str]) -> None:
    check(order((1, size), 1, room, keys, limit=room), family="order", compiled=True)


@pytest.mark.parametrize("keys", [("i32",), ("i64",), ("i8", "i32")])
@pytest.mark.parametrize("size", [1, 7, 8, 75])
def test_rows_of_any_length_are_walked_along_again(
    size: int, keys: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "ASSUMED_AT_ONCE", 7)
    check(order((1, "n"), 1, "n", keys), sizes={"n": size}, family="order", compiled=True)


@pytest.mark.parametrize("size", [2, 5, 6, 90])
def test_more_places_than_a_row_has_elements(size: int) -> None:
    check(order((3, "n"), 1, 5), sizes={"n": size}, family="order", compiled=True)


@pytest.mark.parametrize("room", ["n", 4])
def test_a_bound_says_how_much_is_kept(room: int | str) -> None:
    check(order((3, "n"), 1, room, bound="4..90"), sizes={"n": 37}, family="order", compiled=True)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("keys", [("i32",), ("i64", "i32")])
def test_every_isa(isa: str, keys: Sequence[str]) -> None:
    check(order((2, 21), 1, 5, keys), isa=machine(isa), family="order")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("size", "room"), [(50, 50), (50, 3), (300, 300), (300, 3), (300, 50)])
def test_the_ends_of_the_numbers_are_numbers(dtype: str, size: int, room: int) -> None:
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, -1, 0, 1, info.max - 1, info.max], dtype)
    keys = RNG.choice(ends, (3, size))
    x = RNG.standard_normal((3, size)).astype(np.float32)
    run = build(parse(order((3, size), 1, room, (dtype.replace("int", "i"),))), machine())
    values, places = run(keys, x)
    wanted = np.argsort(keys, axis=1, kind="stable")[:, :room]
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, 1))


@pytest.mark.parametrize("order_of", ["up", "down", "equal"])
@pytest.mark.parametrize("room", [2, 40, 200])
def test_rows_that_are_in_order_already(order_of: str, room: int) -> None:
    """Every element comes before those that are kept, or none does."""
    size = 700
    keys = {"up": np.arange(size), "down": -np.arange(size), "equal": np.zeros(size)}[order_of].astype(np.int32)[None]
    x = RNG.standard_normal((1, size)).astype(np.float32)
    _, places = build(parse(order((1, size), 1, room, limit=room)), machine())(keys, x)
    np.testing.assert_array_equal(places[0], np.argsort(keys[0], kind="stable")[:room])


def test_how_much_is_kept() -> None:
    assert rooms_of(1000, 5, 1 << 17).room == 69 and not rooms_of(1000, 5, 1 << 17).whole
    assert rooms_of(50, 5, 1 << 17).whole and rooms_of(1000, 600, 1 << 17).whole
    assert rooms_of(None, None, 1 << 14).want == 1 << 14 and not rooms_of(None, None, 1 << 14).whole
    assert rooms_of(1 << 20, None, 1 << 17).want == 1 << 17


REFUSED = {
    "fewer ranks than places": (order((2, 9), 1, 5, limit=4), "not-a-rank"),
    "another tensor's ranks": (order((2, 9), 1, 5).replace("ins(%k0, %k0 :", "ins(%k0, %z :", 1), "not-a-rank"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    text, code = REFUSED[name]
    text = text.replace("%x: tensor", "%z: tensor<2x9xi32>, %x: tensor", 1) if "%z :" in text else text
    found = OrderFamily().accepts(parse(text), machine("avx2"))
    assert isinstance(found, Refusal) and found.code == code
