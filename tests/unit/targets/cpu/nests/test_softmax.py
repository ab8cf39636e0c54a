"""Softmax kernels: unusual elements, rows that fit no scratch, what is computed how often and how exactly."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.families.nests.loop_nest import NestPlan
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm

from .generics import empty, fill, function, generic, tensor
from .test_reductions import softmax
from .texts import build, check, parse

ISA = machine("avx2")
LAST_COEFFICIENT = "0x3F56A23520000000"
"""Stands in a kernel's text where an exponential is computed."""


EXP = "%d = arith.subf %i0, %i1 : f32\n%v = math.exp %d : f32"


def rows_of(shape: tuple[int, int]) -> np.ndarray:
    """Rows with one unusual element, several, or nothing else, between ordinary ones."""
    x = (4 * np.random.default_rng(3).standard_normal(shape)).astype(np.float32)
    x[0, 2], x[2, shape[1] - 1], x[3, 0] = np.nan, -np.inf, np.inf
    x[4], x[5, ::2], x[6], x[7, 1:] = np.nan, -np.inf, -np.inf, -1e30
    x[8, 1], x[9, 3], x[9, 1] = -np.nan, np.nan, np.inf
    x[10] += 3e38
    return x


def reference(x: np.ndarray) -> np.ndarray:
    """Softmax in float64."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        e = np.exp(wide - wide.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("width", [9, 64, 101])
def test_unusual_elements(width: int) -> None:
    """A NaN anywhere makes its row NaN, as does an infinity that is the largest; minus infinity has a share of exactly
    0."""
    x = rows_of((12, width))
    (found,) = build(parse(softmax((12, width))), machine())(x, parts=2)
    want = reference(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    fine = np.isfinite(want)
    np.testing.assert_allclose(found[fine], want[fine], rtol=1e-5, atol=1e-38)
    assert np.all(found[np.isneginf(x) & fine] == 0)


@pytest.mark.parametrize("shape", [(3, 40001), (2, 2, 33000)])
def test_long_rows_lie_in_the_result_until_they_are_divided(shape: tuple[int, ...]) -> None:
    view = parse(softmax(shape))
    run = build(view, ISA)
    plan, kernel = run.plan, run.kernel
    assert isinstance(plan, NestPlan)
    assert len(plan.schedule.staging.hosts) == 1
    assert kernel.scratch_bytes == 0
    x = (3 * np.random.default_rng(1).standard_normal(shape)).astype(np.float32)
    (found,) = build(view, machine())(x, parts=2)
    np.testing.assert_allclose(found, reference(x), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 5, "m": 70}, {"n": 3, "m": 8}])
def test_rows_of_unknown_length_are_made_once(sizes: dict[str, int]) -> None:
    text = softmax(("n", "m"))
    check(text, sizes=sizes)
    whole, rest = 2, 1  # the loop of whole vectors counts its body once, and so does the masked rest
    assert 0 < print_llvm([build(parse(text), ISA).kernel], ISA).count(LAST_COEFFICIENT) <= whole + rest
    assert len(Staging(parse(text)).hosts) == 1


def logits(quotient: str) -> str:
    """Exponentials read by their sum and by a second result."""
    t, r = tensor((4, 40000)), tensor((4,))
    lines = [
        empty("e", (4, 40000)),
        fill("lo", "0xFF800000", (4,)),
        fill("z", "0.0", (4,)),
        generic("%m", [("%x", t)], [("%lo", r)], ["d0, d1", "d0"], "pr", "%s = arith.maximumf %i0, %o0 : f32",
            [("%s", "f32")]),
        generic("%p", [("%x", t), ("%m", r)], [("%e", t)], ["d0, d1", "d0", "d0, d1"], "pp", EXP, [("%v", "f32")]),
        generic("%s", [("%p", t)], [("%z", r)], ["d0, d1", "d0"], "pr", "%q = arith.addf %i0, %o0 : f32",
            [("%q", "f32")]),
        generic("%y", [("%p", t), ("%s", r)], [("%e", t)], ["d0, d1", "d0", "d0, d1"], "pp",
            "%v = arith.divf %i0, %i1 : f32", [("%v", "f32")]),
        generic("%w", [("%p", t), ("%s", r)], [("%e", t)], ["d0, d1", "d0", "d0, d1"], "pp", quotient, [("%v", "f32")]),
    ]  # fmt: skip
    return function([("x", (4, 40000), "f32")], [], "\n".join(lines), [("%y", t), ("%w", t)])


def test_a_value_read_by_two_results_has_no_place_in_either() -> None:
    """The second would read what the first has written over."""
    text = logits("%v = arith.mulf %i0, %i1 : f32")
    assert not Staging(parse(text)).hosts
    check(text, bits=13)


def test_quotients_are_within_their_bound() -> None:
    """A softmax of equal elements: 1 / n, rounded at most three times."""
    for width in (3, 7, 49, 1000):
        x = np.full((2, width), 5.0, np.float32)
        (found,) = build(parse(softmax((2, width))), machine())(x, parts=1)
        assert np.all(np.abs(found - 1 / width) <= 1.5 * np.spacing(np.float32(1 / width)))
