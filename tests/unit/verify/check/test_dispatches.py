"""Programs stepped through: every kind of step, and faults that are found where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from fuseline.report.check_results import ModelCheck, dispatch_table
from fuseline.runtime import Session
from fuseline.verify.check.dispatches import DispatchChecks
from fuseline.verify.check.programs import CheckedProgram, checked_programs
from fuseline.verify.check.stepping import MOST_ITERATIONS, iterations_seen
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.verify.check.planted import wrong_code

onnx_host.install()


def _programs(model: onnx.ModelProto, **options: Any) -> list[CheckedProgram]:
    return checked_programs(model, CompileOptions(threads=2, **options))


def _random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _dense() -> onnx.ModelProto:
    text = "(float[n, 16] x) => (y, z) { p = MatMul(x, w) y = Relu(p) z = Softmax(y) }"
    return onnx_model(text, w=_random(16, 24))


def test_a_right_program_is_right_step_by_step_and_as_a_whole() -> None:
    (program,) = _programs(_dense())
    feeds = {"x": _random(5, 16)}
    checks = DispatchChecks(program).run(feeds)
    assert checks.rows and all(row.status == "ok" and row.proved and row.launches == 1 for row in checks.rows)
    assert all(0 <= row.error < 1e-6 and row.nodes for row in checks.rows)
    whole = Session(program.artifact).run(feeds)
    other = Session(program.artifact).run({"x": _random(5, 16)})
    for name, array in whole.items():
        assert array.tobytes() == checks.outputs[name].tobytes() != other[name].tobytes()


def test_every_kind_of_step_is_taken() -> None:
    """A loop of commands, host operators with sizes that only the run knows, copies and concats."""
    text = (
        "(float[s, 2, 6] x) => (y, n, same, both) { y, h, c = LSTM<hidden_size = 4>(x, w, r) n = NonZero(x) "
        "same = Identity(x) both = Concat<axis = 0>(x, x) }"
    )
    (program,) = _programs(onnx_model(text, w=_random(1, 16, 6), r=_random(1, 16, 4)))
    feeds = {"x": _random(5, 2, 6)}
    checks = DispatchChecks(program).run(feeds)
    whole = Session(program.artifact).run(feeds)
    assert all(np.array_equal(array, checks.outputs[name]) for name, array in whole.items())
    assert all(row.status == "ok" for row in checks.rows)
    assert {"dispatch", "copy"} <= {row.kind for row in checks.rows}
    assert {row.launches for row in checks.rows if row.trips > 1} == {5}  # all iterations


def test_of_a_long_loop_some_iterations_are_looked_at_and_the_table_says_how_many() -> None:
    text = "(float[60, 1, 3] x) => (y) { y = LSTM<hidden_size = 2>(x, w, r) }"
    (program,) = _programs(onnx_model(text, w=_random(1, 8, 3), r=_random(1, 8, 2)))
    rows = DispatchChecks(program).run({"x": _random(60, 1, 3)}).rows
    inside = [row for row in rows if row.trips > 1]
    assert inside and all((row.launches, row.trips) == (MOST_ITERATIONS, 60) for row in inside)
    table = dispatch_table(ModelCheck(model="m", dispatches=rows))
    assert any("32 of 60 iterations" in str(cell) for column in table.columns for cell in column.cells)
    for trips in range(1, 400):
        seen = iterations_seen(trips)
        assert len(seen) == min(trips, MOST_ITERATIONS) and {0, min(1, trips - 1), trips - 1} <= seen


def test_a_fallback_and_branches_are_programs_of_their_own() -> None:
    halves = (
        "(float[h, 8] x) => (z) { half = Slice(x, zero, end, zero, two) even = Concat<axis = 0>(half, half) "
        "sum = Add(x, even) z = MatMul(sum, w) }"
    )
    numbers = {name: np.array([value]) for name, value in (("zero", 0), ("end", 99), ("two", 2))}
    assert [one.role for one in _programs(onnx_model(halves, numbers, w=_random(8, 8)))] == ["main", "fallback"]
    choice = (
        "(float[4] x, bool c) => (y) { y = If(c) <then_branch = g () => (t) { t = Exp(x) }, "
        "else_branch = g () => (e) { e = Neg(x) }> }"
    )
    roles = [one.role for one in _programs(onnx_model(choice))]
    assert roles[0] == "main" and set(roles[1:]) <= {"branch"}


@pytest.mark.parametrize(("before", "after"), [(" fmul ", " fadd "), ("fadd <", "fsub <"), ("fcmp ogt", "fcmp olt")])
def test_a_wrong_kernel_is_found_where_it_is(before: str, after: str) -> None:
    with wrong_code(lambda text: text.replace(before, after)):
        (program,) = _programs(_dense(), fusion="none")
    rows = DispatchChecks(program).run({"x": _random(7, 16)}).rows
    wrong = [row for row in rows if row.status == "wrong"]
    assert wrong and all(row.detail and row.nodes and row.family for row in wrong)


def test_integers_are_exact() -> None:
    model = onnx_model("(int32[n, 8] a) => (y) { y = MatMul(a, b) }", b=RNG.integers(-9, 9, (8, 8)).astype(np.int32))
    feeds = {"a": RNG.integers(-99, 99, (6, 8)).astype(np.int32)}
    (program,) = _programs(model)
    assert all(row.error == 0 and row.status == "ok" for row in DispatchChecks(program).run(feeds).rows)
    with wrong_code(lambda text: text.replace(" add <", " sub <").replace(" mul <", " add <")):
        (program,) = _programs(model)
    assert any(row.status == "wrong" for row in DispatchChecks(program).run(feeds).rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_as_close_as_halves_are(dtype: str) -> None:
    text = f"({dtype}[n, 16] x) => (y) {{ p = MatMul(x, x2) y = Tanh(p) }}"
    text = text.replace("(p) ", "(p) ").replace("[n, 16] x)", f"[n, 16] x, {dtype}[16, 8] x2)")
    (program,) = _programs(onnx_model(text))
    session = Session(program.artifact)
    feeds = {spec.name: _random(*([4, 16] if spec.name == "x" else [16, 8])) for spec in session.inputs}
    from fuseline.runtime.dtypes import dtype_named

    feeds = {spec.name: feeds[spec.name].astype(dtype_named(spec.dtype)) for spec in session.inputs}
    rows = DispatchChecks(program).run(feeds).rows
    assert rows and all(row.status in ("ok", "rounding") for row in rows)


def test_the_first_infinity_is_named_with_its_op() -> None:
    model = onnx_model("(float[n, 8] x) => (y) { [low] a = Log(x) [mean] y = ReduceMean<keepdims = 1>(a) }")
    (program,) = _programs(model)
    found = DispatchChecks(program).run({"x": np.zeros((3, 8), np.float32)}).first_not_finite
    assert found is not None and found.count > 0 and "low" in found.nodes and found.op == "linalg.generic"
    assert DispatchChecks(program).run({"x": np.ones((3, 8), np.float32)}).first_not_finite is None


def test_a_target_without_kernels_is_refused() -> None:
    with pytest.raises(FuselineError, match="E0501"):
        _programs(_dense(), target="interpreter")
