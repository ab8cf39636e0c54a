"""What to say of a node that a lowering cannot make sense of: what ONNX's own shape inference finds wrong with it, else
that the fault is ours."""

from __future__ import annotations

import onnx
from onnx import shape_inference

from fuseline.border import coded
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.host_models import HostNode, host_model

_FAILURES = (
    onnx.checker.ValidationError,
    shape_inference.InferenceError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def unreadable(node: HostNode, problem: Exception) -> FuselineError:
    """The coded error for an accident: E0107 where the node does not fit its inputs, what `border.coded` says where the
    standard has nothing against it."""
    objection = _objection(node)
    if objection:
        error = FuselineError(
            "E0107", objection, node=node.label, hint="run onnx.checker with full_check=True on the model"
        )
    else:
        error = coded(problem, "read", node=node.label)
    error.__cause__ = problem
    return error


def _objection(node: HostNode) -> str:
    try:
        shape_inference.infer_shapes(host_model(node).proto, check_type=True, strict_mode=True, data_prop=True)
    except _FAILURES as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return lines[-1] if lines else "the node is malformed"
    return ""
