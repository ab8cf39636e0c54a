"""Which ops are written as structured ones, at once, and that the program computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.generalize_tensor_ops import GeneralizeTensorOpsPass

from .expanding import names, numbers, run

Array: TypeAlias = NDArray[np.float32]
Expected: TypeAlias = Callable[[Array, Any], Any]

PAD = """%r = tensor.pad %x low[1, 0] high[0, 2] {
      ^bb0(%a: index, %b: index):
        WHAT
      } : tensor<3x4xf32> to tensor<4x6xf32>"""
GENERATE = """%r = tensor.generate {
      ^bb0(%a: index, %b: index):
        %v = tensor.extract %x[%b, %a] : tensor<3x4xf32>
        tensor.yield %v : f32
      } : tensor<4x3xf32>"""


def _put(x: Array, s: Array) -> Array:
    found = x.copy()
    found[2, 2] = s
    return found


def _padded(x: Array, value: Array | float) -> Array:
    return np.pad(x, ((1, 0), (0, 2)), constant_values=value)


GONE: list[tuple[str, str, Expected]] = [
    ("arith.addf", "%r = arith.addf %x, %x : tensor<3x4xf32>", lambda x, s: x + x),
    ("math.absf", "%r = math.absf %x : tensor<3x4xf32>", lambda x, s: np.abs(x)),
    ("tensor.splat", "%r = tensor.splat %s : tensor<3x4xf32>", lambda x, s: np.full((3, 4), s)),
    ("tensor.from_elements", "%r = tensor.from_elements %s, %s : tensor<2xf32>", lambda x, s: np.full(2, s)),
    ("tensor.insert", "%r = tensor.insert %s into %x[%i, %i] : tensor<3x4xf32>", _put),
    ("tensor.generate", GENERATE, lambda x, s: x.T),
    (
        "tensor.pad",
        PAD.replace("WHAT", "%v = tensor.extract %x[%i, %i] : tensor<3x4xf32>\n tensor.yield %v : f32"),
        lambda x, s: _padded(x, x[2, 2]),
    ),
]
KEPT: list[tuple[str, str, Expected]] = [
    ("tensor.pad", "%zero = arith.constant 0.5 : f32\n" + PAD.replace("WHAT", "tensor.yield %zero : f32"),
     lambda x, s: _padded(x, 0.5)),
    ("tensor.extract_slice", "%r = tensor.extract_slice %x[1, 0] [2, 3] [1, 1] : tensor<3x4xf32> to tensor<2x3xf32>",
     lambda x, s: x[1:, :3]),
    ("tensor.collapse_shape", "%r = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>",
     lambda x, s: x.reshape(12)),
    ("arith.addf", "%q = arith.addf %s, %s : f32\n %r = tensor.splat %q : tensor<2xf32>",
     lambda x, s: np.full(2, s + s)),
]  # fmt: skip


def _text(body: str) -> str:
    result = body.rsplit("to " if " to tensor" in body else "into " if " into tensor" in body else ": ", 1)[1]
    return f"""func.func @main(%x: tensor<3x4xf32>, %s: f32) -> {result} {{
      %i = arith.constant 2 : index
      {body}
      return %r : {result}
    }}"""


def _top(module: ModuleOp) -> set[str]:
    """The ops of the function, those of bodies left out."""
    return {op.name for function in module.ops for op in function.regions[0].block.ops}


@pytest.mark.parametrize(("name", "body", "expected"), [*GONE, *KEPT])
def test_the_program_computes_what_it_says(name: str, body: str, expected: Expected):
    module, x, s = parse_module(_text(body), new_context()), numbers(3, 4), np.float32(1.5)
    assert name in _top(module)
    GeneralizeTensorOpsPass().apply(new_context(), module)
    module.verify()
    assert (name in _top(module)) == any(body is kept for _, kept, _ in KEPT)
    np.testing.assert_array_equal(run(module, x, s), expected(x, s))
    once = print_module(module)
    GeneralizeTensorOpsPass().apply(new_context(), module)
    assert print_module(module) == once


def test_a_slice_that_drops_a_dimension_is_one_that_does_not_and_a_reshape():
    text = _text("%r = tensor.extract_slice %x[1, 0] [1, 3] [1, 1] : tensor<3x4xf32> to tensor<3xf32>")
    module, x = parse_module(text, new_context()), numbers(3, 4)
    GeneralizeTensorOpsPass().apply(new_context(), module)
    assert {"tensor.extract_slice", "tensor.collapse_shape"} <= names(module) and "linalg.generic" not in names(module)
    np.testing.assert_array_equal(run(module, x, np.float32(0)), x[1, :3])


def test_an_op_inside_of_a_body_and_a_declaration_are_left_alone():
    text = """func.func private @other(tensor<2xf32>)
    func.func @main(%x: tensor<2xf32>, %e: tensor<2xf32>) -> tensor<2xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%x : tensor<2xf32>) outs(%e : tensor<2xf32>) {
      ^bb0(%a: f32, %o: f32):
        %b = arith.addf %a, %a : f32
        linalg.yield %b : f32
      } -> tensor<2xf32>
      return %r : tensor<2xf32>
    }"""
    module = parse_module(text, new_context())
    before = print_module(module)
    GeneralizeTensorOpsPass().apply(new_context(), module)
    assert print_module(module) == before
