"""Numbers of run time that regions use from outside: places are read on the host, other numbers have no form there."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import CallOp

from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.scalars_to_tensors import ScalarsToTensorsPass

PAD = """func.func @main(%x: tensor<4xf32>, %s: {0}) -> tensor<6xf32> {{
  %c = arith.constant 2.0 : f32
  {1}
  %r = tensor.pad %x low[1] high[1] {{
  ^bb0(%i: index):
    tensor.yield {2} : f32
  }} : tensor<4xf32> to tensor<6xf32> loc("pad")
  return %r : tensor<6xf32>
}}"""


def test_a_pad_with_a_number_of_run_time_has_no_form():
    with pytest.raises(FuselineError) as caught:
        ScalarsToTensorsPass().apply(ctx := new_context(), parse_module(PAD.format("f32", "", "%s"), ctx))
    error = caught.value
    assert (error.code, error.node) == ("E0305", "pad")
    assert error.message == "tensor.pad takes a number of type f32 that is no constant"


def test_a_pad_with_a_constant_stays():
    module = parse_module(PAD.format("f32", "", "%c"), ctx := new_context())
    ScalarsToTensorsPass().apply(ctx, module)
    module.verify()
    assert not [op for op in module.walk() if isinstance(op, CallOp)]


def test_a_body_that_is_called_keeps_the_scalars_that_its_loop_gives_it():
    text = """func.func @main(%x: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
      %r = func.call @steps(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }
    func.func private @steps(%x: tensor<4xf32>) -> tensor<4xf32> {
      %i = arith.constant 1 : index
      %v = tensor.extract %x[%i] : tensor<4xf32>
      %e = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%v : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %f : tensor<4xf32>
    }"""
    module = parse_module(text, ctx := new_context())
    main, steps = module.ops
    before = str(steps)
    ScalarsToTensorsPass().apply(ctx, module)
    assert str(steps) == before
    assert [str(type_) for type_ in main.function_type.inputs] == ["tensor<4xf32>", "tensor<f32>"]  # pyright: ignore[reportAttributeAccessIssue]
