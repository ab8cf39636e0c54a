"""Large constants of a text as arrays: those of linalg programs and of StableHLO, wrong ones refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.ir.context import new_context
from fuseline.ir.large_constants import cut_constants
from fuseline.ir.text import parse_module
from tests.draws import RNG

_TYPES = {"float32": "f32", "int8": "i8", "uint16": "ui16", "bool": "i1"}


def _text(array: NDArray[Any], digits: str, op: str) -> str:
    shape = "x".join(map(str, array.shape))
    type_ = f"tensor<{shape}x{_TYPES[array.dtype.name]}>"
    return f'func.func @main() -> {type_} {{\n  %r = {op} dense<"0x{digits}"> : {type_}\n  return %r : {type_}\n}}\n'


def _drawn(dtype: str) -> NDArray[Any]:
    if dtype == "bool":
        return RNG.integers(0, 2, (300, 41)).astype(bool)
    return (RNG.standard_normal((300, 41)) * 50).astype(np.int32).astype(dtype)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("arith.constant", "float32"), ("arith.constant", "int8"), *(("stablehlo.constant", dtype) for dtype in _TYPES)],
)
def test_a_constant_is_what_its_digits_say(op: str, dtype: str, tmp_path: Path):
    array, path = _drawn(dtype), tmp_path / "p.mlir"
    path.write_text(_text(array, array.tobytes().hex().upper(), op))
    np.testing.assert_array_equal(fuseline.compile(path, target="interpreter").run({}).popitem()[1], array)


def test_truth_values_may_be_eight_in_a_byte(tmp_path: Path):
    array, path = _drawn("bool").repeat(12, axis=0), tmp_path / "p.mlir"
    path.write_text(_text(array, np.packbits(array, bitorder="little").tobytes().hex(), "stablehlo.constant"))
    np.testing.assert_array_equal(fuseline.compile(path, target="interpreter").run({}).popitem()[1], array)


@pytest.mark.parametrize(
    ("digits", "words"), [("00" * 10000, "has 10000 bytes"), ("0z" * 10000, "pairs of hexadecimal")]
)
def test_wrong_digits_are_refused(digits: str, words: str):
    text = _text(np.zeros((300, 41), np.float32), digits, "arith.constant")
    with pytest.raises(fuseline.FuselineError, match=words) as caught:
        parse_module(text, new_context(), "p.mlir")
    assert caught.value.code == "E0301"


def test_lines_stay_where_they_are():
    text = "a\n" + 'dense<"0x' + "00" * 20000 + '"> b\nc'
    cut, digits = cut_constants(text)
    assert cut.count("\n") == 2 and len(cut) < 100 and len(digits) == 1


def test_bytecode_is_told_from_text(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_bytes(b"ML\xefR\x0dStableHLO_v1.0.0\x00")
    with pytest.raises(fuseline.FuselineError, match="bytecode") as caught:
        fuseline.compile(path)
    assert caught.value.code == "E0101"
