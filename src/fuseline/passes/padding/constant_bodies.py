"""What an elementwise body makes of one constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, OpResult, SSAValue

from fuseline.analysis.structured import captured, yielded
from fuseline.evaluation import Program
from fuseline.evaluation.program import Scope, is_evaluable, run_op
from fuseline.ir.element_types import numpy_dtype, scalar_attribute


def constant_attribute(value: SSAValue) -> Attribute | None:
    """The attribute of a scalar constant, None for any other value."""
    op = value.op if isinstance(value, OpResult) else None
    return op.value if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr | IntegerAttr) else None


def body_value(op: linalg.ops.GenericOp, arguments: Mapping[int, Attribute]) -> Attribute | None:
    """The scalar attribute that the body of `op` yields where input `i` is the constant `arguments[i]`; None where it
    depends on anything else (another input, the init, the position, a captured tensor)."""
    block = op.body.block
    if any(argument.uses for argument in block.args if argument.index not in arguments):
        return None
    ops = [inner for inner in block.ops if not isinstance(inner, linalg.ops.YieldOp)]
    if any(isinstance(inner, linalg.ops.IndexOp | tensor.ExtractOp) or not is_evaluable(inner) for inner in ops):
        return None
    outer = {value: constant_attribute(value) for value in captured(op)}
    if any(attribute is None for attribute in outer.values()):
        return None
    scope = Scope(Program())
    known = {**outer, **{block.args[i]: attribute for i, attribute in arguments.items()}}
    for value, attribute in known.items():
        scope.bind([value], [_array(attribute, value.type)])
    with np.errstate(all="ignore"):
        for inner in ops:
            run_op(inner, scope)
    result = yielded(op)[0]
    return scalar_attribute(np.asarray(scope[result]).item(), result.type)


def _array(attribute: Attribute | None, type_: Attribute) -> np.ndarray[Any, Any]:
    assert isinstance(attribute, FloatAttr | IntegerAttr)
    return np.asarray(attribute.value.data).astype(numpy_dtype(type_))
