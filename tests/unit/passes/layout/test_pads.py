"""Pads that layout passes make anew: the value, and where they say that they come from."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint

from fuseline.ir.build import Emitter
from fuseline.ir.provenance import provenance
from fuseline.passes.layout.rewriting.pads import pad, uniform_value


def test_a_pad_and_what_it_yields_come_from_the_same_nodes() -> None:
    block = Block(arg_types=[TensorType(f32, [4]), f32])
    like = Emitter.at_end(block, ["conv", "pad"])
    at = Emitter(InsertPoint.at_end(block), location=like.location)
    made = pad(at, block.args[0], [1], [2], block.args[1], [7])
    assert uniform_value(made) is block.args[1]
    assert [provenance(op) for op in made.walk()] == [("conv", "pad")] * 2
    assert made.result.type == TensorType(f32, [7])
