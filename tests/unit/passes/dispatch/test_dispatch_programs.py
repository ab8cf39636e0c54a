"""A dispatch as a program of its own: its weights and sizes inside, its feeds by name, its description as JSON."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.dispatch_programs import DispatchProgram, dispatch_programs, files_of, standalone
from fuseline.passes.registry import parse_passes
from fuseline.pipeline import PASS_PHASES
from tests.draws import RNG

WEIGHTS = [[1.0, -2.0], [0.5, 4.0], [3.0, 0.25]]
PROGRAM = f"""func.func @main(%x: tensor<?x3xf32> {{fuseline.dims = ["n", "3"], fuseline.name = "x"}},
    %y: tensor<5xi64> {{fuseline.name = "y"}}) -> (tensor<?x2xf32>, tensor<5xi64>) {{
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x3xf32>
  %w = arith.constant dense<{WEIGHTS}> : tensor<3x2xf32>
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %m = linalg.matmul ins(%x, %w : tensor<?x3xf32>, tensor<3x2xf32>) outs(%z : tensor<?x2xf32>)
    -> tensor<?x2xf32> loc("product")
  %f = tensor.empty() : tensor<5xi64>
  %s = linalg.add ins(%y, %y : tensor<5xi64>, tensor<5xi64>) outs(%f : tensor<5xi64>) -> tensor<5xi64> loc("twice")
  return %m, %s : tensor<?x2xf32>, tensor<5xi64>
}}"""
OUTLINED = "cleanup,materialize-fills,form-dispatch-regions{level=none},clone-cheap-producers,outline-executables"


def _outlined() -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    module = parse_module(PROGRAM, ctx)
    for step in parse_passes(OUTLINED, PASS_PHASES):
        step.apply(ctx, module)
    return module, ctx


def _programs() -> dict[str, DispatchProgram]:
    """By the source node that each is from."""
    module, ctx = _outlined()
    return {program.about["nodes"][0]: program for program in dispatch_programs(module, ctx)}


def _read(program: DispatchProgram) -> ModuleOp:
    return parse_module(program.text(), new_context())


def test_each_launch_is_a_program_with_a_description():
    programs = _programs()
    assert {*programs} == {"product", "twice"}
    product = programs["product"]
    assert product.name == product.about["file"] and product.name.endswith("_contraction_Dx2_f32.mlir")
    assert product.about["dispatch"] == product.name.removesuffix("_Dx2_f32.mlir")
    assert product.about["nodes"] == ["product"] and product.about["executable"]
    (size, three) = product.about["inputs"][0]["shape"]
    assert isinstance(size, str) and three == 3
    assert product.about["inputs"] == [{"name": "input0", "dtype": "float32", "shape": [size, 3]}]
    assert product.about["outputs"] == [{"name": "output0", "dtype": "float32", "shape": [size, 2]}]
    assert programs["twice"].about["inputs"] == [{"name": "input0", "dtype": "int64", "shape": [5]}]
    assert [program.name[:3] for program in programs.values()] == ["000", "001"]


def test_it_computes_what_its_launch_does():
    programs = _programs()
    x, y = RNG.standard_normal((7, 3)).astype(np.float32), RNG.integers(-99, 99, 5)
    (found,) = evaluate_module(_read(programs["product"]), [x])
    np.testing.assert_allclose(found, x.astype(np.float64) @ np.array(WEIGHTS), rtol=1e-4, atol=1e-4)
    (found,) = evaluate_module(_read(programs["twice"]), [y])
    np.testing.assert_array_equal(found, 2 * y)


def test_weights_and_sizes_are_no_feeds():
    (main,) = _read(_programs()["product"]).ops
    assert isinstance(main, FuncOp) and main.sym_name.data == "main" and len(main.body.block.args) == 1
    assert LOOPS_ATTRIBUTE not in main.attributes
    assert any(isinstance(op, tensor.DimOp) and op.source is main.body.block.args[0] for op in main.walk())
    assert any(isinstance(op, ConstantOp) and "dense" in str(op.value) for op in main.walk())
    assert main.res_attrs is not None
    assert [entry.data["fuseline.name"] for entry in main.res_attrs.data] == [StringAttr("output0")]


def test_the_executable_stays_as_it_is():
    module, ctx = _outlined()
    before = module.clone()
    for program in dispatch_programs(module, ctx):
        program.text()
    assert module.is_structurally_equivalent(before)
    entries = {op.sym_name.data: entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)}
    for call in [op for op in module.walk() if isinstance(op, DispatchOp)]:
        standalone(call, entries[call.executable]).verify()
    assert module.is_structurally_equivalent(before)


def test_files_are_the_programs_and_their_list():
    programs = list(_programs().values())
    written: dict[str, bytes] = {}
    for name, write in files_of(programs).items():
        write(file := BytesIO())
        written[name] = file.getvalue()
    assert list(written) == [*(program.name for program in programs), "index.json"]
    listed: dict[str, Any] = json.loads(written["index.json"])
    assert listed == {"version": 1, "dispatches": [program.about for program in programs]}
    assert all(written[program.name].decode() == program.text() for program in programs)


def test_a_program_without_dispatches_has_an_empty_list():
    module = parse_module(
        "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }", new_context()
    )
    assert list(dispatch_programs(module, new_context())) == []
    files_of([])["index.json"](file := BytesIO())
    assert json.loads(file.getvalue())["dispatches"] == []
