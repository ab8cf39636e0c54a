"""Models of one node, made of the arrays that it is to read, and what onnxruntime answers for them without its
optimisations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
IR_VERSION = 10


Value: TypeAlias = "Array | list[Array] | None"
"""What a node reads: a tensor, a sequence of tensors, or nothing."""


def one_node(
    op_type: str,
    inputs: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int = 18,
    domain: str = "",
    outputs: int | Sequence[str] = 1,
    constants: Collection[int] = (),
    ranks: bool = True,
) -> onnx.ModelProto:
    """`op_type` on `i0`, `i1`, .. (None: left out), answering `o0`, `o1`, ..

    Args:
        opset: the version of `domain`.
        outputs: how many, or their names (an empty one is not asked for).
        constants: the places of inputs that stand in the model.
        ranks: whether the inputs declare their sizes, or not even how many there are.
    """
    names = ["" if array is None else f"i{place}" for place, array in enumerate(inputs)]
    while names and not names[-1]:  # inputs left out at the end are not named at all
        names.pop()
    results = [f"o{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    node = helper.make_node(op_type, names, results, name="node", domain=domain, **dict(attributes or {}))
    given = [(place, array) for place, array in enumerate(inputs) if array is not None]
    infos = [_info(f"i{i}", array, ranks) for i, array in given if i not in constants]
    held = [
        numpy_helper.from_array(array, f"i{i}") for i, array in given if i in constants and not isinstance(array, list)
    ]
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=name) for name in results if name], held)
    imports = [helper.make_opsetid(domain, opset)] + ([helper.make_opsetid("", 18)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def _info(name: str, value: Array | list[Array], ranks: bool) -> onnx.ValueInfoProto:
    if isinstance(value, list):
        return helper.make_tensor_sequence_value_info(name, element_of(value[0]), None)
    return helper.make_tensor_value_info(name, element_of(value), value.shape if ranks else None)


def element_of(array: Array) -> int:
    """The ONNX element type of an array; strings lie in object arrays."""
    return int(onnx.TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype))


def feeds_of(inputs: Sequence[Value], constants: Collection[int] = ()) -> dict[str, Any]:
    """What to feed a model that `one_node` made of `inputs`."""
    return {f"i{place}": array for place, array in enumerate(inputs) if array is not None and place not in constants}


def onnxruntime_of(model: onnx.ModelProto) -> Any:
    """A session on one thread that computes node by node, as the model says."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What onnxruntime answers, in order; raises what onnxruntime raises."""
    return [
        np.asarray(item) if isinstance(item, np.ndarray | np.generic) else item
        for item in onnxruntime_of(model).run(None, dict(feeds))
    ]
