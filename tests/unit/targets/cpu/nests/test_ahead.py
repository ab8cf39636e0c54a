"""Small values that are made once by each thread, ahead of the rows that read them again and again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects import math

from fuseline.analysis.made_ahead import MOST_BYTES, REPEATS
from fuseline.dispatch.view import DispatchView
from fuseline.evaluation.program import evaluate_function
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest, nest_plan
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Runner, arrays_for, assert_close

from .generics import empty, fill, function, generic, tensor
from .texts import check, parse

TANH = "%e = math.exp %i0 : f32\n%v = math.tanh %e : f32"
SUM = "%v = arith.addf %i0, %i1 : f32"


def _vector(columns: int, body: str = TANH) -> str:
    v = tensor((columns,))
    return (
        empty("ke", (columns,))
        + "\n"
        + generic("%k", [("%b", v)], [("%ke", v)], ["d0", "d0"], "p", body, [("%v", "f32")])
    )


def spread(rows: int | str, columns: int, body: str = TANH) -> str:
    """`x[r, c] + k[c]`, with `k` computed of `b`."""
    x, v = tensor((rows, columns)), tensor((columns,))
    sizes = [rows] if isinstance(rows, str) else []
    added = generic("%y", [("%x", x), ("%k", v)], [("%ye", x)], ["d0, d1", "d1", "d0, d1"], "pp", SUM, [("%v", "f32")])
    text = "\n".join([_vector(columns, body), empty("ye", (rows, columns)), added])
    return function([("x", (rows, columns), "f32"), ("b", (columns,), "f32")], sizes, text, [("%y", x)])


def per_row(rows: int, columns: int) -> str:
    """`x[r, c] + k[r]`: in step with the rows."""
    x, v = tensor((rows, columns)), tensor((rows,))
    added = generic("%y", [("%x", x), ("%k", v)], [("%ye", x)], ["d0, d1", "d0", "d0, d1"], "pp", SUM, [("%v", "f32")])
    text = "\n".join([_vector(rows), empty("ye", (rows, columns)), added])
    return function([("x", (rows, columns), "f32"), ("b", (rows,), "f32")], [], text, [("%y", x)])


def summed(rows: int, columns: int) -> str:
    """The rows of `x[r, c] + k[c]`, summed."""
    x, v, r = tensor((rows, columns)), tensor((columns,)), tensor((rows,))
    added = generic("%y", [("%x", x), ("%k", v)], [("%ye", x)], ["d0, d1", "d1", "d0, d1"], "pp", SUM, [("%v", "f32")])
    total = generic(
        "%s", [("%y", x)], [("%z", r)], ["d0, d1", "d0"], "pr", "%v = arith.addf %i0, %o0 : f32", [("%v", "f32")]
    )
    text = "\n".join([_vector(columns), empty("ye", (rows, columns)), added, fill("z", "0.0", (rows,)), total])
    return function([("x", (rows, columns), "f32"), ("b", (columns,), "f32")], [], text, [("%s", r)])


def _ahead(view: DispatchView, threads: int = 1) -> int:
    return len(nest_plan(view, machine("avx2"), threads).schedule.staging.ahead)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("text", [spread, summed])
@pytest.mark.parametrize(("rows", "columns"), [(9, 1), (33, 5), (40, 64), (7, 131)])
def test_a_vector_is_made_before_the_rows(text: Callable[[int, int], str], rows: int, columns: int, isa: str):
    made = text(rows, columns)
    assert _ahead(parse(made)) == (1 if columns > 1 else 0)
    check(made, isa=machine(isa), compiled=machine(isa).name == machine().name)


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_the_number_of_rows_need_not_be_known(rows: int):
    text = spread("n", 37)
    assert _ahead(parse(text)) == 1
    check(text, sizes={"n": rows})


def test_each_thread_has_rows_enough():
    for threads in (1, 2, 5):
        assert _ahead(parse(spread(REPEATS * threads, 64)), threads) == 1
        assert _ahead(parse(spread(REPEATS * threads - 1, 64)), threads) == 0


def test_what_is_long_cheap_or_in_step_is_not_made_ahead():
    assert _ahead(parse(spread(50, MOST_BYTES // 4))) == 1
    assert _ahead(parse(spread(50, MOST_BYTES // 4 + 1))) == 0
    assert _ahead(parse(spread(50, 64, "%v = arith.mulf %i0, %i0 : f32"))) == 0
    assert _ahead(parse(per_row(50, 64))) == 0


def test_a_part_of_another_kernel_makes_nothing_ahead():
    """It runs once for each block of that."""
    view = parse(spread(50, 64))
    assert _ahead(DispatchView(view.entry, serial=True)) == 0
    check(per_row(50, 64))


@pytest.mark.parametrize("parts", [1, 3])
def test_one_thread_evaluates_nothing_twice(parts: int):
    """Both parts of a concat are made of one value, which lies in step with neither."""
    p = Program((int(RNG.integers(3, 400)),))
    dear = p.unary(p.unary(p.x[0], math.ErfOp), math.TanhOp)
    view = p.dispatch(p.unary(p.concat(dear, p.unary(dear, math.AbsFOp)), math.AbsFOp))
    assert (_ahead(view), _ahead(view, threads=2)) == (1, 0)
    run, (x,) = Runner([LoopNest()], view), arrays_for(view)
    (expected,) = evaluate_function(view.entry, [x])
    assert_close(run(x, parts=parts)[0], expected)
    long = Program((MOST_BYTES // 4 + 1,))
    dear = long.unary(long.x[0], math.TanhOp)
    assert _ahead(long.dispatch(long.concat(dear, long.unary(dear, math.AbsFOp)))) == 0
