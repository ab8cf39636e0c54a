"""Loop functions read: what an iteration does, and how its operands move."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.schedule.read_loops import LoopShape, Position, Source, Stack, State, read_loop

LOOP = """
func.func @step(%s: tensor<1x3xf32>, %h: tensor<1x3xf32>) -> tensor<1x3xf32> {
  return %h : tensor<1x3xf32>
}
func.func @loop(%x: tensor<5x3xf32>, %h0: tensor<1x3xf32>) -> (tensor<5x3xf32>, tensor<1x3xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %trips = arith.constant 5 : index
  %empty = tensor.empty() : tensor<5x3xf32>
  %y, %h = scf.for %t = %zero to %trips step %one iter_args(%ys = %empty, %state = %h0)
      -> (tensor<5x3xf32>, tensor<1x3xf32>) {
    %back = arith.subi %four, %t : index
    %slice = tensor.extract_slice %x[%back, 0] [1, 3] [1, 1] : tensor<5x3xf32> to tensor<1x3xf32>
    %new = func.call @step(%slice, %state) : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    %all = tensor.insert_slice %new into %ys[%t, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<5x3xf32>
    scf.yield %all, %new : tensor<5x3xf32>, tensor<1x3xf32>
  }
  return %y, %h : tensor<5x3xf32>, tensor<1x3xf32>
}"""


def _read(text: str = LOOP, name: str = "loop") -> LoopShape | None:
    module = parse_module(text, new_context())
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    return read_loop(functions[name], functions, ShapeAnalysis())


def test_slices_stacks_and_states() -> None:
    shape = _read()
    assert shape is not None
    assert (shape.step.sym_name.data, shape.trips) == ("step", 5)
    assert shape.operands == (Source(0, Position(12, -3)), State(0, 1))
    assert shape.stacks == {0: Stack(0, Position(0, 3))}
    assert shape.last == {1: State(0, 1)}


def test_a_whole_argument_does_not_move() -> None:
    shape = _read(LOOP.replace("func.call @step(%slice, %state)", "func.call @step(%h0, %state)"))
    assert shape is not None and shape.operands[0] == Source(1, Position())


def test_a_function_without_a_loop() -> None:
    assert _read(name="step") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%t = %zero to", "%t = %one to", "does not count from 0 in steps of 1"),
        ("step %one", "step %four", "does not count from 0 in steps of 1"),
        ("return %y, %h :", "return %y, %h0 :", "returns something else than each of its results"),
        ("%state = %h0)", "%state = %other)", "a state does not begin with an argument"),
        ("scf.yield %all, %new", "scf.yield %all, %slice", "neither a result of its body nor a stack"),
        ("insert_slice %new into", "insert_slice %slice into", "a stack takes something else"),
        ("@step(%slice, %state)", "@step(%other, %state)", "reads something else than arguments"),
        ("%x[%back, 0] [1, 3] [1, 1]", "%x[%back, 0] [1, 3] [2, 1]", "does not lie in one piece"),
    ],
)
def test_loops_of_another_form(old: str, new: str, message: str) -> None:
    text = LOOP.replace("  %empty =", "  %other = tensor.empty() : tensor<1x3xf32>\n  %empty =").replace(old, new)
    with pytest.raises(FuselineError, match=message) as caught:
        _read(text)
    assert caught.value.code == "E0305" and "@loop" in caught.value.message and caught.value.node
