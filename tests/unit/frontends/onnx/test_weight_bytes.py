"""A model's weights count as its files hold them: once each, whatever reads them and in whatever form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import fuseline
from fuseline.frontends.onnx.weight_bytes import weight_bytes
from tests.graphs.onnx_text import onnx_model

ROWS, COLUMNS = 96, 33


def _tied(table: np.ndarray) -> onnx.ModelProto:
    """Rows of a table by index, and their products with all of its rows."""
    nodes = "rows = Gather(table, index)  turned = Transpose<perm = [1, 0]>(table)  scores = MatMul(rows, turned)"
    return onnx_model(f"(int64[5] index) => (float[5, {ROWS}] scores) {{ {nodes} }}", opset=17, table=table)


def _table() -> np.ndarray:
    return np.random.default_rng().standard_normal((ROWS, COLUMNS), dtype=np.float32)


def test_a_weight_that_is_read_in_two_forms_counts_once():
    program = fuseline.compile(_tied(_table()))
    counted = program.stats["constant_bytes"]
    assert counted["original"] == ROWS * COLUMNS * 4 < counted["packed"]


def test_initializers_of_one_place_in_a_file_count_once(tmp_path: Path):
    table = _table()
    model = _tied(table)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w", size_threshold=0)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    other = model.graph.initializer.add()
    other.CopyFrom(model.graph.initializer[0])
    other.name, model.graph.node[1].input[0] = "same", "same"
    onnx.save(model, tmp_path / "twice.onnx")
    program = fuseline.compile(tmp_path / "twice.onnx")
    assert program.stats["constant_bytes"]["original"] == table.nbytes
    index = np.random.default_rng().integers(0, ROWS, 5)
    np.testing.assert_allclose(program.run({"index": index})["scores"], table[index] @ table.T, rtol=1e-3, atol=1e-4)


def _held(*tensors: ir.TensorProtocol) -> int:
    values = [ir.Value(name=f"w{i}", const_value=tensor) for i, tensor in enumerate(tensors)]
    return weight_bytes(ir.Model(ir.Graph([], [], nodes=[], initializers=values), ir_version=9))


def _placed(location: str, offset: int | None) -> ir.ExternalTensor:
    return ir.ExternalTensor(location, offset, 24, ir.DataType.FLOAT, shape=ir.Shape([2, 3]), name="t")


def test_types_count_with_their_widths_and_strings_not_at_all():
    wide, narrow = ir.tensor(np.ones((3, 5), np.float64)), ir.tensor(np.ones(7, np.int8))
    assert _held() == 0
    assert _held(wide, narrow) == 3 * 5 * 8 + 7
    assert _held(narrow, ir.StringTensor([b"some", b"words"], shape=ir.Shape([2]))) == 7


def test_equal_tensors_that_are_not_one_count_each():
    one, other = ir.tensor(np.ones(7, np.int8)), ir.tensor(np.ones(7, np.int8))
    assert _held(one, one) == 7
    assert _held(one, other) == 14


@pytest.mark.parametrize(
    ("location", "offset", "count"), [("w", None, 1), ("w", 0, 1), ("w", 24, 2), ("another", None, 2)]
)
def test_a_place_is_a_file_and_an_offset(location: str, offset: int | None, count: int):
    assert _held(_placed("w", None), _placed(location, offset)) == 24 * count


def test_weights_of_subgraphs_count():
    branch = "branch () => (float[5] b) <float[5] inner = {1, 1, 1, 1, 1}> { b = Identity(inner) }"
    model = onnx_model(f"(bool c) => () {{ y = If<then_branch = {branch}, else_branch = {branch}>(c) }}")
    assert weight_bytes(ir.from_proto(model)) == 2 * 5 * 4
