"""Structured ops: vectorised evaluation equals the plain loops, whatever the maps, the body and the dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import linalg
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.evaluation import contraction, evaluate_function
from tests.equivalence import random_arguments
from tests.unit.analysis.generics import generic
from tests.unit.evaluation.reference import evaluate_point_by_point

Array = NDArray[Any]


def check(function: FuncOp, seed: int = 0) -> list[Array]:
    """Compare both evaluations on random operands."""
    (op,) = (op for op in function.walk() if isinstance(op, linalg.ops.GenericOp))
    args = random_arguments(function, seed)
    expected = evaluate_point_by_point(op, args)
    got = evaluate_function(function, args)
    for a, b in zip(expected, got, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind == "f":
            np.testing.assert_allclose(
                b.astype(np.float64), a.astype(np.float64), rtol=2e-5 if a.dtype.itemsize > 2 else 2e-2, atol=1e-5
            )
        else:
            np.testing.assert_array_equal(a, b)
    return got


MULTIPLY_ADD = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"
MULTIPLY_ADD_I32 = """%e0 = arith.extsi %a0 : i8 to i32
  %e1 = arith.extsi %a1 : i8 to i32
  %m = arith.muli %e0, %e1 : i32
  %s = arith.addi %a2, %m : i32
  linalg.yield %s : i32"""


@pytest.mark.parametrize(
    ("maps", "kinds", "ins", "out"),
    [
        (["d0, d2", "d2, d1", "d0, d1"], "ppr", ["3x5", "5x4"], "3x4"),
        (["d0, d2", "d1, d2", "d1, d0"], "ppr", ["3x5", "4x5"], "4x3"),
        (["d0, d1, d3", "d0, d3, d2", "d0, d1, d2"], "pppr", ["2x3x5", "2x5x4"], "2x3x4"),
        (["d0, d1, d3", "d3, d2", "d0, d1, d2"], "pppr", ["2x3x5", "5x4"], "2x3x4"),
        (["d0 * 2 + d2, d3", "d2, d3, d1", "d0, d1"], "pprr", ["9x3", "3x3x2"], "4x2"),
        (["d0 + d2 * 2, d1", "d2, d1", "d0, d1"], "ppr", ["8x3", "2x3"], "6x3"),
        (["d0, d1", "d1", "d0"], "pr", ["3x70"], "3"),
        (["d0, d1", "d0, d1", "d0"], "pr", ["3x70", "3x70"], "3"),
        (["d0", "d1", "d0"], "pr", ["3", "5"], "3"),
        (["d0", "d1", ""], "rr", ["3", "5"], ""),
        (["d0, 0", "d0, d1", "d1"], "rp", ["3x1", "3x5"], "5"),
    ],
    ids=str,
)
def test_sums_of_products(maps: list[str], kinds: str, ins: list[str], out: str):
    ins = ins if len(ins) == 2 else [ins[0], "70"]
    tensors = [f"tensor<{shape}xf32>" for shape in ins]
    check(generic(maps, kinds, tensors, [f"tensor<{out}{'x' if out else ''}f32>"], MULTIPLY_ADD))


def test_integer_products_are_exact_and_wrap():
    check(
        generic(
            ["d0, d2", "d2, d1", "d0, d1"],
            "ppr",
            ["tensor<3x5xi8>", "tensor<5x4xi8>"],
            ["tensor<3x4xi32>"],
            MULTIPLY_ADD_I32,
        )
    )
    function = generic(
        ["d0", "d0", ""],
        "r",
        ["tensor<2xi32>"] * 2,
        ["tensor<i32>"],
        "%m = arith.muli %a0, %a1 : i32\n %s = arith.addi %a2, %m : i32\n linalg.yield %s : i32",
    )
    big = np.array([2**20 + 1, 2**20], np.int32)
    (got,) = evaluate_function(function, [big, big, np.int32(5)])
    assert int(got) == np.array((2**20 + 1) ** 2 + 2**40 + 5, np.int64).astype(np.int32)


def test_a_large_window_is_unrolled_piecewise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(contraction, "COPY_LIMIT_BYTES", 64)
    monkeypatch.setattr(contraction, "SHORT_REDUCTION", 1)
    check(
        generic(
            ["d0 + d2, d3", "d2, d3, d1", "d0, d1"],
            "pprr",
            ["tensor<9x3xf32>", "tensor<3x3x2xf32>"],
            ["tensor<7x2xf32>"],
            MULTIPLY_ADD,
        )
    )


def test_half_floats_are_summed_in_float32():
    body = MULTIPLY_ADD.replace("f32", "f16")
    check(
        generic(
            ["d0, d2", "d2, d1", "d0, d1"], "ppr", ["tensor<3x64xf16>", "tensor<64x4xf16>"], ["tensor<3x4xf16>"], body
        )
    )
    ones = generic(
        ["d0", ""], "r", ["tensor<4096xf16>"], ["tensor<f16>"], "%s = arith.addf %a0, %a1 : f16\n linalg.yield %s : f16"
    )
    (total,) = evaluate_function(ones, [np.ones(4096, np.float16), np.float16(0)])
    assert float(total) == 4096
    product = generic(["d0", "d0", ""], "r", ["tensor<2xf16>"] * 2, ["tensor<f16>"], body)
    left, right = np.array([300, 300], np.float16), np.array([300, -300], np.float16)
    assert float(evaluate_function(product, [left, right, np.float16(0)])[0]) == 0  # 300 * 300 is no number of 16 bits


@pytest.mark.parametrize(
    "body",
    [
        "%s = arith.subf %a1, %a0 : f32\n linalg.yield %s : f32",
        "%s = arith.subf %a0, %a1 : f32\n linalg.yield %s : f32",
        "linalg.yield %a0 : f32",
        "linalg.yield %a1 : f32",
        "%d = arith.addf %a1, %a1 : f32\n %s = arith.addf %d, %a0 : f32\n linalg.yield %s : f32",
    ],
)
def test_what_is_no_sum_goes_step_by_step(body: str):
    check(generic(["d0, d1", "d0"], "pr", ["tensor<3x5xf32>"], ["tensor<3xf32>"], body))


def test_a_product_of_bits_is_a_sum_without_carry():
    body = "%m = arith.muli %a0, %a1 : i1\n %s = arith.addi %a2, %m : i1\n linalg.yield %s : i1"
    bits = generic(["d0", "d0", ""], "r", ["tensor<3xi1>"] * 2, ["tensor<i1>"], body)
    for start in (False, True):
        (total,) = evaluate_function(bits, [np.array([1, 1, 0], bool), np.array([1, 1, 1], bool), np.bool_(start)])
        assert bool(total) is start


def test_steps_see_what_is_outside_of_the_body():
    body = """%i = linalg.index 1 : index
    %t = tensor.extract %x0[%i, %i] : tensor<5x5xf32>
    %d = arith.subf %t, %a1 : f32
    %s = arith.addf %d, %a0 : f32
    linalg.yield %s : f32"""
    function = generic(["d0, d1", "d0"], "pr", ["tensor<5x5xf32>"], ["tensor<5xf32>"], body)
    x, start = np.arange(25, dtype=np.float32).reshape(5, 5), np.ones(5, np.float32)
    expected = start.copy()
    for column in range(5):
        expected = x[column, column] - expected + x[:, column]
    np.testing.assert_array_equal(evaluate_function(function, [x, start])[0], expected)


@pytest.mark.parametrize("op", ["addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"])
def test_float_reductions(op: str):
    check(
        generic(
            ["d0, d1", "d0"],
            "pr",
            ["tensor<3x5xf32>"],
            ["tensor<3xf32>"],
            f"%s = arith.{op} %a0, %a1 : f32\n linalg.yield %s : f32",
        )
    )


@pytest.mark.parametrize("type_", ["i8", "i1", "i32"])
@pytest.mark.parametrize("op", ["addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"])
def test_integer_reductions(op: str, type_: str):
    body = f"%s = arith.{op} %a1, %a0 : {type_}\n linalg.yield %s : {type_}"
    check(generic(["d0, d1", "d0"], "pr", [f"tensor<3x5x{type_}>"], [f"tensor<3x{type_}>"], body))


def test_a_term_that_does_not_use_a_loop_is_repeated():
    check(
        generic(
            ["d0", "d1", "d0"],
            "pr",
            ["tensor<3xf32>", "tensor<4xf32>"],
            ["tensor<3xf32>"],
            "%s = arith.addf %a0, %a2 : f32\n linalg.yield %s : f32",
        )
    )


def test_two_outputs_that_separate():
    body = """%s = arith.addf %a0, %a1 : f32
      %q = arith.mulf %a0, %a0 : f32
      %t = arith.addf %q, %a2 : f32
      linalg.yield %s, %t : f32, f32"""
    check(generic(["d0, d1", "d0", "d0"], "pr", ["tensor<3x5xf32>"], ["tensor<3xf32>", "tensor<3xf32>"], body))


def test_an_arg_max_runs_in_order():
    body = """%i = linalg.index 1 : index
      %k = arith.index_cast %i : index to i32
      %better = arith.cmpf ogt, %a0, %a1 : f32
      %v = arith.select %better, %a0, %a1 : f32
      %w = arith.select %better, %k, %a2 : i32
      linalg.yield %v, %w : f32, i32"""
    function = generic(["d0, d1", "d0", "d0"], "pr", ["tensor<3x5xf32>"], ["tensor<3xf32>", "tensor<3xi32>"], body)
    check(function)
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    _, where = evaluate_function(function, [x, np.full(3, -np.inf, np.float32), np.zeros(3, np.int32)])
    np.testing.assert_array_equal(where, x.argmax(1))


@pytest.mark.parametrize(
    ("maps", "shapes"),
    [
        (["d1, d0", "d0, d1"], ["4x3", "3x4"]),
        (["d1", "d0, d1"], ["4", "3x4"]),
        (["d0, 0", "d0, d1"], ["3x1", "3x4"]),
        (["d0, d1", "d1, d0"], ["3x4", "4x3"]),
        (["d0 floordiv 2, d1 mod 2", "d0, d1"], ["2x2", "3x4"]),
        (["2 - d0, d1", "d0, d1"], ["3x4", "3x4"]),
        (["d0, d1", "d0 * 2, d1"], ["3x4", "6x4"]),
        (["d0, d1", "d0, 0, d1"], ["3x4", "3x1x4"]),
    ],
    ids=str,
)
def test_elementwise_maps(maps: list[str], shapes: list[str]):
    body = "%v = math.exp %a0 : f32\n linalg.yield %v : f32"
    check(generic(maps, "pp", [f"tensor<{shapes[0]}xf32>"], [f"tensor<{shapes[1]}xf32>"], body))


def test_the_initial_value_is_read_where_the_body_reads_it():
    check(
        generic(
            ["d0, d1", "d1, d0"],
            "pp",
            ["tensor<3x4xf32>"],
            ["tensor<4x3xf32>"],
            "%v = arith.subf %a1, %a0 : f32\n linalg.yield %v : f32",
        )
    )


def test_no_points():
    function = generic(
        ["d0, d1", "d0"],
        "pr",
        ["tensor<3x0xf32>"],
        ["tensor<3xf32>"],
        "%s = arith.maximumf %a0, %a1 : f32\n linalg.yield %s : f32",
    )
    init = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(evaluate_function(function, [np.zeros((3, 0), np.float32), init])[0], init)


def test_a_map_that_leaves_its_operand_is_refused():
    function = generic(["d0, d1", "d0, d1"], "pp", ["tensor<?x4xf32>"], ["tensor<?x4xf32>"], "linalg.yield %a0 : f32")
    with pytest.raises(FuselineError, match=r"E0305.*loop d0 is 3 by one operand and 2 by another"):
        evaluate_function(function, [np.ones((3, 4), np.float32), np.ones((2, 4), np.float32)])
    window = generic(["d0 + d1", "d1", "d0"], "pr", ["tensor<?xf32>", "tensor<?xf32>"], ["tensor<?xf32>"], MULTIPLY_ADD)
    with pytest.raises(FuselineError, match=r"E0305.*dimension 0 of size 4 is read at 0\.\.4"):
        evaluate_function(window, [np.ones(4, np.float32), np.ones(2, np.float32), np.ones(4, np.float32)])


def test_an_output_indexed_by_a_reduction_is_refused():
    function = generic(
        ["d0, d1", "d0, d1"],
        "pr",
        ["tensor<3x4xf32>"],
        ["tensor<3x4xf32>"],
        "%s = arith.addf %a0, %a1 : f32\n linalg.yield %s : f32",
    )
    with pytest.raises(FuselineError, match=r"E0305.*indexed by a reduction loop"):
        evaluate_function(function, random_arguments(function, 0))


def test_a_result_that_names_the_reduction_loops_has_every_element():
    maps, body = (
        ["d0, d1", "d0", "d0, d1", "d0"],
        "%e = math.exp %a0 : f32\n %p = arith.mulf %e, %a1 : f32\n %s = arith.addf %e, %a3 : f32",
    )
    ins, outs = ["tensor<3x5xf32>", "tensor<3xf32>"], ["tensor<3x5xf32>", "tensor<3xf32>"]
    check(generic(maps, "pr", ins, outs, f"{body}\n linalg.yield %p, %s : f32, f32"))
    best = "%c = arith.cmpf ogt, %a0, %a3 : f32\n %p = arith.negf %a0 : f32\n %s = arith.select %c, %a0, %a3 : f32"
    check(generic(maps, "pr", ins, outs, f"{best}\n linalg.yield %p, %s : f32, f32"))


def test_a_running_total_in_every_element_is_refused():
    text = "%s = arith.addf %a0, %a2 : f32\n linalg.yield %s, %s : f32, f32"
    function = generic(
        ["d0, d1", "d0, d1", "d0"], "pr", ["tensor<3x5xf32>"], ["tensor<3x5xf32>", "tensor<3xf32>"], text
    )
    with pytest.raises(FuselineError, match="E0305.*indexed by a reduction loop"):
        evaluate_function(function, random_arguments(function, 1))


@pytest.mark.parametrize("reductions", [(2,), (1, 2)])
def test_a_sum_of_no_products_is_zero(reductions: tuple[int, ...]) -> None:
    a, b = np.ones((3, 1, 0), np.float32), np.ones((1, 4, 0), np.float32)
    got = contraction.sum_of_products(a, b, (3, 4, 0), reductions)
    assert got.shape == (3, 1 if 1 in reductions else 4, 1) and got.dtype == np.float32
    assert not got.any()


def test_an_output_that_names_some_of_the_summed_loops_is_refused() -> None:
    """Which of the elements that one place is written with would stay?"""
    function = generic(
        ["d0, d1, d2", "d0, d1"], "prr", ["tensor<2x3x4xf32>"], ["tensor<2x3xf32>"], "linalg.yield %a0 : f32"
    )
    with pytest.raises(FuselineError, match="an output is indexed by a reduction loop"):
        evaluate_function(function, random_arguments(function, 0))
