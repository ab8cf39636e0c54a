"""Kernels that dispatches of other extents share write a result in an operand's place where the dispatch's own kernel
does; such launches run natively on one buffer, their workgroups in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.costs import MachineCosts
from fuseline.targets.cpu.code_budget import within_budget
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.results_in_place import results_in_place
from fuseline.targets.cpu.shared_kernels import Built, merged
from tests.graphs.program import Program
from tests.kernels import Runner, arrays_for


class _Launch(Runner):
    """A dispatch that runs the kernel it shares, with the numbers that it passes."""

    def __init__(self, one: Built) -> None:
        self.view, self.isa, self.family, self.plan, self.kernel = (
            one.plan.view,
            machine(),
            one.family,
            one.plan,
            one.code,
        )
        self.passed = one.numbers

    def _numbers(self, sizes: Mapping[str, int] | None) -> list[int]:
        return [*super()._numbers(sizes), *self.passed]


def _residual(rows: int, columns: int, steps: int) -> DispatchView:
    p = Program((rows, steps), (steps, columns), (columns,), (rows, columns), constants=[1, 2])
    return p.dispatch(p.relu(p.add(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1), p.x[3])))


def _elementwise(columns: int) -> DispatchView:
    p = Program(("n", columns), ("n", columns))
    return p.dispatch(p.relu(p.add(p.x[0], p.x[1])))


def _depthwise(size: int, channels: int) -> DispatchView:
    p = Program((size, channels), (3, channels), (size - 2, channels), constants=[1])
    return p.dispatch(p.add(p.depthwise(p.x[0], p.x[1]), p.x[2]))


ALIKE: Mapping[str, tuple[Sequence[Callable[[], DispatchView]], int]] = {
    "products": ([lambda: _residual(196, 256, 64), lambda: _residual(784, 128, 96), lambda: _residual(53, 200, 40)], 3),
    "products of a part of a vector": ([lambda: _residual(799, 40, 36), lambda: _residual(611, 24, 48)], 3),
    "products of few rows": ([lambda: _residual(7, 1000, 16), lambda: _residual(12, 712, 100)], 3),
    "elementwise": ([lambda: _elementwise(50), lambda: _elementwise(64)], 0),
    "depthwise": ([lambda: _depthwise(57, 32), lambda: _depthwise(19, 48)], 2),
}


def _built(view: DispatchView, isa: Machine) -> Built:
    for family in families():
        plan = family.accepts(view, isa)
        found = within_budget("kernel", isa, family, plan) if isinstance(plan, Plan) else None
        if found is not None and isinstance(plan, Plan):
            return Built(family, plan, found[0], {}, found[1])
    raise AssertionError("no family takes the dispatch")


def _shared(makes: Sequence[Callable[[], DispatchView]], name: str = "") -> list[tuple[Built, Built]]:
    """Each dispatch that shares a kernel on the ISA of that name, whatever it costs, with its own one and with that."""
    isa = replace(machine(name), costs=MachineCosts(sharing_loss=1.0))
    own = [_built(make(), isa) for make in makes]
    found = merged(own, "kernel", isa, AttributeNumbers())
    return [(mine, one) for mine, one in zip(own, found, strict=True) if one is not None and one.merged is not None]


def _codes(one: Built, kernel: Kernel, numbers: Sequence[int] = ()) -> Mapping[tuple[int, int], str]:
    found = results_in_place(one.plan.view, kernel, one.plan.workgroups, numbers)
    return {pair: "" if refusal is None else refusal.code for pair, refusal in found.items()}


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
@pytest.mark.parametrize("name", ALIKE)
def test_what_own_kernels_write_in_place_shared_ones_do(name: str, isa: str) -> None:
    makes, operand = ALIKE[name]
    found = _shared(makes, isa)
    assert len(found) > 1
    for own, one in found:
        answers = _codes(one, one.code, one.numbers)
        assert answers[0, operand] == ""
        assert {pair for pair, why in _codes(own, own.kernel).items() if not why} <= {
            pair for pair, why in answers.items() if not why
        }


@pytest.mark.parametrize("name", ALIKE)
def test_launches_in_place_compute_what_they_do_apart(name: str) -> None:
    makes, operand = ALIKE[name]
    rng = np.random.default_rng()
    for _, one in _shared(makes):
        launch = _Launch(one)
        for rows in (1, int(rng.integers(2, 400))) if one.plan.view.size_names else (0,):
            sizes = {name: rows for name in one.plan.view.size_names}
            arrays = arrays_for(one.plan.view, sizes)
            (expected,) = launch(*arrays, sizes=sizes)
            order = [int(n) for n in rng.permutation(d.evaluate(one.plan.workgroups, sizes))]
            found = launch.in_place(*arrays, operand=operand, order=order, sizes=sizes)
            np.testing.assert_array_equal(found, expected)


def test_sizes_that_nobody_passes_are_unknown() -> None:
    """What is proved is proved of a launch: of the shared code alone, it is not."""
    for _, one in _shared(ALIKE["products"][0], "avx512"):
        assert _codes(one, one.code, one.numbers)[0, 3] == ""
        assert _codes(one, one.code)[0, 3] != ""


def test_results_are_refused_where_own_kernels_refuse() -> None:
    """Rows of a product are read for every column."""

    def squared(size: int) -> DispatchView:
        p = Program((size * 4, size), (size, size), constants=[1])
        return p.dispatch(p.relu(p.matmul(p.x[0], p.x[1])))

    for _, one in _shared([partial(squared, size) for size in (200, 256, 328)], "avx512"):
        assert _codes(one, one.code, one.numbers) == {(0, 0): "unlike-places"}


@pytest.mark.parametrize("rows", [40, "n"])
def test_numbers_lie_behind_sizes_that_no_kernel_reads(rows: int | str) -> None:
    def beside_another(columns: int) -> DispatchView:
        p = Program((rows, columns), ("z", columns))
        return p.dispatch(p.relu(p.x[0]))

    found = _shared([partial(beside_another, columns) for columns in (50, 64)])
    assert len(found) == 2
    for _, one in found:
        view = one.plan.view
        sizes = {name: 3 + i for i, name in enumerate(view.size_names)}
        assert "z" in sizes
        arrays = arrays_for(view, sizes)
        (result,) = _Launch(one)(*arrays, sizes=sizes)
        np.testing.assert_array_equal(result, np.maximum(arrays[0], 0))
