"""Fills as steps of the schedule: what only fills takes no dispatch, whatever the element, its bits and the sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.runtime.dtypes import dtype_named
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

TARGETS = ("cpu", "interpreter")

NUMBERS = [
    ("f32", "-0.0", np.array(-0.0, np.float32)),
    ("f32", "0x7FC00001", np.array(0x7FC00001, np.uint32)),
    ("f32", "0x7F800000", np.array(np.inf, np.float32)),
    ("f64", "0xFFF0000000000000", np.array(-np.inf)),
    ("f64", "0x7FF8000000000123", np.array(0x7FF8000000000123, np.uint64)),
    ("f16", "1.5", np.array(1.5, np.float16)),
    ("bf16", "-2.5", np.array(0xC020, np.uint16)),
    ("i1", "true", np.array(True)),
    ("i8", "255", np.array(-1, np.int8)),
    ("i16", "-32768", np.array(-32768, np.int16)),
    ("i32", "7", np.array(7, np.int32)),
    ("i64", "-9223372036854775808", np.array(-(2**63), np.int64)),
]
"""Element type, number as MLIR writes it, and its bits."""


def _compiled(folder: Path, text: str, target: str, threads: int = 2) -> fuseline.CompiledModel:
    path = folder / "model.mlir"
    path.write_text(text)
    return fuseline.compile(path, threads=threads, target=target)


def _constant(element: str, number: str, shape: str) -> str:
    """A program that fills a tensor of `shape`, of which `?` are fed, with a number."""
    count = shape.count("?")
    fed = ", ".join(f"%n{i}" for i in range(count))
    type_ = f"tensor<{shape}{element}>"
    return f"""
func.func @main({", ".join(f"%n{i}: index" for i in range(count))}) -> {type_} {{
  %c = arith.constant {number}{"" if element == "i1" else f" : {element}"}
  %e = tensor.empty({fed}) : {type_}
  %f = linalg.fill ins(%c : {element}) outs(%e : {type_}) -> {type_}
  return %f : {type_}
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("element", "number", "bits"), NUMBERS, ids=[f"{e} {n}" for e, n, _ in NUMBERS])
def test_every_bit_of_every_element(element: str, number: str, bits: Any, target: str, tmp_path: Path) -> None:
    program = _compiled(tmp_path, _constant(element, number, "?x3x?x"), target)
    assert (program.stats["dispatches"], program.stats["fills"], program.stats["copies"]) == (0, 1, 0)
    for n, m in [(0, 3), (1, 1), (5, 7), (*RNG.integers(2, 40, 2).tolist(),), (130, 257)]:
        (found,) = program.run({"n0": n, "n1": m}).values()
        assert found.shape == (n, 3, m) and found.itemsize == bits.itemsize
        assert found.tobytes() == np.full(found.shape, bits).tobytes()


@pytest.mark.parametrize("shape", ["", "1x", "4x1x", "0x3x", "1025x1025x", "2x?x"])
def test_any_rank_known_or_not(shape: str, tmp_path: Path) -> None:
    program = _compiled(tmp_path, _constant("f32", "2.5", shape), "cpu")
    assert (program.stats["dispatches"], program.stats["fills"]) == (0, 0 if "0" in shape.split("x") else 1)
    (found,) = program.run({"n0": 9} if "?" in shape else {}).values()
    sizes = [9 if part == "?" else int(part) for part in shape.split("x") if part]
    np.testing.assert_array_equal(found, np.full(sizes, 2.5, np.float32), strict=True)


def test_large_fills_are_of_small_constants(tmp_path: Path) -> None:
    assert _compiled(tmp_path, _constant("f32", "2.5", "3000x3000x"), "cpu").stats["constant_bytes"]["packed"] == 4


_ELEMENT = """
func.func @main(%x: tensor<{source}{element}>, %n: index) -> tensor<?x2x{element}> {{
  %e = tensor.empty(%n) : tensor<?x2x{element}>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> ({at})>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<{source}{element}>) outs(%e : tensor<?x2x{element}>) {{
  ^bb0(%v: {element}, %o: {element}):
    linalg.yield %v : {element}
  }} -> tensor<?x2x{element}>
  return %r : tensor<?x2x{element}>
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "at"), [("", ""), ("1x", "0"), ("1x1x1x", "0, 0, 0")])
@pytest.mark.parametrize("element", ["f32", "f64", "i8", "f16", "i1"])
def test_the_element_of_an_argument(element: str, source: str, at: str, target: str, tmp_path: Path) -> None:
    program = _compiled(tmp_path, _ELEMENT.format(element=element, source=source, at=at), target)
    assert (program.stats["dispatches"], program.stats["fills"], program.stats["copies"]) == (0, 1, 0)
    dtype = program.inputs[0].dtype
    for n in (0, 1, 33):
        x = (RNG.standard_normal((1,) * source.count("1")) * 99).astype(dtype_named(dtype))
        (found,) = program.run({"x": x, "n": n}).values()
        assert found.tobytes() == np.broadcast_to(x.reshape(()), (n, 2)).tobytes() and found.shape == (n, 2)


def _on(target: str, model: onnx.ModelProto, **options: Any) -> fuseline.CompiledModel:
    return fuseline.compile(model, threads=2, target=target, **options)


@pytest.mark.parametrize("fusion", ["default", "none"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_a_dispatch_computes_is_spread_by_a_fill_or_inside(target: str, fusion: str) -> None:
    """The sum of all is an element like any other; whether fusion takes the spread in is its affair."""
    text = """(float[n] x, float[a, b] w) => (float[a, b] y, float[a, b] z) {
        s = Shape(w) t = ReduceSum<keepdims = 0>(x) y = Expand(t, s) u = Exp(t) z = Expand(u, s) }"""
    x = RNG.standard_normal(77, np.float32)
    program = _on(target, onnx_model(text), fusion=fusion)
    assert fusion == "default" or (program.stats["dispatches"], program.stats["fills"]) == (2, 2)
    got = program.run({"x": x, "w": np.zeros((3, 4), np.float32)})
    np.testing.assert_allclose(got["y"], np.full((3, 4), x.sum()), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got["z"], np.exp(got["y"]), rtol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ["x, f", "f, x", "f, x, f", "f, e"])
def test_parts_of_a_concat(order: str, target: str) -> None:
    """Beside arguments no dispatch is left; beside one that computes a part, the fill goes where it belongs."""
    text = f"""(float[n, m] x) => (float[a, m] y) {{
        s = Shape(x) f = ConstantOfShape<value = float {{-3.5}}>(s) e = Exp(x) y = Concat<axis = 0>({order}) }}"""
    program = _on(target, onnx_model(text))
    assert (program.stats["dispatches"], program.stats["fills"]) == (order.count("e"), 1)
    for n, m in ((1, 1), (4, 9), (33, 5)):
        x = RNG.standard_normal((n, m), np.float32)
        values = {"x": x, "f": np.full((n, m), -3.5, np.float32), "e": np.exp(x)}
        (found,) = program.run({"x": x}).values()
        np.testing.assert_allclose(found, np.concatenate([values[part] for part in order.split(", ")]), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_the_first_state_of_a_loop(target: str) -> None:
    """Zeros of a size that is fed: the loop reads them where they were filled."""
    text = "(float[s, b, 5] x) => (float[s, 1, b, 6] y) { y = LSTM<hidden_size = 6>(x, w, r) }"
    w, r = RNG.standard_normal((1, 24, 5), np.float32), RNG.standard_normal((1, 24, 6), np.float32)
    program = _on(target, onnx_model(text, w=w, r=r))
    assert program.stats["fills"] > 0
    x = RNG.standard_normal((4, 3, 5), np.float32)
    (found,) = program.run({"x": x}).values()
    alone = [program.run({"x": x[:, i : i + 1]})["y"] for i in range(3)]
    np.testing.assert_allclose(found, np.concatenate(alone, 2), rtol=1e-4, atol=1e-5)


def test_a_saved_program_fills_without_the_compiler(tmp_path: Path) -> None:
    program = _compiled(tmp_path, _constant("i16", "-5", "?x"), "cpu")
    program.save(tmp_path / "model.fuse")
    (found,) = fuseline.load(tmp_path / "model.fuse", verify=True).run({"n0": 70000}).values()
    np.testing.assert_array_equal(found, np.full(70000, -5, np.int16), strict=True)


def test_large_fills_are_cut_among_threads_anywhere(tmp_path: Path) -> None:
    """Grids of several workgroups, at sizes around their borders."""
    program = _compiled(tmp_path, _constant("i64", "3", "?x"), "cpu")
    for size in (8191, 8192, 8193, 5 * 8192 - 1, 1_000_003):
        (found,) = program.run({"n0": size}).values()
        np.testing.assert_array_equal(found, np.full(size, 3), strict=True)


def test_reports_name_it(tmp_path: Path) -> None:
    program = _compiled(tmp_path, _constant("f32", "1.0", "?x"), "cpu")
    assert not program.record.dispatches
    assert "elide-fills" in program.record.eliminated.values()
