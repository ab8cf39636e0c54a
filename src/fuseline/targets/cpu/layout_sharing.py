"""Constants that one kernel reads as another asked for them: what the reader loses, and whether it can.

A product's panels keep rows or columns side by side, so that a row that is gathered from them lies on a cache line for
each of its elements. That costs next to nothing where few rows are gathered, and saves a copy of the constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Use

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.arms import subgrids
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import LINE_BYTES, MachineCosts, assumed_size
from fuseline.ir.dim import Dim, add, product
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.target import Refusal, SharingPrice
from fuseline.weight_layouts import SharedLayout, digits_of, step_along


def layout_refusal(entry: FuncOp, layouts: Mapping[int, SharedLayout]) -> Refusal | None:
    """Why a kernel of `entry` cannot read arguments (by position) in these layouts; None where it can."""
    view = DispatchView(entry)
    if len(subgrids(view)) > 1:
        return Refusal("several-arms", "the dispatch has several arms")
    for position, shared in layouts.items():
        if digits_of(shared.key.layout) is None:
            return Refusal("transformed", "the layout does not hold the elements as they are")
        if any(_gathering(use) is None for use in view.tensors[position].uses):
            return Refusal("read-along-loops", "it is read along loops, not by coordinates")
    return None


def layout_price(entry: FuncOp, layouts: Mapping[int, SharedLayout], costs: MachineCosts) -> SharingPrice:
    """What a launch loses by it: the cache lines on which neighbours lie apart, at the sizes that are assumed."""
    view, ns = DispatchView(entry), 0.0
    for position, shared in layouts.items():
        argument = view.tensors[position]
        element = BYTES[dtype_of(argument.type)]
        apart = max(min(_step(argument, shared) * element, LINE_BYTES) - element, 0)
        ns += assumed_size(_reads(view, argument)) * apart / costs.memory_bytes_per_ns
    return SharingPrice(ns, "neighbours lie on cache lines of their own")


def reader_plan(family: Family, entry: FuncOp, layouts: Mapping[int, SharedLayout], machine: Machine) -> Plan | Refusal:
    """The plan of a kernel of `family` that reads arguments in these layouts, or why it has none."""
    if not family.reads_shared_layouts:
        return Refusal("family", f"kernels of the family {family.name} read constants as they are")
    plan = family.accepts(DispatchView(entry, shared=tuple(layouts.items())), machine)
    if isinstance(plan, Refusal):
        return plan
    asked = {position: shared.key.layout for position, shared in layouts.items()}
    return replace(plan, constant_layouts={**plan.constant_layouts, **asked})


def _step(argument: BlockArgument, shared: SharedLayout) -> int:
    """Elements between neighbours along the reader's innermost dimension."""
    innermost = len(shared.axes) - 1
    return step_along(shared.key.layout, shared.axes.index(innermost)) if shared.axes else 0


def _reads(view: DispatchView, argument: BlockArgument) -> Dim:
    """Elements that bodies ask for."""
    total: Dim = 0
    for use in argument.uses:
        op = _gathering(use)
        total = add(total, product(op.loops(view.shapes)) if op is not None else 0)
    return total


def _gathering(use: Use) -> StructuredOp | None:
    """The op in whose body an element is read by its coordinates."""
    outer = use.operation.parent_op()
    return StructuredOp(outer) if isinstance(use.operation, tensor.ExtractOp) and is_generic(outer) else None
