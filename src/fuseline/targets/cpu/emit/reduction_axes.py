"""The loops of a tile's reduction, as values: what a step adds to addresses, and where rows may lie in the padding."""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.targets.cpu.emit.folded_address import Folding
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, Operand


@dataclass(frozen=True, slots=True)
class EdgeCheck:
    """A padded coordinate of the rows: row `r` is at `bases[r] + coefficient * i` for reduction index `i`, inside where
    `0 <= . < size`.

    `low[r]`/`high[r]` say whether row `r` can be below 0 / at or above `size`; `shared`: all rows are at the same
    coordinate; `ordered`: none is at a smaller one than the row before; `folding`: where rows outside are read, None
    for padding.
    """

    bases: tuple[Operand, ...]
    coefficient: int
    size: Operand
    low: tuple[bool, ...]
    high: tuple[bool, ...]
    shared: bool
    ordered: bool
    folding: Folding | None = None

    @property
    def all_low(self) -> bool:
        """Whether all rows can be in the padding below 0 together: the last one can, and the others are not above
        it."""
        return self.folding is None and self.ordered and self.low[-1]

    @property
    def all_high(self) -> bool:
        """Whether all rows can be in the padding at or above `size` together."""
        return self.folding is None and self.ordered and self.high[0]


@dataclass(frozen=True, slots=True)
class RoundedTerm:
    """A part of row addresses that moves in steps: row `r` is `stride * ((bases[r] + coefficient * i) // divisor)` on
    for reduction index `i`.

    What is divided is not negative wherever no edge check has replaced the address.
    """

    bases: tuple[Operand, ...]
    coefficient: int
    divisor: int
    stride: Operand


@dataclass(frozen=True, slots=True)
class ReductionAxis:
    """One loop of the reduction: its extent, what a step adds to row addresses (elements) and to the column index, and
    the edges it meets.

    `first` is where it begins, as columns count: row addresses count from there.
    """

    extent: Operand
    row_stride: Operand
    column_stride: Operand
    checks: tuple[EdgeCheck, ...] = ()
    rounded: tuple[RoundedTerm, ...] = ()
    first: Operand = 0


def rounded(kernel: KernelBuilder, address: Address, term: RoundedTerm, row: int, i: Operand) -> Address:
    """The address of a row with a term that moves in steps, at reduction index `i`."""
    whole = kernel.add(term.bases[row], kernel.mul(i, term.coefficient))
    return kernel.offset(address, kernel.mul(kernel.div(whole, term.divisor), term.stride))
