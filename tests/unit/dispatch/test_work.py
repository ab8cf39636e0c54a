"""What a dispatch has to do, read off its ops; and what kernels that were made say of it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.analysis.cost import TRANSCENDENTAL_OPS
from fuseline.dispatch.chains import DIVISION
from fuseline.dispatch.work import INDEX_OF_ROW, as_made
from fuseline.ir.costs import ASSUMED_COSTS, ASSUMED_SIZE
from fuseline.ir.work_costs import KINDS, predicted_ns
from fuseline.report.records import DispatchRecord
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

LANES = ASSUMED_COSTS.block_uses // 8


def _normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _dispatches(model: onnx.ModelProto, target: str = "null", **options: str | int) -> list[DispatchRecord]:
    return fuseline.compile(model, target=target, **options).record.dispatches  # pyright: ignore[reportArgumentType]


def _work(text: str, target: str = "null", **weights: np.ndarray) -> dict[str, float]:
    (dispatch,) = _dispatches(onnx_model(text, weights), target)
    return dispatch.work


def test_a_product_counts_whole_vectors_its_constants_and_what_follows():
    work = _work("(float[8, 32] x) => (float[8, 20] y) { t = MatMul(x, w)  y = Tanh(t) }", w=_normal(32, 20))
    columns = -(-20 // LANES) * LANES
    assert work["product"] == 2 * 8 * 32 * columns
    assert (work["points"], work["functions"]) == (160, 160) and "operations" not in work
    assert work["constant_bytes"] == 32 * 20 * 4 and work["bytes"] == (8 * 32 + 8 * 20) * 4
    assert work["vector_bytes"] == 32 * 20 * 4 / 8 and "far" not in work and "constant_far" not in work


def test_what_no_cache_holds_is_counted_once_more():
    rows = ASSUMED_COSTS.cached_bytes // 16 // 4  # two tensors of half the caches each, and as much again
    work = _work(f"(float[{rows}, 16] x) => (float[{rows}, 16] y) {{ y = Relu(x) }}")
    assert work["bytes"] == 2 * ASSUMED_COSTS.cached_bytes and work["far"] == ASSUMED_COSTS.cached_bytes


def test_a_table_counts_for_the_rows_that_are_read():
    model = onnx_model("(int64[6] i) => (float[6, 8] y) { y = Gather(w, i) }", w=_normal(1000, 8))
    (dispatch,) = _dispatches(model)
    assert dispatch.work["gathered"] == 48 and dispatch.bytes_read > 32_000
    assert dispatch.work["constant_bytes"] == 48 * 4


def test_a_scatter_counts_the_updates_that_it_combines_one_by_one():
    work = _work(
        "(float[40, 8] x, int64[10, 8] i, float[10, 8] u) => (float[40, 8] y)"
        ' { y = ScatterElements <axis = 0, reduction = "add"> (x, i, u) }'
    )
    assert work["gathered"] == 10 * 8 * (1 + INDEX_OF_ROW) and work["reduced"] < 40 * 10 * 8
    summed = _work("(float[40, 8] x) => (float[40] y) { y = ReduceSum <keepdims = 0> (x, a) }", a=np.array([1]))
    assert "gathered" not in summed


@pytest.mark.parametrize("row", [1, 4, 100])
def test_an_index_of_a_scatter_is_shared_by_its_row(row: int):
    """Rows that are put where one index says, and elements that have one each."""
    rows = _work(
        f"(float[40, {row}] x, int64[10, 1] i, float[10, {row}] u) => (float[40, {row}] y)"
        ' { y = ScatterND <reduction = "add"> (x, i, u) }'
    )
    assert rows["gathered"] == 10 * (row + INDEX_OF_ROW)
    single = _work(
        f"(float[40, {row}] x, int64[40, 10] i, float[40, 10] u) => (float[40, {row}] y)"
        ' { y = ScatterElements <axis = 1, reduction = "add"> (x, i, u) }'
    )
    assert row == 1 or single["gathered"] == 40 * 10 * (1 + INDEX_OF_ROW)


@pytest.mark.parametrize(
    ("text", "weights", "kind"),
    [
        ("(float[1, 8, 9, 9] x) => (float[1, 8, 9, 9] y) { y = Conv <group = 8, pads = [1, 1, 1, 1]> (x, w) }",
         {"w": (8, 1, 3, 3)}, "depthwise"),
        ("(float[1, 8, 9, 9] x) => (float[1, 8, 7, 7] y) { y = MaxPool <kernel_shape = [3, 3]> (x) }", {}, "pooled"),
        ("(float[8, 9] x) => (float[8] y) { y = ReduceSum <keepdims = 0> (x, a) }", {}, "reduced"),
        ("(float[1, 32, 9, 9] x) => (float[1, 16, 9, 9] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
         {"w": (16, 32, 3, 3)}, "filtered"),
        ("(float[1, 32, 9, 9] x) => (float[1, 16, 4, 4] y) { y = Conv <strides = [2, 2]> (x, w) }",
         {"w": (16, 32, 3, 3)}, "product"),
    ],
)  # fmt: skip
def test_work_goes_by_what_an_op_is(text: str, weights: dict[str, tuple[int, ...]], kind: str):
    held = {name: _normal(*shape) for name, shape in weights.items()}
    if "ReduceSum" in text:
        held["a"] = np.array([1], np.int64)
    found = [dispatch.work for dispatch in _dispatches(onnx_model(text, held))]
    arithmetic = {"product", "product_int", "filtered", "depthwise", "pooled", "reduced"}
    assert {name for work in found for name in work} & arithmetic == {kind}
    assert all({*work} <= {*KINDS} for work in found)


def test_products_of_bytes_are_products_of_integers():
    work = _work(
        "(uint8[8, 32] x) => (int32[8, 16] y) { y = MatMulInteger(x, w) }",
        w=RNG.integers(-9, 9, (32, 16)).astype(np.int8),
    )
    assert work["product_int"] == 2 * 8 * 32 * max(16, LANES) and "product" not in work


def test_a_size_without_a_bound_is_assumed():
    work = _work("(float[n, 4] x) => (float[n, 4] y) { y = Exp(x) }")
    assert work["functions"] == 4 * ASSUMED_SIZE


def test_exact_numerics_have_no_minimal_filtering():
    text = "(float[1, 32, 9, 9] x) => (float[1, 16, 9, 9] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }"
    model = onnx_model(text, w=_normal(16, 32, 3, 3))
    (dispatch,) = _dispatches(model, numerics="strict")
    assert "filtered" not in dispatch.work and dispatch.work["product"] > 0


def test_a_kernel_says_how_a_convolution_is_made_and_how_it_is_shared():
    text = "(float[1, 32, 24, 24] x) => (float[1, 64, 24, 24] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }"
    model = onnx_model(text, w=_normal(64, 32, 3, 3))
    for target in ("cpu", "null"):
        program = fuseline.compile(model, target=target, threads=2)
        costs = program.record.dispatches[0]
        assert ("filtered" in costs.work) == (target == "null" or costs.family == "winograd")
        assert costs.share < 1
    (serial,) = _dispatches(onnx_model("(float[4] x) => (float[4] y) { y = Relu(x) }"), "cpu", threads=2)
    assert serial.share == 1


def test_what_is_predicted_is_what_the_costs_of_the_target_say():
    from fuseline.targets import create_target

    model = onnx_model("(float[8, 32] x) => (float[8, 20] y) { y = MatMul(x, w) }", w=_normal(32, 20))
    (dispatch,) = _dispatches(model, "cpu")
    costs = create_target("cpu", 1).description.work_costs
    assert dispatch.predicted_ns == round(predicted_ns(dispatch.work, costs, dispatch.share)) > 0


def test_convolutions_that_are_made_directly_are_products():
    assert as_made({"filtered": 4.0, "transformed": 2.0, "bytes": 1.0}, []) == {"product": 4.0, "bytes": 1.0}
    made = {"filtered": 5.0, "transformed": 3.0}
    assert as_made({"filtered": 4.0, "transformed": 2.0}, [made, made]) == {"filtered": 10.0, "transformed": 6.0}
    assert as_made({"product": 4.0}, []) == {"product": 4.0}
    assert as_made({"product": 4.0, "bytes": 1.0}, [], [{"product": -9.0}]) == {"bytes": 1.0}


def test_taps_that_meet_the_image_nowhere_are_left_out():
    text = (
        "(float[1, 32, 12, 12] x) => (float[1, 64, 12, 12] y)"
        " { y = Conv <dilations = [11, 11], pads = [11, 11, 11, 11]> (x, w) }"
    )
    model = onnx_model(text, w=_normal(64, 32, 3, 3))
    made, counted = (_dispatches(model, target)[0].work["product"] for target in ("cpu", "null"))
    assert made < 0.7 * counted


def test_every_tile_reads_its_columns_and_long_rows_are_read_again_for_each_panel():
    def work(rows: int, steps: int) -> dict[str, float]:
        text = f"(float[{rows}, {steps}] x) => (float[{rows}, 128] y) {{ y = MatMul(x, w) }}"
        return _work(text, "cpu", w=_normal(steps, 128))

    few, many = work(2, 64), work(96, 64)
    assert few["panels"] == 64 * 128 * 4 and many["panels"] > few["panels"]
    assert "again" not in many and work(96, ASSUMED_COSTS.cached_bytes // 256)["again"] > 0


def test_products_in_blocks_count_as_often_as_blocks_run():
    text = "(float[1, 32, 40, 40] x) => (float[1, 32, 40, 40] y) { t = Conv(x, w)  r = Relu(t)  y = Conv(r, v) }"
    model = onnx_model(text, w=_normal(64, 32, 1, 1), v=_normal(32, 64, 1, 1))
    found = _dispatches(model, "cpu")
    expected = sum(dispatch.work["product"] for dispatch in _dispatches(model))
    assert expected < sum(dispatch.work["product"] for dispatch in found) < 2 * expected


def test_an_operation_counts_for_each_one_before_it_in_its_chain_whichever_op_has_it():
    def followed(body: str) -> float:
        return _work(f"(float[6, 32] x, float[6, 32] z) => (float[6, 32] y) {{ {body} }}").get("followed", 0) / 192

    assert followed("y = Add(x, z)") == 0
    assert followed("t = Add(x, z)  u = Mul(t, z)  v = Max(u, x)  y = Sub(v, z)") == 1 + 2 + 3
    assert followed("t = Add(x, z)  u = Mul(x, z)  y = Max(t, u)") == 1  # two that do not wait for each other
    assert followed("t = Div(x, z)  y = Add(t, z)") == DIVISION
    assert followed("t = Exp(x)  y = Add(t, z)") == TRANSCENDENTAL_OPS


def test_a_chain_begins_anew_behind_a_product():
    body = "t = MatMul(x, w)  u = Mul(t, z)  y = Add(u, z)"
    text = f"(float[6, 16] x, float[6, 32] z) => (float[6, 32] y) {{ {body} }}"
    assert _work(text, w=_normal(16, 32))["followed"] == 6 * 32


def _integer_product(rows: int, steps: int, target: str) -> float:
    text = f"(int8[{rows}, {steps}] x) => (int32[{rows}, 64] y) {{ y = MatMulInteger(x, w) }}"
    return _work(text, target, w=RNG.integers(-90, 90, (steps, 64)).astype(np.int8))["product_int"]


def test_integers_on_their_own_take_as_long_as_pairs_and_tiles_widen_their_columns():
    few, many = (_integer_product(rows, 512, "cpu:avx2") / _integer_product(rows, 512, "null") for rows in (2, 52))
    assert 1.2 < few < 1.4 and 1 < many < few - 0.05  # 2 rows: an instruction of five
    odd = _integer_product(52, 3, "cpu:avx2") / _integer_product(52, 4, "cpu:avx2")
    assert odd == pytest.approx(1, rel=0.01)


def test_bytes_take_half_of_pairs_where_the_machine_multiplies_them():
    ratio = _integer_product(52, 512, "cpu:avx512vnni") / _integer_product(52, 512, "cpu:avx512")
    assert ratio == pytest.approx(0.5, abs=0.05)
