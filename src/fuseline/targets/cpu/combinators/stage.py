"""Values that wait in scratch, so that the code behind them is there once and runs in a loop.

accumulators 0 1 2 3   =>   | 0 | 1 | 2 | 3 |   =>   for v in 0 .. 4: finish and store vector v
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

Store = Callable[[Operand, "Operand | None", Value], None]
"""`(number, active, vector)`: finish and store one vector of a tile."""


def put_aside(kernel: KernelBuilder, stage: MemRef, values: Sequence[Value]) -> None:
    """Write whole vectors into `stage`, one behind the other."""
    for number, value in enumerate(values):
        kernel.store(stage, number * value.type.lanes, value, align=kernel.machine.vector_bytes)


def in_turn(
    kernel: KernelBuilder,
    stage: MemRef,
    first: Operand,
    lanes: int,
    actives: Sequence[Operand | None],
    store: Store,
    *,
    written_out: bool = False,
) -> None:
    """Call `store` in a loop, or `written_out`, for each of the vectors of `lanes` that lie in `stage` from element
    `first` on; `actives` are their live lanes (None: all), of which only the last ones may be fewer."""

    def held(place: Operand) -> Value:
        return kernel.load(stage, kernel.add(first, place), lanes, align=kernel.machine.vector_bytes)

    if written_out:
        for v, active in enumerate(actives):
            store(v, active, held(v * lanes))
        return
    whole = all(active is None for active in actives)
    live: Operand = 0
    for active in actives:
        live = kernel.add(live, lanes if active is None else active)

    def vector(v: Operand) -> tuple[()]:
        place = kernel.mul(v, lanes)
        active = None if whole else kernel.max(kernel.min(kernel.sub(live, place), lanes), 0)
        store(v, active, held(place))
        return ()

    kernel.loop(0, len(actives), 1, vector)
