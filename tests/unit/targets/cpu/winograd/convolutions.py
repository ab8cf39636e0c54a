"""Convolutions computed by a given minimal filtering, whatever the chooser would say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.family import Plan, Refusal
from fuseline.targets.cpu.families.winograd.choice import blocking
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.families.winograd.loops import winograd_loops
from fuseline.targets.cpu.families.winograd.plan import winograd_plan
from fuseline.targets.cpu.isa import Machine
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, random
from tests.unit.targets.cpu.contraction_families.test_convolution import convolve, maps_of


class Forced(WinogradFamily):
    """F(`outputs`, taps) in blocks of `tiles`, `columns` per pass, `passes` per workgroup (None: all)."""

    def __init__(self, outputs: int = 4, tiles: int = 5, columns: int = 64, passes: int | None = None) -> None:
        super().__init__()
        self.outputs, self.tiles, self.columns, self.passes = outputs, tiles, columns, passes

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        loops = winograd_loops(view)
        if isinstance(loops, Refusal):
            return loops
        chosen = blocking(loops, self.outputs, self.tiles, self.columns, machine, passes=self.passes)
        return winograd_plan(loops, chosen, machine)


def padded(x: Array, low: int, high: int) -> Array:
    """`x[n, *space, c]` with zeros around its space."""
    return np.pad(x, [(0, 0), *[(low, high)] * (x.ndim - 2), (0, 0)])


class Case:
    """A convolution with padding; optionally bias, residual and relu."""

    def __init__(
        self, image: Sequence[int], channels: tuple[int, int], *, taps: int = 3, pad: tuple[int, int] = (1, 1),
        batch: int = 1, epilogue: bool = True,
    ) -> None:  # fmt: skip
        self.rank, self.pad, self.epilogue = len(image), pad, epilogue
        self.image, self.filter = (batch, *image, channels[0]), (*[taps] * self.rank, *channels)
        self.out = (batch, *(size + sum(pad) - taps + 1 for size in image), channels[1])

    @property
    def view(self) -> DispatchView:
        p = Program(self.image, self.filter, self.out[-1:], self.out, constants=[1, 2])
        low, high = ([0, *[side] * self.rank, 0] for side in self.pad)
        x = p.pad(p.x[0], low, high) if any(self.pad) else p.x[0]
        kinds = "p" * (self.rank + 2) + "r" * (self.rank + 1)
        y = p.multiply_add(x, p.x[1], p.zeros(*self.out), maps_of(self.rank, [1] * self.rank, [1] * self.rank), kinds)
        if self.epilogue:
            y = p.relu(p.add(p.bias(y, p.x[2], self.rank + 1), p.x[3]))
        return p.dispatch(y)

    def arrays(self) -> list[Array]:
        """Random arguments."""
        return [random(shape, i) for i, shape in enumerate((self.image, self.filter, self.out[-1:], self.out))]

    def expected(self, x: Array, w: Array, bias: Array, residual: Array) -> Array:
        """In float64."""
        y = convolve(padded(x, *self.pad), w, [1] * self.rank, [1] * self.rank)
        return np.maximum(y + bias + residual, 0) if self.epilogue else y

    def check(self, family: WinogradFamily, *, parts: int = 3, bits: int = 16) -> Runner:
        """Run between guard pages and compare."""
        arrays = self.arrays()
        run = Runner(family, self.view)
        for at_end in (True, False):
            assert_close(run(*arrays, parts=parts, at_end=at_end)[0], self.expected(*arrays), bits=bits, least=1.0)
        return run
