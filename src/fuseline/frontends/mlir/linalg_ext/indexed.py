"""Scatter, gather and maps of indices.

Where a slice goes is one number, the place among all slices of the result. Each slice of the result asks which update
names it, the last one of several; updates that are combined are summed up (multiplied, ..), or taken in one after the
other where the body is anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, i1
from xdsl.ir import SSAValue

from fuseline.frontends.mlir.linalg_ext.nest import Nest, inlined, loop
from fuseline.ir.build import Body, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.linalg_ext import GatherOp, MapLoadOp, MapStoreOp, ScatterOp

INDEX = attributes.INDEX


def gather(op: GatherOp) -> list[SSAValue]:
    """Slices of the source, elements at places outside from the nearest end."""
    out, source, indices = op.outputs[0], op.inputs[0], op.inputs[1]
    loops, batch = list(range(len(shape_of(out)))), list(range(op.batch))

    def body(b: Body) -> SSAValue:
        at = _index(b, op, indices, batch)
        position = [*at, *(loop(b, i) for i in loops[op.batch :])]
        found = b.op(tensor.ExtractOp, source, position, element_of(source))
        return b.op(arith.SelectOp, _true(b, b.args[0]), found, b.args[1]) if len(op.inputs) == 3 else found

    inputs = [(op.inputs[2], batch), (out, loops)] if len(op.inputs) == 3 else []
    return [Nest(op, [(out, loops)]).each(inputs, loops, element_of(out), body)]


def _index(b: Body, op: GatherOp | ScatterOp, indices: SSAValue, batch: Sequence[int]) -> list[SSAValue]:
    """The leading places that the indices at `batch` name, in the order of the dimensions."""
    at = [loop(b, i) for i in batch]
    single = len(shape_of(indices)) == len(batch)
    coordinates = [
        b.op(tensor.ExtractOp, indices, at if single else [*at, b.constant(number, INDEX)], element_of(indices))
        for number in range(op.depth)
    ]
    order = op.numbers("dimension_map")
    return [_as_index(b, coordinates[order.index(axis)]) for axis in range(op.depth)]


def _as_index(b: Body, value: SSAValue) -> SSAValue:
    return value if isinstance(value.type, IndexType) else b.op(arith.IndexCastOp, value, INDEX)


def _true(b: Body, mask: SSAValue) -> SSAValue:
    return mask if mask.type == i1 else b.op(arith.CmpiOp, mask, b.constant(0, mask.type), "ne")


def scatter(op: ScatterOp) -> list[SSAValue]:
    """The updates in order, each of which the body combines with what is in its place; those outside of the result go
    nowhere."""
    out, updates, depth = op.outputs[0], op.inputs[0], op.depth
    rank, batch = len(shape_of(out)), op.batch
    kept, taken = list(range(rank)), list(range(rank, rank + batch))
    nest = Nest(op, [(out, kept), (updates, [*taken, *kept[depth:]])])

    def body(b: Body) -> Sequence[SSAValue]:
        update, total = b.args[0], b.args[-1]
        hit = _true(b, b.args[1]) if len(op.inputs) == 3 else None
        for axis, position in enumerate(_index(b, op, op.inputs[1], taken)):
            here = b.op(arith.CmpiOp, loop(b, axis), position, "eq")
            hit = here if hit is None else b.op(arith.AndIOp, hit, here)
        assert hit is not None
        return [b.op(arith.SelectOp, hit, inlined(b, op.block, [update, total])[0], total)]

    inputs = [(updates, [*taken, *kept[depth:]]), *((mask, taken) for mask in op.inputs[2:])]
    return nest.fold(inputs, [(out, kept)], kept, taken, body)


def map_load(op: MapLoadOp) -> list[SSAValue]:
    """Each element from where the body says, or what it yields last where that is outside."""
    loops = list(range(len(shape_of(op.dest))))
    nest = Nest(op, [(op.dest, loops)])
    source = Nest(op, [(op.source, list(range(len(shape_of(op.source)))))])
    sizes = [source.size(axis) for axis in range(len(shape_of(op.source)))]

    def body(b: Body) -> SSAValue:
        *position, otherwise = inlined(b, op.body.block, [loop(b, i) for i in loops])
        nearest = [_nearest(b, at, size) for at, size in zip(position, sizes, strict=True)]
        found = b.op(tensor.ExtractOp, op.source, nearest, element_of(op.source))
        for at, size in zip(position, sizes, strict=True):
            found = b.op(arith.SelectOp, b.op(arith.CmpiOp, at, size, "ult"), found, otherwise)
        return found

    return [nest.each([], loops, element_of(op.dest), body)]


def _nearest(b: Body, at: SSAValue, size: SSAValue) -> SSAValue:
    last = b.op(arith.SubiOp, size, b.constant(1, INDEX))
    return b.op(arith.MaxSIOp, b.op(arith.MinSIOp, at, last), b.constant(0, INDEX))


def map_store(op: MapStoreOp) -> list[SSAValue]:
    """Each element to where the body says; those that are masked and those outside go nowhere.

    Where the body only puts dimensions into another order, the sizes are to be those of the result.
    """
    turned = _turned(op)
    if turned is not None:
        nest = Nest(op, [(op.dest, list(range(len(turned))))])
        inputs = [(op.source, [turned.index(axis) for axis in range(len(turned))])]
        return [nest.each(inputs, list(range(len(turned))), element_of(op.dest), lambda b: b.args[0])]
    rank, taken = len(shape_of(op.dest)), len(shape_of(op.source))
    kept, read = list(range(rank)), list(range(rank, rank + taken))
    nest = Nest(op, [(op.dest, kept), (op.source, read)])

    def body(b: Body) -> Sequence[SSAValue]:
        *position, hit = inlined(b, op.body.block, [loop(b, i) for i in read])
        for axis, at in enumerate(position):
            hit = b.op(arith.AndIOp, hit, b.op(arith.CmpiOp, loop(b, axis), at, "eq"))
        return [b.op(arith.SelectOp, hit, b.args[0], b.args[1])]

    return nest.fold([(op.source, read)], [(op.dest, kept)], kept, read, body)


def _turned(op: MapStoreOp) -> list[int] | None:
    """Which dimension of the source each of the result is, where every element goes to a place of its own that only
    depends on those, and no size tells that others are left."""
    arguments = list[SSAValue](op.body.block.args)
    end = op.body.block.last_op
    assert end is not None
    *position, hit = list(end.operands)
    if any(at not in arguments for at in position) or not _holds(hit):
        return None
    axes = [arguments.index(at) for at in position]
    fits = all(
        DYNAMIC_INDEX in (size, shape_of(op.source)[axis]) or size == shape_of(op.source)[axis]
        for size, axis in zip(shape_of(op.dest), axes, strict=True)
    )
    return axes if fits and sorted(axes) == list(range(len(arguments))) else None


def _holds(value: SSAValue) -> bool:
    """Whether a mask is the constant true."""
    number = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(number, IntegerAttr) and bool(number.value.data)
