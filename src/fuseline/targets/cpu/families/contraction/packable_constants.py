"""Constants whose bytes may be laid out at compile time as a kernel reads them."""

from __future__ import annotations

from xdsl.ir import BlockArgument

from fuseline.analysis.indexing_maps import is_projected_permutation
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.axes import Operand


def is_packable_constant(view: DispatchView, operand: Operand) -> bool:
    """Whether the operand is a constant argument, read nowhere else, whose bytes may be laid out at compile time."""
    value = operand.value
    return (
        isinstance(value, BlockArgument)
        and view.is_constant(value)
        and len(list(value.uses)) == 1
        and is_projected_permutation(operand.map)
        and all(isinstance(size, int) for size in view.shapes.dims(value))
    )
