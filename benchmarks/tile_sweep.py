"""Every register tile that fits against the one that is chosen: `python -m benchmarks.tile_sweep [--seconds 0.02]
[--only text]`.

One thread, GFLOP/s of the chosen tile, of the best one, and their ratio; the two are timed again side by side before
they are compared. The layers are none of a model's: sizes that leave rests in rows, columns and steps. Exits with 1
where a choice is below `--least` of the best.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.kernels.cases import Case, convolution, depthwise, grouped, matmul, product
from benchmarks.kernels.timing import Compiled, best
from fuseline.analysis.indexing_maps import is_projected_permutation
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.loops import contraction_loops
from fuseline.targets.cpu.families.contraction.plan import plan_contraction
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.window.groups import grouped_window_loops, plan_groups
from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import plan_window
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.tiles import MAX_VECTORS, Tile, fits
from fuseline.targets.target import Refusal

MOST_PIXELS, MOST_WINDOW_VECTORS = 12, 4
"""How far the sweep of window tiles goes."""

Chosen = tuple[Any, Plan]

LAYERS: list[Callable[[], Case]] = [
    lambda: matmul(37, 250, 333), lambda: matmul(100, 100, 100), lambda: matmul(500, 72, 90),
    lambda: matmul(1000, 24, 48),
    lambda: matmul(3, 777, 500), lambda: matmul(1, 700, 900), lambda: matmul(11, 36, 1200),
    lambda: product(75, 130, 64),
    lambda: convolution(19, 40, 56, 1), lambda: convolution(75, 12, 20, 1), lambda: convolution(23, 36, 50, 3),
    lambda: convolution(13, 80, 100, 3),
    lambda: convolution(9, 160, 96, 3, 2), lambda: convolution(80, 3, 24, 3, 2, first=True),
    lambda: convolution(62, 3, 40, 5, 2),
    lambda: convolution(31, 18, 30, 5), lambda: depthwise(75, 40), lambda: depthwise(38, 88, 2),
    lambda: depthwise(19, 200, 1, 5),
    lambda: depthwise(37, 72, 2, 5), lambda: depthwise(10, 500), lambda: depthwise(29, 56, 1, 7),
    lambda: grouped(29, 18, 4, 4), lambda: grouped(19, 16, 8, 8, 2), lambda: grouped(15, 32, 16, 16),
]  # fmt: skip


def main() -> int:
    """Print one line per layer; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.02, help="time per tile")
    parser.add_argument("--only", default="", help="layers whose name contains this")
    parser.add_argument(
        "--least", type=float, default=0.85, help="of the best, below which a choice counts as a failure"
    )
    options = parser.parse_args()
    print(f"{'layer':32} {'chosen':>9} {'GFLOP/s':>8} {'best':>9} {'GFLOP/s':>8} {'ratio':>6}  of")
    worst = 1.0
    for make in LAYERS:
        case = make()
        if options.only in case.name:
            worst = min(worst, _line(case, machine(), options.seconds))
    print(f"worst choice: {worst:.2f} of the best")
    return int(worst < options.least)


def _line(case: Case, isa: Machine, seconds: float) -> float:
    chosen = Compiled(case, isa, _default(case, isa))
    others = [Compiled(case, isa, plan) for plan in _tiles(case, isa)]
    for other in others:
        _use_buffers(other, chosen)
    times = best([other.call for other in others], seconds)
    first = others[min(range(len(others)), key=lambda i: times[i])]
    ours, theirs = best([chosen.call, first.call], 8 * seconds)
    ratio = min(1.0, theirs / ours)
    tiles = [str(c.plan.notes["tile"]) for c in (chosen, first)]
    rates = [case.flops / t / 1e9 for t in (ours, theirs)]
    print(
        f"{case.name:32} {tiles[0]:>9} {rates[0]:8.1f} {tiles[1]:>9} {rates[1]:8.1f} {ratio:6.2f}  {len(others)}",
        flush=True,
    )
    return ratio


def _use_buffers(mine: Compiled, theirs: Compiled) -> None:
    """Buffers that hold the same become one: times then differ by code, not by addresses that meet in a cache set."""
    mine.arrays = [b if np.array_equal(a, b) else a for a, b in zip(mine.arrays, theirs.arrays, strict=True)]
    mine.result = theirs.result
    pointers = [array.ctypes.data for array in (*mine.arrays, mine.result)]
    mine.pointers = (ctypes.c_void_p * len(pointers))(*pointers)


def _default(case: Case, isa: Machine) -> Chosen:
    """What is chosen without a sweep, direct convolutions only."""
    for family in (ContractionFamily(), WindowFamily(), ConvolutionFamily()):
        found = family.accepts(case.view, isa)
        if not isinstance(found, Refusal):
            return family, found
    raise ValueError(f"no family takes {case.name}")


def _tiles(case: Case, isa: Machine) -> Iterator[Chosen]:
    """A plan with every tile that fits the registers and the layer."""
    family = _default(case, isa)[0]
    plans = (_window_plans if family.name == "window" else _multiply_add_plans)(case, isa)
    seen: set[str] = set()
    for plan in plans:
        if not isinstance(plan, Refusal) and str(plan.notes["tile"]) not in seen:
            seen.add(str(plan.notes["tile"]))
            yield family, plan


def _multiply_add_plans(case: Case, isa: Machine) -> Iterator[Plan | Refusal]:
    root = case.view.root_view
    assert root is not None
    image = next((i for i, map_ in enumerate(root.input_maps) if not is_projected_permutation(map_)), None)
    loops = contraction_loops(case.view, image=image)
    assert not isinstance(loops, Refusal)
    rows = loops.rows[-1].extent if loops.rows else 1
    columns = loops.column.extent
    assert isinstance(rows, int) and isinstance(columns, int)
    for vectors in range(1, min(MAX_VECTORS, -(-columns // isa.lanes(loops.dtype))) + 1):
        for height in range(1, min(rows, isa.vector_registers) + 1):
            if fits(height, vectors, isa):
                yield plan_contraction(loops, isa, Tile(height, vectors))


def _window_plans(case: Case, isa: Machine) -> Iterator[Plan | Refusal]:
    loops = window_loops(case.view)
    if isinstance(loops, Refusal):
        yield from _grouped_plans(case, isa)
        return
    for vectors in range(1, MOST_WINDOW_VECTORS + 1):
        for pixels in range(1, MOST_PIXELS + 1):
            if pixels * vectors < isa.vector_registers:
                yield plan_window(loops, isa, (pixels, vectors))


def _grouped_plans(case: Case, isa: Machine) -> Iterator[Plan | Refusal]:
    loops = grouped_window_loops(case.view)
    assert not isinstance(loops, Refusal)
    for pixels in range(1, MOST_PIXELS + 1):
        yield plan_groups(loops, isa, pixels)


if __name__ == "__main__":
    sys.exit(main())
