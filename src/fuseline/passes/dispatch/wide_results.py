"""Results of dispatches that are integers of 16 bits made of 8, and what keeps them so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects import linalg
from xdsl.dialects.builtin import DictionaryAttr, TensorType, i8, i16
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import DENSE, Kind, StructuredOp, captured, is_generic, kind, used_dims
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.region_names import member_ids, region_name
from fuseline.ir.build import element_of
from fuseline.ir.fast.direct import ops_of, result_of, users_of_value
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.target_description import TargetDescription
from fuseline.targets.target import Refusal


class WideResult(NamedTuple):
    """Result `number` of `region`, made by `widening`, one of its members."""

    region: DispatchRegionOp
    number: int
    widening: linalg.ops.GenericOp

    @property
    def result(self) -> SSAValue:
        """What the program reads."""
        return self.region.results[self.number]


def wide_results(block: Block) -> Iterator[WideResult]:
    """Those of the regions of a block, in order."""
    for region in ops_of(block):
        if type(region) is DispatchRegionOp and region.body.block.last_op is not None:
            for number, value in enumerate(region.body.block.last_op.operands):
                widening = _widening(value)
                if widening is not None:
                    yield WideResult(region, number, widening)


def _widening(value: SSAValue) -> linalg.ops.GenericOp | None:
    """The op of a dispatch that makes `value`, integers of 16 bits, of the same points in 8 bits and of numbers that
    any dispatch can read."""
    if element_of(value) != i16 or not isinstance(value, OpResult) or not is_generic(value.op):
        return None
    op = value.op
    if len(op.results) != 1 or len(op.inputs) != 1 or kind(op) is not Kind.ELEMENTWISE:
        return None
    narrow = op.inputs[0]
    own = [number for number in captured(op) if isinstance(number, OpResult) and number.op.parent is op.parent]
    if element_of(narrow) != i8 or not is_internal(narrow) or own:
        return None
    return op if narrow.type.get_shape() == value.type.get_shape() else None  # pyright: ignore[reportAttributeAccessIssue]


# what keeps it wide ---------------------------------------------------------------------------------------------------


def kept_wide(one: WideResult, shapes: ShapeAnalysis, target: TargetDescription) -> Refusal | None:
    """Why the readers of a result cannot widen it, or should not."""
    readers = users_of_value(one.result)
    if not _is_wanted(one, readers):
        return Refusal("not-needed-wide", "the dispatch itself does not read it wide, nor anything pointwise later on")
    if not isinstance(one.result.type, TensorType) or not one.result.type.has_static_shape():
        return Refusal("symbolic", "its size is only known when it runs")
    for reader in readers:
        home = reader.parent_op()
        if type(home) is not DispatchRegionOp:
            return Refusal("read-outside", "it is read by something that is no dispatch")
        if not _can_widen(home):
            return Refusal("loops", f"{region_name(home)} has loops of several arms, blocks or arguments")
        if not _reads_once(reader, one.result, shapes):
            return Refusal("read-again", f"{region_name(home)} reads elements again and again")
    return _too_dear(one, readers, target)


def _is_wanted(one: WideResult, readers: Sequence[Operation]) -> bool:
    """A value that the dispatch itself does not need wide stays wide: its one reader would pay for what its producer
    has for nothing."""
    if _is_needed_wide(one):
        return True
    return len(readers) > 1 and any(kind(reader) is Kind.ELEMENTWISE for reader in readers)


def _is_needed_wide(one: WideResult) -> bool:
    end = one.region.body.block.last_op
    return any(user is not end for user in users_of_value(result_of(one.widening)))


def _can_widen(home: DispatchRegionOp) -> bool:
    """Whether another member can stand before those of `home`."""
    said = home.attributes.get(LOOPS_ATTRIBUTE)
    known = isinstance(said, DictionaryAttr) and said.data.keys() <= {"grids", "members", "classes"}
    return known and bool(member_ids(home))


def _reads_once(reader: Operation, value: SSAValue, shapes: ShapeAnalysis) -> bool:
    if kind(reader) is Kind.ELEMENTWISE:
        return True
    if not is_generic(reader) or kind(reader) not in DENSE:
        return False
    view = StructuredOp(reader)
    maps = [map_ for one, map_ in zip(view.inputs, view.input_maps, strict=True) if one is value]
    extents = view.loops(shapes)
    steps = [extents[loop] for map_ in maps for loop in used_dims(map_)]
    known = [step for step in steps if isinstance(step, int)]
    return len(maps) == 1 and len(known) == len(steps) and prod(known) <= prod(value.type.get_shape())  # pyright: ignore[reportAttributeAccessIssue]


def _too_dear(one: WideResult, readers: Sequence[Operation], target: TargetDescription) -> Refusal | None:
    """Each product packs what it widens, in scratch, where the dispatch itself keeps what it reads wide, too; it and
    each reader move a byte less per element."""
    elements, costs = prod(one.result.type.get_shape()), target.costs  # pyright: ignore[reportAttributeAccessIssue]
    products = sum(kind(reader) in DENSE for reader in readers)
    scratch = target.threads * costs.packed_bytes if products or _is_needed_wide(one) else 0
    if elements <= scratch:
        return Refusal("too-small", f"it would save {elements} bytes, packing may take {scratch}")
    packed, saved = products * elements * costs.packing_ns, (1 + len(readers)) * elements / costs.stored_bytes_per_ns
    if packed <= saved:
        return None
    numbers = {"packing_ns": packed, "saved_ns": saved}
    return Refusal("too-dear", f"packing takes {packed:.0f} ns, what is not moved {saved:.0f} ns", numbers)
