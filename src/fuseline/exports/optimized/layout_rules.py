"""Operators that can run on tensors whose axes stand in another order, and what changes in them then.

A rule answers, for a node and a permutation of its operands' axes, with the change that lets it compute the permuted
results from permuted operands; or with None where it cannot. Rules ask first and change later, so that a cost can be
compared in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, attribute, is_standard, operand, rank, sizes
from fuseline.exports.optimized.permutation import Perm, permuted, reordered

Change = Callable[[], None]

UNARY = frozenset(
    """Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish
    Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus
    Softsign Sqrt Swish Tan Tanh ThresholdedRelu""".split()
)
"""Elementwise in their first operand; the further ones are scalars."""

NARY = frozenset(
    """Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where
    Xor""".split()
)
"""Elementwise in all operands, which broadcast."""

REDUCTIONS = frozenset(
    """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare""".split()
)

SINGLE_AXIS = frozenset("ArgMax ArgMin Concat Gather Hardmax LogSoftmax Softmax Split".split())
"""One axis, an attribute. Softmax and its kin take several at once before operator set 13."""


def movable(editor: Editor, node: ir.Node) -> list[ir.Value] | None:
    """The operands and results of a node whose axes can be permuted together: all of one rank. None for a node that
    wants its axes as they are."""
    rule = _rule(node)
    if rule is None or node.graph is not editor.graph:
        return None
    inputs = rule(editor, node)
    if inputs is None:
        return None
    kept = [out for out in node.outputs if out.name]
    members = [*inputs, *(kept if not _drops_axes(node) else [])]
    ranks = {rank(value) for value in members}
    return members if len(ranks) == 1 and None not in ranks else None


def change(editor: Editor, node: ir.Node, perm: Perm) -> Change | None:
    """What lets a movable node compute permuted results from permuted operands."""
    if is_standard(node, *NARY):
        return lambda: _turn_constants(editor, node, perm)
    if is_standard(node, "Concat"):
        return lambda: (_turn_constants(editor, node, perm), _axis(node, perm, 0))[1]
    if is_standard(node, *UNARY):
        return lambda: None
    if is_standard(node, "Pad"):
        return _pad(editor, node, perm)
    if is_standard(node, "Resize"):
        return _resize(editor, node, perm)
    if is_standard(node, "Slice"):
        return lambda: _slice(editor, node, perm)
    if is_standard(node, *REDUCTIONS):
        return _reduction(editor, node, perm)
    if is_standard(node, "QuantizeLinear", "DequantizeLinear"):
        return lambda: _axis(node, perm, 1) if rank(operand(node, 1)) == 1 else None
    if is_standard(node, "ArgMax", "ArgMin"):
        return _argument(node, perm)
    default = 0 if is_standard(node, "Split", "Gather") else -1
    return lambda: _axis(node, perm, default)


# -- which nodes, and which of their operands ------------------------------------------------------------------------


def _rule(node: ir.Node) -> Callable[[Editor, ir.Node], list[ir.Value] | None] | None:
    if is_standard(node, *NARY):
        return _broadcasting
    if is_standard(node, *UNARY):
        return _first
    if is_standard(node, *SINGLE_AXIS, "QuantizeLinear", "DequantizeLinear", "Pad", "Resize", "Slice", *REDUCTIONS):
        return _by_axes
    return None


def _first(editor: Editor, node: ir.Node) -> list[ir.Value] | None:
    value = operand(node, 0)
    return None if value is None or editor.is_constant(value) else [value]


def _broadcasting(editor: Editor, node: ir.Node) -> list[ir.Value] | None:
    """Operands of full rank take part; others must be constants, or single elements."""
    known = rank(node.outputs[0])
    found: list[ir.Value] = []
    for value in node.inputs:
        if value is None or known is None or rank(value) is None:
            return None
        if editor.is_constant(value) or all(size == 1 for size in sizes(value) or ()):
            continue
        if rank(value) != known:
            return None
        found.append(value)
    return found or None


def _by_axes(editor: Editor, node: ir.Node) -> list[ir.Value] | None:
    value, more = operand(node, 0), [v for v in node.inputs[1:] if v is not None]
    if is_standard(node, "Concat"):
        return [v for v in node.inputs if v is not None and not editor.is_constant(v)] or None
    if value is None or editor.is_constant(value) or not _plain(editor, node):
        return None
    return [value] if all(editor.is_constant(v) for v in more) else None


def _plain(editor: Editor, node: ir.Node) -> bool:
    if is_standard(node, "Softmax", "LogSoftmax", "Hardmax", "Slice", "Split", "Resize"):
        return editor.opset >= 13
    if is_standard(node, "Gather"):
        return rank(operand(node, 1)) == 1
    if is_standard(node, "QuantizeLinear", "DequantizeLinear"):
        return not attribute(node, "block_size", 0) and rank(operand(node, 1)) in (0, 1)
    return True


def _drops_axes(node: ir.Node) -> bool:
    return is_standard(node, "ArgMax", "ArgMin", *REDUCTIONS) and not attribute(node, "keepdims", 1)


# -- what changes ------------------------------------------------------------------------------------------------------


def _axis(node: ir.Node, perm: Perm, default: int) -> None:
    axis = int(attribute(node, "axis", default)) % len(perm)
    node.attributes["axis"] = ir.AttrInt64("axis", perm.index(axis))


def _turn_constants(editor: Editor, node: ir.Node, perm: Perm) -> None:
    for index, value in enumerate(node.inputs):
        array = editor.constant(value)
        if array is not None and array.size > 1:
            full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
            node.replace_input_with(index, editor.new_constant(permuted(full, perm), f"{value.name}/turned"))  # pyright: ignore[reportOptionalMemberAccess]


def _moved(axes: Sequence[int], perm: Perm) -> list[int]:
    return [perm.index(axis % len(perm)) for axis in axes]


def _set_integers(editor: Editor, node: ir.Node, index: int, name: str, numbers: Sequence[int]) -> None:
    """Where the node has them: the attribute, or the input."""
    if name in node.attributes:
        node.attributes[name] = ir.AttrInt64s(name, list(numbers))
        return
    old = operand(node, index)
    kind = np.int64 if old is None or old.dtype is None else old.dtype.numpy()
    node.replace_input_with(index, editor.new_constant(np.array(numbers, kind), f"{node.name}/{name}"))


def _slice(editor: Editor, node: ir.Node, perm: Perm) -> None:
    starts = editor.numbers(node, 1, "starts") or []
    axes = editor.numbers(node, 3, "axes") if operand(node, 3) is not None else list(range(len(starts)))
    if operand(node, 3) is None:
        steps = operand(node, 4)
        node.resize_inputs(4 if steps is None else 5)
    _set_integers(editor, node, 3, "axes", _moved(axes or [], perm))


def _pad(editor: Editor, node: ir.Node, perm: Perm) -> Change | None:
    pads = editor.numbers(node, 1, "pads")
    if pads is None or attribute(node, "mode", "constant") == "wrap":
        return None
    if operand(node, 3) is not None:
        axes = editor.numbers(node, 3, "axes") or []
        return lambda: _set_integers(editor, node, 3, "axes", _moved(axes, perm))
    half = len(perm)
    turned = [*reordered(pads[:half], perm), *reordered(pads[half:], perm)]
    return lambda: _set_integers(editor, node, 1, "pads", turned)


def _resize(editor: Editor, node: ir.Node, perm: Perm) -> Change | None:
    axes = attribute(node, "axes", None)
    if axes is not None:
        return lambda: node.attributes.update({"axes": ir.AttrInt64s("axes", _moved(axes, perm))})

    def turn() -> None:
        for index in (1, 2, 3):
            array, old = editor.constant(operand(node, index)), operand(node, index)
            if array is not None and old is not None and array.size:
                permuted = array.reshape(-1, len(perm))[:, list(perm)]
                node.replace_input_with(index, editor.new_constant(permuted.reshape(-1), f"{old.name}/turned"))

    return turn


def _reduction(editor: Editor, node: ir.Node, perm: Perm) -> Change | None:
    axes = editor.numbers(node, 1, "axes")
    if axes is None:
        keeps = bool(attribute(node, "keepdims", 1)) or not attribute(node, "noop_with_empty_axes", 0)
        return (lambda: None) if keeps else None
    if not _drops_axes(node) or _rest_in_order([axis % len(perm) for axis in axes], perm):
        return lambda: _set_integers(editor, node, 1, "axes", _moved(axes, perm))
    return None


def _argument(node: ir.Node, perm: Perm) -> Change | None:
    axis = int(attribute(node, "axis", 0)) % len(perm)
    if _drops_axes(node) and not _rest_in_order([axis], perm):
        return None
    return lambda: _axis(node, perm, 0)


def _rest_in_order(dropped: Sequence[int], perm: Perm) -> bool:
    """Whether the axes that stay come out in the order that they had."""
    rest = [axis for axis in perm if axis not in dropped]
    return rest == sorted(rest)
