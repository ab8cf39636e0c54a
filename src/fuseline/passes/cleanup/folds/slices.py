"""Slices, pads, concats and casts that do nothing, or that meet what makes them do nothing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import OpResult, SSAValue

from fuseline.ir.build import shape_of
from fuseline.passes.cleanup.folds.adjacent_slices import fold_adjacent_slices
from fuseline.passes.cleanup.folds.dims import asked, size_value
from fuseline.passes.cleanup.folds.equal_reductions import fold_equal_reductions
from fuseline.passes.cleanup.folds.inserted_slices import fold_covering_inserts, fold_insert_into_fill
from fuseline.passes.cleanup.folds.known_places import fold_known_places
from fuseline.passes.cleanup.folds.parts_put_back import fold_part_put_back
from fuseline.passes.cleanup.folds.transposing_slices import fold_transposing_slices
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist

MOST_SHARED_PARTS = 32
"""Parts up to which a concat with other readers is opened: a dispatch binds no more buffers, and a chain of concats
stays linear in its length."""


def _static(values: Sequence[int]) -> bool:
    return DYNAMIC_INDEX not in values


def fold_whole_extract(op: tensor.ExtractSliceOp, work: Worklist) -> bool:
    """A slice that is the whole tensor."""
    if op.source.type != op.result.type or not _reaches_all(op, op.source):
        return False
    work.replace(op, [], [op.source])
    return True


def _reaches_all(op: tensor.ExtractSliceOp | tensor.InsertSliceOp, whole: SSAValue) -> bool:
    """Whether the slice, of the type of `whole`, starts at zero and ends where `whole` does, in unknown sizes too."""
    if any(op.static_offsets.get_values()) or not set(op.static_strides.get_values()) <= {1}:
        return False
    unknown = [axis for axis, size in enumerate(op.static_sizes.get_values()) if size == DYNAMIC_INDEX]
    return all(asked(size) == size_value(whole, axis) for axis, size in zip(unknown, op.sizes, strict=True))


def fold_extract_of_extract(op: tensor.ExtractSliceOp, work: Worklist) -> bool:
    """A static slice of a static slice of the same rank is one slice."""
    inner = op.source.op if type(op.source) is OpResult else None
    if type(inner) is not tensor.ExtractSliceOp or len(shape_of(inner.source)) != len(shape_of(op.source)):
        return False
    bounds = [
        o.get_values()
        for o in (op.static_offsets, op.static_strides, op.static_sizes, inner.static_offsets, inner.static_strides)
    ]
    if not all(_static(numbers) for numbers in bounds):
        return False
    offsets = [base + stride * offset for base, stride, offset in zip(bounds[3], bounds[4], bounds[0], strict=True)]
    strides = [a * b for a, b in zip(bounds[1], bounds[4], strict=True)]
    work.replace(op, [tensor.ExtractSliceOp(inner.source, offsets, list(bounds[2]), strides, op.result.type)])
    return True


def fold_extract_of_concat(op: tensor.ExtractSliceOp, work: Worklist) -> bool:
    """A static slice that lies in one operand of a concat reads that operand."""
    concat = op.source.op if type(op.source) is OpResult else None
    if type(concat) is not tensor.ConcatOp:
        return False
    axis, offsets, sizes = concat.dim.value.data, list(op.static_offsets.get_values()), op.static_sizes.get_values()
    strides = op.static_strides.get_values()
    if not (_static(offsets) and _static(sizes) and _static(strides)):
        return False
    ends = offsets[axis], offsets[axis] + (sizes[axis] - 1) * strides[axis]
    found = _operand_at(concat, axis, min(ends), max(ends))  # a slice may run backwards
    if found is None:
        return False
    piece, start = found
    offsets[axis] -= start
    work.replace(op, [tensor.ExtractSliceOp(piece, offsets, list(sizes), list(strides), op.result.type)])
    return True


def _operand_at(concat: tensor.ConcatOp, axis: int, first: int, last: int) -> tuple[SSAValue, int] | None:
    """The operand that holds coordinates `first..last` along `axis`, and where it starts."""
    start = 0
    for piece in concat.inputs:
        size = shape_of(piece)[axis]
        if size == DYNAMIC_INDEX:
            return None
        if start <= first and last < start + size:
            return piece, start
        start += size
    return None


def fold_whole_insert(op: tensor.InsertSliceOp, work: Worklist) -> bool:
    """A slice that replaces the whole destination, of unknown sizes too."""
    if op.source.type != op.dest.type or not _reaches_all(op, op.dest):
        return False
    work.replace(op, [], [op.source])
    return True


def fold_empty_pad(op: tensor.PadOp, work: Worklist) -> bool:
    """A pad by nothing."""
    if len(op.operands) != 1 or op.operands[0].type != op.results[0].type or op.nofold is not None:
        return False
    if any((*op.static_low.get_values(), *op.static_high.get_values())):
        return False
    work.replace(op, [], [op.source])
    return True


def fold_concat(op: tensor.ConcatOp, work: Worklist) -> bool:
    """A concat of one tensor; operands without elements; a concat along the same dimension among the operands.

    The inner concat may have other readers: the parts are there either way, and whoever reads the outer one in place
    asks for nothing else. So each prefix of a chain of concats is read from its parts, and none has to be stored for
    the next.
    """
    axis = op.dim.value.data
    kept: list[SSAValue] = []
    for piece in op.inputs:
        inner = piece.op if type(piece) is OpResult else None
        if type(inner) is tensor.ConcatOp and inner.dim == op.dim and _opens(piece, len(inner.inputs) + len(op.inputs)):
            kept += inner.inputs
        elif shape_of(piece)[axis] != 0 or len(op.inputs) == 1:
            kept.append(piece)
    if len(kept) == 1 and kept[0].type == op.result.type:
        work.replace(op, [], kept)
        return True
    if not kept or kept == list(op.inputs):
        return False
    work.replace(op, [tensor.ConcatOp(kept, op.dim, op.result.type)])
    return True


def _opens(piece: SSAValue, parts: int) -> bool:
    """Whether a concat that is a part of another is replaced there by its own parts: where nobody else reads it, and
    where those are few."""
    return piece.has_one_use() or parts <= MOST_SHARED_PARTS + 1


def fold_cast(op: tensor.CastOp, work: Worklist) -> bool:
    """A cast to the same type; a cast that undoes another."""
    inner = op.source.op if type(op.source) is OpResult else None
    source = inner.source if type(inner) is tensor.CastOp else op.source
    if source.type != op.dest.type:
        return False
    work.replace(op, [], [source])
    return True


EXTRACT: tuple[Fold, ...] = (fold_known_places, fold_whole_extract, fold_extract_of_extract, fold_extract_of_concat)
INSERT: tuple[Fold, ...] = (fold_known_places, fold_whole_insert, fold_covering_inserts, fold_insert_into_fill)
PAD: tuple[Fold, ...] = (fold_empty_pad,)
CONCAT: tuple[Fold, ...] = (
    fold_concat,
    fold_adjacent_slices,
    fold_part_put_back,
    fold_transposing_slices,
    fold_equal_reductions,
)
CAST: tuple[Fold, ...] = (fold_cast,)
