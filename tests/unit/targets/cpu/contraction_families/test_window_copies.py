"""Windows over images that crowd the sets of the cache: over a copy, or with wide tiles, against NumPy; and which of
them is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body
from fuseline.targets.cpu.families.family import Plan, Refusal
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan, with_copy
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import WindowPlan, plan_window
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.isa.description import Machine
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random

from .test_window import BODIES, CASES, FAMILY, LOWEST, Case, image_map

AVX2 = machine("avx2")


class Copying(WindowFamily):
    """Copies every image that can be, a few lines at a time."""

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        plan = narrow(view, machine)
        copied = with_copy(plan, replace(machine, l2_bytes=96 * 1024))
        return copied if copied is not None else plan


def narrow(view: DispatchView, machine: Machine = AVX2) -> WindowPlan:
    """The plan with tiles of one vector, as the image lies."""
    loops = window_loops(view)
    assert not isinstance(loops, Refusal)
    found = plan_window(loops, machine)
    assert isinstance(found, WindowPlan)
    return found if found.vectors == 1 else _of_one_vector(found, machine)


def _of_one_vector(plan: WindowPlan, machine: Machine) -> WindowPlan:
    found = plan_window(plan.loops, machine, (3, 1))
    assert isinstance(found, WindowPlan)
    return found


COPIED = [name for name in CASES if name not in ("11x11", "three dimensions", "whole image")]


@pytest.mark.parametrize("name", [*COPIED, "several parts"])
def test_depthwise_over_a_copy(name: str):
    case = Case((23, 19), (3, 5), 77, pad=(2, 1), batch=2) if name == "several parts" else CASES[name]
    if case.image[-1] == 1:
        return  # a depthwise convolution of one channel is a convolution
    assert isinstance(Copying().accepts(case.depthwise(), machine()), CopiedWindowPlan)
    case.check_depthwise(family=Copying())
    case.check_depthwise(constant=False, family=Copying())


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", [name for name in COPIED if name != "one channel"])
def test_pooling_over_a_copy(name: str, body: str):
    case = CASES[name]
    assert isinstance(Copying().accepts(case.pooling(body), machine()), CopiedWindowPlan)
    case.check_pooling(body, family=Copying())


@pytest.mark.parametrize("value", [0.0, LOWEST])
def test_padding_of_any_value_is_copied(value: float):
    CASES["3x3 stride 2"].check_pooling("max", value, family=Copying())


@pytest.mark.parametrize("name", ["11x11", "three dimensions"])
def test_what_is_not_copied(name: str):
    assert with_copy(narrow(CASES[name].pooling("max")), AVX2) is None


def test_an_image_of_sizes_known_at_run_time_is_not_copied():
    p = Program((1, "h", "w", 24), (3, 3, 24), constants=[1])
    maps = [image_map(2, 1, 1), *(CASES["3x3"].window_map, CASES["3x3"].out_map)]
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0])
    y = p.emit.generic(
        [x, p.empty(3, 3)], [p.zeros(1, "h", "w", 24)], maps, ["parallel"] * 4 + ["reduction"] * 2, _sum
    ).results[0]
    assert with_copy(narrow(p.dispatch(y)), AVX2) is None


def _sum(b: Body) -> list[SSAValue]:
    return [b.op(arith.AddfOp, b.args[2], b.args[0])]


def test_a_line_that_fits_no_scratch_is_not_copied():
    case = Case((4, 90), (3, 3), 256, pad=(1, 1))
    plan = narrow(case.depthwise())
    assert with_copy(plan, AVX2) is not None
    assert with_copy(plan, replace(AVX2, l2_bytes=64 * 1024)) is None


@pytest.mark.parametrize(
    ("case", "image", "tile"),
    [
        (Case((28, 28), (3, 3), 240, pad=(1, 1)), "padded", "11x8"),
        (Case((28, 28), (3, 3), 256, pad=(1, 1)), "copied", "11x8"),
        (Case((56, 56), (3, 3), 128, pad=(1, 1)), "padded", "3x32"),
        (Case((32, 32), (5, 5), 128, pad=(2, 2)), "copied", "9x8"),
        (Case((28, 28), (3, 3), 256, stride=2, pad=(1, 1)), "padded", "3x32"),
    ],
)
def test_what_is_chosen(case: Case, image: str, tile: str):
    found = FAMILY.accepts(case.depthwise(), AVX2)
    assert isinstance(found, WindowPlan)
    assert (found.notes["image"], found.notes["tile"]) == (image, tile)


@pytest.mark.parametrize(("stride", "image", "tile"), [(1, "copied", "11x8"), (2, "padded", "2x16")])
def test_what_is_chosen_for_poolings(stride: int, image: str, tile: str):
    case = Case((28, 28), (3, 3), 256, stride=stride, pad=(1, 1))
    found = FAMILY.accepts(case.pooling("max"), AVX2)
    assert isinstance(found, WindowPlan)
    assert (found.notes["image"], found.notes["tile"]) == (image, tile)
    case.check_pooling("max")


def test_a_copied_pixel_ends_with_its_channels():
    channels = int(RNG.integers(2, 70))
    copied = with_copy(narrow(Case((9, 8), (3, 3), channels, pad=(1, 1)).depthwise()), AVX2)
    assert copied is not None
    assert copied.pitch == min(32, -(-channels // AVX2.lanes("f32")) * AVX2.lanes("f32"))


@pytest.mark.parametrize("kind", ["depthwise", "max"])
def test_rows_of_padding_that_changes_nothing_are_left_out(kind: str):
    """Down to images that are mostly padding."""
    window = (int(RNG.integers(2, 6)), int(RNG.integers(2, 6)))
    pad = (int(RNG.integers(1, window[0])), int(RNG.integers(1, window[1])))
    image = (int(RNG.integers(window[0], 9)), int(RNG.integers(window[1], 9)))
    case = Case(image, window, int(RNG.integers(2, 40)), stride=int(RNG.integers(1, 3)), pad=pad)
    plan = Copying().accepts(case.depthwise() if kind == "depthwise" else case.pooling("max", 0.0), AVX2)
    assert isinstance(plan, CopiedWindowPlan)
    assert len(plan.skipped_rows) == (kind == "depthwise")
    if kind == "depthwise":
        case.check_depthwise(family=Copying())
    else:
        case.check_pooling("max", 0.0, family=Copying())


@pytest.mark.parametrize("stride", [1, 2])
def test_crowded_images_have_the_right_results(stride: int):
    Case((15, 14), (3, 3), 256, stride=stride, pad=(1, 1)).check_depthwise()


def test_the_interpreter_finds_every_access_inside():
    case = Case((9, 7), (3, 3), 20, pad=(1, 1))
    run = Runner(Copying(), case.pooling("max"))
    x = random(case.image, 3)
    assert_close(run.evaluated(x)[0], Runner(FAMILY, case.pooling("max"))(x)[0])
