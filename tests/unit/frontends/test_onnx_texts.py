"""Strings that become numbers: as onnxruntime reads them, in every package and where they are constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.reference.texts import numbers_of
from tests.one_node import by_onnxruntime, feeds_of, one_node

TEXTS = [*"0 1 -1 2 0.0 0.5 -0 -0.0 1e3 1.5 3.999 1_000 0x10 300 -129 +5 1e2 99999 7abc".split(), " 1", "1 ", "\t7"]
FLOATS = "nan NaN inf -inf +INF Infinity 3.4e40 .5 5. 0x1.8p1 1e -.25e-2".split()
NONE = ["", "true", "abc", "--1", "e5"]
TYPES = ("BOOL", "FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "UINT32", "UINT64")


def _texts(items: list[str]) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


@pytest.mark.parametrize("name", TYPES)
def test_every_type(name: str) -> None:
    x = _texts([*TEXTS, *(FLOATS if name in ("FLOAT", "DOUBLE", "FLOAT16") else [])])
    to = getattr(TensorProto, name)
    (wanted,) = by_onnxruntime(one_node("Cast", [x], {"to": to}, opset=19), feeds_of([x]))
    for constants in ((), (0,)):
        model = one_node("Cast", [x], {"to": to}, opset=19, constants=constants)
        (found,) = fuseline.compile(model, threads=1).run(feeds_of([x], constants)).values()
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["BOOL", "FLOAT", "INT32"])
@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number_is_refused(text: str, name: str) -> None:
    model = one_node("Cast", [_texts([text])], {"to": getattr(TensorProto, name)}, opset=19)
    with pytest.raises(FuselineError, match=r"E0106 \[node\]"):
        fuseline.compile(model, threads=1).run(feeds_of([_texts([text])]))


@pytest.mark.parametrize(
    ("text", "dtype"), [("9223372036854775808", "int64"), ("18446744073709551616", "uint64"), ("1e400", "float32")]
)
def test_what_does_not_fit_is_refused(text: str, dtype: str) -> None:
    with pytest.raises(ValueError, match="fit|larger"):
        numbers_of(_texts([text]), dtype)


@pytest.mark.parametrize("split", [[2, 2], [2, 4], [-1, 6], 0, -2])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_parts_of_a_sequence_that_do_not_fit_are_refused(split: Any, constants: tuple[int, ...]) -> None:
    inputs = [np.ones((5, 2), np.float32), np.array(split)]
    model = one_node("SplitToSequence", inputs, {"axis": 0}, opset=18, constants=constants)
    with pytest.raises(FuselineError, match=r"E0106 \[node\].*parts of"):
        fuseline.compile(model, threads=1).run(feeds_of(inputs, constants))
