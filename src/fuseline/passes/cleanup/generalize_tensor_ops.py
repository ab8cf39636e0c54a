"""generalize-tensor-ops: ops of other dialects that compute with tensors become structured ops.

    arith.addf %a, %b : tensor<4xf32>      =>   linalg.generic ins(%a, %b) { addf }
    tensor.generate { .. %i .. }           =>   linalg.generic { linalg.index 0 .. }
    tensor.insert %s into %t[%i]           =>   linalg.generic ins(%t) { select (index == %i), %s, %in }

What is a structured op everything else knows how to fuse. Pads with a constant, slices of all dimensions and reshapes
stay; a slice that drops dimensions becomes one that does not, and a reshape; one that is put in with gaps a choice per
element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fuseline.ir.fast.direct import ops_of
from fuseline.ir.tensor_ops import GenerateOp
from fuseline.passes.cleanup.tensor_ops.elements import (
    expand_from_elements,
    expand_generate,
    expand_insert,
    expand_splat,
)
from fuseline.passes.cleanup.tensor_ops.elementwise import expand_elementwise, is_elementwise
from fuseline.passes.cleanup.tensor_ops.pads import expand_pad
from fuseline.passes.cleanup.tensor_ops.slices import expand_extract_slice, expand_insert_slice


@dataclass(frozen=True)
class GeneralizeTensorOpsPass(ModulePass):
    """Has no options."""

    name = "generalize-tensor-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace ops in the blocks of functions; bodies of structured ops stay."""
        del ctx
        for function in op.ops:
            for block in function.body.blocks if isinstance(function, FuncOp) else ():
                for inner in ops_of(block):
                    _generalize(inner)


def _generalize(op: Operation) -> None:
    expand = _EXPANSIONS.get(type(op))
    if expand is not None:
        expand(op)
    elif is_elementwise(op):
        expand_elementwise(op)


_EXPANSIONS: dict[type[Operation], Callable[[Any], None]] = {
    tensor.SplatOp: expand_splat,
    tensor.FromElementsOp: expand_from_elements,
    tensor.InsertOp: expand_insert,
    GenerateOp: expand_generate,
    tensor.PadOp: expand_pad,
    tensor.ExtractSliceOp: expand_extract_slice,
    tensor.InsertSliceOp: expand_insert_slice,
}


EXPORT = GeneralizeTensorOpsPass
