"""One node at a time, in a session of onnxruntime without optimisations; where that has no kernel, in ONNX's reference
as we correct it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from fuseline.interop.onnx_reference import evaluator
from tests.fuzz.tensors import BF16, STRING, Value, onnx_type

IR_VERSION = 10

FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What onnxruntime and the reference raise for what they cannot run."""


class Rejected(Exception):
    """The node does not fit: it is left out of the model."""


def session_options(threads: int = 1) -> Any:
    """No optimisation, no thread pool to speak of, no messages."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def ort_session(model: onnx.ModelProto) -> ort.InferenceSession:
    """A session on the CPU; raises what onnxruntime raises."""
    return ort.InferenceSession(model.SerializeToString(), session_options(), providers=["CPUExecutionProvider"])


def ort_failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises, its own exceptions included."""
    state: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    own = (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.NotImplemented,
        state.RuntimeException,
        state.EPFail,
    )
    return (*own, *FAILURES)


def value_info(value: Value) -> onnx.ValueInfoProto:
    """A declaration without sizes, of a tensor with its rank (which ONNX's checker asks for)."""
    rank = None if value.kind != "tensor" else [None] * value.rank
    type_ = helper.make_tensor_type_proto(onnx_type(value.dtype), rank)
    if value.kind == "seq":
        type_ = helper.make_sequence_type_proto(type_)
    elif value.kind == "optional":
        type_ = helper.make_optional_type_proto(type_)
    return helper.make_value_info(value.name, type_)


def tensor_of(array: Any, name: str) -> onnx.TensorProto:
    """An initializer."""
    if array.dtype == STRING:
        words: Any = [str(item).encode() for item in array.reshape(-1)]
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, words)
    return numpy_helper.from_array(array, name)


class NodeRunner:
    """Runs `node` on arrays of its inputs (and of what its subgraphs read) in order."""

    def __init__(
        self, node: onnx.NodeProto, inputs: Sequence[Value], opsets: Sequence[onnx.OperatorSetIdProto]
    ) -> None:
        self.node, self.inputs = node, [value for value in inputs if not value.known]
        weights = [tensor_of(value.arrays[0], value.name) for value in inputs if value.known]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", [value_info(value) for value in self.inputs], outputs, weights)
        self.model = helper.make_model(graph, opset_imports=list(opsets), ir_version=IR_VERSION)
        self.names = [value.name for value in self.inputs]
        self.session: Any = None
        self.by_reference = False
        self._open()

    def _open(self) -> None:
        if any(value.dtype == BF16 for value in self.inputs):
            self._open_reference()
            return
        try:
            self.session = ort_session(self.model)
        except ort_failures() as error:
            if "NOT_IMPLEMENTED" not in str(error) and "NotImplemented" not in type(error).__name__:
                raise Rejected(f"{self.node.op_type}: {str(error)[:300]}") from error
            self._open_reference()

    def _open_reference(self) -> None:
        try:
            self._check_node()
            onnx.shape_inference.infer_shapes(self.model, check_type=True, strict_mode=True)
            self.session, self.by_reference = evaluator(self.model), True
        except (*FAILURES, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise Rejected(f"{self.node.op_type}: {str(error)[:300]}") from error

    def _check_node(self) -> None:
        """What ONNX says of the node alone: the reference takes what no schema allows. (A model would have to declare
        the types of its outputs.)"""
        if any(attribute.HasField("g") for attribute in self.node.attribute):
            return
        context = onnx.checker.C.CheckerContext()
        context.ir_version, context.opset_imports = (
            IR_VERSION,
            {opset.domain: opset.version for opset in self.model.opset_import},
        )
        onnx.checker.check_node(self.node, context)

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs that have names; raises Rejected where the node cannot be run."""
        feeds = dict(zip(self.names, arrays, strict=True))
        try:
            with np.errstate(all="ignore"):
                results = self.session.run(None, feeds)
        except ort_failures() as error:
            raise Rejected(f"{self.node.op_type}: {str(error)[:300]}") from error
        return [plain(result) for result in results]


def plain(result: Any) -> Any:
    """A result as an array (strings as objects), a list of such, or None."""
    if isinstance(result, list):
        return [plain(item) for item in result]  # pyright: ignore[reportUnknownVariableType]
    if result is None:
        return None
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind in "USTO" else array
