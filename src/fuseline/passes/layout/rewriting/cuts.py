"""What a slice with a step of 1 leaves out at both ends of dimensions, and slices that are written so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim, sub
from fuseline.ir.dim_bounds import lower_bound
from fuseline.passes.layout.rewriting.mixed import Mixed
from fuseline.passes.layout.rewriting.scope import Scope


@dataclass(frozen=True, slots=True)
class Cut:
    """How many places go before and behind what is left of a dimension."""

    start: int
    end: int


Cuts: TypeAlias = Mapping[int, Cut]
"""By dimension; those that stay whole are not there."""


def cut_dims(scope: Scope, value: SSAValue, cuts: Cuts) -> list[Dim]:
    """The sizes that are left of a tensor."""
    return [
        sub(size, cuts[axis].start + cuts[axis].end) if axis in cuts else size
        for axis, size in enumerate(scope.dims(value))
    ]


def can_cut(scope: Scope, value: SSAValue, cuts: Cuts) -> bool:
    """Whether the sizes of what is left can be written down, and none may come to less than nothing."""
    dims = cut_dims(scope, value, cuts)
    return not cuts or (scope.knows_all(dims) and all(_is_a_size(dims[axis]) for axis in cuts))


def sliced(scope: Scope, at: Emitter, value: SSAValue, cuts: Cuts) -> SSAValue:
    """The slice that is left of a tensor (see `can_cut`)."""
    dims = cut_dims(scope, value, cuts)
    starts: Mixed = [cuts[axis].start if axis in cuts else 0 for axis in range(len(dims))]
    sizes: Mixed = [size if isinstance(size, int) else scope.size_value(size) for size in dims]
    return at.add(tensor.ExtractSliceOp(value, starts, sizes, [1] * len(dims), scope.typed(value, dims))).result


def _is_a_size(size: Dim) -> bool:
    """Whether a number that something was taken from is never negative."""
    least = lower_bound(size)
    return least is not None and least >= 0
