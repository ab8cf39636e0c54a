"""Concats whose parts lie one behind the other: memory, where those who make the parts write them there."""

from __future__ import annotations

from xdsl.dialects import tensor

from fuseline.passes.fusion.group import Group


def only_stacks(group: Group) -> bool:
    """Whether a group is a concat whose parts lie in one piece each, and nothing else. What makes a part had better end
    in it than begin with the copy: the concat may need no dispatch."""
    node = group.members[0]
    if group.size > 1 or not isinstance(node.op, tensor.ConcatOp):
        return False
    return all(size == 1 for size in node.loops[: node.op.dim.value.data])
