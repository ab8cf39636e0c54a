"""One sub-kernel of a blocked dispatch as an entry function of its own over block-sized tensors, for any family to
lower.

Arguments are the dispatch's own (read through `tensor.extract_slice` where the block is a part of them) and what
earlier sub-kernels left in scratch; sizes are the dispatch's, then for each tile the block's number and, where blocks
differ, its extent. What leaves the dispatch is returned as `tensor.insert_slice` into the whole result, what stays as
it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IndexType, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import affine_sources
from fuseline.analysis.structured import StructuredOp, captured, is_generic, splat_value
from fuseline.dispatch.arms import operands_of
from fuseline.dispatch.entry_writer import EntryWriter
from fuseline.dispatch.view import BOUNDS_ATTRIBUTE, SCALAR_ATTRIBUTE
from fuseline.ir.build import element_of, tensor_type
from fuseline.ir.dim import Dim, Symbol
from fuseline.ir.dim_json import to_name
from fuseline.targets.cpu.families.blocked.band_edges import Edge, without_edge
from fuseline.targets.cpu.families.blocked.dispatch import starts_empty
from fuseline.targets.cpu.families.blocked.tiles import Box, Part, Tile, Tiling


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """Where a sub-kernel writes a value: result `position` of the dispatch, from `offsets` on in a tensor of `dims`;
    None: a buffer in scratch, that of a block unless it has `dims`."""

    value: SSAValue
    position: int | None = None
    dims: tuple[Dim, ...] = ()
    offsets: tuple[Dim, ...] = ()

    @property
    def is_boxed(self) -> bool:
        """Whether it is a box of what is written to."""
        return self.position is not None or bool(self.dims)


@dataclass(frozen=True)
class SubKernelEntry:
    """An entry function with what its tensor arguments and results are in the dispatch around it.

    An argument is one of the dispatch's, or a value that an earlier sub-kernel made.
    """

    entry: FuncOp
    arguments: tuple[SSAValue, ...]
    targets: tuple[ResultTarget, ...]


class SubKernelWriter(EntryWriter):
    """Writes the entry function of the sub-kernel that computes `members`.

    Args:
        stored: values that an earlier sub-kernel wrote into a result, from where they are read back.
        packable: constant arguments that no other sub-kernel reads.
        edge: rows that one of the ops is to leave as they come.
    """

    def __init__(
        self,
        tiling: Tiling,
        members: Iterable[Operation],
        stored: set[SSAValue],
        packable: set[SSAValue],
        edge: Edge | None = None,
    ) -> None:
        super().__init__(tiling.dispatch.view)
        self.tiling, self.dispatch, self.members = tiling, tiling.dispatch, set(members)
        self.stored, self.packable, self.edge = stored, packable, edge
        self.inside: dict[SSAValue, SSAValue] = {}
        self.sizes = {name: self.block.insert_arg(IndexType(), len(self.block.args)) for name in self._size_names()}

    def write(self, name: str, ordered: Sequence[Operation], targets: Sequence[ResultTarget]) -> SubKernelEntry:
        """The function; `ordered` are the members in program order."""
        for op in ordered:
            self._placed(cast(linalg.ops.GenericOp, op))
        entry = self.function(name, [self._returned(target) for target in targets])
        return SubKernelEntry(entry, tuple(self.arguments), tuple(targets))

    # computed values --------------------------------------------------------------------------------------------------

    def _placed(self, op: linalg.ops.GenericOp) -> None:
        """A structured op over the block."""
        structured, loops = StructuredOp(op), self.dispatch.axes.of_op(op)
        extents = structured.loops(self.view.shapes)
        operands: list[SSAValue] = []
        for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
            box = self.tiling.box_read(loops, extents, map_.results, self.view.shapes.dims(value))
            operands.append(self._operand(value, box))
        inputs, outputs = operands[: len(structured.inputs)], operands[len(structured.inputs) :]
        tiles = [self.tiling.cuts.get(axis) if axis is not None else None for axis in loops]
        new = linalg.ops.GenericOp(
            inputs,
            outputs,
            self._body(op, tiles),
            op.indexing_maps,
            op.iterator_types,
            [value.type for value in outputs],
        )
        self.add(op, new)
        self.inside.update(zip(op.results, new.results, strict=True))

    def _operand(self, value: SSAValue, box: Box) -> SSAValue:
        """A tensor as the op of a block reads it. What the dispatch makes in full along a dimension may be read from
        further on, at a sum of loops of which one is in blocks."""
        if self.dispatch.is_inside(value):
            return self._slice(self._inside(value), box.within(self.tiling.box_of(value)))
        if starts_empty(value):
            return self._blank(value, box.sizes)
        return self._slice(self.copy_of(value), box)

    def _blank(self, value: SSAValue, sizes: Sequence[Dim]) -> SSAValue:
        """A tensor without contents of its own, of other sizes."""
        emit = self.emitter()
        empty = emit.empty(element_of(value), sizes, lambda axis: self.size(sizes[axis]))
        splat = splat_value(value)
        return empty if splat is None else emit.fill(splat, empty)

    def _slice(self, value: SSAValue, box: Box) -> SSAValue:
        if box.begins_at_zero:
            return value
        offsets, sizes = [self.mixed(offset) for offset in box.offsets], [self.mixed(size) for size in box.sizes]
        op = tensor.ExtractSliceOp(value, offsets, sizes, [1] * len(sizes), tensor_type(element_of(value), box.sizes))
        return self.emitter().add(op).result

    def _body(self, op: linalg.ops.GenericOp, tiles: Sequence[Tile | Part | None]) -> Region:
        """The scalar computation, with the numbers of the loops as they are outside of the block: of what the block
        itself made, elements are picked by its own."""
        mapper: dict[SSAValue, SSAValue] = {value: self._captured(value) for value in captured(op)}
        mine = {new for value, new in mapper.items() if self.dispatch.is_inside(value)}
        region = Region()
        op.body.clone_into(region, value_mapper=mapper)
        if self.edge is not None and op is self.edge.op:
            without_edge(region, self.edge)
        for inner in list(region.block.ops):
            if isinstance(inner, linalg.ops.IndexOp) and (tile := tiles[inner.dim.value.data]) is not None:
                moved = arith.AddiOp(inner.result, self.size(tile.offset))
                region.block.insert_op_after(moved, inner)
                inner.result.replace_uses_with_if(
                    moved.result,
                    lambda use, moved=moved: use.operation is not moved and not _picks(use.operation, mine),
                )
        return region

    def _captured(self, value: SSAValue) -> SSAValue:
        return self._inside(value) if self.dispatch.is_inside(value) else self.copy_of(value)

    # values of earlier sub-kernels, and rearrangements ----------------------------------------------------------------

    def _inside(self, value: SSAValue) -> SSAValue:
        """The block's part of a value that the dispatch makes."""
        found = self.inside.get(value)
        if found is None:
            assert isinstance(value, OpResult)
            found = self._rearranged(value) if value.op in self.dispatch.moved else self._earlier(value)
            self.inside[value] = found
        return found

    def _earlier(self, value: SSAValue) -> SSAValue:
        """What another sub-kernel made: a buffer of the block's size, or a part of a result."""
        box = self.tiling.box_of(value)
        if value not in self.stored:
            return self.argument(value, tensor_type(element_of(value), box.sizes))
        return self._slice(self.argument(value, value.type), box)

    def _rearranged(self, value: OpResult) -> SSAValue:
        """A reshape, transpose, slice, .. of blocks."""
        if is_generic(value.op):
            self._placed(value.op)
            return self.inside[value]
        new = self._resized(value.op, self.tiling.box_of(value))
        self.add(value.op, new)
        return new.results[0]

    def _resized(self, op: Operation, box: Box) -> Operation:
        """A rearranging op over the blocks of what it reads."""
        blocks = {source: self._block_of(op, source, box) for source in operands_of(op)}
        type_ = tensor_type(element_of(op.results[0]), box.sizes)
        if isinstance(op, tensor.ExpandShapeOp):
            dynamic = [self.size(size) for size in box.sizes if not isinstance(size, int)]
            static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in box.sizes]
            return tensor.ExpandShapeOp(blocks[op.src], dynamic, op.reassociation, static, type_)
        if isinstance(op, tensor.ExtractSliceOp) and len(op.static_sizes.get_values()) == len(box.sizes):
            shapes = self.view.shapes
            offsets = shapes.mixed([int(n) for n in op.static_offsets.get_values()], op.offsets)
            strides = shapes.mixed([int(n) for n in op.static_strides.get_values()], op.strides)
            at, cut, steps = ([self.mixed(size) for size in sizes] for sizes in (offsets, box.sizes, strides))
            return tensor.ExtractSliceOp(blocks[op.source], at, cut, steps, type_)
        operands = [blocks[operand] for operand in op.operands]
        regions = [self._copied(region, blocks) for region in op.regions]
        return type(op).create(
            operands=operands, result_types=[type_], properties=op.properties, attributes=op.attributes, regions=regions
        )

    def _copied(self, region: Region, mapper: Mapping[SSAValue, SSAValue]) -> Region:
        out = Region()
        region.clone_into(out, value_mapper=dict(mapper))
        return out

    def _block_of(self, op: Operation, source: SSAValue, box: Box) -> SSAValue:
        """What a rearranging op reads to make `box`."""
        if self.dispatch.is_inside(source):
            return self._inside(source)
        if not isinstance(source.type, TensorType):
            return self.copy_of(source)
        if isinstance(op, linalg.abstract_ops.LinalgStructuredOperation) and source in op.outputs:
            return self._operand(source, box)
        offsets: list[Dim] = []
        sizes: list[Dim] = []
        found = next((one.at for one in affine_sources(op, self.view.shapes) or () if one.value is source), ())
        made = {axis: c.position for axis, c in enumerate(found) if isinstance(c, AffineDimExpr)}
        for axis, size in enumerate(self.view.shapes.dims(source)):
            cut = axis in made and box.offsets[made[axis]] != 0
            offsets.append(box.offsets[made[axis]] if cut else 0)
            sizes.append(box.sizes[made[axis]] if cut else size)
        return self._operand(source, Box(tuple(offsets), tuple(sizes)))

    # results ----------------------------------------------------------------------------------------------------------

    def _returned(self, target: ResultTarget) -> SSAValue:
        value = self._inside(target.value)
        if not target.is_boxed:
            return value
        return self.boxed(value, target.dims, self.tiling.box_of(target.value).sizes, target.offsets)

    # arguments and sizes ----------------------------------------------------------------------------------------------

    def _size_names(self) -> list[str]:
        tiles = self.tiling.tiles.values()
        return [
            *self.view.size_names,
            *(tile.number for tile in tiles),
            *(tile.rest for tile in tiles if tile.rest is not None),
        ]

    def symbol(self, symbol: Symbol) -> SSAValue:
        """The index argument of a symbol: all are there from the start."""
        return self.sizes[symbol.name]

    def tensor_attributes(self, value: SSAValue) -> dict[str, Attribute]:
        """Whether its bytes may be laid out at compile time, whether it is a number, and its sizes."""
        found: dict[str, Attribute] = {}
        if isinstance(value, BlockArgument):
            dims = self.view.shapes.dims(value)
            if value in self.packable:
                found["fuseline.constant"] = UnitAttr()
            if self.view.is_scalar(value):
                found[SCALAR_ATTRIBUTE] = UnitAttr()
        else:
            dims = self.view.shapes.dims(value) if value in self.stored else self.tiling.box_of(value).sizes
        if not all(isinstance(size, int) for size in dims):
            found["fuseline.dims"] = ArrayAttr([StringAttr(to_name(size)) for size in dims])
        return found

    def size_attributes(self, name: str) -> dict[str, Attribute]:
        """Those of the dispatch, or what the number of a block and its extent can be."""
        if name in self.view.size_names:
            return super().size_attributes(name)
        tile = next(tile for tile in self.tiling.tiles.values() if name in (tile.number, tile.rest))
        bounds = "0.." if name == tile.number else f"1..{tile.size}"
        return {"fuseline.name": StringAttr(name), BOUNDS_ATTRIBUTE: StringAttr(bounds)}


def _picks(op: Operation, tensors: Collection[SSAValue]) -> bool:
    """Whether `op` picks an element of one of `tensors`."""
    return isinstance(op, tensor.ExtractOp) and op.tensor in tensors
