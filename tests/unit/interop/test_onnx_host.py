"""Host operators: the executor on its own, and through the command table."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from fuseline.runtime import host
from tests.graphs.onnx_text import onnx_model


def _model(node: str, kind: str = "float[]") -> bytes:
    """A node that reads `i0`, `i1`, .. of a type."""
    names = sorted(set(re.findall(r"\bi\d\b", node)))
    outputs = node.removeprefix("[proj] ").split(" = ", 1)[0]
    text = f"host ({', '.join(f'{kind} {name}' for name in names)}) => ({outputs}) {{ {node} }}"
    return onnx_model(text).SerializeToString()


def test_several_outputs_in_order() -> None:
    model = _model("o0, o1 = TopK(i0, i1)")
    values, indices = onnx_host.execute(model, [np.array([3, 9, 5], np.float32), np.array([2], np.int64)])
    assert (values.tolist(), indices.tolist()) == ([9, 5], [1, 2])


def test_an_input_left_out() -> None:
    model = _model('o0 = Clip(i0, "", i1)')
    (out,) = onnx_host.execute(model, [np.array([-5, 7], np.float32), np.array(2, np.float32)])
    assert out.tolist() == [-5, 2]


def test_it_is_installed_with_the_api() -> None:
    importlib.import_module("fuseline.api")
    assert host.executor("onnx") is onnx_host.execute


def test_a_failing_operator_is_named() -> None:
    model = _model("[proj] o0 = MatMul(i0, i1)")
    with pytest.raises(FuselineError, match=r"E0106 \[proj\].*MatMul"):
        onnx_host.execute(model, [np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)])


def test_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(FuselineError, match="E0503"):
        onnx_host.execute(_model("never_seen_before = Relu(i0)"), [np.ones(1, np.float32)])


def test_a_package_that_an_operator_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    model = _model("o0 = ImageDecoder(i0)")
    proto = onnx.load_model_from_string(model)
    proto.opset_import[0].version = 20
    with pytest.raises(FuselineError, match=r"E0503: ImageDecoder: .*Pillow"):
        onnx_host.execute(proto.SerializeToString(), [np.zeros(4, np.uint8)])


# -- which package runs it ---------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    yield
    onnx_host.forget()


FAST, NUMPY = "onnxruntime", "onnx.reference"
LOOP = """o0 = Loop("", i0, i1) <body = body (int64 n, bool c, float[] s) => (bool d, float[] t) {
    d = Identity(c)
    t = Tanh(s)
}>"""
CHOICES: list[tuple[str, str]] = [
    (FAST, "o0 = MatMul(i0, i1)"),
    (FAST, "o0 = ReduceMax(i0)"),
    (FAST, 'o0 = Resize(i0, "", i1)'),
    (NUMPY, 'o0 = Resize<coordinate_transformation_mode = "align_corners">(i0, "", i1)'),
    (NUMPY, "o0 = Cast<to = 6>(i0)"),
    (NUMPY, "o0 = SequenceConstruct(i0)"),
    (NUMPY, "o0 = RandomNormalLike<seed = 1.0>(i0)"),
    (NUMPY, "o0, o1, o2 = BatchNormalization<training_mode = 1>(i0, i1, i2, i3, i4)"),
    (NUMPY, "o0 = Swish(i0)"),  # of an operator set that it may not have
    (FAST, LOOP),
    (NUMPY, LOOP.replace("Tanh", "Hardmax")),
]


def _typed(node: str) -> bytes:
    model = onnx.load_model_from_string(_model(node))
    if "Loop" in node:
        model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.BOOL
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("package", "node"), CHOICES, ids=[re.findall(r"= (\w+)", node)[0] + f"-{i}" for i, (_, node) in enumerate(CHOICES)]
)
def test_each_operator_has_its_package(package: str, node: str) -> None:
    assert onnx_host.chosen(_typed(node)) == package


def test_what_onnxruntime_would_lose_stays() -> None:
    """Operands that are not finite go where NaN is kept; all others do not."""
    model = _model("o0 = ReduceMax<keepdims = 0>(i0)")
    for x in (np.array([1, np.nan, 3]), np.array([1, np.inf, 3]), np.array([1, 2, 3])):
        np.testing.assert_array_equal(onnx_host.execute(model, [x.astype(np.float32)])[0], np.max(x).astype(np.float32))


@pytest.mark.parametrize("missing", [False, True], ids=["onnxruntime", "numpy"])
def test_operands_that_no_kernel_takes_are_refused(missing: bool, hide_onnxruntime: Callable[[], None]) -> None:
    """By either package, with a code; the node is named by the runtime, which knows it."""
    if missing:
        hide_onnxruntime()
    for node, count in (("Concat", 2), ("MatMul", 2), ("Gemm", 3)):
        axis = "<axis = 0>" if node == "Concat" else ""
        model = _model(f"o0 = {node}{axis}({', '.join(f'i{i}' for i in range(count))})")
        operands = [np.ones((2, 3 + i), np.float32) for i in range(count)]
        with pytest.raises(FuselineError, match=rf"E0106: onnx.*cannot run {node}"):
            onnx_host.execute(model, operands)


def test_what_turns_out_to_be_lacking_runs_in_numpy() -> None:
    """onnxruntime takes the node and refuses its operands, since it has no kernel for one zero point per channel."""
    model = _model("o0 = ConvInteger(i0, i1, i2, i3)", "uint8[]")
    x, w = (
        np.random.default_rng(seed).integers(0, 255, shape, np.uint8)
        for seed, shape in ((0, (1, 1, 3, 3)), (1, (2, 1, 3, 3)))
    )
    points = np.array([3, 200], np.uint8)
    (out,) = onnx_host.execute(model, [x, w, np.array(7, np.uint8), points])
    wanted = ((x.astype(int) - 7) * (w.astype(int) - points.reshape(2, 1, 1, 1))).sum((1, 2, 3))
    assert out.reshape(-1).tolist() == wanted.tolist() and onnx_host.chosen(model) == NUMPY


def test_without_onnxruntime_all_runs_in_numpy(hide_onnxruntime: Callable[[], None]) -> None:
    model, x = (
        _model("o0 = MatMul(i0, i1)"),
        np.random.default_rng(0).standard_normal((5, 5), np.float32),
    )
    assert onnx_host.chosen(model) == FAST
    fast = onnx_host.execute(model, [x, x])[0]
    hide_onnxruntime()
    assert onnx_host.chosen(model) == NUMPY
    np.testing.assert_allclose(onnx_host.execute(model, [x, x])[0], fast, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_along_a_dimension_stays_with_numpy(axis: int) -> None:
    """onnxruntime ends the process on the distinct rows of nothing."""
    model = _model(f"o0 = Unique<axis = {axis}>(i0)")
    shape = (0, 3) if axis == 0 else (3, 0)
    (out,) = onnx_host.execute(model, [np.empty(shape, np.float32)])
    assert out.size == 0


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_without_a_quotient_end_no_process(dtype: str) -> None:
    """By 0, and the lowest by -1: in NumPy, as a native program has them; all other quotients are onnxruntime's."""
    low = np.iinfo(dtype).min
    x, y = np.array([7, low, 5, low], dtype), np.array([0, -1, 2, 1]).astype(dtype)
    for op_type, wanted in (("Div", [7, low // (1 if low else 255), 2, low]), ("Mod", [0, 0, 1, 0])):
        model = _model(f"o0 = {op_type}(i0, i1)", f"{dtype}[]")
        assert onnx_host.execute(model, [x, y])[0].tolist() == wanted
        if dtype in ("int32", "int64"):
            assert onnx_host.chosen(model) == FAST
