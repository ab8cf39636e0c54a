"""Contractions against NumPy: sizes, orientations, batches, epilogues; every buffer ends at an unreadable page."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects import math as mlir_math
from xdsl.ir import SSAValue

from fuseline.ir.build import Body, dims_map
from fuseline.ir.target_description import TargetDescription
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, kernel_of, plan_of, random

FAMILY = ContractionFamily()
SIZES = [
    (1, 1, 1),
    (1, 8, 3),
    (5, 16, 7),
    (6, 17, 8),
    (13, 1, 9),
    (7, 33, 1),
    (49, 40, 65),
    (128, 96, 64),
    (1, 200, 130),
    (3, 1000, 17),
]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_of_any_size(m: int, n: int, k: int, constant: bool):
    p = Program((m, k), (k, n), constants=[1] if constant else [])
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    a, b = random((m, k), 1), random((k, n), 2)
    assert_close(run(a, b)[0], a.astype(np.float64) @ b)
    assert_close(run(a, b, at_end=False)[0], a.astype(np.float64) @ b)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 70),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_products_of_any_orientation(m: int, n: int, k: int, turn_a: bool, turn_b: bool, turn_c: bool, constant: bool):
    p = Program((k, m) if turn_a else (m, k), (n, k) if turn_b else (k, n), constants=[1] if constant else [])
    maps = [
        dims_map(3, [2, 0] if turn_a else [0, 2]),
        dims_map(3, [1, 2] if turn_b else [2, 1]),
        dims_map(3, [1, 0] if turn_c else [0, 1]),
    ]
    out = p.multiply_add(p.x[0], p.x[1], p.zeros(*((n, m) if turn_c else (m, n))), maps, "ppr")
    run = Runner(FAMILY, p.dispatch(out))
    a, b = random((m, k), m), random((k, n), n)
    expected = a.astype(np.float64) @ b
    found = run(a.T.copy() if turn_a else a, b.T.copy() if turn_b else b)[0]
    assert_close(found, expected.T if turn_c else expected, least=1.0)


def test_bias_residual_and_relu_are_an_epilogue():
    m, n, k = 19, 40, 24
    p = Program((m, k), (k, n), (n,), (m, n), constants=[1, 2])
    y = p.matmul(p.x[0], p.x[1])
    y = p.relu(p.add(p.bias(y, p.x[2], 1), p.x[3]))
    run = Runner(FAMILY, p.dispatch(y))
    a, b, bias, residual = random((m, k), 1), random((k, n), 2), random((n,), 3), random((m, n), 4)
    assert_close(run(a, b, bias, residual)[0], np.maximum(a.astype(np.float64) @ b + bias + residual, 0))


@pytest.mark.parametrize("m", [19, "m"])
def test_a_heavy_epilogue_is_written_once(m: int | str):
    """GELU, with the sum itself as a second result."""
    n, k = 21, 10
    p = Program((m, k), (k, n), constants=[1])
    y = p.matmul(p.x[0], p.x[1])

    def gelu(b: Body) -> SSAValue:
        scaled = b.op(arith.MulfOp, b.args[0], b.constant(0.5**0.5, p.element))
        half = b.op(arith.MulfOp, b.args[0], b.constant(0.5, p.element))
        return b.op(arith.MulfOp, half, b.op(arith.AddfOp, b.op(mlir_math.ErfOp, scaled), b.constant(1.0, p.element)))

    g = p.elementwise([y], p.empty(m, n), gelu, [dims_map(2, [0, 1])] * 2)
    run = Runner(FAMILY, p.dispatch(g, y))
    assert isinstance(run.plan, ContractionPlan) and run.plan.stages
    a, b = random((19, k), 1), random((k, n), 2)
    found, total = run(a, b, sizes={"m": 19} if m == "m" else None)
    expected = a.astype(np.float64) @ b
    assert_close(total, expected)
    assert_close(found, expected / 2 * (1 + np.vectorize(math.erf)(expected * 0.5**0.5)))


def test_a_sum_that_starts_from_a_tensor():
    m, n, k = 9, 21, 12
    p = Program((m, k), (k, n), (m, n))
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(p.x[0], p.x[1], p.x[2], maps, "ppr")))
    a, b, c = random((m, k), 1), random((k, n), 2), random((m, n), 3)
    assert_close(run(a, b, c)[0], c + a.astype(np.float64) @ b)


def test_two_results_one_of_them_transposed():
    m, n, k = 11, 18, 7
    p = Program((m, k), (k, n), constants=[1])
    y = p.matmul(p.x[0], p.x[1])
    relu = p.relu(y)
    turned = p.elementwise([relu], p.empty(n, m), lambda b: b.args[0], [dims_map(2, [0, 1]), dims_map(2, [1, 0])])
    run = Runner(FAMILY, p.dispatch(y, turned))
    a, b = random((m, k), 1), random((k, n), 2)
    plain, other = run(a, b)
    expected = a.astype(np.float64) @ b
    assert_close(plain, expected)
    assert_close(other, np.maximum(expected, 0).T)


@pytest.mark.parametrize("h,s,t,e", [(3, 12, 20, 8), (2, 128, 128, 32), (1, 5, 3, 4), (4, 1, 9, 16)])
def test_attention_scores(h: int, s: int, t: int, e: int):
    """q[s, h, e], k[t, h, e] -> [h, s, t]"""
    p = Program((s, h, e), (t, h, e))
    maps = [dims_map(4, [1, 0, 3]), dims_map(4, [2, 0, 3]), dims_map(4, [0, 1, 2])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(h, s, t), maps, "pppr")))
    q, k = random((s, h, e), 1), random((t, h, e), 2)
    assert_close(run(q, k)[0], np.einsum("she,the->hst", q, k, dtype=np.float64))


def test_attention_values_written_permuted():
    h, s, t, e = 3, 14, 11, 12
    p = Program((h, s, t), (t, h, e))
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [3, 0, 2]), dims_map(4, [1, 0, 2])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(s, h, e), maps, "pppr")))
    a, v = random((h, s, t), 1), random((t, h, e), 2)
    assert_close(run(a, v)[0], np.einsum("hst,the->she", a, v, dtype=np.float64))


@pytest.mark.parametrize("constant", [False, True])
def test_several_row_column_and_reduction_loops(constant: bool):
    p = Program((2, 5, 3, 4), (3, 6, 4, 10), constants=[1] if constant else [])
    maps = [dims_map(6, [0, 1, 4, 5]), dims_map(6, [4, 2, 5, 3]), dims_map(6, [0, 2, 1, 3])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(2, 6, 5, 10), maps, "pppprr")))
    a, b = random((2, 5, 3, 4), 1), random((3, 6, 4, 10), 2)
    assert_close(run(a, b)[0], np.einsum("xyab,ahbd->xhyd", a, b, dtype=np.float64))


@pytest.mark.parametrize("m,n,k", [(1, 1, 1), (7, 20, 9), (128, 130, 40), (6, 16, 8)])
def test_sizes_known_at_run_time(m: int, n: int, k: int):
    p = Program(("m", "k"), ("k", "n"))
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    a, b = random((m, k), 1), random((k, n), 2)
    assert_close(run(a, b, sizes={"m": m, "n": n, "k": k})[0], a.astype(np.float64) @ b)


@pytest.mark.parametrize("m", [1, 5, 6, 13, 64])
def test_rows_known_at_run_time(m: int):
    p = Program(("m", 24), (24, 40), (40,), constants=[1, 2])
    run = Runner(FAMILY, p.dispatch(p.relu(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1))))
    a, b, bias = random((m, 24), 1), random((24, 40), 2), random((40,), 3)
    assert_close(run(a, b, bias, sizes={"m": m})[0], np.maximum(a.astype(np.float64) @ b + bias, 0))


@pytest.mark.parametrize("s", [1, 7, 33])
def test_scores_of_a_length_known_at_run_time(s: int):
    p = Program(("s", 2, 8), ("s", 2, 8))
    maps = [dims_map(4, [1, 0, 3]), dims_map(4, [2, 0, 3]), dims_map(4, [0, 1, 2])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(2, "s", "s"), maps, "pppr")))
    q, k = random((s, 2, 8), 1), random((s, 2, 8), 2)
    assert_close(run(q, k, sizes={"s": s})[0], np.einsum("she,the->hst", q, k, dtype=np.float64))


def test_a_prologue_on_either_side():
    m, n, k = 20, 24, 18
    p = Program((m, k), (k, n))
    a, b = p.relu(p.x[0]), p.relu(p.x[1])
    run = Runner(FAMILY, p.dispatch(p.matmul(a, b)))
    x, w = random((m, k), 1), random((k, n), 2)
    assert_close(run(x, w)[0], np.maximum(x, 0).astype(np.float64) @ np.maximum(w, 0))


def test_double_precision():
    from xdsl.dialects.builtin import f64

    p = Program((9, 11), (11, 13), element=f64)
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    a, b = random((9, 11), 1, np.float64), random((11, 13), 2, np.float64)
    assert_close(run(a, b)[0], a @ b, bits=45)


@pytest.mark.parametrize("k", [1, 9, 40])
def test_turned_columns_of_a_length_known_at_run_time(k: int):
    """Neither a panel nor a block of rows has a known size, so both operands are packed a block of steps at a time."""
    m, n = 10, 19
    p = Program((m, "k"), (n, "k"))
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    view = p.dispatch(p.multiply_add(p.relu(p.x[0]), p.x[1], p.zeros(m, n), maps, "ppr"))
    run = Runner(FAMILY, view)
    assert (run.plan.notes["lhs"], run.plan.notes["rhs"]) == ("packed", "packed")
    assert run.plan.notes["steps"] == "256 at a time"
    a, b = random((m, k), 1), random((n, k), 2)
    assert_close(run(a, b, sizes={"k": k})[0], np.maximum(a, 0).astype(np.float64) @ b.T)


@pytest.mark.parametrize(
    ("m", "n", "k", "mode"), [(64, 48, 20, "packed"), (5, 48, 20, "direct"), (64, 48, 9000, "direct")]
)
def test_columns_are_packed_when_many_rows_read_them(m: int, n: int, k: int, mode: str):
    p = Program((m, k), (k, n))
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    assert run.plan.notes["rhs"] == mode
    a, b = random((m, k), 1), random((k, n), 2)
    assert_close(run(a, b)[0], a.astype(np.float64) @ b)


def test_a_constant_used_twice_is_not_packed():
    p = Program((8, 8), (8, 8), constants=[1])
    run = Runner(FAMILY, p.dispatch(p.add(p.matmul(p.x[0], p.x[1]), p.x[1])))
    assert not run.plan.constant_layouts
    a, b = random((8, 8), 1), random((8, 8), 2)
    assert_close(run(a, b)[0], a.astype(np.float64) @ b + b)


def test_a_reshape_at_the_end_changes_nothing():
    p = Program((6, 5), (5, 8))
    flat = p.collapse(p.matmul(p.x[0], p.x[1]), [[0, 1]])
    a, b = random((6, 5), 1), random((5, 8), 2)
    assert_close(Runner(FAMILY, p.dispatch(flat))(a, b)[0], (a.astype(np.float64) @ b).reshape(-1))


@pytest.mark.parametrize("d", [8, 5])
def test_reshapes_inside_an_epilogue(d: int):
    """[m, h * d] -> expanded to [m, h, d], a bias per head, written as [h, m, d] -> collapsed to [h, m * d], relu."""
    m, h, k = 7, 3, 6
    p = Program((m, k), (k, h * d), (h,), constants=[1, 2])
    y = p.expand(p.matmul(p.x[0], p.x[1]), m, h, d, groups=[[0], [1, 2]])
    maps = [dims_map(3, [1, 0, 2]), dims_map(3, [0]), dims_map(3, [0, 1, 2])]
    y = p.elementwise([y, p.x[2]], p.empty(h, m, d), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), maps)
    y = p.relu(p.collapse(y, [[0], [1, 2]]))
    a, b, bias = random((m, k), 1), random((k, h * d), 2), random((h,), 3)
    expected = (a.astype(np.float64) @ b).reshape(m, h, d).transpose(1, 0, 2) + bias[:, None, None]
    assert_close(Runner(FAMILY, p.dispatch(y))(a, b, bias)[0], np.maximum(expected, 0).reshape(h, m * d))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 600),
    st.integers(1, 600),
    st.integers(1, 9000),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["avx512", "avx2", "neon"]),
)
def test_scratch_stays_within_what_targets_allow(m: int, n: int, k: int, prologue: bool, turned: bool, isa: str):
    p = Program((m, k), (n, k) if turned else (k, n))
    a = p.relu(p.x[0]) if prologue else p.x[0]
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2] if turned else [2, 1]), dims_map(3, [0, 1])]
    view = p.dispatch(p.multiply_add(a, p.x[1], p.zeros(m, n), maps, "ppr"))
    target = machine(isa)
    assert (
        kernel_of(FAMILY, plan_of(FAMILY, view, target), target).scratch_bytes
        <= TargetDescription(isa).scratch_bytes_limit
    )


@pytest.mark.parametrize("m", [1, 4, 29])
def test_a_prologue_over_rows_known_at_run_time(m: int):
    n, k = 18, 21
    p = Program((2, "m", k), (k, n), constants=[1])
    a = p.relu(p.x[0])
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [3, 2]), dims_map(4, [0, 1, 2])]
    run = Runner(FAMILY, p.dispatch(p.multiply_add(a, p.x[1], p.zeros(2, "m", n), maps, "pppr")))
    assert run.plan.notes["lhs"] == "packed"
    x, w = random((2, m, k), 1), random((k, n), 2)
    assert_close(run(x, w, sizes={"m": m})[0], np.maximum(x, 0).astype(np.float64) @ w)
