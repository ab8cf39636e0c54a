"""One-node ONNX models through onnxruntime: one thread, nothing optimised, nothing logged.

The package is optional; it is imported when the first operator asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuseline.errors import FuselineError

if TYPE_CHECKING:
    import onnx

NAME = "onnxruntime"
_NEWEST_IR = 10
"""The IR version that models are marked with: what one node needs has not changed since."""
_LACKING = re.compile("support|implement|not defined|must have the shape set", re.IGNORECASE)
"""What onnxruntime says of kernels that lack something that the standard has, as opposed to operands that no kernel can
take."""
_IN_SOURCES = re.compile(r"/\S+\.(?:cc|h):\d+ (?:.*?\) (?:const )?)?")
_FATAL = 4
"""The least that onnxruntime may be asked to log."""


class NotTaken(Exception):
    """onnxruntime does not run this model; why."""


class NotInstalled(NotTaken):
    """There is no onnxruntime."""


class OrtOperator:
    """A model that onnxruntime has taken. Raises NotTaken for one that it does not take: an operator, type or operator
    set it lacks."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        try:  # from their homes: `onnxruntime.InferenceSession`, or the whole name, may have been given to fuseline
            from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
            from onnxruntime.capi.onnxruntime_pybind11_state import GraphOptimizationLevel, SessionOptions
        except ImportError as error:
            raise NotInstalled("onnxruntime is not installed") from error
        _check_types(proto)
        marked = type(proto)()
        marked.CopyFrom(proto)
        marked.ir_version = min(proto.ir_version, _NEWEST_IR)
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = _FATAL
        options.enable_cpu_mem_arena = False  # memory goes back when the call ends
        try:
            self._session: Any = InferenceSession(
                marked.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # pybind's exceptions have no public base class
            raise NotTaken(_reason(error)) from error
        self._names: list[str] = [value.name for value in proto.graph.input]
        self._op_type: str = proto.graph.node[0].op_type

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The outputs for the inputs in order. Raises NotTaken for what turns out to be lacking, FuselineError (E0106)
        for operands that are refused."""
        feeds = {name: _as_fed(value) for name, value in zip(self._names, operands, strict=True)}
        try:
            return list(self._session.run(None, feeds))
        except Exception as error:
            reason = _reason(error)
            if type(error).__name__ == "NotImplemented" or _LACKING.search(reason):
                raise NotTaken(reason) from error
            raise FuselineError("E0106", f"{NAME} cannot run {self._op_type}: {reason}") from error


def _as_fed(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic) else value


def _check_types(proto: onnx.ModelProto) -> None:
    """Raise NotTaken for values that onnxruntime's Python interface does not take or give as this project does."""
    for value in proto.graph.input:
        kind = value.type.WhichOneof("value")
        if kind not in ("tensor_type", "sequence_type", "map_type"):
            raise NotTaken(f"an operand is {kind or 'of unknown type'}")
    small = {
        element
        for value in proto.graph.input
        if (element := value.type.tensor_type.elem_type) > _LAST_COMMON_TYPE or element == _BFLOAT16
    }
    small |= {
        constant.data_type
        for constant in proto.graph.initializer
        if constant.data_type > _LAST_COMMON_TYPE or constant.data_type == _BFLOAT16
    }
    if small:
        raise NotTaken("an operand has elements that NumPy does not know")


_LAST_COMMON_TYPE = 15  # TensorProto.COMPLEX128; what follows are bfloat16 and smaller types
_BFLOAT16 = 16


def _reason(error: Exception) -> str:
    """What onnxruntime says, without where in its sources it says it."""
    text = " ".join(str(error).split())
    for mark in ("Status Message: ", "[ONNXRuntimeError] : "):
        if mark in text:
            text = text.split(mark, 1)[1]
    return _IN_SOURCES.sub("", text.split(" : ", 2)[-1] if text[:1].isdigit() else text)
