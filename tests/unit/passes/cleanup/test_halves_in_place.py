"""16-bit floats that are only moved are not widened on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fuseline
from fuseline.api import emit
from tests.draws import RNG

HEAD = "func.func @main(%x: tensor<6x?x4xH>, %y: tensor<2x?x4xH>) -> "
N = "%c1 = arith.constant 1 : index\n  %n = tensor.dim %x, %c1 : tensor<6x?x4xH>\n  "
PLAIN = "affine_map<(a, b, c) -> (a, b, c)>"
PARALLEL = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
TRANSPOSE = """%e = tensor.empty(%n) : tensor<4x?x6xH>
  %r = linalg.transpose ins(%x : tensor<6x?x4xH>) outs(%e : tensor<4x?x6xH>) permutation = [2, 1, 0]"""
PAD = """%p = arith.constant -1.5 : H
  %r = tensor.pad %x low[0, 0, 1] high[1, 0, 2] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %p : H
  } : tensor<6x?x4xH> to tensor<7x?x7xH>"""
REPEATED = f"""%e = tensor.empty(%n) : tensor<6x?x4x3xH>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], {PARALLEL}}}
      ins(%x : tensor<6x?x4xH>) outs(%e : tensor<6x?x4x3xH>) {{
  ^bb0(%in: H, %out: H):
    linalg.yield %in : H
  }} -> tensor<6x?x4x3xH>"""
RESHAPE = "%r = tensor.collapse_shape %x [[0, 1], [2]] : tensor<6x?x4xH> into tensor<?x4xH>"
SLICE = "%r = tensor.extract_slice %x[1, 0, 2] [2, %n, 2] [2, 1, 1] : tensor<6x?x4xH> to tensor<2x?x2xH>"
CONCAT = "%r = tensor.concat dim(0) %x, %y : (tensor<6x?x4xH>, tensor<2x?x4xH>) -> tensor<8x?x4xH>"
MOVES: dict[str, tuple[str, str, Any]] = {
    "reshape": (RESHAPE, "tensor<?x4xH>", lambda x, y: x.reshape(-1, 4)),
    "transpose": (TRANSPOSE, "tensor<4x?x6xH>", lambda x, y: x.transpose(2, 1, 0)),
    "slice": (SLICE, "tensor<2x?x2xH>", lambda x, y: x[1:5:2, :, 2:]),
    "pad": (PAD, "tensor<7x?x7xH>", lambda x, y: np.pad(x, [(0, 1), (0, 0), (1, 2)], constant_values=-1.5)),
    "concat": (CONCAT, "tensor<8x?x4xH>", lambda x, y: np.concatenate([x, y])),
    "broadcast": (REPEATED, "tensor<6x?x4x3xH>", lambda x, y: np.repeat(x[..., None], 3, -1)),
}
DOUBLED = (
    f"%e = tensor.empty(%n) : tensor<2x?x4xH>\n  %z = linalg.generic {{indexing_maps = [{PLAIN}, {PLAIN}], "
    'iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : tensor<2x?x4xH>) outs(%e : tensor<2x?x4xH>) {\n'
    "  ^bb0(%in: H, %out: H):\n    %d = arith.addf %in, %in : H\n    linalg.yield %d : H\n  } -> tensor<2x?x4xH>\n  "
)
WITH_COMPUTED = f"{DOUBLED}%r = tensor.concat dim(0) %x, %z : (tensor<6x?x4xH>, tensor<2x?x4xH>) -> tensor<8x?x4xH>"


def _path(tmp_path: Path, code: str, types: str, element: str, returned: str = "%r") -> Path:
    path = tmp_path / "moves.mlir"
    path.write_text(
        f"{HEAD}{types} {{\n  {N}{code}\n  return {returned} : {types.strip('()')}\n}}".replace("H", element)
    )
    return path


def _feeds(element: str) -> dict[str, np.ndarray[Any, Any]]:
    """All kinds of bits, NaN with a payload among them."""
    dtype = np.dtype({"f16": np.float16, "bf16": ml_dtypes.bfloat16}[element])
    bits = RNG.integers(0, 1 << 16, (8, 5, 4)).astype("u2")
    return {"x": bits[:6].view(dtype), "y": bits[6:].view(dtype)}


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", MOVES)
def test_what_is_moved_keeps_its_bits(name: str, element: str, tmp_path: Path):
    code, types, expected = MOVES[name]
    path = _path(tmp_path, code, types, element)
    assert "extf" not in emit(path, "cleanup") and "f32" not in emit(path, "cleanup")
    feeds = _feeds(element)
    (found,) = fuseline.compile(path).run(feeds).values()
    np.testing.assert_array_equal(found.view("u2"), np.ascontiguousarray(expected(**feeds)).view("u2"))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_a_part_that_is_computed_is_narrowed_before_it_is_moved(element: str, tmp_path: Path):
    path = _path(tmp_path, WITH_COMPUTED, "tensor<8x?x4xH>", element)
    text = emit(path, "cleanup")
    assert text.count("arith.extf") == text.count("arith.truncf") == 1
    assert f"tensor<8x?x4x{element}>" in text and "tensor<8x?x4xf32>" not in text
    x, y = (RNG.standard_normal((n, 5, 4)).astype(_feeds(element)["x"].dtype) for n in (6, 2))
    (found,) = fuseline.compile(path).run({"x": x, "y": y}).values()
    np.testing.assert_array_equal(found, np.concatenate([x, y + y]))


SCATTER = """func.func @main(%x: tensor<6x?x4xH>, %u: tensor<2x?x4xH>, %p: tensor<2xi32>) -> tensor<6x?x4xH> {
  MADE
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, e) -> (e)>, affine_map<(a, b, c, e) -> (e, b, c)>,
      affine_map<(a, b, c, e) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, UPDATES : tensor<2xi32>, tensor<2x?x4xH>) outs(START : tensor<6x?x4xH>) {
  ^bb0(%place: i32, %update: H, %there: H):
    %at = arith.index_cast %place : i32 to index
    %i = linalg.index 0 : index
    %hit = arith.cmpi eq, %i, %at : index
    BODY
    linalg.yield %out : H
  } -> tensor<6x?x4xH>
  return %r : tensor<6x?x4xH>
}"""
CHOSEN = "%out = arith.select %hit, %update, %there : H"
DOUBLE = (
    f"%e = tensor.empty(%n) : tensor<2x?x4xH>\n  %v = linalg.generic {{indexing_maps = [{PLAIN}, {PLAIN}], "
    'iterator_types = ["parallel", "parallel", "parallel"]} ins(%u : tensor<2x?x4xH>) outs(%e : tensor<2x?x4xH>) {\n'
    "  ^bb0(%in: H, %o: H):\n    %d = arith.addf %in, %in : H\n    linalg.yield %d : H\n  } -> tensor<2x?x4xH>"
)
ZEROS = (
    "%f0 = tensor.empty(%n) : tensor<6x?x4xH>\n  "
    "%f = linalg.fill ins(%zero : H) outs(%f0 : tensor<6x?x4xH>) -> tensor<6x?x4xH>"
)


def _scatter(
    tmp_path: Path, element: str, made: str = "", updates: str = "%u", start: str = "%x", body: str = CHOSEN
) -> Path:
    path = tmp_path / "scatter.mlir"
    head = f"{N}%zero = arith.constant 0.0 : H\n  {made}"
    text = SCATTER.replace("MADE", head).replace("UPDATES", updates).replace("START", start).replace("BODY", body)
    path.write_text(text.replace("H", element))
    return path


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("start", ["given", "zeros"])
@pytest.mark.parametrize("updates", ["given", "computed"])
def test_a_scatter_that_replaces_moves_halves(element: str, start: str, updates: str, tmp_path: Path):
    made = "\n  ".join([DOUBLE] * (updates == "computed") + [ZEROS] * (start == "zeros"))
    path = _scatter(
        tmp_path, element, made, "%v" if updates == "computed" else "%u", "%f" if start == "zeros" else "%x"
    )
    text = emit(path, "cleanup")
    assert "tensor<6x?x4xf32>" not in text
    assert ("arith.extf" in text) == (updates == "computed")
    bits = _feeds(element)
    numbers = {name: RNG.standard_normal(value.shape).astype(value.dtype) for name, value in bits.items()}
    x, y = (bits if updates == "given" else numbers).values()
    feeds = {"x": x, "u": y, "p": np.array([4, -1], np.int32)}
    expected = x.copy() if start == "given" else np.zeros_like(x)
    expected[4] = y[0] if updates == "given" else y[0] + y[0]
    for target in ("interpreter", "cpu"):
        program = fuseline.compile(path, target=target)
        (found,) = program.run(feeds).values()
        np.testing.assert_array_equal(found.view("u2"), expected.view("u2"))


@pytest.mark.parametrize(
    "body",
    [
        "%both = arith.addf %update, %there : H\n    %out = arith.select %hit, %both, %there : H",
        "%more = arith.cmpf ogt, %update, %there : H\n    %out = arith.select %more, %update, %there : H",
        "%out = arith.select %hit, %there, %update : H",
    ],
)
def test_what_computes_with_updates_is_no_move(body: str, tmp_path: Path):
    path = _scatter(tmp_path, "f16", body=body)
    assert "arith.extf" in emit(path, "cleanup")


def test_what_something_else_reads_is_widened(tmp_path: Path):
    code = MOVES["concat"][0] + (
        "\n  %s = tensor.empty(%n) : tensor<8x?x4xH>"
        f'\n  %t = linalg.generic {{indexing_maps = [{PLAIN}, {PLAIN}], iterator_types = ["parallel", "parallel", '
        '"parallel"]} ins(%r : tensor<8x?x4xH>) outs(%s : tensor<8x?x4xH>) {\n  ^bb0(%in: H, %out: H):\n'
        "    %d = math.exp %in : H\n    linalg.yield %d : H\n  } -> tensor<8x?x4xH>"
    )
    path = _path(tmp_path, code, "(tensor<8x?x4xH>, tensor<8x?x4xH>)", "f16", "%r, %t")
    assert "tensor<8x?x4xf32>" in emit(path, "cleanup")
    x, y = (RNG.standard_normal((n, 5, 4)).astype("f2") for n in (6, 2))
    moved, powers = fuseline.compile(path).run({"x": x, "y": y}).values()
    np.testing.assert_array_equal(moved, np.concatenate([x, y]))
    np.testing.assert_allclose(powers, np.exp(moved.astype("f4")), rtol=1e-3)


def test_padding_that_is_no_half_is_rounded_after_it_is_put_there(tmp_path: Path):
    """Nobody but a program in f32 has such a number: it stays one."""
    path = tmp_path / "pad.mlir"
    path.write_text(
        """func.func @main(%x: tensor<5xf16>) -> tensor<7xf16> {
  %p = arith.constant 0.1 : f32
  %e = tensor.empty() : tensor<5xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xf16>) outs(%e : tensor<5xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %r = tensor.pad %w low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %p : f32
  } : tensor<5xf32> to tensor<7xf32>
  %o = tensor.empty() : tensor<7xf16>
  %n = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%r : tensor<7xf32>) outs(%o : tensor<7xf16>) {
  ^bb0(%in: f32, %out: f16):
    %v = arith.truncf %in : f32 to f16
    linalg.yield %v : f16
  } -> tensor<7xf16>
  return %n : tensor<7xf16>
}"""
    )
    assert "tensor<7xf32>" in emit(path, "cleanup")
    x = RNG.standard_normal(5).astype("f2")
    (found,) = fuseline.compile(path).run({"x": x}).values()
    np.testing.assert_array_equal(found, np.pad(x, 1, constant_values=np.float16(0.1)))
