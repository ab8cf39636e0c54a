"""Directions of an image: steps that the positions of a result and of a window have in common, and which of them lie in
the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from fuseline.analysis.operand_access import LinearAccess
from fuseline.analysis.source_paths import Border, Bound
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of the image, in the steps that result and window have in common: a position of the result moves
    `along` steps, one of the window (of `positions`) `window` steps, and a step is `stride` elements of the image.

    Step `i` lies in the image where `0 <= first + scale * i < size`; `size` None: all do. `border`: what lies
    elsewhere, if that is not padding.
    """

    along: int
    window: int
    positions: int
    stride: int
    first: int = 0
    scale: int = 1
    size: int | None = None
    border: Border | None = None

    def steps(self, count: Any) -> Any:
        """How many steps lie under `count` positions of the result."""
        return (count - 1) * self.along + (self.positions - 1) * self.window + 1

    def inside(self, steps: int) -> tuple[int, int]:
        """The range of the first `steps` that lies in the image."""
        if self.size is None:
            return 0, steps
        begin = min(steps, max(0, -(self.first // self.scale)))
        return begin, max(begin, min(steps, -((self.first - self.size) // self.scale)))


def direction(access: LinearAccess, along: Axis | None, window: Axis | None, moving: Sequence[int]) -> Direction | None:
    """The direction in which a loop of the result and one of the window go; None where they have no steps in common.
    `moving`: all loops that go."""
    axes = [axis for axis in (along, window) if axis is not None]
    strides = [access.stride(axis.inner) if axis is not None else 0 for axis in (along, window)]
    bounds = [bound for bound in access.bounds if any(axis.inner in bound.coordinate.terms for axis in axes)]
    if len(bounds) > 1 or not all(isinstance(n, int) and n >= 0 for n in (*strides, *(axis.extent for axis in axes))):
        return None
    step = gcd(*(_int(stride) for stride in strides)) or 1
    moves = [_int(stride) // step for stride in strides]
    positions = _int(window.extent) if window is not None else 1
    found = Direction(moves[0], moves[1], positions, step)
    return _bounded(found, bounds[0], (along, window), moving) if bounds else found


def _bounded(found: Direction, bound: Bound, axes: Sequence[Axis | None], moving: Sequence[int]) -> Direction | None:
    """With the bound of its coordinate, which must move by whole steps too and depend on nothing else."""
    terms = [bound.coordinate.terms.get(axis.inner, 0) if axis is not None else 0 for axis in axes]
    others = {atom for atom in bound.coordinate.terms if not isinstance(atom, int) or atom in moving}
    known = (bound.coordinate.constant, bound.size, *terms)
    if not all(isinstance(n, int) for n in known) or len(others) != sum(n != 0 for n in terms):
        return None
    first, size, *coefficients = (_int(n) for n in known)
    scale = gcd(*coefficients)
    if scale == 0 or coefficients != [scale * found.along, scale * found.window]:
        return None
    return replace(found, first=first, scale=scale, size=size, border=bound.border)


def _int(size: Dim) -> int:
    assert isinstance(size, int)
    return size
