"""Parameters are the tensors of an archive beside the text, or inputs where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.tensor_file import write_tensors
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

T = "tensor<3x4xf32>"

CONSTANT = f"""
func.func @main(%x: {T}) -> {T} {{
  %w = flow.tensor.constant #flow.parameter.named<"model"::"a.weight"> : {T}
  %r = arith.mulf %x, %w : {T}
  func.return %r : {T}
}}"""

GLOBALS = f"""
util.global private @w = #flow.parameter.named<"model"::"a.weight"> : {T}
util.global private @v = #flow.parameter.named<"other"::"a.weight"> : {T}
func.func @main(%x: {T}) -> {T} {{
  %w = util.global.load @w : {T}
  %again = util.global.load @w : {T}
  %v = util.global.load @v : {T}
  %s = arith.mulf %x, %w : {T}
  %t = arith.addf %s, %again : {T}
  %r = arith.subf %t, %v : {T}
  func.return %r : {T}
}}"""


def _drawn() -> Any:
    return RNG.uniform(-1, 1, (3, 4)).astype(np.float32)


def _written(folder: Path, text: str, tensors: dict[str, Any] | None = None) -> Path:
    path = folder / "m.mlir"
    path.write_text(text)
    if tensors is not None:
        with (folder / "m.safetensors").open("wb") as file:
            write_tensors(file, tensors, {})
    return path


def test_an_archive_beside_the_text(tmp_path: Path):
    feeds, weight = {"x": _drawn()}, _drawn()
    program = fuseline.compile(_written(tmp_path, CONSTANT, {"a.weight": weight, "other": weight}))
    np.testing.assert_array_equal(program.run(feeds)["result0"], feeds["x"] * weight)


def test_globals_of_an_archive(tmp_path: Path):
    feeds, weight = {"x": _drawn()}, _drawn()
    program = fuseline.compile(_written(tmp_path, GLOBALS, {"a.weight": weight}))
    assert [one.name for one in program.inputs] == ["x"]
    np.testing.assert_allclose(program.run(feeds)["result0"], feeds["x"] * weight, rtol=1e-5, atol=1e-6)


def test_inputs_where_there_is_no_archive(tmp_path: Path):
    feeds = {"x": _drawn(), "a.weight": _drawn()}
    program = fuseline.compile(_written(tmp_path, CONSTANT))
    assert [one.name for one in program.inputs] == ["x", "a.weight"]
    np.testing.assert_array_equal(program.run(feeds)["result0"], feeds["x"] * feeds["a.weight"])


def test_each_scope_has_names_of_its_own(tmp_path: Path):
    feeds = {"x": _drawn(), "a.weight": _drawn(), "other::a.weight": _drawn()}
    found = fuseline.compile(_written(tmp_path, GLOBALS)).run(feeds)["result0"]
    x, w, v = feeds.values()
    np.testing.assert_allclose(found, x * w + w - v, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"other": np.ones((3, 4), np.float32)}, "no tensor called a.weight"),
        ({"a.weight": np.ones((4, 3), np.float32)}, "has 4x3xF32"),
        ({"a.weight": np.ones((3, 4), np.float16)}, "has 3x4xF16"),
    ],
)
def test_an_archive_of_other_tensors(tmp_path: Path, tensors: dict[str, Any], words: str):
    path = _written(tmp_path, CONSTANT, tensors)
    with pytest.raises(FuselineError, match=words) as error:
        fuseline.compile(path, target="null")
    assert error.value.code == "E0308"


NAMED = 'flow.tensor.constant #flow.parameter.named<"model"::"a.weight">'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GLOBALS.replace("private @w", "private mutable @w"), "@w may change between runs"),
        (CONSTANT.replace("%r =", f"%o = {NAMED.replace('a.', 'b.')} : tensor<?x4xf32>\n  %r ="), "known sizes"),
        (CONSTANT.replace("%r =", f"%o = {NAMED} : tensor<2xf32>\n  %r ="), "give it one type"),
    ],
)
def test_what_is_no_parameter(tmp_path: Path, text: str, words: str):
    path = _written(tmp_path, text)
    with pytest.raises(FuselineError, match=words) as error:
        fuseline.compile(path, target="null")
    assert error.value.code == "E0306"


def test_what_is_emitted_as_flow_is_read_again(tmp_path: Path):
    model = onnx_model(
        "(float[N,16] x) => (float[N,32] y) { h = MatMul(x, w)  s = Add(h, b)  y = Relu(s) }",
        w=RNG.uniform(-1, 1, (16, 32)).astype(np.float32),
        b=RNG.uniform(-1, 1, 32).astype(np.float32),
    )
    feeds = {"x": RNG.uniform(-1, 1, (5, 16)).astype(np.float32)}
    text = tmp_path / "m.mlir"
    fuseline.api.emit_flow(model, text)
    (expected,) = fuseline.compile(model).run(feeds).values()
    (found,) = fuseline.compile(text).run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
