"""The bits of a tensor under another type are its memory: whoever makes it, wherever it goes, no bit changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG

WIDTHS = {"f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "f64": 8, "i64": 8}
PAIRS = [(a, b) for a in WIDTHS for b in WIDTHS if a != b and WIDTHS[a] == WIDTHS[b]]
TARGETS = ("cpu", "interpreter")


def _bits(shape: tuple[int, ...], width: int) -> Any:
    """Numbers of a width, as bits."""
    dtype = {2: np.float16, 4: np.float32, 8: np.float64}[width]
    return RNG.standard_normal(shape).astype(dtype)


def _as(bits: Any, element: str) -> Any:
    if element == "bf16":
        import ml_dtypes

        return bits.view(ml_dtypes.bfloat16)
    return bits.view({"f": f"float{element[1:]}", "i": f"int{element[1:]}"}[element[0]])


def _compiled(folder: Path, text: str, target: str) -> fuseline.CompiledModel:
    path = folder / "model.mlir"
    path.write_text(text)
    return fuseline.compile(path, threads=2, target=target)


def _cast(name: str, source: str, shape: str, a: str, b: str) -> str:
    n = "{%n}" if "?" in shape else ""
    return f"  {name} = flow.tensor.bitcast {source} : tensor<{shape}x{a}>{n} -> tensor<{shape}x{b}>{n}\n"


def _function(arguments: str, lines: str, results: str, types: str) -> str:
    return f"func.func @main({arguments}) -> ({types}) {{\n{lines}  return {results} : {types}\n}}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", ["5x7", "?x7"])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_arguments_under_another_type(a: str, b: str, shape: str, target: str, tmp_path: Path) -> None:
    type_ = f"tensor<{shape}x"
    size = ", %n: index" if "?" in shape else ""
    text = _function(f"%x: {type_}{a}>{size}", _cast("%r", "%x", shape, a, b), "%r", f"{type_}{b}>")
    program = _compiled(tmp_path, text, target)
    assert (program.stats["dispatches"], program.stats["copies"]) == (0, 1)
    bits = _bits((5, 7), WIDTHS[a])
    feeds: dict[str, Any] = {"x": _as(bits, a)} | ({"n": 5} if size else {})
    (found,) = program.run(feeds).values()
    assert found.tobytes() == bits.tobytes()


@pytest.mark.parametrize("op", ["tensor.bitcast", "arith.bitcast"])
def test_however_it_is_spelt(op: str, tmp_path: Path) -> None:
    line = f"  %r = {op} %x : tensor<5x7xf32> to tensor<5x7xi32>\n"
    program = _compiled(tmp_path, _function("%x: tensor<5x7xf32>", line, "%r", "tensor<5x7xi32>"), "cpu")
    assert program.stats["dispatches"] == 0
    bits = _bits((5, 7), 4)
    (found,) = program.run({"x": bits}).values()
    assert found.tobytes() == bits.tobytes()


@pytest.mark.parametrize("between", ["i16", "f16", "bf16"])
def test_chains_through_halves_keep_every_bit(between: str, tmp_path: Path) -> None:
    first, last = [element for element in ("i16", "f16", "bf16") if element != between]
    lines = _cast("%s", "%x", "70", first, between) + _cast("%r", "%s", "70", between, last)
    program = _compiled(tmp_path, _function(f"%x: tensor<70x{first}>", lines, "%r", f"tensor<70x{last}>"), "cpu")
    assert program.stats["dispatches"] == 0
    bits = RNG.integers(0, 1 << 16, 70).astype(np.uint16)  # signalling NaN among them
    (found,) = program.run({"x": _as(bits, first)}).values()
    assert found.tobytes() == bits.tobytes()


SOFTMAX = """  %e = tensor.empty() : tensor<5x64xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<5x64xf32>) outs(%e : tensor<5x64xf32>) -> tensor<5x64xf32>
"""


def _softmax(x: Any) -> Any:
    raised = np.exp(x - x.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_what_a_dispatch_makes(target: str, both: bool, tmp_path: Path) -> None:
    """Returned under its own type, too: then one of the two is a copy."""
    lines = SOFTMAX + _cast("%r", "%p", "5x64", "f32", "i32")
    returned, types = ("%r, %p", "tensor<5x64xi32>, tensor<5x64xf32>") if both else ("%r", "tensor<5x64xi32>")
    program = _compiled(tmp_path, _function("%x: tensor<5x64xf32>", lines, returned, types), target)
    assert program.stats["dispatches"] == 1
    x = RNG.standard_normal((5, 64), dtype=np.float32)
    for found in program.run({"x": x}).values():
        np.testing.assert_allclose(found.view(np.float32), _softmax(x), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_between_a_bitcast_and_its_readers(target: str, tmp_path: Path) -> None:
    """A product of an argument seen as floats; a slice and a concat of bits that are returned as well."""
    lines = (
        _cast("%f", "%x", "6x8", "i32", "f32")
        + """  %e = tensor.empty() : tensor<6x9xf32>
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<6x9xf32>) -> tensor<6x9xf32>
  %m = linalg.matmul ins(%f, %w : tensor<6x8xf32>, tensor<8x9xf32>) outs(%i : tensor<6x9xf32>) -> tensor<6x9xf32>
  %s = tensor.extract_slice %f[2, 0] [3, 8] [1, 1] : tensor<6x8xf32> to tensor<3x8xf32>
  %c = tensor.concat dim(0) %f, %s : (tensor<6x8xf32>, tensor<3x8xf32>) -> tensor<9x8xf32>
"""
    )
    types = "tensor<6x9xf32>, tensor<6x8xf32>, tensor<9x8xf32>"
    arguments = "%x: tensor<6x8xi32>, %w: tensor<8x9xf32>"
    program = _compiled(tmp_path, _function(arguments, lines, "%m, %f, %c", types), target)
    x, w = RNG.standard_normal((6, 8), dtype=np.float32), RNG.standard_normal((8, 9), dtype=np.float32)
    product, seen, joined = program.run({"x": x.view(np.int32), "w": w}).values()
    np.testing.assert_allclose(product, x @ w, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(seen, x, strict=True)
    np.testing.assert_array_equal(joined, np.concatenate([x, x[2:5]]), strict=True)
