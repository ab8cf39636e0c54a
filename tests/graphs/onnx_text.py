"""ONNX models from ONNX's own text syntax (`onnx.parser`), with arrays as weights.

    onnx_model("(float[n, 4] x) => (y) { t = MatMul(x, w)  y = Relu(t) }", w=array)

`float` is a scalar and `float[]` of unknown rank; an output may have no type at all; `[name] y = Op(x)` names a node;
an input that is left out is `""`; a graph attribute is `then_branch = g () => (t) { t = Neg(x) }`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
import onnx
import onnx.parser
from numpy.typing import ArrayLike, DTypeLike
from onnx import helper, numpy_helper


def onnx_model(
    text: str,
    weights: Mapping[str, ArrayLike] | None = None,
    *,
    opset: int = 18,
    ir_version: int = 9,
    **more_weights: ArrayLike,
) -> onnx.ModelProto:
    """The model of a graph's text; domains that nodes name are imported at version 1."""
    held = {**(weights or {}), **more_weights}
    graph = onnx.parser.parse_graph(text if re.match(r"\s*\w+\s*\(", text) else f"g {text}")
    graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in held.items())
    domains = sorted({node.domain for node in graph.node} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def element(dtype: DTypeLike) -> str:
    """What ONNX's text calls the elements of a NumPy type."""
    return onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).lower()


def attributes_of(attributes: Mapping[str, object]) -> str:
    """Attributes in ONNX's text; nothing where there are none."""
    return f"<{', '.join(f'{name} = {json.dumps(value)}' for name, value in attributes.items())}>" if attributes else ""
