"""`flow.tensor.*` and `iree_tensor_ext.bitcast` as ops of `tensor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.frontends.mlir.wrappers import constant_op, unsupported
from fuseline.ir import flow_constants, flow_tensor
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty, create_fill
from fuseline.ir.flow_tensor_base import FlowTensorOp
from fuseline.ir.provenance import replace


def expand_flow_tensors(module: ModuleOp) -> None:
    """Write out each op. Raises FuselineError: E0306 for what has no form."""
    for op in list(module.walk()):
        write = _WRITTEN_OUT.get(type(op))
        if write is not None:
            replace(op, [], [write(Emitter.before(op), op)])


def _handed_on(emit: Emitter, op: FlowTensorOp) -> SSAValue:
    del emit
    if op.values[0].type != op.res[0].type:
        raise unsupported(op, f"{op.res[0].type} is another layout", "hand over the program before encodings were set")
    return op.values[0]


def _reshape(emit: Emitter, op: flow_tensor.ReshapeOp) -> SSAValue:
    return _reshaped(emit, op.values[0], op.res[0].type, op.result_dims)


def _bitcast(emit: Emitter, op: flow_tensor.BitCastOp) -> SSAValue:
    value, type_ = op.values[0], op.res[0].type
    assert isinstance(type_, TensorType)
    source, element = element_of(value), type_.get_element_type()
    try:
        same = source == element or (
            numpy_dtype(source).itemsize == numpy_dtype(element).itemsize and i1 not in (source, element)
        )
    except KeyError:
        same = False
    if not same:
        raise unsupported(
            op, f"elements of type {source} are no elements of type {element}", "cast between types of one width"
        )
    shaped = _reshaped(emit, value, attributes.tensor_type(source, tuple(type_.get_shape())), op.result_dims)
    if source == element:
        return shaped
    return emit.elementwise(
        [shaped], emit.empty_like(shaped, element), lambda b: b.op(arith.BitcastOp, b.args[0], element)
    )


def _reshaped(emit: Emitter, value: SSAValue, type_: Attribute, dims: Sequence[SSAValue]) -> SSAValue:
    """The elements of `value` in the same order, under the shape of `type_` with the unknown sizes `dims`."""
    assert isinstance(type_, TensorType)
    if value.type == type_ and type_.has_static_shape():
        return value
    element, sizes, wanted = element_of(value), shape_of(value), tuple(type_.get_shape())
    count = _product(sizes) if DYNAMIC_INDEX not in sizes else _product(wanted)
    row_type = attributes.tensor_type(element, (_product(sizes),))
    row = (
        value
        if len(sizes) == 1
        else _grouped(emit, tensor.CollapseShapeOp if sizes else tensor.ExpandShapeOp, value, row_type, len(sizes) or 0)
    )
    if row.type != attributes.tensor_type(element, (count,)):
        row = emit.add(
            tensor.CastOp.create(operands=[row], result_types=[attributes.tensor_type(element, (count,))])
        ).results[0]
    if len(wanted) == 1:
        return (
            row
            if row.type == type_
            else emit.add(tensor.CastOp.create(operands=[row], result_types=[type_])).results[0]
        )
    kind = tensor.ExpandShapeOp if wanted else tensor.CollapseShapeOp
    return _grouped(emit, kind, row, type_, len(wanted), dims)


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total = DYNAMIC_INDEX if DYNAMIC_INDEX in (size, total) else total * size
    return total


def _grouped(
    emit: Emitter, kind: Any, value: SSAValue, type_: TensorType[Attribute], rank: int, dims: Sequence[SSAValue] = ()
) -> SSAValue:
    """A reshape between a row and a tensor of `rank` dimensions (none: no groups)."""
    properties: dict[str, Attribute] = {"reassociation": attributes.reassociation([list(range(rank))] if rank else [])}
    if kind is tensor.ExpandShapeOp:
        properties["static_output_shape"] = attributes.dense(tuple(type_.get_shape()))
    return emit.add(kind.create(operands=[value, *dims], result_types=[type_], properties=properties)).results[0]


def _load(emit: Emitter, op: flow_tensor.LoadOp) -> SSAValue:
    return emit.add(tensor.ExtractOp(op.values[0], list(op.indices), op.res[0].type)).result


def _store(emit: Emitter, op: flow_tensor.StoreOp) -> SSAValue:
    return emit.add(tensor.InsertOp.create(operands=[*op.values, *op.indices], result_types=[op.res[0].type])).results[
        0
    ]


def _empty(emit: Emitter, op: FlowTensorOp) -> SSAValue:
    type_ = op.res[0].type
    assert isinstance(type_, TensorType)
    return emit.add(create_empty(type_, list(op.result_dims))).tensor


def _splat(emit: Emitter, op: flow_tensor.SplatOp) -> SSAValue:
    return emit.add(create_fill(op.values[0], _empty(emit, op))).results[0]


def _box(
    offsets: Sequence[SSAValue], lengths: Sequence[SSAValue], sizes: Sequence[int]
) -> tuple[list[SSAValue], dict[str, Attribute]]:
    """Operands and properties of a slice whose result has `sizes`."""
    dynamic = [length for length, size in zip(lengths, sizes, strict=True) if size == DYNAMIC_INDEX]
    segments = {
        "static_offsets": [DYNAMIC_INDEX] * len(sizes),
        "static_sizes": list(sizes),
        "static_strides": [1] * len(sizes),
    }
    properties: dict[str, Attribute] = {name: attributes.dense(tuple(numbers)) for name, numbers in segments.items()}
    properties["operandSegmentSizes"] = attributes.segments((1, len(offsets), len(dynamic), 0))
    return [*offsets, *dynamic], properties


def _slice(emit: Emitter, op: flow_tensor.SliceOp) -> SSAValue:
    sizes = shape_of(op.res[0])
    operands, properties = _box(op.indices, op.lengths, sizes)
    for length, size in zip(op.lengths, sizes, strict=True):
        given = length.owner.value if isinstance(length.owner, arith.ConstantOp) else None
        if size != DYNAMIC_INDEX and given is not None and getattr(getattr(given, "value", None), "data", size) != size:
            raise unsupported(op, f"a length is not that of {op.res[0].type}")
    return emit.add(
        tensor.ExtractSliceOp.create(
            operands=[op.values[0], *operands], result_types=[op.res[0].type], properties=properties
        )
    ).results[0]


def _update(emit: Emitter, op: flow_tensor.UpdateOp) -> SSAValue:
    update, target = op.values
    sizes = shape_of(update)
    lengths = [emit.dim(update, axis) for axis in range(len(sizes))]
    operands, properties = _box(op.indices, lengths, sizes)
    properties["operandSegmentSizes"] = attributes.segments((1, 1, len(op.indices), len(operands) - len(op.indices), 0))
    return emit.add(
        tensor.InsertSliceOp.create(
            operands=[update, target, *operands], result_types=[target.type], properties=properties
        )
    ).results[0]


def _constant(emit: Emitter, op: Any) -> SSAValue:
    type_ = getattr(op.value, "type", None)
    made = emit.add(constant_op(op, op.value, type_ if isinstance(type_, Attribute) else op.res[0].type)).results[0]
    if made.type == op.res[0].type:
        return made
    return emit.add(tensor.CastOp.create(operands=[made], result_types=[op.res[0].type])).results[0]


_WRITTEN_OUT: dict[type[Operation], Callable[[Emitter, Any], SSAValue]] = {
    flow_tensor.ReshapeOp: _reshape,
    flow_tensor.BitCastOp: _bitcast,
    flow_tensor.TensorExtBitCastOp: _bitcast,
    flow_tensor.EncodeOp: _handed_on,
    flow_tensor.LoadOp: _load,
    flow_tensor.StoreOp: _store,
    flow_tensor.EmptyOp: _empty,
    flow_tensor.AllocaOp: _empty,
    flow_tensor.SplatOp: _splat,
    flow_tensor.SliceOp: _slice,
    flow_tensor.UpdateOp: _update,
    flow_constants.ConstantOp: _constant,
    flow_constants.DynamicConstantOp: _constant,
    **dict.fromkeys(flow_tensor.HANDED_ON, _handed_on),
}
