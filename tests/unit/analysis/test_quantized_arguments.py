"""Which ops quantise an argument: element by element, in a few operations, from nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.quantized_arguments import LONGEST, Origin, origin_of, quantizes_argument
from tests.draws import RNG
from tests.graphs.program import Program


def _maker(value: SSAValue) -> Operation:
    assert isinstance(value, OpResult)
    return value.op


def _rounded(p: Program, x: SSAValue) -> SSAValue:
    return p.elementwise([x], p.empty(*p.shape(x), element=i8), lambda b: b.op(arith.FPToSIOp, b.args[0], i8))


def _wide(p: Program, x: SSAValue) -> SSAValue:
    return p.elementwise([x], p.empty(*p.shape(x)), lambda b: b.op(arith.SIToFPOp, b.args[0], f32))


QUANTISED: dict[str, Callable[[Program, SSAValue], SSAValue]] = {
    "rounded": _rounded,
    "wide again": lambda p, x: _wide(p, _rounded(p, x)),
    "behind relu": lambda p, x: _rounded(p, p.relu(x)),
}
OTHERS: dict[str, Callable[[Program, SSAValue], SSAValue]] = {
    "floats only": lambda p, x: p.relu(x),
    "of a sum": lambda p, x: _rounded(p, p.reduce(x)),
    "of two tensors": lambda p, x: _rounded(p, p.add(x, p.x[1])),
    "moved": lambda p, x: _rounded(p, p.concat(x, x)),
}


@pytest.mark.parametrize("name", QUANTISED)
def test_what_rounds_an_argument_quantises_it(name: str):
    p = Program((4, 6), (4, 6))
    assert quantizes_argument(_maker(QUANTISED[name](p, p.x[0])))


@pytest.mark.parametrize("name", OTHERS)
def test_anything_else_does_not(name: str):
    p = Program((4, 6), (4, 6))
    assert not quantizes_argument(_maker(OTHERS[name](p, p.x[0])))


def test_long_chains_are_none():
    p = Program((4, 6))
    x = p.x[0]
    for _ in range(LONGEST - 1):
        x = p.relu(x)
    assert quantizes_argument(_maker(_rounded(p, x)))
    assert not quantizes_argument(_maker(_rounded(p, p.relu(x))))


def test_a_slice_of_stored_integers_is_an_origin_of_its_own():
    rows, columns = (int(n) for n in RNG.integers(3, 9, 2))
    p = Program((rows, columns))
    cut = p.columns(_rounded(p, p.x[0]), 1, columns - 1)
    assert origin_of(_maker(_wide(p, cut))) is origin_of(_maker(p.relu(_wide(p, cut)))) is Origin.CUT_INTEGERS
    assert origin_of(_maker(cut)) is origin_of(_maker(p.relu(p.columns(p.x[0], 1, columns - 1)))) is None
