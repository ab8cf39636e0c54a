"""Whole panels in a loop, the narrower one at the end.

21 columns in panels of 8        panels 0, 1: body(panel, 8)        panel 2: body(2, 5)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


def over_panels(
    kernel: KernelBuilder,
    cut: tuple[Operand, Operand],
    width: int,
    within: Range,
    body: Callable[[Operand, Any], Any],
    *,
    anywhere: bool = False,
) -> None:
    """`body(panel, elements)` for the panels of `width` elements whose number is in the range `within`.

    `cut`: the number of whole panels, and the elements of the narrower one behind them (0: there is none). `anywhere`:
    `within` may begin beyond the last panel.
    """
    (whole, rest), (first, last) = cut, within

    def panel(number: Operand) -> tuple[()]:
        body(number, width)
        return ()

    def narrower() -> tuple[()]:
        body(whole, rest)
        return ()

    kernel.loop(first, kernel.min(last, whole), 1, panel)
    if rest == 0:
        return
    here = kernel.compare("gt", last, whole)
    if anywhere:
        here = kernel.bitand(here, kernel.compare("le", first, whole))
    if not isinstance(rest, int):
        here = kernel.bitand(kernel.compare("gt", rest, 0), here)
    kernel.when(here, narrower)


def live_lanes(kernel: KernelBuilder, elements: Operand, lanes: int, width: int) -> list[Operand | None]:
    """The live lanes of each vector of a panel (None: all); vectors known to have none are left out. `width`: of a
    whole panel.

    >>> from fuseline.targets.cpu.isa import machine
    >>> live_lanes(KernelBuilder("k", machine("avx2")), 21, 8, 32)
    [None, None, 5]
    """
    if isinstance(elements, int):
        return [*[None] * (elements // lanes), *([elements % lanes] if elements % lanes else [])]
    return [kernel.max(kernel.min(kernel.sub(elements, v), lanes), 0) for v in range(0, width, lanes)]
