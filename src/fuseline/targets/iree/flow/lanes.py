"""Products and convolutions as IREE makes vectors of them: the result's innermost loop is a channel, and each operand
that has it has it innermost.

    conv -> (f, y, x), filter (f, c, ky, kx)    =>    conv -> (y, x, f), turned, and a filter (ky, kx, c, f) from a
                                                      region of its own

IREE's code generation takes the innermost loop of the result for the lanes of its vectors. Where an image lies
innermost there, or an operand is read with a stride, it loads element by element. An operand is turned where what it is
read for is far more than it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.structured import DENSE, Kind, StructuredOp, is_generic, kind
from fuseline.ir.build import Emitter, dims_map, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_fill
from fuseline.ir.fast.direct import erase, insert_before, replace_uses, set_operand, set_type
from fuseline.ir.flow import DispatchRegionOp, ReturnOp

READINGS = 16
"""How often an element is read at least for its operand to be turned before."""


def put_channels_innermost(module: ModuleOp, apart: Collection[Operation]) -> dict[Operation, Operation]:
    """Turn results and operands of the products in regions, but for those in `apart`. Answers each region that was
    changed and, as keys beside it, the regions that turn an operand for it."""
    changed: dict[Operation, Operation] = {}
    turned: dict[tuple[SSAValue, tuple[int, ...]], SSAValue] = {}
    for region in [op for op in module.walk() if isinstance(op, DispatchRegionOp) and op not in apart]:
        for op in list(region.body.block.ops):
            if is_generic(op) and kind(op) in DENSE and _is_plain(op):
                changed |= dict.fromkeys(_Product(region, op, turned).put(), region)
    return changed


def _is_plain(op: linalg.ops.GenericOp) -> bool:
    """Whether sizes are numbers, and there is one result, whose axes are loops."""
    values = [*op.inputs, *op.outputs]
    known = all(isinstance(one.type, TensorType) and DYNAMIC_INDEX not in shape_of(one) for one in values)
    return known and len(op.outputs) == 1 and None not in loops_of(StructuredOp(op).output_maps[0].results)


@dataclass(frozen=True)
class _Product:
    """`op` in `region`; `turned`: what was turned before, by value and order of axes."""

    region: DispatchRegionOp
    op: linalg.ops.GenericOp
    turned: dict[tuple[SSAValue, tuple[int, ...]], SSAValue]

    def put(self) -> list[Operation]:
        """Turn what is to be; the regions that are new or changed."""
        view = StructuredOp(self.op)
        order = [loop for loop in loops_of(view.output_maps[0].results) if loop is not None]
        lanes = next((loop for loop in reversed(order) if self._is_channel(view, loop)), None)
        if lanes is None:
            return []
        op = self.op if lanes == order[-1] else self._turn_result(view, order, lanes)
        if op is None:
            return []
        made: list[Operation] = [] if op is self.op else [self.region]
        for number in range(len(view.inputs)):
            made += self._turn_operand(op, number, lanes)
        return made

    def _is_channel(self, view: StructuredOp, loop: int) -> bool:
        """Whether some operand has a loop, and each that has it has it as an axis."""
        having = [map_ for map_ in view.input_maps if loop in map_.used_dims()]
        return bool(having) and all(loop in loops_of(map_.results) for map_ in having)

    # -- the result ----------------------------------------------------------------------------------------------------

    def _turn_result(self, view: StructuredOp, order: Sequence[int], lanes: int) -> linalg.ops.GenericOp | None:
        """The op that computes it with `lanes` innermost, behind which it is turned; None where it does not begin as a
        fill."""
        begin = self.op.outputs[0].owner
        if not isinstance(begin, linalg.ops.FillOp):
            return None
        wanted = [*sorted(loop for loop in order if loop != lanes), lanes]
        old, emit = self.op.outputs[0], Emitter.before(self.op)
        shape = [shape_of(old)[order.index(loop)] for loop in wanted]
        into = emit.add(create_fill(begin.inputs[0], emit.empty(element_of(old), shape))).results[0]
        moved = self.op.clone()
        set_operand(moved, len(view.inputs), into)
        set_type(moved.results[0], into.type)
        moved.properties["indexing_maps"] = attributes.affine_maps((*view.input_maps, dims_map(view.rank, wanted)))
        emit.add(moved)
        axes = [order.index(loop) for loop in wanted]
        replace_uses(self.op.results[0], _turned(emit, moved.results[0], axes, shape_of(old)))
        erase(self.op)
        return moved

    # -- operands ------------------------------------------------------------------------------------------------------

    def _turn_operand(self, op: linalg.ops.GenericOp, number: int, lanes: int) -> list[Operation]:
        """Let `op` read an operand with `lanes` innermost; answers the regions that are new or changed."""
        view = StructuredOp(op)
        value, map_ = view.inputs[number], view.input_maps[number]
        loops = loops_of(map_.results)
        views = self._views(value)
        if lanes not in loops[:-1] or None in loops or views is None or self._readings(view, map_) < READINGS:
            return []
        axes = sorted(range(len(loops)), key=lambda axis: (loops[axis] == lanes, loops[axis] or 0))
        key, made = (value, tuple(axes)), list[Operation]([self.region])
        if key not in self.turned:
            made.append(self._turning(value, axes, views))
            self.turned[key] = made[-1].results[0]
        set_operand(op, number, self.turned[key])
        maps = list(view.maps)
        maps[number] = dims_map(view.rank, [loops[axis] for axis in axes])
        op.properties["indexing_maps"] = attributes.affine_maps(tuple(maps))
        return made

    def _views(self, value: SSAValue) -> list[Operation] | None:
        """The reshapes and slices in the region that `value` is made by; None where the region computes it."""
        views: list[Operation] = []
        while isinstance(value.owner, Operation) and value.owner.parent is self.region.body.block:
            owner = value.owner
            if kind(owner) not in (Kind.RESHAPE, Kind.SLICE) or len(owner.operands) != 1:
                return None
            views.insert(0, owner)
            value = owner.operands[0]
        return views

    def _readings(self, view: StructuredOp, map_: AffineMap) -> int:
        """How often each element of an operand is read: once for each step of the other loops of the result."""
        loops, sizes = loops_of(view.output_maps[0].results), shape_of(view.outputs[0])
        return prod(size for loop, size in zip(loops, sizes, strict=True) if loop not in map_.used_dims())

    def _turning(self, value: SSAValue, axes: Sequence[int], views: Sequence[Operation]) -> DispatchRegionOp:
        """A region before this one that turns `value`."""
        block = Block()
        emit = Emitter.at_end(block)
        values: dict[SSAValue, SSAValue] = {}
        for op in views:
            emit.add(op.clone(values))
        order = [axes.index(axis) for axis in range(len(axes))]
        sizes = [shape_of(value)[axis] for axis in axes]
        made = _turned(emit, values.get(value, value), order, sizes)
        emit.add(ReturnOp([made]))
        before = DispatchRegionOp([made.type], [], Region(block))
        before.location = self.region.location
        insert_before(before, self.region)
        return before


def _turned(emit: Emitter, value: SSAValue, order: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """A tensor of `sizes` whose axis `order[i]` is axis `i` of `value`."""
    empty = emit.empty(element_of(value), sizes)
    return emit.elementwise([value], empty, lambda b: b.args[0], [dims_map(len(order), order)])
