"""Concats whose parts lie one behind the other: memory, where those who make the parts write them there."""

from __future__ import annotations

from xdsl.dialects import tensor

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.group import Group


def only_stacks(group: Group, shapes: ShapeAnalysis) -> bool:
    """Whether a group is a concat whose parts lie in one piece each, and nothing else. What makes a part had better end
    in it than begin with the copy: the concat may need no dispatch."""
    op = group.members[0].op
    if group.size > 1 or not isinstance(op, tensor.ConcatOp):
        return False
    return all(size == 1 for size in shapes.dims(op.result)[: op.dim.value.data])
