"""Convolutions by minimal filtering against direct ones, and the chooser against a sweep: `python -m
benchmarks.winograd [--threads N]`.

One line per layer: the direct time, the choice and its time, the best of a sweep over tile sizes and blocks, the choice
as a share of that, and for several threads the slowest one's share of the grid. Times are of one thread alone
(processor time).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.family import Plan, Policy
from fuseline.targets.cpu.families.winograd.choice import blocking
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.families.winograd.loops import winograd_loops
from fuseline.targets.cpu.families.winograd.plan import winograd_plan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.target import Refusal

from .kernels.cases import convolution
from .kernels.timing import Compiled, best

LAYERS = [
    (56, 64, 64), (28, 128, 128), (14, 256, 256), (7, 512, 512), (90, 64, 32), (90, 128, 32), (90, 192, 64),
    (224, 64, 64), (112, 64, 128),
    (112, 128, 128), (56, 256, 256), (28, 512, 512), (14, 512, 512), (55, 16, 64), (27, 32, 128), (13, 48, 192),
    (13, 64, 256), (32, 8, 8),
    (32, 16, 16), (64, 3, 16), (28, 32, 32), (180, 64, 3), (4, 512, 512), (9, 24, 24),
]  # fmt: skip
"""Square images: size, input and output channels, windows of 3 x 3."""

SWEPT_OUTPUTS, SWEPT_TILES = (2, 3, 4, 6), (8, 16, 28, 50)


def main() -> None:
    """Print one line per layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.05, help="time per kernel")
    parser.add_argument("--numerics", default="default")
    options = parser.parse_args()
    print(
        f"{'layer':20} {'direct us':>9} {'choice us':>9} {'gain':>5} {'best us':>9} {'of best':>7} {'share':>6}  "
        f"choice | best of the sweep"
    )
    for layer in LAYERS:
        _line(layer, Policy(options.numerics, options.threads), options.seconds)


def _line(layer: tuple[int, int, int], policy: Policy, seconds: float) -> None:
    size, channels, columns = layer
    isa, case = machine(), convolution(size, channels, columns, 3)
    family = WinogradFamily(policy)
    chosen = family.accepts(case.view, isa)
    direct = ConvolutionFamily(policy)
    compiled = [Compiled(case, isa, (direct, _plan(direct.accepts(case.view, isa))))]
    compiled += [Compiled(case, isa, (family, plan)) for plan in _swept(case.view)]
    names = ["direct", *(f"{one.plan.notes['filtering']} {one.plan.notes['block']}" for one in compiled[1:])]
    if not isinstance(chosen, Refusal):
        compiled.append(Compiled(case, isa, (family, chosen)))
        names.append(f"{chosen.notes['filtering']} {chosen.notes['block']}")
    times = best([one.call for one in compiled], seconds)
    mine = len(times) - 1 if not isinstance(chosen, Refusal) else 0
    first = min(range(len(times)), key=times.__getitem__)
    numbers = (
        f"{times[0] * 1e6:9.0f} {times[mine] * 1e6:9.0f} {times[0] / times[mine]:5.2f} "
        f"{times[first] * 1e6:9.0f} {times[first] / times[mine]:7.2f}"
    )
    share = _slowest(compiled[mine], policy.threads, seconds) / times[mine]
    print(
        f"{f'{size}x{size}x{channels}->{columns}':20} {numbers} {share:6.2f}  {names[mine]} | {names[first]}",
        flush=True,
    )


def _plan(found: Plan | Refusal) -> Plan:
    assert not isinstance(found, Refusal), found
    return found


def _swept(view: DispatchView) -> list[Plan]:
    loops = winograd_loops(view)
    assert not isinstance(loops, Refusal), loops
    isa = machine()
    return [
        winograd_plan(loops, blocking(loops, outputs, tiles, 64, isa), isa)
        for outputs in SWEPT_OUTPUTS
        for tiles in SWEPT_TILES
    ]


def _slowest(kernel: Compiled, threads: int, seconds: float) -> float:
    shares: list[Callable[[], None]] = [partial(kernel.share, part, threads) for part in range(threads)]
    return max(best(shares, seconds))


if __name__ == "__main__":
    main()
