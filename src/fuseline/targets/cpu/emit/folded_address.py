"""Addresses beyond a border that repeats its tensor: those of the elements that it repeats.

    reflect, coordinate -2 of rows 24 elements apart     =>      4 rows further on: row 2
    edge, row 21 of 20                                           2 rows back: row 19

An address is that of the coordinate as if the tensor went on; the way back is added where the coordinate lies outside,
chosen like a row of padding, so that inside there is nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.analysis.border_modes import BorderMode
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, Operand


@dataclass(frozen=True, slots=True)
class Folding:
    """How a coordinate of `0 <= . < size` is folded back, and the elements that a step of it is."""

    mode: BorderMode
    size: Operand
    stride: Operand

    def at(
        self, kernel: KernelBuilder, address: Address, coordinate: Operand, *, low: bool = True, high: bool = True
    ) -> Address:
        """The address of what lies at `coordinate`, given the one as if the tensor went on there. `low`/`high`: whether
        the coordinate may be below 0 / at or above the size. Of a size that only the run knows, one turn need not be
        enough: what it does not bring back is the nearest element."""
        found = address
        if not isinstance(self.size, int) and (low or high):
            back = kernel.sub(folded(kernel, coordinate, self.size, self.mode), coordinate)
            return kernel.offset(address, kernel.mul(back, self.stride))
        if high:
            moved = kernel.offset(address, kernel.mul(self._from_above(kernel, coordinate), self.stride))
            found = kernel.select_mem(kernel.compare("ge", coordinate, self.size), moved, 0, found, 0)
        if low:
            moved = kernel.offset(address, kernel.mul(self._from_below(kernel, coordinate), self.stride))
            found = kernel.select_mem(kernel.compare("lt", coordinate, 0), moved, 0, found, 0)
        return found

    def _from_below(self, kernel: KernelBuilder, coordinate: Operand) -> Operand:
        """Steps back inside from below 0."""
        if self.mode == "wrap":
            return self.size
        return kernel.mul(coordinate, -2 if self.mode == "reflect" else -1)

    def _from_above(self, kernel: KernelBuilder, coordinate: Operand) -> Operand:
        """Steps back inside from the size on."""
        if self.mode == "wrap":
            return kernel.mul(self.size, -1)
        beyond = kernel.sub(kernel.sub(self.size, 1), coordinate)
        return kernel.mul(beyond, 2) if self.mode == "reflect" else beyond


def folded(kernel: KernelBuilder, at: Operand, size: Operand, mode: BorderMode) -> Operand:
    """The coordinates that `at` repeats (`analysis/border_modes.py`). They lie inside whatever `at` is."""
    last = kernel.sub(size, 1)
    return kernel.max(kernel.min(_turned(kernel, at, size, last, mode), last), 0)


def _turned(kernel: KernelBuilder, at: Operand, size: Operand, last: Operand, mode: BorderMode) -> Operand:
    """After one turn."""
    if mode == "edge":
        return at
    if mode == "reflect":
        mirrored = kernel.max(at, kernel.mul(at, -1))
        return kernel.min(mirrored, kernel.sub(kernel.mul(last, 2), mirrored))
    above = kernel.select(kernel.compare("gt", at, last), kernel.sub(at, size), at)
    return kernel.select(kernel.compare("lt", at, 0), kernel.add(at, size), above)
