"""What ops read, and where, asked of one small program with each kind of read."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.ir import Operation

from fuseline.analysis.operand_reads import operand_reads
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import is_generic
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

PROGRAM = """
func.func @main(%x: tensor<4x6xf32>, %table: tensor<9xf32>, %init: tensor<4xf32>, %i: index) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<4x6xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
       ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = tensor.extract %table[%i] : tensor<9xf32>
    %2 = arith.mulf %a, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  %t = tensor.extract_slice %g[1] [3] [1] : tensor<4xf32> to tensor<3xf32>
  return %t : tensor<3xf32>
}
"""


def _reads(op: Operation, *, moves: bool = True) -> list[tuple[str | None, str | None]]:
    found = operand_reads(op, ShapeAnalysis(), moves=moves)
    return [(v.name_hint, None if at is None else ", ".join(map(str, at))) for v, at in found]


def _program() -> list[Operation]:
    module = parse_module(PROGRAM, new_context())
    main = next(op for op in module.ops if isinstance(op, func.FuncOp))
    return [op for op in main.body.block.ops if is_generic(op) or op.name == "tensor.extract_slice"]


def test_a_reduction_reads_its_input_and_the_init_it_adds_to():
    total, _, _ = _program()
    assert _reads(total) == [("x", "d0, d1"), ("init", "d0")]


def test_an_ignored_init_is_not_read_and_what_a_body_captures_may_be_read_anywhere():
    _, gather, _ = _program()
    assert _reads(gather) == [("s", "d0"), ("table", "None")]


@pytest.mark.parametrize(
    ("picked", "at"),
    [
        (["%i, %j"], "d0, d1"),
        (["%j, %i"], "d1, d0"),
        (["%i, %p"], "d0, None"),
        (["%i, %p", "%i, %j"], "d0, None"),
        (["%i, %j", "%j, %i"], "None, None"),
        (["%p, %j", "%p, %j"], "None, d1"),
    ],
)
def test_a_dimension_along_which_all_elements_are_picked_in_step_with_one_loop(picked: list[str], at: str):
    extracts = "".join(f"%v{n} = tensor.extract %x[{place}] : tensor<6x6xf32>\n" for n, place in enumerate(picked))
    total = "".join(f"%s{n + 1} = arith.addf %s{n}, %v{n} : f32\n" for n in range(len(picked)))
    text = f"""func.func @main(%x: tensor<6x6xf32>, %k: tensor<6xindex>) -> tensor<6x6xf32> {{
      %e = tensor.empty() : tensor<6x6xf32>
      %y = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
          iterator_types = ["parallel", "parallel"]}} ins(%k : tensor<6xindex>) outs(%e : tensor<6x6xf32>) {{
      ^bb0(%p: index, %o: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %s0 = arith.constant 0.0 : f32
        {extracts} {total} linalg.yield %s{len(picked)} : f32
      }} -> tensor<6x6xf32>
      return %y : tensor<6x6xf32>
    }}"""
    module = parse_module(text, new_context())
    (gather,) = [op for op in module.walk() if is_generic(op)]
    assert _reads(gather)[-1] == ("x", at)


def test_a_tensor_whose_size_a_body_asks_for_may_be_read_anywhere():
    text = PROGRAM.replace(
        "%1 = tensor.extract %table[%i] : tensor<9xf32>",
        """%z = arith.constant 0 : index
    %d = tensor.dim %table, %z : tensor<9xf32>
    %n = arith.index_cast %d : index to i32
    %1 = arith.sitofp %n : i32 to f32""",
    )
    gather = [op for op in parse_module(text, new_context()).walk() if is_generic(op)][1]
    assert _reads(gather) == [("s", "d0"), ("table", None)]


def test_a_moving_op_reads_at_coordinates_of_its_result_where_it_is_asked_for_them():
    _, _, slice_ = _program()
    ((name, at),) = _reads(slice_)
    assert name == "g" and at is not None and "d0" in at and "1" in at
    assert _reads(slice_, moves=False) == [("g", None)]
