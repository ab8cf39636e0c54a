"""Concats that are returned: parts that are made of the same functions are stored one by one, the functions computed
once."""

from __future__ import annotations

import pytest

from fuseline.dispatch.result_boxes import stored_boxes

from .generics import empty, function, generic, tensor
from .texts import check, parse

TANH = ("%s = math.tanh %i0 : f32", [("%s", "f32")])
CHEAP = ("%s = math.sqrt %i0 : f32", [("%s", "f32")])
SQUARE = ("%s = arith.mulf %i0, %i0 : f32", [("%s", "f32")])


def concat(
    shape: tuple[int, ...],
    axis: int,
    *,
    body: tuple[str, list[tuple[str, str]]] = TANH,
    cut: int = 0,
    way: str = "%t, %u",
) -> str:
    """`t = f(x)` and `u = t * t`, along `axis`; `cut`: so many rows of `u` are left out."""
    loops = ", ".join(f"d{i}" for i in range(len(shape)))
    whole, part = tensor(shape), tensor(tuple(n - cut * (i == axis) for i, n in enumerate(shape)))
    total = tensor(tuple(2 * n - cut if i == axis else n for i, n in enumerate(shape)))
    zeros, ones = ([str(n)] * len(shape) for n in (0, 1))
    sizes = [str(n - cut * (i == axis)) for i, n in enumerate(shape)]
    box = f"[{', '.join(zeros)}] [{', '.join(sizes)}] [{', '.join(ones)}]"
    lines = [
        empty("e", shape),
        *(generic(name, [(source, whole)], [("%e", whole)], [loops, loops], "p" * len(shape), *what)
          for name, source, what in (("%t", "%x", body), ("%u", "%t", SQUARE))),
        *([f"%c = tensor.extract_slice %u{box} : {whole} to {part}"] if cut else []),
        f"%y = tensor.concat dim({axis}) {way.replace('%u', '%c') if cut else way} : ({whole}, {part}) -> {total}",
    ]  # fmt: skip
    return function([("x", shape, "f32")], [], "\n".join(lines), [("%y", total)])


def stored(text: str) -> int:
    """How many values a dispatch stores."""
    view = parse(text)
    return len(list(stored_boxes(view.entry.body.block, view.shapes)))


@pytest.mark.parametrize(("shape", "axis"), [((5, 20), 0), ((3, 4, 33), 1), ((3, 4, 17), 0), ((2, 7), 1)])
def test_what_parts_have_in_common_is_computed_once(shape: tuple[int, ...], axis: int):
    text = concat(shape, axis)
    assert stored(text) == 2
    check(text, compiled=True)


@pytest.mark.parametrize(
    "text",
    [
        concat((5, 20), 0, body=CHEAP),  # computing it again takes no longer than reading it
        concat((5, 20), 0, cut=2),  # other loops
        concat((1, 20), 0, body=CHEAP),
    ],
)
def test_other_rows_fall_into_a_part(text: str):
    assert stored(text) == 1
    check(text)


def test_the_same_part_twice_is_read_where_it_falls():
    text = concat((5, 20), 0, way="%t, %t")
    assert stored(text) == 1
    check(text)
