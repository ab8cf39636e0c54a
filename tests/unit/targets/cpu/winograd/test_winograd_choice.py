"""What is taken, what is refused and why, and that the choice follows sizes, exactness and threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import UnitAttr, f64
from xdsl.ir import OpResult
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import ROOT_ATTRIBUTE, DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.family import Plan, Policy, Refusal
from fuseline.targets.cpu.families.winograd import choice
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.families.winograd.loops import WinogradLoops, winograd_loops
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from tests.graphs.program import Program
from tests.unit.targets.cpu.contraction_families import test_convolution as direct
from tests.unit.targets.cpu.contraction_families.test_convolution import maps_of

from .convolutions import Case


def answer(view: DispatchView, numerics: str = "default", threads: int = 1, isa: str = "avx2") -> Plan | Refusal:
    return WinogradFamily(Policy(numerics, threads)).accepts(view, machine(isa))


def plan(view: DispatchView, numerics: str = "default", threads: int = 1, isa: str = "avx2") -> WinogradPlan:
    found = answer(view, numerics, threads, isa)
    assert isinstance(found, WinogradPlan), found
    return found


def groups() -> DispatchView:
    p = Program((1, 8, 8, 3, 16), (3, 3, 3, 16, 16), constants=[1])
    dim = AffineExpr.dimension
    maps = [
        AffineMap(8, 0, (dim(0), dim(1) + dim(5), dim(2) + dim(6), dim(3), dim(7))),
        AffineMap(8, 0, tuple(dim(i) for i in (3, 5, 6, 7, 4))),
    ]
    y = p.multiply_add(
        p.x[0], p.x[1], p.zeros(1, 6, 6, 3, 16), [*maps, AffineMap(8, 0, tuple(dim(i) for i in range(5)))], "ppppprrr"
    )
    return p.dispatch(y)


def doubles() -> DispatchView:
    p = Program((1, 8, 8, 16), (3, 3, 16, 16), constants=[1], element=f64)
    return p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(1, 6, 6, 16), maps_of(2, (1, 1), (1, 1)), "pppprrr"))


def pooled() -> DispatchView:
    """The rows of the result are summed in the same dispatch."""
    p = Program((1, 8, 8, 16), (3, 3, 16, 16), constants=[1])
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(1, 6, 6, 16), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    dim = AffineExpr.dimension
    maps = [AffineMap(4, 0, tuple(dim(i) for i in range(4)))] * 2 + [AffineMap(4, 0, (dim(0), dim(2), dim(3)))]
    total = p.multiply_add(y, y, p.zeros(1, 6, 16), maps, "prpp")
    assert isinstance(y, OpResult)
    y.op.attributes[ROOT_ATTRIBUTE] = UnitAttr()
    return p.dispatch(total)


def product() -> DispatchView:
    p = Program((8, 8), (8, 8), constants=[1])
    return p.dispatch(p.matmul(p.x[0], p.x[1]))


REFUSED: dict[str, tuple[Callable[[], DispatchView], str]] = {
    "a product": (product, "not-a-convolution"),
    "a stride": (lambda: direct.Case((15, 15), (3, 3), (16, 16), pad=(1, 1), stride=2).view, "stride"),
    "a dilation": (lambda: direct.Case((15, 15), (3, 3), (16, 16), pad=(1, 1), dilation=2).view, "stride"),
    "three dimensions": (lambda: direct.Case((9, 9, 9), (3, 3, 3), (16, 16), pad=(1, 1)).view, "window-rank"),
    "a filter known at run time": (
        lambda: direct.Case((15, 15), (3, 3), (16, 16), pad=(1, 1), constant=False).view,
        "filter-not-constant",
    ),
    "groups": (groups, "groups"),
    "f64": (doubles, "element-type"),
    "a second reduction": (pooled, "second-reduction"),
    "one pixel per line": (lambda: Case((9, 1), (16, 16), pad=(1, 1)).view, "channels"),
    "a window without points": (lambda: Case((30, 30), (16, 16), taps=13, pad=(6, 6)).view, "error-bound"),
    "few channels": (lambda: Case((32, 32), (3, 16)).view, "direct-is-faster"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str):
    view, code = REFUSED[name]
    found = answer(view())
    assert isinstance(found, Refusal) and found.code == code, found


def outputs(found: WinogradPlan) -> list[int]:
    return [axis.outputs for axis in found.blocking.axes]


def test_strict_numerics_turn_it_off_and_fast_ones_allow_larger_errors():
    view = Case((224, 224), (64, 64)).view
    refused = answer(view, "strict")
    assert isinstance(refused, Refusal) and refused.code == "exact-numerics"
    assert outputs(plan(view, "default")) == [6, 6]
    assert outputs(plan(view, "fast")) == [8, 8]


def test_few_channels_err_more():
    """The running sums of a direct convolution are short, too: F(6, 3) is allowed only from six channels on."""
    few, more = (Case((64, 64), (c, 64), epilogue=False).view for c in (5, 64))
    assert isinstance(answer(few), Refusal) or outputs(plan(few)) != [6, 6]
    assert outputs(plan(more)) == [6, 6]


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_thread_has_work(threads: int, isa: str):
    for case in (Case((56, 56), (64, 64)), Case((14, 14), (256, 256)), Case((28, 28), (128, 128), batch=2)):
        found = plan(case.view, threads=threads, isa=isa)
        workgroups = d.evaluate(found.workgroups, {})
        assert 4 * workgroups >= 3 * threads
        assert -(-workgroups // threads) <= 1.5 * workgroups / threads or workgroups < 3 * threads


def test_large_filters_and_small_images_take_small_tiles():
    """A transformed filter is read from memory: 16 times the products' size for F(2, 3), 64 for F(6, 3)."""
    small, large = plan(Case((7, 7), (512, 512)).view), plan(Case((56, 56), (64, 64)).view)
    assert outputs(small) < outputs(large)


def test_it_is_offered_before_direct_convolutions_with_the_policy():
    found = {family.name: family for family in families(Policy("fast", 3))}
    names = list(found)
    assert names.index("winograd") < names.index("convolution")
    assert found["winograd"].policy == Policy("fast", 3)


@pytest.mark.parametrize("channels", [64, 128])
def test_scratch_leaves_half_of_the_second_level_cache_where_that_costs_nothing(channels: int):
    """Blocks that fill the cache win by what no measurement shows; smaller ones of the same price are taken."""
    p = Program((1, 126, 126, channels), (3, 3, channels, 64), constants=[1])
    view = p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(1, 124, 124, 64), maps_of(2, (1, 1), (1, 1)), "pppprrr"))
    loops, policy = winograd_loops(view), Policy("default", 2)
    assert isinstance(loops, WinogradLoops)
    for cache in (1 << 20, 2 << 20):
        isa = replace(machine("avx512"), l2_bytes=cache)
        for one in choice.weighed(loops, isa, policy):
            all_of_it = [
                choice.Weighed(choice.winograd_cycles(loops, b, isa, 2), b)
                for b in choice._blockings(loops, one.blocking.axes[0].outputs, isa, 2)  # pyright: ignore[reportPrivateUsage]
            ]
            size = choice.scratch_bytes
            best = min(other.cycles for other in all_of_it)
            small = [other for other in all_of_it if 2 * size(loops, other.blocking, isa) <= cache]
            assert one.cycles <= choice.AS_CHEAP * best
            if any(other.cycles <= choice.AS_CHEAP * best for other in small):
                assert 2 * size(loops, one.blocking, isa) <= cache
