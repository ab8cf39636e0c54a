"""Nodes that compute the same whatever comes in are constants, as far as that makes a model no larger: what all
operands of a node are known of, and sizes that are numbers.

Quantized weights stay behind their DequantizeLinear, for runtimes that compute in integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from fuseline.exports.optimized.editor import Array, Editor, attribute, is_standard, operand, sizes
from fuseline.frontends.onnx.reference import evaluator_with

NAME = "constants"

FOLDED = frozenset(
    """Abs Add And Cast Ceil Concat ConstantOfShape CumSum Div Equal Exp Expand Flatten Floor Gather GatherElements
    GatherND Greater GreaterOrEqual Identity Less LessOrEqual Log Max Min Mod Mul Neg NonZero Not OneHot Or Pad Pow
    Range Reciprocal ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterND Shape Sign Size Slice Split Sqrt Squeeze
    Sub Tile Transpose Trilu Unsqueeze Where""".split()
)
SMALL = 1024
"""Elements of a result that may be larger than its operands."""

LARGEST = 1 << 24
"""Elements of operands with which is computed here."""


def apply(editor: Editor) -> bool:
    """Fold such nodes; whether there were some."""
    changed = False
    for node in editor.nodes():
        if node.graph is editor.graph and is_standard(node, *FOLDED):
            contents = _sizes(editor, node) or _computed(editor, node)
            if contents is not None:
                _put(editor, node, contents)
                changed = True
    return changed


def _put(editor: Editor, node: ir.Node, contents: list[Array]) -> None:
    for out, content in zip(node.outputs, contents, strict=True):
        if out.uses():
            editor.replace(out, editor.new_constant(content, str(out.name)), node)
    editor.remove_unused(node)
    editor.summary.did(NAME)


def _sizes(editor: Editor, node: ir.Node) -> list[Array] | None:
    """What Shape answers, or a part of it that is taken at once."""
    if any(out.is_graph_output() for out in node.outputs):
        return None
    found = _shape(node)
    if found is None and is_standard(node, "Gather", "Slice"):
        maker = node.inputs[0].producer() if node.inputs[0] is not None else None
        all_sizes = _shape(maker) if maker is not None else None
        found = None if all_sizes is None else _taken_sizes(editor, node, all_sizes)
    if found is None or any(not isinstance(size, int) for size in np.ravel(found)):
        return None
    return [np.asarray(found, np.int64)]


def _shape(node: ir.Node) -> Any:
    dims = sizes(operand(node, 0)) if is_standard(node, "Shape") else None
    if dims is None:
        return None
    return np.array(dims, object)[attribute(node, "start", 0) : attribute(node, "end", None)]


def _taken_sizes(editor: Editor, node: ir.Node, all_sizes: Any) -> Any:
    if is_standard(node, "Gather"):
        places = editor.constant(operand(node, 1))
        inside = places is not None and (abs(places + 0.5) < len(all_sizes)).all()
        return all_sizes[places] if inside else None
    starts, ends = editor.numbers(node, 1, "starts"), editor.numbers(node, 2, "ends")
    if operand(node, 4) is not None or starts is None or ends is None or len(starts) != 1:
        return None
    return all_sizes[starts[0] : ends[0]]


def _computed(editor: Editor, node: ir.Node) -> list[Array] | None:
    if any(out.is_graph_output() for out in node.outputs) or not node.inputs:
        return None
    if not all(value is None or editor.is_constant(value) for value in node.inputs):
        return None
    feeds = {str(value.name): editor.constant(value) for value in node.inputs if value is not None}
    known = {name: array for name, array in feeds.items() if array is not None and array.dtype.kind in "biuf"}
    total = sum(array.size for array in known.values())
    if len(known) < len(feeds) or total > LARGEST or _too_large(editor, node, total):
        return None
    results = _run(editor, node, known)
    if results is None or not all(map(_as_inferred, node.outputs, results)):
        return None
    return results if sum(array.size for array in results) <= max(SMALL, total) else None


def _as_inferred(out: ir.Value, content: Array) -> bool:
    """Whether a result has the sizes that ONNX infers, by which what stands behind is declared: it gives NonZero of a
    tensor without dimensions no row, where runtimes and ONNX's own reference make one."""
    dims = sizes(out)
    return dims is None or (
        len(dims) == content.ndim
        and all(not isinstance(dim, int) or dim == size for dim, size in zip(dims, content.shape, strict=True))
    )


def _too_large(editor: Editor, node: ir.Node, total: int) -> bool:
    """Whether a node spreads its operands out to more than is kept, told before it is computed."""
    if is_standard(node, "ConstantOfShape"):
        return int(np.prod(editor.numbers(node, 0, "") or [], dtype=np.float64)) > SMALL
    if is_standard(node, "Expand", "Tile", "Range", "OneHot", "Pad"):
        dims = sizes(node.outputs[0])
        return (
            dims is None
            or any(not isinstance(size, int) for size in dims)
            or (int(np.prod([size for size in dims if isinstance(size, int)], dtype=np.float64)) > max(SMALL, total))
        )
    return False


def _run(editor: Editor, node: ir.Node, feeds: dict[str, Array]) -> list[Array] | None:
    proto = ir.to_proto(node)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    graph = helper.make_graph([proto], "node", inputs, [onnx.ValueInfoProto(name=name) for name in proto.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", editor.opset)])
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(array) for array in evaluator_with((), model).run(None, feeds)]  # pyright: ignore[reportArgumentType]
    except Exception:  # noqa: BLE001 - a reference may raise anything: what is wrong with the node shows when it runs
        return None
