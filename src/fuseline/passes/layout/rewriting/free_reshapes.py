"""Whether a reshape of a value would cost nothing where it lands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, SSAValue

from fuseline.analysis.structured import is_constant
from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.permutation import is_init
from fuseline.passes.layout.rewriting.reshapes import root_of, segments
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.widened_arguments import widened_argument


def cancels(scope: Scope, value: SSAValue, dims: Sequence[Dim]) -> bool:
    """Whether a reshape of `value` to `dims` undoes (part of) a reshape that makes `value`: the chain needs no more ops
    than before."""
    root = root_of(value)
    if root is value:
        return False
    return _steps(scope.dims(root), dims) < _steps(scope.dims(root), scope.dims(value))


def _steps(before: Sequence[Dim], after: Sequence[Dim]) -> int:
    """How many dimensions a reshape collapses and how many it makes; 0 for none."""
    if tuple(before) == tuple(after):
        return 0
    return sum(count for pair in segments(before, after) for count in pair if count > 1)


def is_free(value: SSAValue) -> bool:
    """Whether any reshape of `value` is free: it is an argument, as it is or widened, a constant or an init."""
    root = root_of(value)
    return type(root) is BlockArgument or is_constant(root) or is_init(root) or widened_argument(root) is not None
