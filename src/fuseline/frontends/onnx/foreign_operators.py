"""Operators that the standard lacks and onnxruntime has: whether a node is one, and what type its outputs have.

They run on the host in onnxruntime, which is asked here while the model is read; onnx.shape_inference knows nothing of
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import onnx
from onnx import TensorProto, TypeProto, helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.protos import standard_domain

DOMAINS = ("com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc")
"""Those of onnxruntime's own domains that its saved models have."""

PACKAGE = "onnxruntime"
_IN_SOURCES = re.compile(r"/\S+\.(?:cc|h):\d+ (?:.*?\) (?:const )?)?")
_ELEMENTS = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE}


def is_foreign(domain: str) -> bool:
    """Whether a domain is one of onnxruntime's own."""
    return domain in DOMAINS


def check_foreign(domain: str, op_type: str, label: str) -> None:
    """Refuse an operator of onnxruntime's domains that it cannot run on the host.

    Raises:
        FuselineError: E0503 where onnxruntime is not installed, E0103 where it does not know the operator.
    """
    name = f"{domain}.{op_type}"
    known = known_operators()
    if known is None:
        message = f"operator {name} has no native lowering and runs on the host in {PACKAGE}, which is not installed"
        raise FuselineError("E0503", message, node=label, hint=f"pip install {PACKAGE}")
    if (domain, op_type) not in known:
        raise FuselineError(
            "E0103",
            f"operator {name} is unknown, to {PACKAGE} too",
            node=label,
            hint="export with standard ONNX operators",
        )


@cache
def known_operators() -> frozenset[tuple[str, str]] | None:
    """The operators of the onnxruntime that is installed; None without one."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:
        return None
    schemas: Sequence[Any] = get_all_operator_schema()
    return frozenset((standard_domain(schema.domain), schema.name) for schema in schemas)


def output_types(proto: onnx.ModelProto, label: str) -> list[TypeProto]:
    """The types that onnxruntime infers for the outputs of a model of one node; one without dimensions may have any
    rank.

    Raises:
        FuselineError: E0103, onnxruntime has no CPU kernel for the node or refuses it; with its reason.
    """
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import GraphOptimizationLevel, SessionOptions

    options = SessionOptions()
    options.graph_optimization_level, options.log_severity_level = GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    marked = onnx.ModelProto()
    marked.CopyFrom(proto)
    marked.ir_version = min(proto.ir_version, 10)  # what one node needs has not changed since
    try:
        session: Any = InferenceSession(marked.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # pybind's exceptions have no public base class
        op_type, reason = proto.graph.node[0].op_type, _IN_SOURCES.sub("", " ".join(str(error).split()))
        raise FuselineError("E0103", f"{PACKAGE} does not run {op_type}: {reason}", node=label) from error
    return [_type_proto(output) for output in session.get_outputs()]


def _type_proto(output: Any) -> TypeProto:
    """What a session says of an output; it answers [] for a scalar and for an unknown shape."""
    found = re.fullmatch(r"tensor\((\w+)\)", output.type)
    if found is None:
        return TypeProto()
    element = _ELEMENTS.get(found[1]) or getattr(TensorProto, found[1].upper(), TensorProto.UNDEFINED)
    return helper.make_tensor_type_proto(element, output.shape or None)
