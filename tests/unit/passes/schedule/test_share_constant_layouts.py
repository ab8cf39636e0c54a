"""A table that is read by rows and multiplied with is stored once, as the product asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.passes.schedule import share_constant_layouts
from fuseline.passes.schedule.constant_forms import axes_between, memory_of
from fuseline.report.explain import explain_model
from fuseline.report.layouts import layout_line
from fuseline.report.records import LayoutDecision
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.target import CpuTarget
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import PackedLayout, digits_of, step_along
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model

ROWS, COLUMNS = 1501, 37
"""Rows that fill no whole number of panels."""

BY_ROWS = "z = Gather <axis = 0> (table, i)"

SLICED = """a = Constant <value_ints = [7]> ()
    b = Constant <value_ints = [27]> ()
    o = Constant <value_ints = [1]> ()
    r = Gather <axis = 0> (table, i)
    s = Slice (r, a, b, o)
    z = Neg (s)"""


def _tied(
    gathers: str = BY_ROWS,
    *,
    i: str = "int64[3] i",
    z: str = "[3, 37] z",
    lines: str = "64",
    dtype: Any = np.float32,
    **weights: NDArray[Any],
) -> onnx.ModelProto:
    """`gathers` beside the products of lines with all rows of the weight `table`."""
    kind = element_of(dtype)
    weights.setdefault("table", _table(dtype))
    return onnx_model(
        f"({i}, {kind}[{lines}, {COLUMNS}] x) => ({kind}[{lines}, {ROWS}] y, {kind}{z})"
        f"{{ turned = Transpose <perm = [1, 0]> (table)  y = MatMul (x, turned)  {gathers} }}",
        weights,
    )


def _table(dtype: Any = np.float32) -> NDArray[Any]:
    return RNG.standard_normal((ROWS, COLUMNS)).astype(dtype)


def _lines(dtype: Any = np.float32, lines: int = 64) -> NDArray[Any]:
    return RNG.standard_normal((lines, COLUMNS)).astype(dtype)


def _compiled(model: onnx.ModelProto, **options: Any) -> fuseline.CompiledModel:
    return fuseline.compile(model, threads=2, cache=False, **options)


def _apart(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, **options: Any) -> fuseline.CompiledModel:
    """The same program, every reader with a form of its own."""
    with monkeypatch.context() as patched:
        patched.setattr(share_constant_layouts, "FREE_SHARE", -1.0)
        return _compiled(model, **options)


def _decision(program: fuseline.CompiledModel) -> LayoutDecision:
    (found,) = program.record.layouts
    return found


def _same(one: fuseline.CompiledModel, other: fuseline.CompiledModel, feeds: dict[str, NDArray[Any]]) -> None:
    expected = other.run(feeds)
    for name, found in one.run(feeds).items():
        np.testing.assert_array_equal(found, expected[name])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_read_from_the_panels_of_a_product(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(dtype)
    model = _tied(dtype=dtype, table=table)
    shared, apart = _compiled(model), _apart(model, monkeypatch)
    assert (_decision(shared).verdict, _decision(apart).code) == ("shared", "costs-time")
    counts = [program.stats["constant_bytes"] for program in (shared, apart)]
    assert [count["repeated"] for count in counts] == [0, table.nbytes]
    assert counts[1]["packed"] - counts[0]["packed"] >= table.nbytes
    index = RNG.integers(-ROWS, ROWS, 3)
    feeds = {"i": index, "x": _lines(dtype)}
    _same(shared, apart, feeds)
    np.testing.assert_array_equal(shared.run(feeds)["z"], table[index])


def test_the_number_of_indices_and_of_lines_may_be_known_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    model = _tied(i="int64[n] i", z="[n, 37] z", lines="m", table=table)
    options = {"shapes": {"n": "1..5", "m": "40..70"}}
    shared, apart = _compiled(model, **options), _apart(model, monkeypatch, **options)
    assert _decision(shared).verdict == "shared"
    for count in (1, 5):
        feeds = {"i": RNG.integers(0, ROWS, count), "x": _lines(lines=40 + 6 * count)}
        _same(shared, apart, feeds)
        np.testing.assert_array_equal(shared.run(feeds)["z"], table[feeds["i"]])


@pytest.mark.parametrize(
    ("gathers", "z"),
    [
        ("z = Gather <axis = 1> (table, i)", "[1501, 3] z"),
        ("z = Gather <axis = 0> (turned, i)", "[3, 1501] z"),
        ("r = Gather <axis = 0> (table, i)  m = ReduceSum <keepdims = 1> (r)  z = Sub (r, m)", "[3, 37] z"),
        (SLICED, "[3, 20] z"),
    ],
    ids=["columns", "rows of the turned table", "below a reduction", "a part of each row"],
)
def test_readers_of_other_kinds_read_the_same_elements(gathers: str, z: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _tied(gathers, z=z)
    with monkeypatch.context() as patched:
        patched.setattr(share_constant_layouts, "FREE_SHARE", 1e9)
        shared = _compiled(model)
    assert _decision(shared).verdict == "shared"
    _same(shared, _apart(model, monkeypatch), {"i": RNG.integers(0, COLUMNS, 3), "x": _lines()})


def test_a_place_outside_of_the_table_is_answered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _tied()
    feeds = {"i": np.array([ROWS, -ROWS - 1, 2**40]), "x": _lines()}
    _same(_compiled(model), _apart(model, monkeypatch), feeds)


def test_many_rows_beside_few_products_keep_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _decision(_compiled(_tied(i="int64[3000] i", z="[3000, 37] z", lines="1")))
    assert (found.verdict, found.code) == ("repeated", "costs-time")
    assert found.share > share_constant_layouts.FREE_SHARE and found.ns > 0 and "%" in found.detail


def test_two_products_with_a_table_and_with_it_turned_are_recorded() -> None:
    """Both ask for panels: of rows the one, of columns the other."""
    weights = {"table": _table()}
    model = onnx_model(
        f"(float[64, {COLUMNS}] x, float[64, {ROWS}] w) => (float[64, {ROWS}] y, float[64, {COLUMNS}] z)"
        "{ turned = Transpose <perm = [1, 0]> (table)  y = MatMul (x, turned)  z = MatMul (w, table) }",
        weights,
    )
    program = _compiled(model)
    found = _decision(program)
    assert (found.verdict, found.code) == ("repeated", "own-layout")
    assert program.stats["constant_bytes"]["repeated"] == found.bytes >= weights["table"].nbytes
    x, w = _lines(), RNG.standard_normal((64, ROWS)).astype(np.float32)
    answered = program.run({"x": x, "w": w})
    np.testing.assert_allclose(answered["y"], x @ weights["table"].T, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(answered["z"], w @ weights["table"], rtol=1e-3, atol=1e-3)


def test_a_reader_along_loops_keeps_its_own() -> None:
    found = _decision(_compiled(_tied("z = Mul (table, i)", i="float[37] i", z="[1501, 37] z")))
    assert (found.verdict, found.code) == ("repeated", "read-along-loops")


def test_code_that_reads_two_tables_keeps_its_own() -> None:
    """One executable for both gathers, of which one table is multiplied with."""
    gathers = "r = Gather <axis = 0> (table, i)  s = Gather <axis = 0> (other, i)  z = Add (r, s)"
    program = _compiled(_tied(gathers, other=_table()), fusion="none", dedup="exact")
    assert [(one.verdict, one.code) for one in program.record.layouts] == [("repeated", "shared-code")]


def test_one_of_several_arms_keeps_its_own() -> None:
    """The gather and what runs beside it are one dispatch, which launches two kernels: what the product reads is a
    result, too, and so has a kernel on any machine."""
    model = onnx_model(
        f"(int64[3] i, float[64, {COLUMNS}] h) => (float[64, {ROWS}] y, float[3, {COLUMNS}] z, float[64, {COLUMNS}] x)"
        f"{{ x = Exp (h)  turned = Transpose <perm = [1, 0]> (table)  y = MatMul (x, turned)  {BY_ROWS} }}",
        {"table": _table()},
    )
    found = _decision(_compiled(model))
    assert (found.verdict, found.code) == ("repeated", "no-plain-dispatch")


def test_the_target_may_refuse_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopNest, "reads_shared_layouts", False)
    found = _decision(_compiled(_tied()))
    assert (found.verdict, found.code) == ("repeated", "family")
    assert "constant stored twice" in layout_line(found) and "family" in layout_line(found)


def test_a_reader_that_takes_more_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = CpuTarget.compile_reader

    def larger(self: CpuTarget, *arguments: Any) -> CompiledKernel | Refusal:
        kernel = plain(self, *arguments)
        assert isinstance(kernel, CompiledKernel)
        return replace(kernel, scratch_bytes=kernel.scratch_bytes + 64)

    monkeypatch.setattr(CpuTarget, "compile_reader", larger)
    assert _decision(_compiled(_tied())).code == "other-memory"


def test_explain_says_who_reads_as_whom() -> None:
    program = _compiled(_tied())
    (line,) = [line for line in explain_model(program.record).lines if "constant stored" in line]
    assert _decision(program).reader in line and _decision(program).owner in line and "%" in line


@pytest.mark.parametrize(
    ("layout", "digits", "steps"),
    [
        (PackedLayout((37, 1504), (37, 47, 32), (1, 0, 2)), [range(1), range(1, 3)], [32, 1]),
        (PackedLayout((6, 8), (3, 2, 8), (0, 2, 1)), [range(2), range(2, 3)], [1, 2]),
        (PackedLayout((1, 8), (1, 8), (0, 1)), [range(0), range(2)], [0, 1]),
        (PackedLayout((6, 8), (48,), (0,)), None, []),
        (PackedLayout((6, 8), (4, 12), (0, 1)), None, []),
        (PackedLayout((4, 9), (4, 9), (0, 1), (((1.0,) * 3,) * 4, None)), None, []),
    ],
    ids=["panels", "pairs", "a unit", "all in one", "across dimensions", "transformed"],
)
def test_digits_of_layouts(layout: PackedLayout, digits: list[range] | None, steps: list[int]) -> None:
    assert digits_of(layout) == digits
    assert [step_along(layout, axis) for axis in range(len(steps))] == steps


def test_axes_of_one_memory() -> None:
    array = np.zeros((3, 1, 5, 7), np.float32)
    turned = array.transpose(3, 1, 0, 2)
    assert memory_of(array) == memory_of(turned) is not None
    assert axes_between(turned, array) == (3, 1, 0, 2) and axes_between(array, array) == (0, 1, 2, 3)
    assert axes_between(array, array.reshape(3, 1, 7, 5)) == ()
    assert memory_of(array[:, :, ::2]) is None and memory_of(np.broadcast_to(array[:1], array.shape)) is None
    assert memory_of(array.view(np.int32)) != memory_of(array)


def test_small_tables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_constant_layouts, "LEAST_BYTES", ROWS * COLUMNS * 4 + 1)
    assert not _compiled(_tied()).record.layouts


def test_a_saved_program_and_the_models_weights(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _tied()
    path, original = tmp_path / "packed.fuse", tmp_path / "original.fuse"
    _compiled(model).save(path)
    _compiled(model, weights="original").save(original)
    feeds = {"i": RNG.integers(0, ROWS, 3), "x": _lines()}
    apart = _apart(model, monkeypatch)
    for saved in (path, original):
        _same(fuseline.load(saved), apart, feeds)
