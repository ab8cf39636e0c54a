"""Addresses of the rows of a register tile along a reduction: they advance with its loops, and where a row may lie in
the padding they are replaced by that of the padding row, or by where the border repeats the image."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.emit.folded_address import Folding
from fuseline.targets.cpu.emit.reduction_axes import EdgeCheck, ReductionAxis, rounded
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, MemRef, Operand, Value


class RowEdges:
    """Where rows are read. padding_row: pad values, at least as many as the loops inside a check reach. skips_padding:
    the pad value is 0, so steps that only meet padding may be left out."""

    def __init__(self, kernel: KernelBuilder, padding_row: MemRef | None, *, skips_padding: bool) -> None:
        self.kernel, self.padding_row, self.skips_padding = kernel, padding_row, skips_padding

    def cuts(self, check: EdgeCheck) -> bool:
        """Whether a check shortens its loop: all rows can be in the padding together, and padding adds nothing."""
        return self.skips_padding and (check.all_low or check.all_high)

    def range_of(self, axis: ReductionAxis) -> tuple[Operand, Operand]:
        """The iterations of `axis` that are not padding for every row: from where the last row enters to where the
        first one leaves."""
        kernel = self.kernel
        lo, hi = 0, axis.extent
        for check in axis.checks if self.skips_padding else ():
            step = check.coefficient
            if check.all_low:
                lo = kernel.max(lo, kernel.ceil_div(kernel.max(kernel.sub(0, check.bases[-1]), 0), step))
            if check.all_high:
                hi = kernel.min(hi, kernel.ceil_div(kernel.max(kernel.sub(check.size, check.bases[0]), 0), step))
        return lo, hi

    def moved(self, addresses: Sequence[Address] | None, axis: ReductionAxis, i: Operand) -> Sequence[Address] | None:
        """The addresses in iteration `i` of `axis`; None where rows have none."""
        if addresses is None:
            return None
        step = self.kernel.mul(i, axis.row_stride)
        addresses = [self.kernel.offset(address, step) for address in addresses]
        for term in axis.rounded:
            addresses = [rounded(self.kernel, address, term, row, i) for row, address in enumerate(addresses)]
        return addresses

    def selected(self, addresses: Sequence[Address] | None, check: EdgeCheck, i: Operand) -> Sequence[Address] | None:
        """The addresses with those of rows that are in the padding in iteration `i` replaced."""
        assert addresses is not None
        if check.folding is not None and check.shared:
            return self._folded_together(addresses, check, check.folding, i)
        return [self._at_edge(address, check, row, i) for row, address in enumerate(addresses)]

    def _folded_together(
        self, addresses: Sequence[Address], check: EdgeCheck, folding: Folding, i: Operand
    ) -> Sequence[Address]:
        """Addresses of rows at one coordinate: rows that are a number of elements apart stay so, which takes one
        register and not one each."""
        coordinate = self.kernel.add(check.bases[0], self.kernel.mul(i, check.coefficient))
        found: dict[tuple[int, int | Value], Address] = {}
        moved: list[Address] = []
        for address in addresses:
            key = id(address.root), address.index
            if key not in found:
                start = Address(address.root, address.dtype, address.index, 0)
                found[key] = folding.at(self.kernel, start, coordinate, low=any(check.low), high=any(check.high))
            moved.append(self.kernel.offset(found[key], address.offset))
        return moved

    def _at_edge(self, address: Address, check: EdgeCheck, row: int, i: Operand) -> Address:
        kernel = self.kernel
        coordinate = kernel.add(check.bases[row], kernel.mul(i, check.coefficient))
        low, high = check.low[row], check.high[row]
        if isinstance(coordinate, int) and isinstance(check.size, int):
            low, high = coordinate < 0, coordinate >= check.size
        if not low and not high:
            return address
        if check.folding is not None:
            return check.folding.at(kernel, address, coordinate, low=low, high=high)
        if not low:
            inside = kernel.compare("lt", coordinate, check.size)
        elif not high:
            inside = kernel.compare("ge", coordinate, 0)
        else:
            inside = kernel.compare("ult", coordinate, check.size)
        assert self.padding_row is not None
        return kernel.select_mem(inside, address, 0, self.padding_row, 0)
