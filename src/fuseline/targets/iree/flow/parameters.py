"""Weights as parameters: what is too large for the text is named there, and lies in an archive beside it.

    %w = arith.constant dense_resource<fc.weight> : tensor<10x256xf32>
=>  %w = flow.tensor.constant #flow.parameter.named<"model"::"fc.weight"> : tensor<10x256xf32>

IREE has no parameters of booleans, and its compiler crashes on resources of them: those are bytes, which a cast turns
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, StringAttr, TensorType, i1, i8
from xdsl.ir import Operation, SSAValue

from fuseline.ir.flow_constants import ConstantOp
from fuseline.ir.flow_parameters import NamedParameterAttr

Arrays = Mapping[str, NDArray[Any]]

SCOPE = "model"
"""The scope of all parameters: `iree-run-module --parameters=model=x.safetensors`."""

INLINE_BYTES = 256
"""Weights up to this size stand in the text. IREE copies constants of this size into every dispatch that reads them."""


def weights_to_parameters(module: ModuleOp, resources: Arrays) -> dict[str, NDArray[Any]]:
    """Replace each constant of more than `INLINE_BYTES`, and each of booleans, by a parameter; answers the arrays by
    their keys. Raises KeyError for a constant that `resources` does not have."""
    parameters: dict[str, NDArray[Any]] = {}
    for op in list(module.walk()):
        if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, DenseResourceAttr):
            continue
        key = op.value.resource_handle.data
        array = resources[key]
        if array.nbytes > INLINE_BYTES or array.dtype == np.bool_:
            parameters[key] = array.view(np.uint8) if array.dtype == np.bool_ else array
            _replace(op, key)
    return parameters


def _replace(op: arith.ConstantOp, key: str) -> None:
    type_ = op.result.type
    assert isinstance(type_, TensorType)
    if type_.get_element_type() != i1:
        _put(op, [_parameter(key, type_)])
        return
    stored = _parameter(key, TensorType(i8, type_.get_shape()))
    cast = arith.TruncIOp.create(operands=[stored.res[0]], result_types=[type_])
    _put(op, [stored, cast])


def _parameter(key: str, type_: TensorType[Any]) -> ConstantOp:
    value = NamedParameterAttr(StringAttr(SCOPE), StringAttr(key), type_)
    return ConstantOp.build(properties={"value": value}, result_types=[[type_]])


def _put(op: Operation, new: Sequence[Operation]) -> None:
    block = op.parent
    assert block is not None
    for made in new:
        made.location = op.location
        block.insert_op_before(made, op)
    result: SSAValue = new[-1].results[0]
    op.results[0].replace_all_uses_with(result)
    op.detach()
    op.erase()
