"""One operator as its lowering gives it: run by the interpreter against onnxruntime or NumPy; or why it refuses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module
from fuseline.frontends.onnx import importer, read_onnx, registry
from fuseline.frontends.onnx.registry import Lowering, lowered_ops, lowering_of
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.interop import onnx_host
from fuseline.ir.context import CompilerContext, new_context
from fuseline.targets.interpreter.host import call_declared
from tests.draws import RNG
from tests.one_node import Array, Value, by_onnxruntime, feeds_of, one_node

F32 = np.float32
ML = "ai.onnx.ml"
onnx_host.install()


def normal(*shape: int, dtype: Any = F32) -> Array:
    """Numbers around 0."""
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def ints(low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
    """Numbers from `low` to before `high`."""
    return np.asarray(RNG.integers(low, high, shape)).astype(dtype)


def operators_of(module: ModuleType) -> set[str]:
    """The operators that functions of a module lower."""
    return {
        op_type
        for domain, op_type, since in lowered_ops()
        if _unwrapped(lowering_of(domain, op_type, since)).__module__ == module.__name__
    }


def _unwrapped(function: Any) -> Any:
    """What a lowering is without the checks that registering put around it."""
    while function.__module__ == registry.__name__:
        function = next(cell.cell_contents for cell in function.__closure__ if callable(cell.cell_contents))
    return function


def model_of(
    op_type: str,
    inputs: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
    *,
    free: Collection[int] = (),
    **more: Any,
) -> onnx.ModelProto:
    """As `one_node`; the sizes of inputs number `free` are symbols, equal ones the same."""
    model = one_node(op_type, inputs, attributes, **more)
    for info in model.graph.input:
        if int(info.name[1:]) in free:
            for dim in info.type.tensor_type.shape.dim:
                dim.dim_param = f"s{dim.dim_value}"
    return model


def agree(
    op_type: str,
    inputs: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
    *,
    wanted: Sequence[Any] | None = None,
    constants: Collection[int] = (),
    free: Collection[int] = (),
    rtol: float = 1e-5,
    atol: float = 1e-5,
    **more: Any,
) -> None:
    """The lowering gives `wanted`, or what onnxruntime answers; nothing is left for the host."""
    model = model_of(op_type, inputs, attributes, free=free, constants=constants, **more)
    feeds = feeds_of(inputs, constants)
    if wanted is None:
        wanted = by_onnxruntime(one_node(op_type, inputs, attributes, constants=constants, **more), feeds)
    found, ctx = computed(model, feeds)
    assert not ctx.records.host_ops, ctx.records.host_ops
    for one, expected in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(one.astype(np.float64), np.asarray(expected).astype(np.float64), rtol, atol)


def computed(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> tuple[list[Array], CompilerContext]:
    """The outputs by the interpreter, host operators included, and what reading noted."""
    ctx = new_context()
    module = read_onnx(model, ctx)
    module.verify()
    return evaluate_module(module, list(feeds.values()), ctx.resources, host_call=call_declared), ctx


def refusal(op_type: str, inputs: Sequence[Value], attributes: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Why the lowering of the node refuses it, whatever is made of it then."""
    reasons: list[str] = []

    def noting(domain: str, name: str, version: int) -> Lowering | None:
        lowering = lowering_of(domain, name, version)
        return None if lowering is None else _noting(lowering, reasons, name == op_type)

    with mock.patch.object(importer, "lowering_of", noting):
        read_onnx(model_of(op_type, inputs, attributes, **more), new_context())
    assert reasons, "it is not refused"
    return reasons[0]


def _noting(lowering: Lowering, reasons: list[str], mine: bool) -> Lowering:
    def noted(node: Any) -> Any:
        try:
            return lowering(node)
        except NoNativeLowering as error:
            if mine:
                reasons.append(str(error))
            raise

    return noted


def error(
    code: str,
    words: str,
    op_type: str,
    inputs: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """Reading the node is refused with `code`, naming it."""
    with pytest.raises(FuselineError, match=words) as caught:
        read_onnx(model_of(op_type, inputs, attributes, **more), new_context())
    assert (caught.value.code, caught.value.node) == (code, "node")
