"""ONNX's backend interface (`onnx.backend.base`), through which ONNX's own node tests run.

`prepare(model).run(inputs)` compiles; `run_node` wraps a single node in a model first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.backend.base
import onnx.helper

from fuseline.border import border
from fuseline.compilation import compile_program
from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from fuseline.pipeline import CompileOptions
from fuseline.runtime import Session

onnx_host.install()


class FuselineBackendRep(onnx.backend.base.BackendRep):
    """A compiled model that takes its inputs by position."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @border("run")
    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in order. Raises FuselineError: E0202 to E0204 for the feeds."""
        del kwargs
        arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        if len(arrays) > len(self.session.inputs):
            raise FuselineError("E0201", f"{len(arrays)} feeds given, the model has {len(self.session.inputs)} inputs")
        feeds = {spec.name: array for spec, array in zip(self.session.inputs, arrays, strict=False)}
        return tuple(self.session.run(feeds).values())


class FuselineBackend(onnx.backend.base.Backend):
    """fuseline as an ONNX backend on the CPU."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` is the CPU."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    @border("compile")
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> FuselineBackendRep:
        """The model compiled; keyword arguments are fields of `CompileOptions`. Raises FuselineError naming the node at
        fault."""
        if not cls.supports_device(device):
            raise FuselineError("E0501", f"no device is called {device!r}", hint="programs run on the CPU")
        kwargs.setdefault("threads", 1)
        return FuselineBackendRep(Session(compile_program(model, CompileOptions(**kwargs))))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compiles and runs once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    @border("run")
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, ...]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node on arrays; `outputs_info` gives `(dtype, shape)` of the outputs where they cannot be
        inferred."""
        arrays = [np.asarray(array) for array in inputs]
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = _model_of(node, arrays, outputs_info, opset)
        return cls.run_model(model, arrays, device, **kwargs)


def _model_of(
    node: onnx.NodeProto, arrays: list[np.ndarray], outputs_info: Sequence[tuple[Any, ...]] | None, opset: int
) -> onnx.ModelProto:
    names = [name for name in node.input if name]
    inputs = [_value(name, array.dtype, array.shape) for name, array in zip(names, arrays, strict=True)]
    if outputs_info is None:
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
    else:
        outputs = [
            _value(name, np.dtype(dtype), shape) for name, (dtype, shape) in zip(node.output, outputs_info, strict=True)
        ]
    graph = onnx.helper.make_graph([node], node.op_type or "node", inputs, outputs)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])


def _value(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), list(shape))


prepare = FuselineBackend.prepare
run_model = FuselineBackend.run_model
run_node = FuselineBackend.run_node
supports_device = FuselineBackend.supports_device
