"""Every named linalg op: parsed, printed, read back, generalised, and the same numbers each time."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_function, main_function
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.generalize_named_ops import GeneralizeNamedOpsPass
from tests.equivalence import random_arguments
from tests.unit.ir.named_op_programs import NAMED_PROGRAMS

IREE_OPT = shutil.which("iree-opt")


def _function(text: str) -> FuncOp:
    return main_function(parse_module(text, new_context()))


def _arguments(function: FuncOp) -> list[np.ndarray]:
    """Random; floats positive, so that logarithms and powers of them are numbers."""
    args = random_arguments(function, 3)
    return [np.abs(a) + a.dtype.type(0.5) if a.dtype.kind == "f" else a for a in args]


@pytest.mark.parametrize("name", NAMED_PROGRAMS)
def test_the_printed_form_reads_back(name: str):
    module = parse_module(NAMED_PROGRAMS[name], new_context())
    for generic in (False, True):
        again = parse_module(print_module(module, generic=generic), new_context())
        assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize("name", NAMED_PROGRAMS)
def test_generalised_ops_compute_the_same(name: str):
    ctx = new_context()
    module = parse_module(NAMED_PROGRAMS[name], ctx)
    function = main_function(module)
    args = _arguments(function)
    expected = evaluate_function(function, args)
    GeneralizeNamedOpsPass().apply(ctx, module)
    module.verify()
    left = {op.name for op in module.walk() if op.name.startswith("linalg.")}
    assert left <= {"linalg.generic", "linalg.yield", "linalg.fill"}
    for a, b in zip(expected, evaluate_function(main_function(module), args), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5)


@pytest.mark.iree
@pytest.mark.skipif(IREE_OPT is None, reason="needs iree-opt")
@pytest.mark.parametrize("name", NAMED_PROGRAMS)
def test_iree_reads_what_is_printed(name: str):
    ctx = new_context()
    module = parse_module(NAMED_PROGRAMS[name], ctx)
    parts = [print_module(module, locations=True), print_module(module, generic=True)]
    GeneralizeNamedOpsPass().apply(ctx, module)
    parts.append(print_module(module))
    assert IREE_OPT is not None
    run = subprocess.run(
        [IREE_OPT, "-", "--split-input-file"],
        input="\n// -----\n".join(parts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_numbers_of_named_ops():
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 9, (4, 5)).astype(np.int8), rng.integers(-9, 9, (5, 6)).astype(np.int8)
    zero = np.zeros((4, 6), np.int32)
    (product,) = evaluate_function(_function(NAMED_PROGRAMS["matmul_i8"]), [a, b, zero])
    np.testing.assert_array_equal(product, a.astype(np.int32) @ b.astype(np.int32))
    (product,) = evaluate_function(_function(NAMED_PROGRAMS["matmul_unsigned"]), [a, b, zero])
    np.testing.assert_array_equal(product, a.view(np.uint8).astype(np.int32) @ b.view(np.uint8).astype(np.int32))
    (product,) = evaluate_function(
        _function(NAMED_PROGRAMS["quantized_matmul"]), [a, b, np.int32(3), np.int32(-2), zero]
    )
    np.testing.assert_array_equal(product, (a.astype(np.int32) - 3) @ (b.astype(np.int32) + 2))
    x = rng.standard_normal((4, 5)).astype(np.float32)
    (rows,) = evaluate_function(_function(NAMED_PROGRAMS["softmax"]), [x, x])
    np.testing.assert_allclose(rows, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-6)


def test_a_pack_that_needs_a_padding_value_and_has_none_is_refused():
    text = NAMED_PROGRAMS["pack"].replace(" padding_value(%c : f32)", "")
    ctx = new_context()
    module = parse_module(text, ctx)
    with pytest.raises(FuselineError, match=r"E0106.*no padding_value"):
        GeneralizeNamedOpsPass().apply(ctx, module)
    with pytest.raises(FuselineError, match=r"E0305.*no padding_value"):
        function = main_function(module)
        evaluate_function(function, random_arguments(function, 0))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("reduce_short", "dimensions = [1]", "dimensions = [2]", "do not increase within rank 2"),
        ("reduce", "dimensions = [0]", "dimensions = [0, 1]", "the output's rank"),
        ("softmax", "dimension(1)", "dimension(2)", "dimension 2 of a tensor of rank 2"),
        ("pack", "outer_dims_perm = [1, 0]", "outer_dims_perm = [1, 1]", "no permutation"),
        ("pack", "inner_dims_pos = [0, 1]", "inner_dims_pos = [0, 0]", "do not describe tiles"),
        ("map", "(%in: f32, %in_0: f32, %init: f32)", "(%in: f32, %in_0: f32)", "expected 3 body arguments"),
    ],
)
def test_wrong_ops_do_not_verify(name: str, old: str, new: str, message: str):
    with pytest.raises(FuselineError, match="E0302") as caught:
        parse_module(NAMED_PROGRAMS[name].replace(old, new), new_context())
    assert message in caught.value.message


def test_an_unknown_elementwise_kind_does_not_parse():
    with pytest.raises(FuselineError, match="E0301.*unknown elementwise kind sinus"):
        parse_module(NAMED_PROGRAMS["elementwise_exp"].replace("<exp>", "<sinus>"), new_context())
