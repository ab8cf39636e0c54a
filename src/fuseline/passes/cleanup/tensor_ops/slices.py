"""Slices that drop dimensions, and slices put in with gaps between their elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Attribute, SSAValue

from fuseline.ir.build import PARALLEL, Body, Emitter, element_of, identity_map, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.provenance import replace


def groups_of(sizes: Sequence[int], reduced: Sequence[int]) -> list[list[int]]:
    """The axes of a slice of `sizes` behind each dimension of what is left when units are dropped.

    >>> groups_of((1, 4, 1, 1), (4, 1))
    [[0, 1], [2, 3]]
    """
    groups: list[list[int]] = []
    waiting: list[int] = []
    drop = len(sizes) - len(reduced)
    for axis, size in enumerate(sizes):
        wanted = reduced[len(groups)] if len(groups) < len(reduced) else None
        if size == 1 and drop and wanted != 1:
            drop -= 1
            (groups[-1] if groups else waiting).append(axis)
        elif len(groups) < len(reduced):
            groups.append([*waiting, axis])
            waiting = []
        else:
            groups[-1].append(axis)
    return groups


def expand_extract_slice(op: tensor.ExtractSliceOp) -> None:
    """A slice of all dimensions, and a reshape that drops some; others stay."""
    sizes = attributes.values(op.static_sizes)
    if len(shape_of(op.result)) == len(sizes):
        return
    emit = Emitter.before(op)
    whole = attributes.tensor_type(element_of(op.source), sizes)
    cut = emit.add(tensor.ExtractSliceOp.create(operands=op.operands, result_types=[whole], properties=op.properties))
    properties: dict[str, Attribute] = {
        "reassociation": attributes.reassociation(groups_of(sizes, shape_of(op.result)))
    }
    narrow = tensor.CollapseShapeOp.create(operands=[cut.result], result_types=[op.result.type], properties=properties)
    replace(op, [], [emit.add(narrow).results[0]])


def expand_insert_slice(op: tensor.InsertSliceOp) -> None:
    """The source with all dimensions of the destination; with gaps, a choice per element; the destination where the
    source has no element. What it says of sizes is said by the op that nobody reads any more: `require-equal-sizes`
    asks it, and `dead-code` takes it away."""
    if not op.result.uses:
        return
    if 0 in shape_of(op.source):
        op.result.replace_all_uses_with(op.dest)
        return
    sizes = attributes.values(op.static_sizes)
    emit = Emitter.before(op)
    source = op.source
    if len(shape_of(source)) < len(sizes):
        properties: dict[str, Attribute] = {
            "reassociation": attributes.reassociation(groups_of(sizes, shape_of(source))),
            "static_output_shape": attributes.dense(sizes),
        }
        wide = attributes.tensor_type(element_of(source), sizes)
        source = emit.add(
            tensor.ExpandShapeOp.create(operands=[source, *op.sizes], result_types=[wide], properties=properties)
        ).results[0]
    if any(stride != 1 for stride in attributes.values(op.static_strides)):
        op.result.replace_all_uses_with(_chosen(emit, op, source))
    elif source is not op.source:
        same = tensor.InsertSliceOp.create(
            operands=[source, *op.operands[1:]], result_types=[op.result.type], properties=op.properties
        )
        replace(op, [], [emit.add(same).results[0]])


def mixed(emit: Emitter, static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[SSAValue]:
    """Sizes, some numbers and the others the next of `dynamic`, as index values."""
    rest = iter(dynamic)
    return [next(rest) if size == DYNAMIC_INDEX else emit.index(size) for size in static]


def _chosen(emit: Emitter, op: tensor.InsertSliceOp, source: SSAValue) -> SSAValue:
    offsets, sizes, strides = (
        mixed(emit, attributes.values(static), dynamic)
        for static, dynamic in (
            (op.static_offsets, op.offsets),
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        )
    )
    rank = len(offsets)

    def body(b: Body) -> Sequence[SSAValue]:
        positions = [b.add(IndexOp(axis)).result for axis in range(rank)]
        inside, at = position_in_source(b, positions, offsets, sizes, strides)
        return [b.op(arith.SelectOp, inside, b.op(tensor.ExtractOp, source, at, element_of(source)), b.args[0])]

    maps = [identity_map(rank), identity_map(rank)]
    return emit.generic([op.dest], [emit.empty_like(op.dest)], maps, [PARALLEL] * rank, body).results[0]


def position_in_source(
    b: Body,
    positions: Sequence[SSAValue],
    offsets: Sequence[SSAValue],
    sizes: Sequence[SSAValue],
    strides: Sequence[SSAValue] | None = None,
) -> tuple[SSAValue, list[SSAValue]]:
    """Whether the source has an element for a place, and where: the nearest one that it has. There is at least one
    dimension."""
    inside: SSAValue | None = None
    at: list[SSAValue] = []
    zero, one = b.constant(0, attributes.INDEX), b.constant(1, attributes.INDEX)
    for axis, (position, offset, size) in enumerate(zip(positions, offsets, sizes, strict=True)):
        step = strides[axis] if strides is not None else None
        behind = b.op(arith.MaxSIOp, b.op(arith.SubiOp, position, offset), zero)
        number = behind if step is None else b.op(arith.DivUIOp, behind, step)
        nearest = b.op(arith.MaxSIOp, b.op(arith.MinSIOp, number, b.op(arith.SubiOp, size, one)), zero)
        back = b.op(arith.AddiOp, offset, nearest if step is None else b.op(arith.MuliOp, nearest, step))
        there = b.op(arith.CmpiOp, back, position, "eq")
        inside = there if inside is None else b.op(arith.AndIOp, inside, there)
        at.append(nearest)
    assert inside is not None
    return inside, at
