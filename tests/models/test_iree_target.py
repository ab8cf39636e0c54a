"""Programs that IREE compiles and runs compute what the interpreter does: small ones of each kind, the nine cases, and
(slow) whole models."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import fuseline
from fuseline.interop import iree_host
from fuseline.targets.iree.target import RULE
from fuseline.verify.inputs import generate
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.models.skeletons import filled
from tests.small_models import SMALL_MODELS

CASES = sorted((Path(__file__).parents[1] / "filecheck" / "cases").glob("*.mlir"))
_MISSING = importlib.util.find_spec("iree") is None

pytestmark = [pytest.mark.iree, pytest.mark.skipif(_MISSING, reason="needs iree-base-compiler and iree-base-runtime")]


def _same(model: onnx.ModelProto | Path, target: str = "iree", **feeds: Any) -> fuseline.CompiledModel:
    """The program, once it was found to compute what the interpreter does, loaded from a file, too."""
    compiled, plain = fuseline.compile(model, target=target), fuseline.compile(model, target="interpreter")
    given = feeds or generate(plain.inputs, seed=int(RNG.integers(1 << 30)))
    found, expected = compiled.run(given), plain.run(given)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        wide, exact = np.asarray(found[name], np.float64), np.asarray(array, np.float64)
        scale = max(1.0, float(np.abs(exact).max(initial=0.0)))
        np.testing.assert_allclose(wide, exact, rtol=1e-4, atol=1e-5 * scale)
    return compiled


@pytest.mark.parametrize("source", [*SMALL_MODELS, *map(str, CASES)], ids=lambda source: Path(source).stem)
def test_small_programs(source: str):
    compiled = _same(SMALL_MODELS[source]() if source in SMALL_MODELS else Path(source))
    assert not [one for one in compiled.record.remarks if one.rule == RULE], "nothing that is formed fails"


def test_the_interpreter_of_iree():
    _same(SMALL_MODELS["mlp"](), "iree:vmvx")


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float16", "bfloat16", "double"])
def test_element_types(dtype: str):
    _same(onnx_model(f"({dtype}[3, n] x) => (y) {{ y = {'Not(x)' if dtype == 'bool' else 'Add(x, x)'} }}"))


def test_operators_of_the_host_between_stages(tmp_path: Path):
    text = """(float[8] x) => (y) {
        t = Relu(x)  i = NonZero(t)  u = Transpose<perm = [1, 0]>(i)  v = GatherND(x, u)  y = Mul(v, v) }"""
    x = RNG.standard_normal(8).astype(np.float32)
    compiled = _same(onnx_model(text), x=x)
    compiled.save(tmp_path / "m.fuse")
    iree_host.forget()
    np.testing.assert_array_equal(fuseline.load(tmp_path / "m.fuse")(x), compiled(x))


def test_what_fails_as_formed_is_split():
    compiled = _same(onnx_model("(float[3, n] x) => (y, z) { y = Greater(x, w)  z = Where(y, x, w) }",
                                w=RNG.standard_normal((3, 1), np.float32)))  # fmt: skip
    assert any(one.code == "iree-codegen" and one.detail.startswith("split") for one in compiled.record.remarks)


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize(
    "name", ["mnist_cnn", "edge_detection", "lstm_small", "squeezenet1_1", "mobilenet_v2", "minilm", "mobilebert"]
)
def test_whole_models(name: str):
    path = filled(name)
    compiled = fuseline.compile(path, target="iree", threads=2)
    feeds = generate(compiled.inputs, seed=int(RNG.integers(1 << 30)))
    session = ort.InferenceSession(path)
    for found, computed in zip(compiled.run(feeds).values(), session.run(None, feeds), strict=True):
        expected = np.asarray(computed)
        scale = max(float(np.abs(expected).max()), 1e-6)
        np.testing.assert_allclose(found, expected, atol=1e-4 * scale, rtol=1e-3)
