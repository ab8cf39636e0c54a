"""Which operands of real kernels give their place to a result: what is read where it is written, in every family; such
kernels run natively on one buffer, their workgroups in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from xdsl.ir.affine import AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.results_in_place import results_in_place
from tests.graphs.program import Program
from tests.kernels import Runner, arrays_for
from tests.unit.targets.cpu.blocked.programs import product_and_norm, row_norm

Sizes = Mapping[str, int]


def _elementwise() -> DispatchView:
    p = Program(("n", 50), ("n", 50))
    return p.dispatch(p.relu(p.add(p.x[0], p.x[1])))


def _residual(m: int | str, n: int, k: int) -> DispatchView:
    p = Program((m, k), (k, n), (n,), (m, n), constants=[1, 2])
    return p.dispatch(p.relu(p.add(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1), p.x[3])))


def _norm() -> DispatchView:
    p = Program(("n", 70))
    return p.dispatch(row_norm(p, p.x[0], 70))


def _convolution(size: int, channels: int, taps: int) -> DispatchView:
    p = Program((size, channels), (taps, channels, channels), (size - taps + 1, channels), constants=[1])
    return p.dispatch(p.add(p.convolution(p.x[0], p.x[1]), p.x[2]))


def _depthwise() -> DispatchView:
    p = Program((40, 24), (3, 24), (38, 24), constants=[1])
    return p.dispatch(p.add(p.depthwise(p.x[0], p.x[1]), p.x[2]))


GIVEN: dict[str, tuple[Callable[[], DispatchView], int, Sizes]] = {
    "elementwise": (_elementwise, 0, {"n": 13}),
    "residual": (lambda: _residual(53, 40, 37), 3, {}),
    "residual of many columns": (lambda: _residual(7, 1000, 16), 3, {}),
    "norm": (_norm, 0, {"n": 11}),
    "product and norm": (lambda: product_and_norm(41, 48, 24, constant=True), 3, {}),
    "convolution": (lambda: _convolution(31, 32, 3), 2, {}),
    "convolution of few channels": (lambda: _convolution(57, 5, 3), 2, {}),
    "depthwise": (_depthwise, 2, {}),
}


def _runner(view: DispatchView) -> Runner:
    return Runner(families(), view)


def _decisions(runner: Runner) -> Mapping[tuple[int, int], str]:
    found = results_in_place(runner.view, runner.kernel, runner.plan.workgroups)
    return {pair: "" if refusal is None else refusal.code for pair, refusal in found.items()}


@pytest.mark.parametrize("name", GIVEN)
def test_an_operand_that_is_read_where_the_result_is_written(name: str) -> None:
    make, operand, sizes = GIVEN[name]
    runner = _runner(make())
    assert _decisions(runner)[0, operand] == ""
    arrays = arrays_for(runner.view, sizes)
    (expected,) = runner(*arrays, sizes=sizes)
    order = np.random.default_rng().permutation(d.evaluate(runner.plan.workgroups, sizes))
    found = runner.in_place(*arrays, operand=operand, order=[int(number) for number in order], sizes=sizes)
    np.testing.assert_array_equal(found, expected)


def test_an_image_is_read_around_what_is_written() -> None:
    p = Program((30, 32), (3, 32, 32), constants=[1])
    padded = p.pad(p.x[0], [1, 0], [1, 0])
    found = _decisions(_runner(p.dispatch(p.convolution(padded, p.x[1]))))
    assert found[0, 0] in ("unlike-places", "gathered")


def test_a_transposed_operand() -> None:
    p = Program((24, 24), (24, 24))
    turned = p.over(p.x[1], (p.x[0], AffineMap.from_callable(lambda i, j: (j, i))), body=lambda b: b.args[1])
    assert _decisions(_runner(p.dispatch(turned)))[0, 0] in ("unlike-places", "gathered")


def test_rows_of_a_product_are_read_for_every_column() -> None:
    p = Program((24, 64), (64, 64), constants=[1])
    assert _decisions(_runner(p.dispatch(p.relu(p.matmul(p.x[0], p.x[1]))))) == {(0, 0): "unlike-places"}


def test_only_operands_of_the_results_size_are_asked_about() -> None:
    assert set(_decisions(_runner(_residual(20, 30, 10)))) == {(0, 3)}
