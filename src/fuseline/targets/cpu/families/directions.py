"""Directions of an image: steps that the positions of a result and of a window have in common, and which of them lie in
the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from fuseline.analysis.operand_access import LinearAccess
from fuseline.analysis.source_paths import Border, Bound
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.dim_terms import terms_of
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.kernel_ir.types import Operand


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
    stride: Dim
    first: Dim = 0
    scale: int = 1
    size: Dim | None = None
    border: Border | None = None

    def steps(self, count: Any) -> Any:
        """How many steps lie under `count` positions of the result."""
        return (count - 1) * self.along + (self.positions - 1) * self.window + 1

    def inside(self, buffers: DispatchBuffers, first: Operand, steps: Operand) -> tuple[Operand, Operand]:
        """The range of `steps` steps, counted from step `first`, that lies in the image."""
        if self.size is None:
            return 0, steps
        kernel = buffers.kernel
        ends = d.mul(d.floor_div(self.first, self.scale), -1), d.ceil_div(d.sub(self.size, self.first), self.scale)
        begin, end = (kernel.min(kernel.max(kernel.sub(buffers.operand(end), first), 0), steps) for end in ends)
        return begin, kernel.max(begin, end)


def direction(access: LinearAccess, along: Axis | None, window: Axis | None, moving: Sequence[int]) -> Direction | None:
    """The direction in which a loop of the result and one of the window go; None where they have no steps in common.
    `moving`: all loops that go."""
    axes = [axis for axis in (along, window) if axis is not None]
    strides = [access.stride(axis.inner) if axis is not None else 0 for axis in (along, window)]
    bounds = [bound for bound in access.bounds if any(axis.inner in bound.coordinate.terms for axis in axes)]
    positions = window.extent if window is not None else 1
    steps = in_steps(strides)
    if len(bounds) > 1 or steps is None or not isinstance(positions, int):
        return None
    step, (mine, tap) = steps
    found = Direction(mine, tap, positions, step)
    return _bounded(found, bounds[0], (along, window), moving) if bounds else found


def in_steps(strides: Sequence[Dim]) -> tuple[Dim, list[int]] | None:
    """The longest step of which all `strides` are whole multiples, and which ones; None where there is none, or one
    goes backwards.

    >>> row = d.symbol("w")
    >>> in_steps([6, 4]), in_steps([d.mul(row, 2), row])[1], in_steps([row, 3])
    ((2, [3, 2]), [2, 1], None)
    """
    counts = [gcd(*terms_of(stride).values()) for stride in strides]
    whole = {d.floor_div(stride, count) for stride, count in zip(strides, counts, strict=True) if count}
    together = gcd(*counts) or 1
    step = next(iter(whole), 1)
    most = d.upper_bound(step)
    if len(whole) > 1 or (most is not None and most < 0):
        return None
    return d.mul(step, together), [count // together for count in counts]


def _bounded(found: Direction, bound: Bound, axes: Sequence[Axis | None], moving: Sequence[int]) -> Direction | None:
    """With the bound of its coordinate, which must move by whole steps too and depend on nothing else."""
    terms = [bound.coordinate.terms.get(axis.inner, 0) if axis is not None else 0 for axis in axes]
    others = {atom for atom in bound.coordinate.terms if not isinstance(atom, int) or atom in moving}
    if not all(isinstance(n, int) for n in terms) or len(others) != sum(n != 0 for n in terms):
        return None
    coefficients = [_int(n) for n in terms]
    scale = gcd(*coefficients)
    if scale == 0 or coefficients != [scale * found.along, scale * found.window]:
        return None
    return replace(found, first=bound.coordinate.constant, scale=scale, size=bound.size, border=bound.border)


def _int(size: Dim) -> int:
    assert isinstance(size, int)
    return size
