"""Row reductions, column reductions, norms, windows and everything that shares a row, on odd sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.api import emit
from fuseline.ir.build import element_of
from fuseline.ir.element_types import numpy_dtype
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.types import Loop
from tests.graphs.onnx_text import onnx_model

from .generics import empty, fill, function, generic, tensor
from .texts import build, check, parse

SUM = ("%s = arith.addf %o0, %i0 : f32", [("%s", "f32")])
MAX = ("%s = arith.maximumf %i0, %o0 : f32", [("%s", "f32")])


def reduce(shape: tuple[int | str, ...], kept: list[int], body: str, start: str, element: str = "f32") -> str:
    """One reduction of an argument over the dimensions that are not kept."""
    small = tuple(shape[i] for i in kept)
    t, r = tensor(shape, element), tensor(small, element)
    loops = ", ".join(f"d{i}" for i in range(len(shape)))
    kinds = "".join("p" if i in kept else "r" for i in range(len(shape)))
    op = generic(
        "%y", [("%x", t)], [("%z", r)], [loops, ", ".join(f"d{i}" for i in kept)], kinds, body, [("%s", element)]
    )
    names = sorted({s for s in shape if isinstance(s, str)})
    return function([("x", shape, element)], names, fill("z", start, small, element) + "\n" + op, [("%y", r)])


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 8), (2, 100), (70, 33), (1, 3)])
@pytest.mark.parametrize("kept", [[0], [1], [], [0, 1]])
def test_sum(shape: tuple[int, int], kept: list[int]) -> None:
    check(reduce(shape, kept, SUM[0], "0.5"))


@pytest.mark.parametrize("kept", [[0], [1], [0, 2], [1, 2], [0, 1]])
def test_three_dimensions(kept: list[int]) -> None:
    check(reduce((4, 6, 19), kept, SUM[0], "0.0"))


@pytest.mark.parametrize("kept", [[0], [1]])
@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 5, "m": 37}, {"n": 64, "m": 8}])
def test_dynamic(kept: list[int], sizes: dict[str, int]) -> None:
    check(reduce(("n", "m"), kept, SUM[0], "0.0"), sizes=sizes)


FLOAT_COMBINERS = [
    ("addf", "0.0"),
    ("mulf", "1.0"),
    ("maximumf", "0xFF800000"),
    ("minimumf", "0x7F800000"),
    ("maxnumf", "0xFF800000"),
    ("minnumf", "0x7F800000"),
]


@pytest.mark.parametrize(("op", "start"), FLOAT_COMBINERS)
def test_float_combiners(op: str, start: str) -> None:
    check(reduce((3, 45), [0], f"%s = arith.{op} %o0, %i0 : f32", start))


@pytest.mark.parametrize("element", ["i8", "i32", "i64"])
@pytest.mark.parametrize("op", ["addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"])
def test_integer_combiners(op: str, element: str) -> None:
    check(reduce((3, 45), [0], f"%s = arith.{op} %o0, %i0 : {element}", "3", element))


@pytest.mark.parametrize("op", ["andi", "ori"])
def test_all_and_any(op: str) -> None:
    check(reduce((3, 45), [0], f"%s = arith.{op} %o0, %i0 : i1", "true" if op == "andi" else "false", "i1"))


def test_body_before_the_combiner() -> None:
    check(reduce((5, 61), [0], "%q = arith.mulf %i0, %i0 : f32\n%s = arith.addf %q, %o0 : f32", "0.0"), family="rows")


def test_order_matters() -> None:
    """A running result that is used twice is reduced one element after the other."""
    check(
        reduce(
            (5, 13),
            [0],
            "%q = arith.mulf %o0, %o0 : f32\n%w = arith.addf %q, %i0 : f32\n%s = math.tanh %w : f32",
            "0.1",
        ),
        bits=12,
    )


def test_argmax() -> None:
    """Two results that depend on each other."""
    t, v, i = tensor((6, 11)), tensor((6,)), tensor((6,), "i64")
    body = """%n = linalg.index 1 : index
%p = arith.index_cast %n : index to i64
%g = arith.cmpf ogt, %i0, %o0 : f32
%a = arith.select %g, %i0, %o0 : f32
%b = arith.select %g, %p, %o1 : i64"""
    op = generic(
        "%mv, %k",
        [("%x", t)],
        [("%z0", v), ("%z1", i)],
        ["d0, d1", "d0", "d0"],
        "pr",
        body,
        [("%a", "f32"), ("%b", "i64")],
    )
    starts = fill("z0", "0xFF800000", (6,)) + "\n" + fill("z1", "0", (6,), "i64")
    check(function([("x", (6, 11), "f32")], [], starts + "\n" + op, [("%mv", v), ("%k", i)]))


def softmax(shape: tuple[int | str, ...]) -> str:
    """Softmax over the last dimension, written out."""
    rank = len(shape)
    all_, outer = ", ".join(f"d{i}" for i in range(rank)), ", ".join(f"d{i}" for i in range(rank - 1))
    t, r = tensor(shape), tensor(shape[:-1])
    kinds, flat = "p" * (rank - 1) + "r", "p" * rank
    lines = [
        empty("e", shape),
        fill("lo", "0xFF800000", shape[:-1]),
        fill("z", "0.0", shape[:-1]),
        generic("%mx", [("%x", t)], [("%lo", r)], [all_, outer], kinds, *MAX),
        generic(
            "%p",
            [("%x", t), ("%mx", r)],
            [("%e", t)],
            [all_, outer, all_],
            flat,
            "%d = arith.subf %i0, %i1 : f32\n%v = math.exp %d : f32",
            [("%v", "f32")],
        ),
        generic(
            "%s", [("%p", t)], [("%z", r)], [all_, outer], kinds, "%q = arith.addf %i0, %o0 : f32", [("%q", "f32")]
        ),
        generic(
            "%y",
            [("%p", t), ("%s", r)],
            [("%e", t)],
            [all_, outer, all_],
            flat,
            "%v = arith.divf %i0, %i1 : f32",
            [("%v", "f32")],
        ),
    ]
    names = sorted({s for s in shape if isinstance(s, str)})
    return function([("x", shape, "f32")], names, "\n".join(lines), [("%y", t)])


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 8), (2, 3, 50), (4, 1000)])
def test_softmax(shape: tuple[int, ...]) -> None:
    check(softmax(shape), family="rows" if shape[-1] > 1 else "")


@pytest.mark.parametrize("sizes", [{"n": 3, "m": 5}, {"n": 2, "m": 64}])
def test_softmax_of_unknown_length(sizes: dict[str, int]) -> None:
    check(softmax(("n", 2, "m")), sizes=sizes, family="rows")


def layernorm(rows: int, width: int) -> str:
    """Layer norm with scale and shift: three statistics share a row."""
    x, r, w = tensor((rows, width)), tensor((rows,)), tensor((width,))
    lines = [
        empty("e", (rows, width)),
        fill("z", "0.0", (rows,)),
        empty("er", (rows,)),
        f"%n = arith.constant {float(width)} : f32",
        "%eps = arith.constant 1.0e-5 : f32",
        generic(
            "%s", [("%x", x)], [("%z", r)], ["d0, d1", "d0"], "pr", "%q = arith.addf %i0, %o0 : f32", [("%q", "f32")]
        ),
        generic("%mu", [("%s", r)], [("%er", r)], ["d0", "d0"], "p", "%q = arith.divf %i0, %n : f32", [("%q", "f32")]),
        generic(
            "%c",
            [("%x", x), ("%mu", r)],
            [("%e", x)],
            ["d0, d1", "d0", "d0, d1"],
            "pp",
            "%q = arith.subf %i0, %i1 : f32",
            [("%q", "f32")],
        ),
        generic(
            "%v",
            [("%c", x)],
            [("%z", r)],
            ["d0, d1", "d0"],
            "pr",
            "%k = arith.mulf %i0, %i0 : f32\n%q = arith.addf %k, %o0 : f32",
            [("%q", "f32")],
        ),
        generic(
            "%y",
            [("%c", x), ("%v", r), ("%g", w), ("%b", w)],
            [("%e", x)],
            ["d0, d1", "d0", "d1", "d1", "d0, d1"],
            "pp",
            """%a = arith.divf %i1, %n : f32
%d = arith.addf %a, %eps : f32
%h = math.rsqrt %d : f32
%j = arith.mulf %i0, %h : f32
%l = arith.mulf %j, %i2 : f32
%q = arith.addf %l, %i3 : f32""",
            [("%q", "f32")],
        ),
    ]
    return function(
        [("x", (rows, width), "f32"), ("g", (width,), "f32"), ("b", (width,), "f32")], [], "\n".join(lines), [("%y", x)]
    )


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 5), (7, 96), (2, 1000)])
def test_layernorm(rows: int, width: int) -> None:
    check(layernorm(rows, width), family="rows" if width > 1 else "", bits=15)


def test_a_sum_over_normed_rows_makes_each_statistic_once() -> None:
    """One workgroup runs over all rows: what a row is divided by is made per row, not per element of it."""
    x, r, t = tensor((5, 40)), tensor((5,)), tensor((40,))
    squares = "%q = arith.mulf %i0, %i0 : f32\n%p = arith.addf %q, %o0 : f32"
    lines = [
        empty("e", (5, 40)),
        fill("z", "0.0", (5,)),
        fill("w", "0.0", (40,)),
        generic("%s", [("%x", x)], [("%z", r)], ["d0, d1", "d0"], "pr", squares, [("%p", "f32")]),
        generic(
            "%m", [("%x", x), ("%s", r)], [("%z", r)], ["d0, d1", "d0", "d0"], "pr",
            "%q = arith.divf %i0, %i1 : f32\n%p = arith.addf %q, %o0 : f32", [("%p", "f32")],
        ),
        generic(
            "%y", [("%x", x), ("%s", r), ("%m", r)], [("%e", x)], ["d0, d1", "d0", "d0", "d0, d1"], "pp",
            "%q = arith.divf %i0, %i1 : f32\n%p = arith.addf %q, %i2 : f32", [("%p", "f32")],
        ),
        generic("%c", [("%y", x)], [("%w", t)], ["d0, d1", "d1"], "rp", "%p = arith.addf %i0, %o0 : f32",
                [("%p", "f32")]),
    ]  # fmt: skip
    text = function([("x", (5, 40), "f32")], [], "\n".join(lines), [("%c", t)])
    assert _depth(build(parse(text), machine()).kernel.body.ops) == 3  # workgroups, rows, elements
    check(text)


def _depth(ops: Sequence[Any]) -> int:
    """How deep loops are nested."""
    return max((1 + _depth(op.body.ops) for op in ops if isinstance(op, Loop)), default=0)


def test_norm_over_columns() -> None:
    """The reduced dimension is the outer one: lanes run along the columns."""
    x, r = tensor((9, 21)), tensor((21,))
    lines = [
        empty("e", (9, 21)),
        fill("z", "0.0", (21,)),
        generic(
            "%s", [("%x", x)], [("%z", r)], ["d1, d0", "d0"], "pr", "%q = arith.addf %i0, %o0 : f32", [("%q", "f32")]
        ),
        generic(
            "%y",
            [("%x", x), ("%s", r)],
            [("%e", x)],
            ["d0, d1", "d1", "d0, d1"],
            "pp",
            "%q = arith.divf %i0, %i1 : f32",
            [("%q", "f32")],
        ),
    ]
    check(function([("x", (9, 21), "f32")], [], "\n".join(lines), [("%y", x)]), bits=12)


def test_everything_is_normalised() -> None:
    """A reduction to one number that every element needs: a single workgroup."""
    x, r = tensor((6, 21)), tensor(())
    lines = [
        empty("e", (6, 21)),
        fill("z", "0.0", ()),
        generic(
            "%s", [("%x", x)], [("%z", r)], ["d0, d1", ""], "rr", "%q = arith.addf %i0, %o0 : f32", [("%q", "f32")]
        ),
        generic(
            "%y",
            [("%x", x), ("%s", r)],
            [("%e", x)],
            ["d0, d1", "", "d0, d1"],
            "pp",
            "%q = arith.subf %i0, %i1 : f32",
            [("%q", "f32")],
        ),
    ]
    check(function([("x", (6, 21), "f32")], [], "\n".join(lines), [("%y", x), ("%s", r)]))


@pytest.mark.parametrize("channels", [1, 3, 8, 21])
def test_pooling_with_epilogue(channels: int) -> None:
    """Channels-last max pooling, then an op on what it gives."""
    image, window, out = tensor((2, 9, 9, channels)), tensor((3, 3)), tensor((2, 4, 4, channels))
    lines = [
        empty("w", (3, 3)),
        empty("e", (2, 4, 4, channels)),
        fill("lo", "0xFF800000", (2, 4, 4, channels)),
        generic(
            "%m",
            [("%x", image), ("%w", window)],
            [("%lo", out)],
            ["d0, d1 * 2 + d4, d2 * 2 + d5, d3", "d4, d5", "d0, d1, d2, d3"],
            "pppprr",
            "%s = arith.maximumf %o0, %i0 : f32",
            [("%s", "f32")],
        ),
        generic(
            "%y",
            [("%m", out)],
            [("%e", out)],
            ["d0, d1, d2, d3"] * 2,
            "pppp",
            "%s = arith.negf %i0 : f32",
            [("%s", "f32")],
        ),
    ]
    check(function([("x", (2, 9, 9, channels), "f32")], [], "\n".join(lines), [("%y", out)]), family="loop-nest")


def test_matmul_between_elementwise() -> None:
    """The general nest takes contractions too: prologue and epilogue around it."""
    a, b, c = tensor((5, 7)), tensor((7, 19)), tensor((5, 19))
    lines = [
        empty("ea", (5, 7)),
        empty("ec", (5, 19)),
        fill("z", "0.0", (5, 19)),
        generic("%p", [("%a", a)], [("%ea", a)], ["d0, d1"] * 2, "pp", "%s = math.tanh %i0 : f32", [("%s", "f32")]),
        generic(
            "%m",
            [("%p", a), ("%b", b)],
            [("%z", c)],
            ["d0, d2", "d2, d1", "d0, d1"],
            "ppr",
            "%t = arith.mulf %i0, %i1 : f32\n%s = arith.addf %o0, %t : f32",
            [("%s", "f32")],
        ),
        generic("%y", [("%m", c)], [("%ec", c)], ["d0, d1"] * 2, "pp", "%s = math.exp %i0 : f32", [("%s", "f32")]),
    ]
    check(function([("a", (5, 7), "f32"), ("b", (7, 19), "f32")], [], "\n".join(lines), [("%y", c)]), bits=12)


def test_window_over_a_reduction() -> None:
    """A reduction read through a window: stored whole inside each workgroup, or pulled; never wrong."""
    x, r, w, out = tensor((10, 6)), tensor((10,)), tensor((3,)), tensor((8,))
    lines = [
        empty("w", (3,)),
        fill("z", "0.0", (10,)),
        fill("z2", "0.0", (8,)),
        generic(
            "%s", [("%x", x)], [("%z", r)], ["d0, d1", "d0"], "pr", "%q = arith.addf %i0, %o0 : f32", [("%q", "f32")]
        ),
        generic(
            "%y",
            [("%s", r), ("%w", w)],
            [("%z2", out)],
            ["d0 + d1", "d1", "d0"],
            "pr",
            "%q = arith.addf %i0, %o0 : f32",
            [("%q", "f32")],
        ),
    ]
    check(function([("x", (10, 6), "f32")], [], "\n".join(lines), [("%y", out)]))


def test_dear_value_is_read_twice() -> None:
    """A dear value that a row reduction and its consumer both read is made once."""
    check(softmax((6, 40)), family="rows")


def test_gram_like_reads_of_one_value() -> None:
    """One computed value read as itself and transposed: neither axis can be the grid's."""
    x = tensor((9, 9))
    lines = [
        empty("e", (9, 9)),
        generic("%p", [("%x", x)], [("%e", x)], ["d0, d1"] * 2, "pp", "%s = math.exp %i0 : f32", [("%s", "f32")]),
        generic(
            "%y",
            [("%p", x), ("%p", x)],
            [("%e", x)],
            ["d0, d1", "d1, d0", "d0, d1"],
            "pp",
            "%s = arith.addf %i0, %i1 : f32",
            [("%s", "f32")],
        ),
    ]
    check(function([("x", (9, 9), "f32")], [], "\n".join(lines), [("%y", x), ("%p", x)]))


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("kept", [[0], [1]])
def test_halves_are_summed_in_f32(element: str, kept: list[int]) -> None:
    """4096 ones: a sum rounded after every step stops at 2048 in f16 and at 256 in bf16."""
    text = reduce(
        (3, 4096) if kept == [0] else (4096, 9), kept, f"%s = arith.addf %o0, %i0 : {element}", "0.0", element
    )
    view = parse(text)
    ones = np.ones((3, 4096) if kept == [0] else (4096, 9), numpy_dtype(element_of(view.tensors[0])))
    (found,) = build(view, machine())(ones, parts=1)
    np.testing.assert_array_equal(found.astype(np.float32), 4096)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_half_softmax_like_rows(element: str) -> None:
    check(reduce((5, 61), [0], f"%q = math.exp %i0 : {element}\n%s = arith.addf %q, %o0 : {element}", "0.0", element))


@pytest.mark.parametrize("columns", [63, 130, 300])
def test_a_cheap_reduction_beside_functions_has_several_sums(columns: int):
    """Where a row is long enough to add them up in the end: each step waits for one of them only."""
    text = f"(float[8, {columns}] x) => (float[8, {columns}] y) {{ y = LogSoftmax <axis = -1> (x) }}"
    code = emit(onnx_model(text), "kernel", target="cpu:avx512", threads=1)
    largest, *_, exponentials = re.findall(r"^ *(%.*) = for .* with ", code, re.M)
    assert largest.count("%") == (4 if columns >= 64 else 1) and exponentials.count("%") == 1
