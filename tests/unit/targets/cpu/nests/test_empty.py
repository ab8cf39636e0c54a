"""Tensors without elements: nothing is read, results that have elements still get their starts."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.nests.loop_nest import nest_plan
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG

from .generics import empty, function, generic, tensor
from .test_elementwise import ADD, GELU, unary
from .test_reductions import SUM, reduce, softmax
from .texts import check, parse


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 8), (2, 0, 5)])
def test_elementwise(shape: tuple[int, ...]) -> None:
    check(unary(shape, GELU, "%r"))


@pytest.mark.parametrize("kept", [[0], [1], []])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_reductions(shape: tuple[int, int], kept: list[int]) -> None:
    check(reduce(shape, kept, SUM[0], "0.5"))


@pytest.mark.parametrize("shape", [(0, 9), (3, 0)])
def test_softmax(shape: tuple[int, int]) -> None:
    check(softmax(shape))


@pytest.mark.parametrize("sizes", [{"n": 0, "m": 5}, {"n": 4, "m": 0}])
def test_runtime_sizes(sizes: dict[str, int]) -> None:
    check(unary(("n", "m"), GELU, "%r"), sizes=sizes)
    check(reduce(("n", "m"), [0], SUM[0], "0.0"), sizes=sizes)


@pytest.mark.parametrize("axis", [0, 1])
def test_concat_with_an_empty_part(axis: int) -> None:
    a, b = ((0, 8) if axis == 0 else (3, 0)), (3, 8)
    body = f"%y = tensor.concat dim({axis}) %a, %b : ({tensor(a)}, {tensor(b)}) -> {tensor(b)}"
    check(function([("a", a, "f32"), ("b", b, "f32")], [], body, [("%y", tensor(b))]))


@pytest.mark.parametrize("source", [(0, 4), (2, 0)])
def test_pad_of_nothing(source: tuple[int, int]) -> None:
    out = (source[0] + 3, source[1] + 9)
    body = f"""%v = arith.constant 1.5 : f32
%y = tensor.pad %x low[1, 2] high[2, 7] {{
^bb0(%i: index, %j: index):
tensor.yield %v : f32
}} : {tensor(source)} to {tensor(out)}"""
    check(function([("x", source, "f32")], [], body, [("%y", tensor(out))]))


def test_broadcast_into_nothing() -> None:
    t, b = tensor((0, 9)), tensor((9,))
    op = generic("%y", [("%a", t), ("%b", b)], [("%e", t)], ["d0, d1", "d1", "d0, d1"], "pp", *ADD)
    check(function([("a", (0, 9), "f32"), ("b", (9,), "f32")], [], empty("e", (0, 9)) + "\n" + op, [("%y", t)]))


@pytest.mark.parametrize("empty", range(3))
def test_nothing_to_write_takes_no_workgroups(empty: int) -> None:
    shape = [int(n) for n in RNG.integers(1, 70, 3)]
    shape[empty] = 0
    assert nest_plan(parse(unary(tuple(shape), GELU, "%r")), machine("avx2")).workgroups == 0


def test_the_start_of_a_sum_of_nothing_is_written() -> None:
    rows = int(RNG.integers(2, 70))
    plan = nest_plan(parse(reduce((rows, 0), [0], SUM[0], "0.5")), machine("avx2"))
    assert plan.workgroups != 0 and plan.schedule.groups


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("shapes", [((0, 5), (4, 3)), ((3, 5), (4, 0)), ((3, 0), (0, 5)), ((0,), (70,))])
def test_a_result_beside_an_empty_one(shapes: tuple[tuple[int, ...], tuple[int, ...]], stored: bool) -> None:
    """Each computed of an argument of its own; the second one `stored` as it is."""
    lines, arguments = list[str](), [(f"x{i}", shape, "f32") for i, shape in enumerate(shapes)]
    for i, shape in enumerate(shapes[: 1 if stored else 2]):
        t, identity = tensor(shape), ", ".join(f"d{axis}" for axis in range(len(shape)))
        lines += [
            empty(f"e{i}", shape),
            generic(
                f"%y{i}", [(f"%x{i}", t)], [(f"%e{i}", t)], [identity] * 2, "p" * len(shape), GELU, [("%r", "f32")]
            ),
        ]
    second = "%x1" if stored else "%y1"
    check(function(arguments, [], "\n".join(lines), [("%y0", tensor(shapes[0])), (second, tensor(shapes[1]))]))
