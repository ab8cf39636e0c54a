"""What follows from the totals of a walk: which result holds them meanwhile, and that all results are right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser
from xdsl.dialects.builtin import Float64Type, TensorType, f32
from xdsl.ir import Attribute

import fuseline
from fuseline.analysis.structured import StructuredOp
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.families.sequential.scatter import totals_path
from tests.draws import RNG
from tests.graphs.program import Program

WIDE = Float64Type()


def _root() -> StructuredOp:
    p = Program((6, 5))
    return StructuredOp(cast("Any", p.reduce(p.x[0]).owner))


def _path(value: Any) -> ResultPath:
    return cast("ResultPath", SimpleNamespace(value=value))


def _other(element: Attribute) -> ResultPath:
    return _path(SimpleNamespace(type=TensorType(element, [6])))


def test_the_totals_lie_in_their_own_result_else_in_one_of_their_type() -> None:
    root = _root()
    own, alike, wide = _path(root.op.results[0]), _other(f32), _other(WIDE)
    assert totals_path(root, [wide, alike, own]) is own
    assert totals_path(root, [wide, alike]) is alike
    assert totals_path(root, [wide]) is None
    assert totals_path(root, []) is None


READERS = {
    "alone": ("s", ["float"]),
    "behind": ("e", ["float"]),
    "both": ("s, e", ["float", "float"]),
    "in another type": ("d", ["double"]),
    "all of them": ("d, e, s", ["double", "float", "float"]),
}


def _model(reader: str, rows: str) -> onnx.ModelProto:
    names, types = READERS[reader]
    results = ", ".join(f"{kind}[?,?] {name}" for kind, name in zip(types, names.split(", "), strict=True))
    return parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> g (float[{rows},9] x, int64[{rows},4] i, float[{rows},4] u, '
        f'float[9] b) => ({results}) {{ s = ScatterElements <axis = 1, reduction = "add"> (x, i, u)  '
        "h = Tanh (s)  e = Mul (h, b)  w = Neg (s)  d = Cast <to = 11> (w) }"
    )


@pytest.mark.parametrize("rows", ["7", "n"])
@pytest.mark.parametrize("reader", READERS)
def test_results_behind_a_scatter(reader: str, rows: str) -> None:
    model = _model(reader, rows)
    feeds = {
        "x": RNG.standard_normal((7, 9)).astype(np.float32),
        "i": RNG.integers(-9, 9, (7, 4)),
        "u": RNG.standard_normal((7, 4)).astype(np.float32),
        "b": RNG.standard_normal(9).astype(np.float32),
    }
    expected: Any = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    for threads in (1, 2):
        program = fuseline.compile(model, threads=threads)
        for found, wanted in zip(program.run(feeds).values(), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, strict=True)
