"""Products of few rows with a matrix that the run brings, both along the reduction in memory: each element of the
result is a dot product, lanes along the reduction. In tiles, the matrix would be transposed on the way into scratch,
which a handful of rows does not pay for.

    q (1 x k)  ·  keys (n x k)ᵀ        . . . . . . . .      a score of each key: decoding beside a cache
                                       ────────────> k
    x (m x k)  ·  w (k x 1)            a matrix and a vector

Measured (one thread, AVX-512; 1 row and 333 to 4,096 of 64 to 777 elements): .25 to .8 of the time in tiles, 2 rows .46
to .75, 3 rows .76, 4 rows .89; two threads alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.producers import producers_of
from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.access import contiguous_reads
from fuseline.targets.cpu.families.family import Plan, Refusal
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest, NestPlan, nest_plan
from fuseline.targets.cpu.families.nests.recompute_cost import is_slow
from fuseline.targets.cpu.isa.description import Machine

LEAST_VECTORS = {1: 2, 2: 16, 3: 32}
"""Vectors that the dot products of so many rows have, at the least: lanes are added up in the end, and each row reads
the matrix again. Beyond, tiles read it once (AVX2: 2 rows of 8 vectors 1.18 of the time in tiles, 3 of 64 1.01)."""


class Dots(LoopNest):
    """Takes contractions of floats that have few rows (or columns) beside a matrix that is no constant: such are packed
    when they are compiled."""

    name = "dots"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where lanes go along the reduction."""
        root = view.root_view
        if root is None or kind(root.op) is not Kind.CONTRACTION:
            return Refusal("not-a-contraction", "the root is no contraction")
        refusal = _refusal(view, root, machine)
        if refusal is not None:
            return refusal
        plan = nest_plan(view, machine, self.policy.threads)
        return plan if _lanes_along(plan, root) else Refusal("not-contiguous", "lanes go along the result")


def _refusal(view: DispatchView, root: StructuredOp, machine: Machine) -> Refusal | None:
    extents, sides = root.loops(view.shapes), multiply_add_operands(root.op)
    loop = root.reduction[-1] if root.reduction else None
    if sides is None or loop is None or dtype_of(root.outputs[0].type) not in ("f32", "f64"):
        return Refusal("not-dots", "the root multiplies and adds no floats")
    few, many = sorted(sides, key=lambda side: assumed_size(_own(root, side, sides, extents)))
    rows, products = assumed_size(_own(root, few, sides, extents)), assumed_size(extents[loop])
    if products < machine.f32_lanes * LEAST_VECTORS.get(rows, products):
        return Refusal("many-rows", f"{rows} rows of {products} products")
    if not all(contiguous_reads(view, root.inputs[side], root.input_maps[side], loop, extents) for side in sides):
        return Refusal("not-contiguous", "an operand does not lie along the reduction")
    if _is_constant(view, root.inputs[many]):
        return Refusal("packable", "the matrix is a constant")
    again = [root.inputs[side] for side in sides if side == few or rows > 1]
    if any(is_slow(op) for value in again for op in producers_of(value, view.members)):
        return Refusal("recompute", "what an operand is made of is dear")
    return None


def _is_constant(view: DispatchView, value: SSAValue) -> bool:
    """Whether a matrix is made of constants alone."""
    read = [value, *(operand for op in producers_of(value, view.members) for operand in op.operands)]
    return all(view.is_constant(tensor) for tensor in view.tensors if tensor in read)


def _own(root: StructuredOp, side: int, sides: Sequence[int], extents: Sequence[Dim]) -> Dim:
    """Rows of an operand: along the loops that only it has."""
    others = [used_dims(root.input_maps[other]) for other in sides if other != side]
    own = used_dims(root.input_maps[side]).difference(root.reduction, *others)
    return product(extents[loop] for loop in own)


def _lanes_along(plan: NestPlan, root: StructuredOp) -> bool:
    """Whether the root is made lane by lane along its reduction."""
    return all(
        group.lane_reduction is not None
        for group in plan.schedule.groups
        for stage in group.stages
        if stage.op is root.op
    )


EXPORT = Dots
