"""One sub-kernel of a blocked dispatch as an entry function of its own over block-sized tensors, for any family to
lower.

Arguments are the dispatch's own (read through `tensor.extract_slice` where the block is a part of them) and what
earlier sub-kernels left in scratch; sizes are the dispatch's, then for each tile the block's number and, where blocks
differ, its extent. What leaves the dispatch is returned as `tensor.insert_slice` into the whole result, what stays as
it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IndexType, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import affine_sources
from fuseline.analysis.structured import StructuredOp, captured, is_generic, splat_value
from fuseline.dispatch.arms import is_size, operands_of
from fuseline.dispatch.view import BOUNDS_ATTRIBUTE, SCALAR_ATTRIBUTE
from fuseline.ir.build import Emitter, element_of, tensor_type
from fuseline.ir.dim import Dim, Symbol
from fuseline.ir.dim_json import to_name
from fuseline.targets.cpu.families.blocked.dispatch import starts_empty
from fuseline.targets.cpu.families.blocked.tiles import Box, Tile, Tiling


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """Where a sub-kernel writes a value: result `position` of the dispatch, from `offsets` on in a tensor of `dims`;
    None: a buffer in scratch."""

    value: SSAValue
    position: int | None = None
    dims: tuple[Dim, ...] = ()
    offsets: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class SubKernelEntry:
    """An entry function with what its tensor arguments and results are in the dispatch around it.

    An argument is one of the dispatch's, or a value that an earlier sub-kernel made.
    """

    entry: FuncOp
    arguments: tuple[SSAValue, ...]
    targets: tuple[ResultTarget, ...]


class SubKernelWriter:
    """Writes the entry function of the sub-kernel that computes `members`.

    Args:
        stored: values that an earlier sub-kernel wrote into a result, from where they are read back.
        packable: constant arguments that no other sub-kernel reads.
    """

    def __init__(
        self, tiling: Tiling, members: Iterable[Operation], stored: set[SSAValue], packable: set[SSAValue]
    ) -> None:
        self.tiling, self.dispatch = tiling, tiling.dispatch
        self.view, self.members = self.dispatch.view, set(members)
        self.stored, self.packable = stored, packable
        self.block = Block()
        self.arguments: list[SSAValue] = []
        self.outside: dict[SSAValue, SSAValue] = {}
        self.inside: dict[SSAValue, SSAValue] = {}
        self.sizes = {name: self.block.insert_arg(IndexType(), len(self.block.args)) for name in self._size_names()}

    def write(self, name: str, ordered: Sequence[Operation], targets: Sequence[ResultTarget]) -> SubKernelEntry:
        """The function; `ordered` are the members in program order."""
        for op in ordered:
            self._placed(cast(linalg.ops.GenericOp, op))
        returned = [self._returned(target) for target in targets]
        end = ReturnOp(*returned)
        end.location = self.view.entry.location
        self.block.add_op(end)
        types = [argument.type for argument in self.block.args], [value.type for value in returned]
        entry = FuncOp(name, types, Region(self.block), arg_attrs=self._attributes())
        entry.location = self.view.entry.location
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
        tiles = [self.tiling.tiles.get(axis) if axis is not None else None for axis in loops]
        new = linalg.ops.GenericOp(
            inputs,
            outputs,
            self._body(op, tiles),
            op.indexing_maps,
            op.iterator_types,
            [value.type for value in outputs],
        )
        self._add(op, new)
        self.inside.update(zip(op.results, new.results, strict=True))

    def _operand(self, value: SSAValue, box: Box) -> SSAValue:
        """A tensor as the op of a block reads it."""
        if self.dispatch.is_inside(value):
            return self._inside(value)
        if starts_empty(value):
            return self._blank(value, box.sizes)
        return self._slice(self._outside(value), box)

    def _blank(self, value: SSAValue, sizes: Sequence[Dim]) -> SSAValue:
        """A tensor without contents of its own, of other sizes."""
        emit = self._emitter()
        empty = emit.empty(element_of(value), sizes, lambda axis: self._size(sizes[axis]))
        splat = splat_value(value)
        return empty if splat is None else emit.fill(splat, empty)

    def _slice(self, value: SSAValue, box: Box) -> SSAValue:
        if box.begins_at_zero:
            return value
        offsets, sizes = [self._mixed(offset) for offset in box.offsets], [self._mixed(size) for size in box.sizes]
        op = tensor.ExtractSliceOp(value, offsets, sizes, [1] * len(sizes), tensor_type(element_of(value), box.sizes))
        return self._emitter().add(op).result

    def _body(self, op: linalg.ops.GenericOp, tiles: Sequence[Tile | None]) -> Region:
        """The scalar computation, with the numbers of the loops as they are outside of the block."""
        mapper: dict[SSAValue, SSAValue] = {value: self._captured(value) for value in captured(op)}
        region = Region()
        op.body.clone_into(region, value_mapper=mapper)
        for inner in list(region.block.ops):
            if isinstance(inner, linalg.ops.IndexOp) and (tile := tiles[inner.dim.value.data]) is not None:
                moved = arith.AddiOp(inner.result, self._size(tile.offset))
                region.block.insert_op_after(moved, inner)
                inner.result.replace_uses_with_if(moved.result, lambda use, moved=moved: use.operation is not moved)
        return region

    def _captured(self, value: SSAValue) -> SSAValue:
        return self._inside(value) if self.dispatch.is_inside(value) else self._outside(value)

    # values of earlier sub-kernels, and rearrangements
    # ----------------------------------------------------------------------

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
            return self._argument(value, tensor_type(element_of(value), box.sizes))
        return self._slice(self._argument(value, value.type), box)

    def _rearranged(self, value: OpResult) -> SSAValue:
        """A reshape, transpose, slice, .. of the block's parts."""
        if is_generic(value.op):
            self._placed(value.op)
            return self.inside[value]
        new = self._resized(value.op, self.tiling.box_of(value))
        self._add(value.op, new)
        return new.results[0]

    def _resized(self, op: Operation, box: Box) -> Operation:
        """A rearranging op over the block's parts of what it reads."""
        parts = {source: self._part(op, source, box) for source in operands_of(op)}
        type_ = tensor_type(element_of(op.results[0]), box.sizes)
        if isinstance(op, tensor.ExpandShapeOp):
            dynamic = [self._size(size) for size in box.sizes if not isinstance(size, int)]
            static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in box.sizes]
            return tensor.ExpandShapeOp(parts[op.src], dynamic, op.reassociation, static, type_)
        if isinstance(op, tensor.ExtractSliceOp) and len(op.static_sizes.get_values()) == len(box.sizes):
            shapes = self.view.shapes
            offsets = shapes.mixed([int(n) for n in op.static_offsets.get_values()], op.offsets)
            strides = shapes.mixed([int(n) for n in op.static_strides.get_values()], op.strides)
            at, cut, steps = ([self._mixed(size) for size in sizes] for sizes in (offsets, box.sizes, strides))
            return tensor.ExtractSliceOp(parts[op.source], at, cut, steps, type_)
        operands = [parts[operand] for operand in op.operands]
        regions = [self._copied(region, parts) for region in op.regions]
        return type(op).create(
            operands=operands, result_types=[type_], properties=op.properties, attributes=op.attributes, regions=regions
        )

    def _copied(self, region: Region, mapper: Mapping[SSAValue, SSAValue]) -> Region:
        out = Region()
        region.clone_into(out, value_mapper=dict(mapper))
        return out

    def _part(self, op: Operation, source: SSAValue, box: Box) -> SSAValue:
        """What a rearranging op reads to make `box`."""
        if self.dispatch.is_inside(source):
            return self._inside(source)
        if not isinstance(source.type, TensorType):
            return self._outside(source)
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

    # values from outside of the dispatch, and what is made of them alone ----------------------------------------------

    def _outside(self, value: SSAValue) -> SSAValue:
        """A value that no block makes, whole: it is read in place."""
        pending = [value]
        while pending:
            current = pending[-1]
            missing = [] if current in self.outside else self._missing(current)
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if current not in self.outside:
                self.outside[current] = self._copy(current)
        return self.outside[value]

    def _missing(self, value: SSAValue) -> list[SSAValue]:
        if isinstance(value, BlockArgument) or is_size(self.view, value):
            return []
        assert isinstance(value, OpResult)
        return [source for source in operands_of(value.op) if source not in self.outside]

    def _copy(self, value: SSAValue) -> SSAValue:
        if is_size(self.view, value):
            return self._size(self.view.shapes.index(value))
        if isinstance(value, BlockArgument):
            return self._argument(value, value.type)
        assert isinstance(value, OpResult)
        new = value.op.clone(self.outside, clone_name_hints=False)
        self._add(value.op, new)
        return new.results[value.index]

    # results ----------------------------------------------------------------------------------------------------------

    def _returned(self, target: ResultTarget) -> SSAValue:
        value = self._inside(target.value)
        if target.position is None:
            return value
        box = self.tiling.box_of(target.value)
        emit = self._emitter()
        whole = emit.empty(element_of(value), target.dims, lambda axis: self._size(target.dims[axis]))
        static, dynamic = _split([self._mixed(size) for size in box.sizes])
        at, moving = _split([self._mixed(offset) for offset in target.offsets])
        ones = [1] * len(static)
        return emit.add(tensor.InsertSliceOp.get(value, whole, static, at, ones, offsets=moving, sizes=dynamic)).result

    # arguments and sizes ----------------------------------------------------------------------------------------------

    def _argument(self, value: SSAValue, type_: Attribute) -> SSAValue:
        self.arguments.append(value)
        return self.block.insert_arg(type_, len(self.arguments) - 1)

    def _size_names(self) -> list[str]:
        tiles = self.tiling.tiles.values()
        return [
            *self.view.size_names,
            *(tile.number for tile in tiles),
            *(tile.rest for tile in tiles if tile.rest is not None),
        ]

    def _size(self, dim: Dim) -> SSAValue:
        return self._emitter().size(dim, self._symbol)

    def _mixed(self, dim: Dim) -> SSAValue | int:
        return dim if isinstance(dim, int) else self._size(dim)

    def _symbol(self, symbol: Symbol) -> SSAValue:
        return self.sizes[symbol.name]

    def _attributes(self) -> ArrayAttr[DictionaryAttr]:
        return ArrayAttr(
            [
                *(self._tensor_attributes(value) for value in self.arguments),
                *(self._size_attributes(name) for name in self.sizes),
            ]
        )

    def _tensor_attributes(self, value: SSAValue) -> DictionaryAttr:
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
        return DictionaryAttr(found)

    def _size_attributes(self, name: str) -> DictionaryAttr:
        found: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
        if name in self.view.size_names:
            argument = self.view.sizes[self.view.size_names.index(name)]
            old = self.view.entry.arg_attrs.data[argument.index].data if self.view.entry.arg_attrs is not None else {}
            return DictionaryAttr({**found, **{key: old[key] for key in (BOUNDS_ATTRIBUTE,) if key in old}})
        tile = next(tile for tile in self.tiling.tiles.values() if name in (tile.number, tile.rest))
        bounds = "0.." if name == tile.number else f"1..{tile.size}"
        return DictionaryAttr({**found, BOUNDS_ATTRIBUTE: StringAttr(bounds)})

    # ops --------------------------------------------------------------------------------------------------------------

    def _add(self, old: Operation, new: Operation) -> None:
        new.location = old.location
        self.block.add_op(new)

    def _emitter(self) -> Emitter:
        emitter = Emitter.at_end(self.block)
        emitter.location = self.view.entry.location
        return emitter


def _split(mixed: Sequence[SSAValue | int]) -> tuple[list[int], list[SSAValue]]:
    """Numbers and index values in MLIR's mixed form."""
    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in mixed]
    return static, [size for size in mixed if not isinstance(size, int)]
