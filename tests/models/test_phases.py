"""Every pass of the pipeline on small models: the program computes the same before and after, no op loses its
provenance, every source node is present or recorded as eliminated, and another run of the pass changes nothing it
computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp

from fuseline.evaluation import evaluate_module, main_function
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.flow import ReturnOp as FlowReturnOp
from fuseline.ir.provenance import provenance
from fuseline.ir.text import print_module
from fuseline.passes.registry import make_pass
from fuseline.pipeline import PASS_PHASES
from tests.equivalence import random_arguments
from tests.small_models import SMALL_MODELS

pytestmark = pytest.mark.models

_TERMINATORS = (FuncOp, ReturnOp, FlowReturnOp)


def _steps() -> list[str]:
    return [name for names in PASS_PHASES.values() for name in names]


def _check_values(
    module: ModuleOp, ctx: CompilerContext, args: list[NDArray[Any]], expected: list[NDArray[Any]], name: str
) -> None:
    for a, b in zip(expected, evaluate_module(module, args, ctx.resources), strict=True):
        scale = float(np.abs(a).max()) if a.size else 1.0
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-5 * max(scale, 1e-30), err_msg=name)


@pytest.mark.parametrize("model", SMALL_MODELS)
def test_every_pass_keeps_what_the_program_computes(model: str):
    ctx = new_context()
    module = read_onnx(SMALL_MODELS[model](), ctx)
    args = random_arguments(main_function(module), 11)
    expected = evaluate_module(module, args, ctx.resources)
    other = evaluate_module(module, random_arguments(main_function(module), 12), ctx.resources)
    assert all(not np.array_equal(a, b) for a, b in zip(expected, other, strict=True)), (
        "the outputs do not depend on the inputs"
    )
    for name in _steps():
        make_pass(name).apply(ctx, module)
        module.verify()
        _check_values(module, ctx, args, expected, name)


@pytest.mark.parametrize("model", SMALL_MODELS)
def test_every_source_node_is_present_or_recorded(model: str):
    proto = SMALL_MODELS[model]()
    ctx = new_context()
    module = read_onnx(proto, ctx)
    for name in _steps():
        make_pass(name).apply(ctx, module)
        present = {node for op in module.walk() for node in provenance(op)}
        missing = {node.name for node in proto.graph.node} - present - ctx.records.eliminated.keys()
        assert not missing, name
        naked = [
            op.name
            for op in main_function(module).walk()
            if not provenance(op) and not isinstance(op, _TERMINATORS) and op.results
        ]
        assert not [op for op in naked if op not in ("arith.constant", "tensor.dim")], name


@pytest.mark.parametrize("model", SMALL_MODELS)
def test_running_a_pass_again_changes_nothing(model: str):
    ctx = new_context()
    module = read_onnx(SMALL_MODELS[model](), ctx)
    for name in _steps():
        make_pass(name).apply(ctx, module)
        once, weights = print_module(module, locations=True), set(ctx.resources)
        make_pass(name).apply(ctx, module)
        assert print_module(module, locations=True) == once, name
        assert set(ctx.resources) == weights, name
