"""Minimal filtering of images whose pixels lie side by side and whose channels do not: squares are transposed on their
way to the patch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.winograd.choice import best_blocking, winograd_cycles
from fuseline.targets.cpu.families.winograd.loops import WinogradLoops, winograd_loops
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.draws import RNG, generator
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, kernel_of, plan_of, random
from tests.unit.targets.cpu.contraction_families.test_convolution import convolve, maps_of

from .convolutions import Case, Forced

NONE = np.zeros(0)


class First(Case):
    """Channels before space; `relu`: of the image."""

    def __init__(
        self, image: Sequence[int], channels: tuple[int, int], *, taps: int = 3, pad: tuple[int, int] = (1, 1),
        batch: int = 1, relu: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(image, channels, taps=taps, pad=pad, batch=batch, epilogue=False)
        self.relu = relu
        self.image = (batch, channels[0], *image)

    def program(self, *sizes: int | str) -> tuple[Program, SSAValue]:
        """The image, of batch and space `sizes` if given, as it is read."""
        batch, *space = sizes or (self.image[0], *self.image[2:])
        p = Program((batch, self.image[1], *space), self.filter, constants=[1])
        x = p.relu(p.x[0]) if self.relu else p.x[0]
        low, high = ([0, 0, *[side] * self.rank] for side in self.pad)
        return p, p.pad(x, low, high) if any(self.pad) else x

    @property
    def view(self) -> DispatchView:
        return self.view_of()

    def view_of(self, *sizes: int | str) -> DispatchView:
        """The dispatch; a batch known at run time has a name."""
        p, x = self.program(*sizes)
        out = (sizes[0] if sizes else self.out[0], *self.out[1:])
        maps = maps_of(self.rank, [1] * self.rank, [1] * self.rank, first=True)
        kinds = "p" * (self.rank + 2) + "r" * (self.rank + 1)
        return p.dispatch(p.relu(p.multiply_add(x, p.x[1], p.zeros(*out), maps, kinds)))

    def arrays(self) -> list[Array]:
        return [random(shape, i) for i, shape in enumerate((self.image, self.filter))]

    def expected(self, x: Array, w: Array, bias: Array = NONE, residual: Array = NONE) -> Array:
        del bias, residual
        x = np.moveaxis(np.maximum(x, 0) if self.relu else x, 1, -1)
        around = np.pad(x, [(0, 0), *[self.pad] * self.rank, (0, 0)])
        return np.maximum(convolve(around, w, [1] * self.rank, [1] * self.rank), 0)


CASES = {
    "square": First((14, 14), (16, 32)),
    "odd sizes": First((13, 9), (24, 40)),
    "no padding": First((11, 10), (16, 24), pad=(0, 0)),
    "padded at the end only": First((10, 12), (8, 16), pad=(0, 2)),
    "wide padding": First((5, 6), (8, 16), pad=(4, 3)),
    "tails of channels and columns": First((9, 9), (11, 13)),
    "fewer channels than lanes": First((12, 12), (3, 5)),
    "batch": First((7, 6), (20, 16), batch=3),
    "computed": First((9, 17), (18, 8), relu=True),
    "one dimension": First((50,), (12, 20)),
    "five taps": First((11, 12), (16, 24), taps=5, pad=(2, 2)),
}


def loops_of(view: DispatchView) -> WinogradLoops:
    found = winograd_loops(view)
    assert isinstance(found, WinogradLoops), found
    return found


@pytest.mark.parametrize("outputs", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_channels_first(name: str, outputs: int):
    run = CASES[name].check(Forced(outputs), bits=14)
    assert isinstance(run.plan, WinogradPlan) and run.plan.notes["image"] == "turned"


DRAWN = generator(__name__).integers([4, 4, 2, 2, 0, 0, 0, 2], [20, 20, 30, 30, 3, 3, 2, 7], size=(12, 8)).tolist()


@pytest.mark.parametrize("drawn", DRAWN, ids=str)
def test_any_shape(drawn: Sequence[int]):
    height, width, channels, columns, low, high, relu, outputs = drawn
    case = First((height, width), (channels, columns), pad=(low, high), relu=relu == 1)
    case.check(Forced(outputs if outputs != 5 else 3, int(RNG.integers(1, 9)), 16), bits=13)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", ["odd sizes", "tails of channels and columns", "computed", "one dimension"])
def test_no_access_can_leave_its_buffer(name: str, isa: str):
    family, view = Forced(4, 3), CASES[name].view
    plan = plan_of(family, view, machine(isa))
    assert check_bounds(kernel_of(family, plan, machine(isa)), [], d.evaluate(plan.workgroups, {})) == []


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_machine(isa: str):
    """Vectors longer and shorter than a tile is wide."""
    case = First((7, int(RNG.integers(5, 9))), (int(RNG.integers(3, 20)), 9))
    arrays = case.arrays()
    found = Runner(Forced(4, 2, 16), case.view, machine(isa)).evaluated(*arrays)[0]
    assert_close(found, case.expected(*arrays), bits=14, least=1.0)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_batch_known_at_run_time(batch: int):
    case = First((9, 10), (16, 24), batch=batch)
    run = Runner(Forced(), case.view_of("n", 9, 10))
    arrays = case.arrays()
    assert_close(run(*arrays, sizes={"n": batch})[0], case.expected(*arrays), bits=14, least=1.0)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_its_windows_are(number: float):
    case = First((13, 12), (12, 10), pad=(0, 0))
    image, filter_ = case.arrays()
    image[0, int(RNG.integers(12)), int(RNG.integers(13)), int(RNG.integers(12))] = number
    found = Runner(Forced(4), case.view)(image, filter_)[0]
    with np.errstate(invalid="ignore"):
        expected = case.expected(image, filter_)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(found[~finite], expected.astype(np.float32)[~finite])
    assert_close(found[finite], expected[finite], bits=14, least=1.0)


def test_channels_side_by_side_are_read_along_them():
    assert loops_of(Case((14, 14), (16, 32)).view).lying.turned is None
    assert loops_of(First((14, 14), (16, 32)).view).lying.turned == 1
    assert loops_of(First((50,), (16, 32)).view).lying.turned == 0


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_turning_costs(isa: str):
    """The same blocking takes longer where squares are transposed, by less than if every element were gathered."""
    last, first = (loops_of(kind((30, 30), (32, 16)).view) for kind in (Case, First))
    own = machine(isa)
    here = best_blocking(last, 4, own, Policy("default", 1)).blocking
    cycles = [winograd_cycles(loops, here, own, 1) for loops in (last, first)]
    assert cycles[0] < cycles[1] < 2 * cycles[0]
