"""ONNX models from ONNX's own text syntax (`onnx.parser`), with arrays as weights.

    onnx_model("(float[n, 4] x) => (y) { t = MatMul(x, w)  y = Relu(t) }", w=array)

`float` is a scalar and `float[]` of unknown rank; an output may have no type at all; `[name] y = Op(x)` names a node;
an input that is left out is `""`, as any name that is no word is quoted; a graph attribute is
`then_branch = g () => (t) { t = Neg(x) }`. Texts of what a test computes are made by `declared`, `call` and
`attributes_of`:

    onnx_model(f"({declared(feeds)}) => (y) {{ {call(op_type, *feeds, axis=axis)} }}")
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
from numpy.typing import ArrayLike, DTypeLike, NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
Shape = Sequence[int | str | None]


def onnx_model(
    text: str,
    weights: Mapping[str, ArrayLike] | None = None,
    *,
    opset: int = 18,
    imports: Mapping[str, int] | None = None,
    ir_version: int = 9,
    **more_weights: ArrayLike,
) -> onnx.ModelProto:
    """The model of a graph's text.

    Args:
        imports: the operator sets where they are not `opset` and version 1 of each domain that nodes name.
    """
    held = {**(weights or {}), **more_weights}
    graph = onnx.parser.parse_graph(text if re.match(r"\s*\w+\s*\(", text) else f"g {text}")
    graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in held.items())
    domains = sorted({node.domain for node in graph.node} - {""})
    sets = imports if imports is not None else {"": opset, **dict.fromkeys(domains, 1)}
    opsets = [helper.make_opsetid(domain, version) for domain, version in sets.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def element_of(dtype: DTypeLike) -> str:
    """What ONNX's text calls the elements of a NumPy type."""
    return onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).lower()


def declared(
    values: Mapping[str, Array | Shape], shapes: Mapping[str, Shape | None] | None = None, element: str = "float"
) -> str:
    """Values of a graph in ONNX's text: of the type and the sizes of arrays (or of `shapes` of the same name: None for
    an unknown rank); of these sizes and `element` where there are no arrays."""
    shapes = shapes or {}
    return ", ".join(_declared(name, value, shapes, element) for name, value in values.items())


def _declared(name: str, value: Array | Shape, shapes: Mapping[str, Shape | None], element: str) -> str:
    array = isinstance(value, (np.ndarray, np.generic))
    shape = shapes.get(name, value.shape if array else value)
    sizes = "[]" if shape is None else f"[{', '.join(map(_size, shape))}]" if len(shape) else ""
    return f"{element_of(value.dtype) if array else element}{sizes} {name}"


def _size(size: int | str | None) -> str:
    return "?" if size is None else _word(size) if isinstance(size, str) else str(size)


def call(op_type: str, *inputs: str, results: str | Sequence[str] = "y", name: str = "", **attributes: object) -> str:
    """A node: `call("Add", "a", "b", results="c")` is `c = Add(a, b)`; a domain stands before the operator."""
    label = f"[{name}] " if name else ""
    made = results if isinstance(results, str) else ", ".join(map(_word, results))
    return f"{label}{made} = {op_type}{attributes_of(attributes)}({', '.join(map(_word, inputs))})"


def initializers(**arrays: Array) -> str:
    """Constants of a graph that stands inside another: `g () => (y) <float[2] w = {1.0, 2.0}> { .. }`."""
    return f"<{', '.join(f'{declared({name: array})} = {_content(array)}' for name, array in arrays.items())}>"


def _content(array: Array) -> str:
    return f"{{{', '.join(map(str, array.reshape(-1).tolist()))}}}"


def _word(name: str) -> str:
    """A name, quoted where it is none of the words of a program."""
    return name if name.isidentifier() else f'"{name}"'


def attributes_of(attributes: Mapping[str, object]) -> str:
    """Attributes in ONNX's text, arrays as tensors; nothing where there are none."""
    return f"<{', '.join(f'{name} = {_attribute(value)}' for name, value in attributes.items())}>" if attributes else ""


def _attribute(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{declared({'': value})}{_content(value)}"
    return json.dumps(value)
