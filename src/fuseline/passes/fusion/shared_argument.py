"""Arms that go along one argument become one arm, so that it is read once.

    %a = relu(%x); %s = sum of the rows of %x        both step along the rows of %x: together
    %a = sum of the rows; %b = sum of the columns    nothing to step along in common: apart

What counts is the largest argument of an arm: the others cost less to read twice, and roots read theirs again and again
anyway. What a concat copies of the argument is copied on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.moves import affine_sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, kind, splat_value
from fuseline.analysis.views import is_view
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.edge_records import apart_record, arms_record
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.loop_classes import loop_classes
from fuseline.passes.fusion.merging import joined, side_by_side
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.separate_arms import seams_of
from fuseline.report.records import Decision

SHARED_ARGUMENT = "shared-argument"

SHARED_POINTS = 64
"""Steps in common from which on arms are made together: enough to share out among threads."""


Steps: TypeAlias = "Mapping[int, int]"
"""By dimension of an argument, the loop of an arm's grid that steps along it."""


@dataclass(frozen=True)
class Traversal:
    """The arguments that all of `arms` go along, and how each arm does; among arguments of one size there may be
    several."""

    arms: tuple[Group, ...]
    along: Mapping[SSAValue, tuple[Steps, ...]]

    def with_(self, other: Traversal) -> Traversal:
        """The arms of both, along what they have in common."""
        common = {value: (*steps, *other.along[value]) for value, steps in self.along.items() if value in other.along}
        return Traversal((*self.arms, *other.arms), common)

    def only(self, arguments: Collection[SSAValue]) -> Traversal:
        """The same along some of the arguments."""
        return replace(self, along={value: steps for value, steps in self.along.items() if value in arguments})

    def axes(self, argument: SSAValue) -> list[int]:
        """The dimensions of an argument that all arms step along."""
        return sorted(set[int].intersection(*map(set, self.along[argument])))

    def points(self, argument: SSAValue, shapes: ShapeAnalysis) -> int:
        """The steps along an argument that all arms have in common, about."""
        sizes = shapes.dims(argument)
        return assumed_size(product(sizes[axis] for axis in self.axes(argument)))

    def worthwhile(self, shapes: ShapeAnalysis) -> Traversal:
        """The same along the arguments with steps enough in common, the most first; along none that is only read where
        an index says (`Node.captured`)."""
        operands = {value for arm in self.arms for node in arm.members for value in node.op.operands}
        points = {value: self.points(value, shapes) for value in self.along if value in operands}
        enough = [value for value in points if points[value] >= min(SHARED_POINTS, _size(value, shapes))]
        return replace(self, along={value: self.along[value] for value in sorted(enough, key=lambda v: -points[v])})


def _size(value: SSAValue, shapes: ShapeAnalysis) -> int:
    return assumed_size(product(shapes.dims(value)))


def along_arguments(group: Group, shapes: ShapeAnalysis) -> tuple[Group, list[Decision]]:
    """A finished group with the arms that go along one argument as one arm, and what was decided about each that
    could."""
    seams = seams_of(group)
    if not group.arms and not seams:
        return group, []
    arguments = _arguments(group)
    arms = [arm for arm in group.arms or (group,) if seams.isdisjoint(arm.members)]
    found, decisions = list[Traversal](), list[Decision]()
    for arm in sorted(arms, key=lambda arm: arm.key):
        decisions += _joined(found, _traversal(arm, arguments, shapes), shapes)
    stored = {value for seam in seams for value in seam.op.operands}
    together = [one.only(stored).worthwhile(shapes) if len(one.arms) == 1 else one for one in found]
    return _together(group, [one for one in together if one.along], shapes), decisions


def _joined(found: list[Traversal], one: Traversal, shapes: ShapeAnalysis) -> Iterator[Decision]:
    """Put an arm to the first others that go along an argument of its own and have enough steps in common with it."""
    for at, other in enumerate(found):
        both = other.with_(one)
        if not both.along:
            continue
        ends, joint = (other.arms[0].root, one.arms[0].root), both.worthwhile(shapes)
        points = max(both.points(value, shapes) for value in both.along)
        numbers = {"points": float(points)}
        if joint.along:
            found[at] = joint
            yield arms_record(SHARED_ARGUMENT, *ends, "made along one argument", numbers)
            return
        why = WhyNot("few-steps", f"{points} steps along the argument in common", ends[1].name, numbers)
        yield apart_record(SHARED_ARGUMENT, *ends, why, "side-by-side")
    found.append(one)


# how arms step --------------------------------------------------------------------------------------------------------


def _arguments(group: Group) -> list[SSAValue]:
    """The tensors that members read as they are and nobody inside makes, in an order that no rewriting changes."""
    made = {id(node.op) for node in group.members}
    read = [
        value
        for node in sorted(group.members, key=lambda node: node.order)
        for value in (*node.op.operands, *node.captured)
    ]
    return [value for value in dict.fromkeys(read) if isinstance(value.type, TensorType) and not _is_made(value, made)]


def _is_made(value: SSAValue, made: Collection[int]) -> bool:
    """Whether a dispatch of the ops `made` has a value of its own: made inside, without contents, or one number (known
    or not) everywhere."""
    if splat_value(value) is not None:
        return True
    while isinstance(value, OpResult) and is_view(value.op):
        value = value.op.operands[0]
    if not isinstance(value, OpResult):
        return False
    return id(value.op) in made or isinstance(value.op, tensor.EmptyOp) or kind(value.op) is Kind.FILL


def _traversal(arm: Group, arguments: Sequence[SSAValue], shapes: ShapeAnalysis) -> Traversal:
    """How an arm goes along its largest arguments, where it only moves, transforms or reduces them."""
    if arm.heavy or not all(node.fusable and not node.is_sequential for node in arm.members):
        return Traversal((arm,), {})
    read = {value for node in arm.members for value in (*node.op.operands, *node.captured)}
    sizes = {value: assumed_size(num_bytes(value, shapes)) for value in arguments if value in read}
    largest = [value for value in sizes if sizes[value] == max(sizes.values())]
    return Traversal((arm,), {value: (_grid_loops(arm, value, shapes),) for value in largest})


def _grid_loops(arm: Group, argument: SSAValue, shapes: ShapeAnalysis) -> dict[int, int]:
    """By dimension of the argument, the grid loop along which everything in the arm reads it."""
    classes = loop_classes(arm.members)
    grid = {
        classes.of((node, loop)): at
        for node, loops in arm.grid_loop_of.items()
        for loop, at in enumerate(loops)
        if at is not None
    }
    steps = [_steps(node, argument, shapes) for node in arm.members if _reads(node, argument)]
    found = dict[int, int]()
    for axis in range(len(shapes.dims(argument))):
        along = {classes.of(loop) if (loop := one.get(axis)) is not None else None for one in steps}
        (class_,) = along if len(along) == 1 else (None,)
        if class_ is not None and class_ in grid and class_ not in classes.broken:
            found[axis] = grid[class_]
    return {axis: at for axis, at in found.items() if list(found.values()).count(at) == 1}


def _reads(node: Node, argument: SSAValue) -> bool:
    return argument in node.op.operands or argument in node.captured


def _steps(node: Node, argument: SSAValue, shapes: ShapeAnalysis) -> dict[int, tuple[Node, int]]:
    """By dimension of the argument, the loop of a node that runs along it wherever the node reads it."""
    sizes = shapes.dims(argument)
    if argument in node.captured:
        return {}
    if node.structured is None:
        found = affine_sources(node.op, shapes) if isinstance(node.op, tensor.ExtractSliceOp) else None
        at = enumerate(found[0].at if found else ())
        loops = {axis: c.position for axis, c in at if isinstance(c, AffineDimExpr)}
        return {axis: (node, loop) for axis, loop in loops.items() if node.loops[loop] == sizes[axis]}
    view = node.structured
    maps = [map_ for value, map_ in zip(view.inputs, view.input_maps, strict=True) if value is argument]
    return {
        axis: (node, expr.position)
        for axis, expr in enumerate(maps[0].results if maps else ())
        if isinstance(expr, AffineDimExpr) and all(map_.results[axis] == expr for map_ in maps)
    }


# arms as one ----------------------------------------------------------------------------------------------------------


def _together(group: Group, found: Sequence[Traversal], shapes: ShapeAnalysis) -> Group:
    """The group with the arms of each of `found` as one."""
    taken = {arm for one in found for arm in one.arms}
    arms = [arm for arm in group.arms or (group,) if arm not in taken] + [_one_arm(one, shapes) for one in found]
    if not found:
        return group
    return arms[0] if len(arms) == 1 else joined(arms)


def _one_arm(one: Traversal, shapes: ShapeAnalysis) -> Group:
    """The arms of a traversal as one, over the dimensions of its argument that they have in common."""
    argument = next(iter(one.along))
    sizes = shapes.dims(argument)
    axes = [axis for axis in one.axes(argument) if sizes[axis] != 1]
    numbers = [{steps[axis]: i for i, axis in enumerate(axes)} for steps in one.along[argument]]
    arm = side_by_side(one.arms, numbers, tuple(sizes[axis] for axis in axes))
    reader = next(node for node in arm.members if argument in node.op.operands)
    return replace(arm, along=(reader, list(reader.op.operands).index(argument)))
