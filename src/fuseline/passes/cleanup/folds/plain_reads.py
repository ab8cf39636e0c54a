"""What a body takes out of a tensor at its own loops and at numbers is an operand, read by a map; of a part of the
tensor, a slice is.

linalg.generic {} ins() {                        =>    %s = tensor.extract_slice %x[0, 3] [8, 1] [1, 1]
  %i = linalg.index 1                                  linalg.generic {maps = [(d0, d1) -> (d1), ..]} ins(%s) {
  %a = tensor.extract %x[%i, 3]                        ^bb0(%in, ..):
  .. %a ..                                               .. %in ..

So a slice or a transposition that is written element by element is one, and what merely reads so is no gather. Whether
the place lies inside was asked before (`require-readable-positions`), as it is of maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.structured_op import input_count, iterators_in
from fuseline.analysis.walks import loop_of
from fuseline.ir.build import dims_map, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import body_of, erase, operands_of, ops_of, replace_uses
from fuseline.passes.cleanup.folds.scalars import constant_value
from fuseline.passes.cleanup.folds.worklist import Worklist

Generic = linalg.ops.GenericOp
Place: TypeAlias = tuple[int | None, int]
"""Of an element along a dimension: the loop that it goes along, or None and a number."""


def fold_plain_read(op: Generic, work: Worklist) -> bool:
    """The first element that an all-parallel body takes out of a tensor so, of loops whose lengths are known."""
    iterators = iterators_in(op.properties["iterator_types"])
    extents = _extents(op) if iterators and "reduction" not in iterators else None
    if extents is None:
        return False
    for read in ops_of(body_of(op)):
        places = _places_of(read, extents) if isinstance(read, tensor.ExtractOp) else None
        if isinstance(read, tensor.ExtractOp) and places is not None:
            work.replace(op, _with_operand(op, read, places, extents))
            return True
    return False


def _extents(op: Generic) -> list[int] | None:
    """The length of each loop, None where a result does not tell all."""
    sizes, results = shape_of(operands_of(op)[-1]), op.indexing_maps.data[-1].data.results
    found = {e.position: size for e, size in zip(results, sizes, strict=True) if isinstance(e, AffineDimExpr)}
    known = len(found) == len(op.iterator_types) == len(results) and DYNAMIC_INDEX not in sizes
    return [found[loop] for loop in range(len(found))] if known else None


def _places_of(read: tensor.ExtractOp, extents: Sequence[int]) -> list[Place] | None:
    """Where an element stands, where that is a loop or a number along each dimension, inside of the tensor, and each
    loop once."""
    found = [_place_of(index) for index in read.indices]
    places = [place for place in found if place is not None]
    loops = [loop for loop, _ in places if loop is not None]
    if not places or len(places) < len(found) or len(set(loops)) < len(loops):
        return None
    sizes = shape_of(read.tensor)
    inside = all(
        at < size if loop is None else extents[loop] <= size for (loop, at), size in zip(places, sizes, strict=True)
    )
    return places if inside and DYNAMIC_INDEX not in sizes else None


def _place_of(index: SSAValue) -> Place | None:
    loop = loop_of(index)
    if loop is not None:
        return loop, 0
    number = constant_value(index)
    return (None, int(number)) if number is not None and number >= 0 else None


def _with_operand(
    op: Generic, read: tensor.ExtractOp, places: Sequence[Place], extents: Sequence[int]
) -> list[Operation]:
    """`op` with what `read` reads as its last input, behind the slice where that is not all; the body moves over."""
    sizes = [1 if loop is None else extents[loop] for loop, _ in places]
    loops = [loop for loop, _ in places if loop is not None]
    element, shape = element_of(read.tensor), [extents[loop] for loop in loops]
    part: list[Operation] = []
    source: SSAValue = read.tensor
    if shape != list(shape_of(source)):
        type_, starts = attributes.tensor_type(element, tuple(shape)), [at for _, at in places]
        part = [tensor.ExtractSliceOp(source, starts, sizes, [1] * len(sizes), type_)]
        source = part[0].results[0]
    return [*part, _with_input(op, read, source, dims_map(len(extents), loops))]


def _with_input(op: Generic, read: tensor.ExtractOp, source: SSAValue, map_: AffineMap) -> Generic:
    count, operands = input_count(op), list(operands_of(op))
    body = op.detach_region(op.body)
    replace_uses(read.result, body.block.insert_arg(read.result.type, count))
    erase(read)
    maps = [one.data for one in op.indexing_maps.data]
    return create_generic(
        [*operands[:count], source],
        operands[count:],
        body,
        [*maps[:count], map_, *maps[count:]],
        op.iterator_types,
        doc=op.doc,
        library_call=op.library_call,
    )
