"""Tensors made of numbers one by one: `from_elements`, `splat`, `generate`, `insert`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, TensorType
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Attribute, OpResult, SSAValue

from fuseline.ir.build import PARALLEL, Body, Emitter, element_of, identity_map, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat, create_constant, create_empty, create_fill
from fuseline.ir.fast.direct import operands_of, ops_of, result_of
from fuseline.ir.provenance import replace
from fuseline.ir.tensor_ops import GenerateOp


def expand_splat(op: tensor.SplatOp) -> None:
    """A fill of an empty tensor."""
    emit = Emitter.before(op)
    assert isinstance(op.result.type, TensorType)
    empty = emit.add(create_empty(op.result.type, list(op.dynamicSizes))).tensor
    replace(op, [], [emit.add(create_fill(op.input, empty)).results[0]])


def expand_from_elements(op: tensor.FromElementsOp) -> None:
    """Constants as a constant; sizes in a row stay (a step of their own makes them); other numbers are put side by
    side."""
    numbers = [_number(value) for value in operands_of(op)]
    assert isinstance(op.results[0].type, TensorType)
    known = [number for number in numbers if number is not None]
    emit = Emitter.before(op)
    if len(known) == len(numbers):
        attribute = DenseIntOrFPElementsAttr.from_list(op.results[0].type, known)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
        replace(op, [], [result_of(emit.add(create_constant(attribute, op.results[0].type)))])
    elif not isinstance(element_of(op.results[0]), IndexType) or len(shape_of(op.results[0])) != 1:
        replace(op, [], [_reshaped(emit, _row(emit, operands_of(op)), op.results[0].type)])


def _number(value: SSAValue) -> int | float | None:
    maker = value.op if type(value) is OpResult else None
    constant = maker.value if type(maker) is arith.ConstantOp else None
    return constant.value.data if isinstance(constant, IntegerAttr | FloatAttr) else None


def _row(emit: Emitter, numbers: Sequence[SSAValue]) -> SSAValue:
    """Numbers as a tensor of one dimension."""
    element = numbers[0].type
    one = attributes.tensor_type(element, (1,))
    if isinstance(element, IndexType):
        row = tensor.FromElementsOp.create(
            operands=numbers, result_types=[attributes.tensor_type(element, (len(numbers),))]
        )
        return emit.add(row).results[0]
    pieces = [emit.add(create_fill(number, emit.add(create_empty(one)).tensor)).results[0] for number in numbers]
    return (
        pieces[0]
        if len(pieces) == 1
        else emit.add(create_concat(pieces, 0, attributes.tensor_type(element, (len(numbers),)))).result
    )


def _reshaped(emit: Emitter, row: SSAValue, type_: TensorType[Attribute]) -> SSAValue:
    """A tensor of one dimension under another static shape."""
    shape = tuple(type_.get_shape())
    if len(shape) == 1:
        return row
    if not shape:
        properties: dict[str, Attribute] = {"reassociation": ArrayAttr[Attribute]([])}
        return emit.add(
            tensor.CollapseShapeOp.create(operands=[row], result_types=[type_], properties=properties)
        ).results[0]
    properties = {
        "reassociation": attributes.reassociation([range(len(shape))]),
        "static_output_shape": attributes.dense(shape),
    }
    return emit.add(tensor.ExpandShapeOp.create(operands=[row], result_types=[type_], properties=properties)).results[0]


def expand_insert(op: tensor.InsertOp) -> None:
    """The tensor with one element replaced: a choice per element."""
    emit = Emitter.before(op)
    positions = list(op.indices)

    def body(b: Body) -> SSAValue:
        here: SSAValue | None = None
        for axis, position in enumerate(positions):
            same = b.op(arith.CmpiOp, b.add(IndexOp(axis)).result, position, "eq")
            here = same if here is None else b.op(arith.AndIOp, here, same)
        return op.scalar if here is None else b.op(arith.SelectOp, here, op.scalar, b.args[0])

    replace(op, [], [emit.elementwise([op.dest], emit.empty_like(op.dest), body)])


def expand_generate(op: GenerateOp) -> None:
    """A structured op without inputs, whose body asks where it is."""
    emit, rank = Emitter.before(op), len(shape_of(op.res))
    assert isinstance(op.res.type, TensorType)
    empty = emit.add(create_empty(op.res.type, list(op.sizes))).tensor

    def body(b: Body) -> Sequence[SSAValue]:
        values: dict[SSAValue, SSAValue] = {
            argument: b.add(IndexOp(axis)).result for axis, argument in enumerate(op.body.block.args)
        }
        for inner in ops_of(op.body.block):
            if isinstance(inner, tensor.YieldOp):
                return [values.get(value, value) for value in inner.operands]
            b.add(inner.clone(values))
        raise AssertionError("a body without an end")

    replace(op, [], [emit.generic([], [empty], [identity_map(rank)], [PARALLEL] * rank, body).results[0]])
