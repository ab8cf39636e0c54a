"""Element types of a node's operands, against its schema and against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.check_types import check_inputs, check_output
from fuseline.frontends.onnx.host_values import known_value
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.dim import symbol

F32, F64, I32, I64, BOOL = (np.dtype(name) for name in ("float32", "float64", "int32", "int64", "bool"))
BF16 = np.dtype(ml_dtypes.bfloat16)


def _check(op_type: str, dtypes: Sequence[Any], opset: int = 18, domain: str = "") -> None:
    inputs = [None if dtype is None else Tensor(dtype, (2,)) for dtype in dtypes]
    check_inputs(op_type, domain, {"": opset, "ai.onnx.ml": 3}, inputs)


@pytest.mark.parametrize(
    ("op_type", "dtypes"),
    [
        ("Add", [F32, F32]),
        ("Add", [I64, I64]),
        ("Relu", [I32]),
        ("Gather", [F64, I32]),
        ("Clip", [F32, None, F32]),
        ("Concat", [BOOL, BOOL, BOOL]),
        ("Loop", [I64, BOOL, F32, I64, BOOL]),  # a list of values of any types
        ("NoSuch", [F32, BOOL]),
    ],
)
def test_what_schemas_allow(op_type: str, dtypes: Sequence[Any]) -> None:
    _check(op_type, dtypes)


@pytest.mark.parametrize(
    ("op_type", "dtypes", "words"),
    [
        ("Add", [F32, BOOL], r"input 1 \(B\) is bool, which Add \(version 18\) does not take"),
        ("And", [F32, F32], r"input 0 \(A\) is float32, which And"),
        ("Gather", [F32, F32], r"input 1 \(indices\) is float32"),
        ("Add", [F32, F64], r"input 1 \(B\) is float64, another one float32: Add takes them of one type"),
        ("Clip", [F32, None, F64], r"input 2 \(max\) is float64, another one float32"),
        ("Concat", [F32, F32, I64], r"input 2 \(inputs\) is int64, another one float32"),
        ("Where", [BOOL, F32, I32], r"input 2 \(Y\) is int32, another one float32"),
    ],
)
def test_what_schemas_do_not_allow(op_type: str, dtypes: Sequence[Any], words: str) -> None:
    with pytest.raises(FuselineError, match=f"E0105.*{words}"):
        _check(op_type, dtypes)


def test_types_that_only_a_later_version_takes() -> None:
    _check("Relu", [I32], opset=13)  # since 14
    _check("Add", [BF16, BF16], opset=7)  # since 13
    with pytest.raises(FuselineError):
        _check("Relu", [BOOL], opset=13)


def test_each_domain_has_its_schemas() -> None:
    _check("Scaler", [F64], domain="ai.onnx.ml")
    with pytest.raises(FuselineError, match="input 0"):
        _check("Scaler", [BOOL], domain="ai.onnx.ml")
    _check("Scaler", [BOOL])


def test_what_is_no_tensor_is_not_judged() -> None:
    check_inputs("Relu", "", {"": 18}, [known_value(np.array(["a"], object))])


def _value(dtype: ir.DataType | None) -> ir.Value:
    return ir.Value(name="y", type=None if dtype is None else ir.TensorType(dtype))


@pytest.mark.parametrize("declared", [ir.DataType.FLOAT, ir.DataType.UNDEFINED, None])
def test_an_output_as_it_is_declared(declared: ir.DataType | None) -> None:
    check_output(_value(declared), Tensor(F32, (symbol("n", 0), 0)))


def test_an_output_declared_in_another_type() -> None:
    for declared in (ir.DataType.DOUBLE, ir.DataType.STRING, ir.DataType.FLOAT8E4M3FN):
        with pytest.raises(FuselineError, match=f"E0105.*'y' is declared {declared.name.lower()}, .* in float32"):
            check_output(_value(declared), Tensor(F32, (2,)))
    sequence = ir.Value(name="y", type=ir.SequenceType(ir.TensorType(ir.DataType.DOUBLE)))
    check_output(sequence, Tensor(F32, (2,)))  # refused where it is read


def test_sizes_below_zero() -> None:
    for value in (Tensor(F32, (2, -1)), known_value(np.empty((1, 0), object))):
        value.dims = (2, -1)
        with pytest.raises(FuselineError, match=r"E0107.*'y' would have the shape \[2, -1\]"):
            check_output(_value(ir.DataType.FLOAT), value)
