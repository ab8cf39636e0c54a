"""What holds for every cleanup pass: again changes nothing, provenance is kept or recorded as gone, time grows with the
program."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.provenance import provenance
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.canonicalize import CanonicalizePass
from fuseline.passes.cleanup.cse import CsePass
from fuseline.passes.cleanup.dead_code import DeadCodePass
from fuseline.passes.cleanup.fold_constants import FoldConstantsPass
from fuseline.passes.cleanup.folds.slices import MOST_SHARED_PARTS
from fuseline.passes.cleanup.generalize_named_ops import GeneralizeNamedOpsPass
from tests.steps_taken import steps_taken

CLEANUP: tuple[ModulePass, ...] = (
    GeneralizeNamedOpsPass(),
    CanonicalizePass(),
    CsePass(),
    FoldConstantsPass(),
    DeadCodePass(),
)

PROGRAM = """func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<16x8xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> loc("weights")
  %e = tensor.empty() : tensor<8x16xf32> loc("shape")
  %wt0 = tensor.empty() : tensor<2x2xf32> loc("transpose_w")
  %wt = linalg.transpose ins(%w : tensor<2x2xf32>) outs(%wt0 : tensor<2x2xf32>) permutation = [1, 0] loc("transpose_w")
  %unused = tensor.collapse_shape %wt [[0, 1]] : tensor<2x2xf32> into tensor<4xf32> loc("unused")
  %a = linalg.elementwise <exp> ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32> loc("exp_1")
  %b = linalg.elementwise <exp> ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32> loc("exp_2")
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<8x16xf32> into tensor<128xf32> loc("flatten")
  %d = tensor.expand_shape %c [[0, 1]] output_shape [8, 16] : tensor<128xf32> into tensor<8x16xf32> loc("unflatten")
  %f = linalg.elementwise <add> ins(%d, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>)
      -> tensor<8x16xf32> loc("add")
  %g0 = tensor.empty() : tensor<16x8xf32> loc("transpose")
  %g = linalg.transpose ins(%f : tensor<8x16xf32>) outs(%g0 : tensor<16x8xf32>) permutation = [1, 0] loc("transpose")
  return %g : tensor<16x8xf32> loc("output")
}"""
NODES = {
    "weights",
    "shape",
    "transpose_w",
    "unused",
    "exp_1",
    "exp_2",
    "flatten",
    "unflatten",
    "add",
    "transpose",
    "output",
}


def _run(module: ModuleOp, ctx: CompilerContext, *steps: ModulePass) -> None:
    for step in steps:
        step.apply(ctx, module)
        module.verify()


@pytest.mark.parametrize("step", CLEANUP, ids=lambda step: step.name)
def test_again_changes_nothing(step: ModulePass):
    ctx = new_context()
    module = parse_module(PROGRAM, ctx)
    _run(module, ctx, *CLEANUP, step)
    once, weights = print_module(module, locations=True), dict(ctx.resources)
    _run(module, ctx, step)
    assert print_module(module, locations=True) == once
    assert ctx.resources.keys() == weights.keys()


def test_any_order_ends_in_the_same_program():
    texts: set[str] = set()
    for order in (CLEANUP, CLEANUP[::-1], (*CLEANUP[2:], *CLEANUP[:2])):
        ctx = new_context()
        module = parse_module(PROGRAM, ctx)
        _run(module, ctx, *order, *order, *order)
        texts.add(print_module(module))
    assert len(texts) == 1


def test_after_every_pass_each_node_is_present_or_recorded_as_eliminated():
    ctx = new_context()
    module = parse_module(PROGRAM, ctx)
    for step in CLEANUP:
        _run(module, ctx, step)
        nested = [op for op in module.walk() if op.parent_op() not in (None, module)]
        assert all(provenance(op) for op in nested), step.name
        present = {node for op in nested for node in provenance(op)}
        assert NODES <= present | ctx.records.eliminated.keys(), step.name
        assert not present & ctx.records.eliminated.keys(), step.name
    assert ctx.records.eliminated == {
        "flatten": "canonicalize",
        "unflatten": "canonicalize",
        "unused": "canonicalize",
        "weights": "canonicalize",
        "transpose_w": "canonicalize",
    }
    merged = next(op for op in module.walk() if "exp_1" in provenance(op) and op.name == "linalg.generic")
    assert provenance(merged) == ("exp_1", "exp_2")


def _chain(length: int) -> ModuleOp:
    steps = (
        f"  %v{i + 1} = linalg.elementwise <exp> ins(%v{i} : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>"
        for i in range(length)
    )
    head = "func.func @main(%v0: tensor<8xf32>) -> tensor<8xf32> {\n  %e = tensor.empty() : tensor<8xf32>"
    return parse_module(
        "\n".join([head, *steps, f"  return %v{length} : tensor<8xf32>", "}"]), new_context(), verify=False
    )


def _steps(length: int) -> dict[str, int]:
    """What each pass does on a chain."""
    module = _chain(length)
    return {step.name: steps_taken(lambda step=step: step.apply(new_context(), module)) for step in CLEANUP}


def test_time_grows_about_linearly():
    _steps(2)  # what is made once
    shorter = _steps(80)
    for name, longer in _steps(320).items():
        assert longer < 6 * shorter[name], name


@pytest.mark.parametrize("links", [8, 40, 80])
def test_a_chain_of_concats_stays_linear(links: int):
    """Concats with other readers are opened while their parts are few."""
    lines, arguments, results = list[str](), ["%x0: tensor<1x4xf32>"], list[str]()
    before, rows = "%x0", 1
    for i in range(1, links + 1):
        arguments.append(f"%x{i}: tensor<1x4xf32>")
        lines.append(
            f"  %c{i} = tensor.concat dim(0) {before}, %x{i} : (tensor<{rows}x4xf32>, tensor<1x4xf32>) -> "
            f"tensor<{rows + 1}x4xf32>"
        )
        before, rows = f"%c{i}", rows + 1
        results.append(f"tensor<{rows}x4xf32>")
    returned = ", ".join(f"%c{i}" for i in range(1, links + 1))
    text = f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n" + "\n".join(lines)
    ctx = new_context()
    module = parse_module(f"{text}\n  return {returned} : {', '.join(results)}\n}}", ctx)
    _run(module, ctx, CanonicalizePass())
    parts = [len(op.operands) for op in module.walk() if op.name == "tensor.concat"]
    assert max(parts) == min(links + 1, MOST_SHARED_PARTS)


CALLS = """builtin.module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %used = func.call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %unused = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %used : tensor<4xf32>
  }
  func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = func.call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %y : tensor<4xf32>
  }
  func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }
  func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %y = linalg.elementwise <exp> ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32> loc("exp")
    %z = func.call @alone(%y) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %z : tensor<4xf32>
  }
  func.func private @alone(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }
}"""


def test_functions_that_nothing_public_reaches_go_and_are_recorded() -> None:
    ctx = new_context()
    module = parse_module(CALLS, ctx)
    _run(module, ctx, DeadCodePass())
    assert [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)] == ["main", "outer", "inner"]
    assert ctx.records.eliminated["exp"] == "dead-code"
