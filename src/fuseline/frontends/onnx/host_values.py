"""Values that tensors of the IR cannot be: strings, 8-bit floats and smaller, sequences, optionals, maps, tensors of
unknown rank.

Only host operators make and take them. In the IR they have the type `!flow.host`; what is known of them while reading
stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import TypeProto, helper
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.dtypes import from_onnx, holds, to_onnx
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.dim import Dim

DimText: TypeAlias = Callable[[Dim], str]


@dataclass(slots=True, eq=False)
class HostValue:
    """One value of the model that stays on the host.

    `type` is its ONNX type without sizes, `dims` the sizes of a tensor of known rank. `content` is the tensor where it
    is known; `value` is the emitted SSA value, None while nothing needed it.
    """

    type: TypeProto
    dims: tuple[Dim, ...] | None = None
    value: SSAValue | None = None
    content: NDArray[Any] | None = None
    name: str = ""


@dataclass(slots=True, eq=False)
class KnownSequence(HostValue):
    """A sequence of which it is known while reading how many tensors it has, and which: `items`. It is a value of the
    host only for what asks for it as one."""

    items: tuple[Tensor, ...] = ()


Value: TypeAlias = Tensor | HostValue


def sequence_of(items: Sequence[Tensor], dtype: np.dtype[Any], name: str) -> KnownSequence:
    """A sequence of tensors of one element type, made by the node `name`."""
    element = helper.make_tensor_type_proto(int(to_onnx(dtype)), None)
    return KnownSequence(helper.make_sequence_type_proto(element), name=name, items=tuple(items))


def known_value(array: NDArray[Any], name: str = "") -> HostValue:
    """A tensor of known content that the IR has no element type for."""
    element = onnx.TensorProto.STRING if array.dtype == object else int(to_onnx(array.dtype))
    return HostValue(helper.make_tensor_type_proto(element, None), tuple(array.shape), content=array, name=name)


def content_of(tensor: ir.TensorProtocol) -> NDArray[Any]:
    """The elements of a constant; strings as an object array."""
    array = np.asarray(tensor.numpy())
    if tensor.dtype != ir.DataType.STRING:
        return array
    out = np.empty(array.size, object)
    out[:] = [item.decode("utf-8") if isinstance(item, bytes) else str(item) for item in array.reshape(-1).tolist()]
    return out.reshape(array.shape)


def without_sizes(type_: TypeProto) -> TypeProto:
    """A copy that says nothing of sizes on the outermost level."""
    out = TypeProto()
    out.CopyFrom(type_)
    if out.HasField("tensor_type"):
        out.tensor_type.ClearField("shape")
    return out


def type_of(value: Value) -> TypeProto:
    """The ONNX type without sizes."""
    return (
        value.type if isinstance(value, HostValue) else helper.make_tensor_type_proto(int(to_onnx(value.dtype)), None)
    )


def sized_type(value: Value, text: DimText) -> TypeProto:
    """The ONNX type with sizes; `text` names those that are no numbers."""
    out = TypeProto()
    out.CopyFrom(type_of(value))
    if value.dims is not None:
        shape = out.tensor_type.shape
        shape.SetInParent()
        for dim in value.dims:
            entry = shape.dim.add()
            if isinstance(dim, int):
                entry.dim_value = dim
            else:
                entry.dim_param = text(dim)
    return out


def element_dtype(type_: TypeProto) -> np.dtype[Any] | None:
    """The NumPy dtype of a tensor's elements where tensors of the IR can hold them."""
    element = ir.DataType(type_.tensor_type.elem_type) if type_.HasField("tensor_type") else None
    return from_onnx(element) if element is not None and holds(element) else None


def type_text(value: HostValue) -> str:
    """The type as the runtime writes it; see `fuseline.runtime.boxed`."""
    text = _text(value.type)
    return f"any_rank({text})" if value.dims is None and value.type.HasField("tensor_type") else text


def _text(type_: TypeProto) -> str:
    kind = type_.WhichOneof("value")
    if kind == "tensor_type" and type_.tensor_type.elem_type:
        return f"tensor({_element_text(type_.tensor_type.elem_type)})"
    if kind == "sequence_type":
        return f"seq({_text(type_.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_text(type_.optional_type.elem_type)})"
    if kind == "map_type":
        return f"map({_element_text(type_.map_type.key_type)}, {_text(type_.map_type.value_type)})"
    return "any"


def _element_text(element: int) -> str:
    dtype = ir.DataType(element)
    return "string" if dtype == ir.DataType.STRING else from_onnx(dtype).name


def dtype_text(value: HostValue) -> str:
    """The NumPy name of a tensor's elements, `object` for strings and whatever is no tensor of known rank."""
    if value.dims is None or value.type.tensor_type.elem_type in (0, onnx.TensorProto.STRING):
        return "object"
    return from_onnx(ir.DataType(value.type.tensor_type.elem_type)).name


def describe(values: Sequence[Value | None]) -> str:
    """Which of a node's inputs are boxed on the host, in words."""
    return ", ".join(
        f"input {i} is {type_text(value)}" for i, value in enumerate(values) if isinstance(value, HostValue)
    )
