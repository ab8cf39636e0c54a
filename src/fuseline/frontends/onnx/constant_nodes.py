"""Nodes whose inputs are all known: the ops that their lowering emitted are evaluated at once, and what they give takes
their place.

Content that decides shapes further on (sizes, axes, scales) must be known while the model is read; large constants wait
for `fold-constants`. So do weights that are dequantised, however few they are: products take the integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.errors import FuselineError
from fuseline.evaluation.program import Program as Evaluation
from fuseline.evaluation.program import Scope, run_op
from fuseline.frontends.onnx.dtypes import is_half
from fuseline.frontends.onnx.host_values import HostValue, Value
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.program import Mark, Program
from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.ir.dim import product

Array = NDArray[Any]

INPUT_LIMIT = 64
"""Elements of each input; larger content is data, and `fold-constants` computes with it."""

OUTPUT_LIMIT = 4096
"""Elements of each output."""

WEIGHTS_RANK = 2
"""Dimensions of weights at least; content that decides shapes has one at most."""


def settled(node: OnnxNode, outputs: Sequence[Value | None], mark: Mark) -> Sequence[Value | None]:
    """`outputs`, or their content where all that the node reads is known and small; what was emitted since `mark` is
    taken back then."""
    present = [value for value in outputs if value is not None]
    if all(isinstance(value, Tensor) and value.array is not None for value in present):
        return outputs
    if not _is_small(node) or _dequantizes_weights(node):
        return outputs
    program, end = node.program, node.program.mark()
    contents = _contents(node, present, mark)
    if contents is None:
        program.rollback(end)
        return outputs
    program.rollback(mark)
    found = iter(contents)
    return [None if value is None else next(found) for value in outputs]


def _is_small(node: OnnxNode) -> bool:
    """Halves are left out: the compiled program computes with them in f32, which a later pass says and not these
    ops."""
    return bool(node.inputs) and all(
        t is None or (t.is_constant and t.numbers().size <= INPUT_LIMIT and not is_half(t.dtype)) for t in node.inputs
    )


def _dequantizes_weights(node: OnnxNode) -> bool:
    stored = node.inputs[0]
    return node.op_type == "DequantizeLinear" and stored is not None and stored.rank >= WEIGHTS_RANK


def _contents(node: OnnxNode, outputs: Sequence[Value], mark: Mark) -> list[Tensor] | None:
    tensors = [value for value in outputs if not isinstance(value, HostValue) and not is_half(value.dtype)]
    if len(tensors) < len(outputs):
        return None
    if any(isinstance(size := product(t.dims), int) and size > OUTPUT_LIMIT for t in tensors):
        return None
    values = [node.ssa(t) for t in tensors]
    try:
        arrays = _evaluated(node.program, values, mark)
    except (FuselineError, ArithmeticError, LookupError, ValueError):  # what is wrong shows when the node runs
        return None
    if any(array.size > OUTPUT_LIMIT for array in arrays):
        return None
    return [known(_as_dtype(array, t.dtype)) for array, t in zip(arrays, tensors, strict=True)]


def _evaluated(program: Program, values: Sequence[SSAValue], mark: Mark) -> list[Array]:
    scope = Scope(Evaluation(program.ctx.resources))
    with np.errstate(all="ignore"):
        for op in program.since(mark):
            _bind_constants(op, scope)
            run_op(op, scope)
        for value in values:
            _bind(value, scope)
    return [np.array(scope[value]) for value in values]


def _bind_constants(op: Operation, scope: Scope) -> None:
    """Give constants that were emitted before the node their content."""
    for nested in op.walk():
        for operand in nested.operands:
            _bind(operand, scope)


def _bind(value: SSAValue, scope: Scope) -> None:
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp) and value not in scope.values:
        run_op(value.op, scope)


def _as_dtype(array: Array, dtype: np.dtype[Any]) -> Array:
    """Integers of the IR have no sign; the model's have."""
    return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array.astype(dtype)
