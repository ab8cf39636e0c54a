"""Norms over the rows of an image whose result has its channels first: squares of values, turned in registers."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.nests.loop_nest import nest_plan
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG

from .generics import empty, fill, function, generic, tensor
from .texts import check, parse

ADD = ("%t = arith.addf %o0, %i0 : f32", [("%t", "f32")])
SCALED = ("%d = arith.subf %i0, %i1 : f32\n%q = arith.mulf %d, %i2 : f32", [("%q", "f32")])
DEAR = (
    "%d = arith.subf %i0, %i1 : f32\n"
    + "\n".join(f"%t{i} = math.tanh {'%d' if i == 0 else f'%t{i - 1}'} : f32" for i in range(5))
    + "\n%q = arith.mulf %t4, %i2 : f32",
    [("%q", "f32")],
)
LAST, FIRST, CHANNELS = "d0, d1, d2", "d2, d0, d1", "d2"

Shape = tuple[int | str, int | str, int | str]


def norm(
    shape: Shape, *, out: str = FIRST, body: tuple[str, list[tuple[str, str]]] = SCALED, also: bool = False
) -> str:
    """`(x - m) * w` of x(h, w, c), m the sums over (h, w), stored in the order `out`; `also`: and once more as x is."""
    sizes: dict[str, int | str] = dict(zip(LAST.split(", "), shape, strict=True))
    there, few = tuple(sizes[name] for name in out.split(", ")), tensor(shape[2:])
    operands = [("%x", tensor(shape)), ("%m", few), ("%weights", few)]
    maps = [LAST, CHANNELS, CHANNELS]
    lines = [
        fill("z", "0.25", shape[2:]),
        empty("e", there),
        empty("g", shape),
        generic("%m", operands[:1], [("%z", few)], [LAST, CHANNELS], "rrp", *ADD),
        generic("%y", operands, [("%e", tensor(there))], [*maps, out], "ppp", *body),
    ]
    results = [("%y", tensor(there))]
    if also:
        lines.append(generic("%u", operands, [("%g", tensor(shape))], [*maps, LAST], "ppp", *SCALED))
        results.append(("%u", tensor(shape)))
    names = sorted({size for size in shape if isinstance(size, str)})
    return function([("x", shape, "f32"), ("weights", shape[2:], "f32")], names, "\n".join(lines), results)


def twice(shape: Shape) -> str:
    """The norm of channels first, and its square."""
    there = tensor((shape[2], *shape[:2]))
    square = generic("%v", [("%y", there)], [("%e", there)], [LAST, LAST], "ppp",
                     "%q = arith.mulf %i0, %i0 : f32", [("%q", "f32")])  # fmt: skip
    text = norm(shape).replace("func.return %y : ", f"{square}\nfunc.return %y, %v : {there}, ")
    return text.replace(f"-> ({there})", f"-> ({there}, {there})")


def turned(text: str, isa: str = "avx512") -> list[bool]:
    """Of the groups of a dispatch that reduce nothing, which are turned."""
    groups = nest_plan(parse(text), machine(isa)).schedule.groups
    return [group.turned is not None for group in groups if all(stage.op is None for stage in group.stages)]


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 37, 21), (4, 17, 48), (1, 64, 19), (5, 33, 40)])
def test_squares_in_place_of_scattered_elements(shape: Shape):
    text = norm(shape)
    assert turned(text) == [True]
    check(text, compiled=True)


@pytest.mark.parametrize("out", ["d2, d0, d1", "d0, d2, d1", "d2, d1, d0", "d1, d2, d0"])
def test_any_order_that_ends_in_another_loop(out: str):
    text = norm((18, 23, 35), out=out)
    assert turned(text) == [True]
    check(text, compiled=True)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
def test_other_vectors(isa: str):
    text = norm((3, 19, 27))
    assert turned(text, isa) == [True]
    check(text, isa=machine(isa))


@pytest.mark.parametrize("shape", [("h", 20, 24), (3, "w", 24), (3, 20, "c"), ("h", "w", "c")])
def test_sizes_that_the_run_tells(shape: Shape):
    names = {size: int(RNG.integers(1, 40)) for size in shape if isinstance(size, str)}
    check(norm(shape), sizes=names, compiled=True)


def test_random_images():
    for _ in range(4):
        h, w, c = (int(RNG.integers(*limits)) for limits in ((1, 5), (1, 50), (1, 70)))
        check(norm((h, w, c)))


@pytest.mark.parametrize(
    "text",
    [
        norm((3, 20, 24), out=LAST),  # lies along the lanes
        norm((3, 9, 24)),  # rows are no vector long
        norm((3, 20, 24), body=DEAR),  # too much code to be written out per row of a square
        twice((3, 20, 24)),  # a result is made of the other
    ],
)
def test_what_is_written_element_by_element(text: str):
    assert not any(turned(text))
    check(text)


def test_a_result_that_lies_along_the_lanes_is_written_by_itself():
    text = norm((3, 20, 24), also=True)
    assert turned(text) == [True, False]
    check(text, compiled=True)
