"""The loops of a contraction's kernel as axes (neighbours that are one in memory together), and operands along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.operand_access import Bound, LinearAccess
from fuseline.ir import dim as d
from fuseline.ir.costs import ASSUMED_SIZE
from fuseline.ir.dim import Dim


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of the kernel: a loop of the root, or several neighbours that are one in memory (`loops` and `sizes`
    outermost first)."""

    loops: tuple[int, ...]
    sizes: tuple[Dim, ...]

    @property
    def extent(self) -> Dim:
        """How far it runs."""
        return d.product(self.sizes)

    @property
    def inner(self) -> int:
        """The root's loop whose step is this axis' step."""
        return self.loops[-1]


def as_one(
    axis: Axis, loops: Sequence[int | None], sizes: Sequence[int]
) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """The dimensions of a constant, each along one of `loops`, with those along an axis taken as one.

    >>> as_one(Axis((2, 3), (4, 8)), (5, 2, 3), (16, 4, 8))
    ((5, 3), (16, 32))
    """
    found: list[tuple[int | None, int]] = []
    for loop, size in zip(loops, sizes, strict=True):
        before = found.pop()[1] if loop in axis.loops[1:] else 1
        found.append((loop, before * size))
    return tuple(loop for loop, _ in found), tuple(size for _, size in found)


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of the root: the value, its map, and how it lies in a binding (None where it is computed)."""

    value: SSAValue
    map: AffineMap
    access: LinearAccess | None

    def stride(self, axis: Axis) -> Dim:
        """Elements between two steps of `axis`, floordiv_terms aside; only for an operand with an access."""
        assert self.access is not None
        return self.access.stride(axis.inner)

    def has_floordiv(self, axis: Axis) -> bool:
        """Whether addresses move in steps along `axis`: such a loop had better be an outer one."""
        return self.access is not None and self.access.has_floordiv(axis.inner)

    def step(self, axis: Axis) -> float:
        """About how far apart in memory two steps of `axis` are, in elements."""
        assert self.access is not None
        return self.access.step(axis.inner, estimated)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Where it is padded, or its border repeats it."""
        return self.access.bounds if self.access is not None else ()


def estimated(dim: Dim) -> int:
    """`dim` with every unknown size taken as `ASSUMED_SIZE`, or as what its bounds allow; at least 1, also where
    windows need larger inputs."""
    return dim if isinstance(dim, int) else max(1, d.evaluate(dim, {s.name: _typical(s) for s in d.symbols(dim)}))


def _typical(symbol: d.Symbol) -> int:
    return max(symbol.lo, min(ASSUMED_SIZE, symbol.hi if symbol.hi is not None else ASSUMED_SIZE))


def run_extents(extents: Sequence[Dim], axes: Sequence[Axis]) -> tuple[Dim, ...]:
    """How far each loop runs where these axes do: of loops that are one axis the inner one through all of it, the
    others once."""
    found = list(extents)
    for axis in axes:
        for loop in axis.loops:
            found[loop] = axis.extent if loop == axis.inner else 1
    return tuple(found)


def merged(axes: Sequence[Axis], operands: Sequence[Operand]) -> list[Axis]:
    """Neighbours joined where there are operands and, in every one, stepping the outer one equals running through the
    inner one."""
    out: list[Axis] = []
    for axis in axes:
        if out and operands and all(_joins(out[-1], axis, operand) for operand in operands):
            out[-1] = Axis(out[-1].loops + axis.loops, out[-1].sizes + axis.sizes)
        else:
            out.append(axis)
    return out


def _joins(outer: Axis, inner: Axis, operand: Operand) -> bool:
    if operand.access is None or _bounded(outer, operand) or _bounded(inner, operand):
        return False
    return operand.stride(outer) == d.mul(operand.stride(inner), inner.extent)


def _bounded(axis: Axis, operand: Operand) -> bool:
    rounded = [q.numerator for q in operand.access.floordiv_terms] if operand.access is not None else []
    return any(
        loop in form.terms
        for form in (*(bound.coordinate for bound in operand.bounds), *rounded)
        for loop in axis.loops
    )
