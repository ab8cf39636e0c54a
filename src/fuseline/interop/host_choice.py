"""Which operators stay with NumPy where onnxruntime is installed: those that it computes in another way than this
project says it does.

What holds is ONNX's definition, and for special values docs/numerics.md: what is not finite is where the reference has
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

BY_REFERENCE = frozenset(
    """Constant Identity Optional OptionalGetElement OptionalHasElement ConcatFromSequence SequenceAt SequenceConstruct
    SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence""".split()
)
"""Operators that pass values on: onnxruntime would copy each of them in and out."""

FINITE_ONLY = frozenset(
    """ArgMax ArgMin BatchNormalization Binarizer Clip DynamicQuantizeLinear GRU GlobalMaxPool GroupNormalization
    Hardmax InstanceNormalization LRN LSTM LayerNormalization LogSoftmax LpNormalization Max MaxPool Min
    QLinearConv QLinearMatMul RNN ReduceMax ReduceMin Relu Scatter ScatterElements ScatterND Sign TopK""".split()
)
"""Operators in which onnxruntime loses NaN, or takes infinities for numbers: it gets operands that are finite
throughout."""

DIVISIONS = frozenset(("Div", "Mod"))
"""Operators in which onnxruntime refuses integers without a quotient, or ends the process: it gets operands that all
have one."""

TOTALS = frozenset(("ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"))
"""Operators that onnxruntime computes in floats for integers, and cuts off where integers wrap around: it gets no
integers."""

_Condition = Callable[["onnx.NodeProto"], bool]


def _has(name: str, *values: object) -> _Condition:
    return lambda node: any(
        attribute.name == name and (attribute.s in values or attribute.i in values) for attribute in node.attribute
    )


DIFFERENT: dict[str, tuple[str, _Condition]] = {
    **{
        op_type: ("draws reproducibly", lambda node: True)
        for op_type in (
            "Bernoulli",
            "Dropout",
            "Multinomial",
            *(f"Random{kind}" for kind in ("Normal", "NormalLike", "Uniform", "UniformLike")),
        )
    },
    **{op_type: ("keeps more digits", lambda node: True) for op_type in ("DFT", "STFT", "Shrink")},
    **{op_type: ("converts as every other Cast does", lambda node: True) for op_type in ("Cast", "CastLike")},
    "Attention": ("takes masks, and shows the product, as the standard has them", lambda node: True),
    "BatchNormalization": ("training", _has("training_mode", 1)),
    "LSTM": (
        "clip bounds what goes into the activations, and nothing else",
        lambda node: any(a.name == "clip" for a in node.attribute),
    ),
    "NonZero": (
        "is as fast there, and of a tensor without dimensions the same in every installation",
        lambda node: True,
    ),
    "QuantizeLinear": ("saturates", lambda node: True),
    "Resize": ("an output of one element is the first input", _has("coordinate_transformation_mode", b"align_corners")),
}
"""Operators of which onnxruntime does something else, always or under a condition, and what NumPy does."""


STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
"""Whose operators onnx.reference knows."""


def only_in_onnxruntime(node: onnx.NodeProto) -> bool:
    """Whether `node`, or one in the bodies inside it, is an operator of onnxruntime's own."""
    return any(inner.domain not in STANDARD_DOMAINS for inner in nodes_inside(node))


def why_numpy(node: onnx.NodeProto) -> str | None:
    """Why `node` and the bodies inside it run in NumPy; None where onnxruntime may run them."""
    if only_in_onnxruntime(node):
        return None
    if node.op_type in BY_REFERENCE:
        return "passes values on"
    for inner in nodes_inside(node):
        reason, applies = DIFFERENT.get(inner.op_type, ("", _never))
        if applies(inner):
            return reason
        if inner is not node and inner.op_type in FINITE_ONLY:
            return f"{inner.op_type} of what may not be finite"
        if inner is not node and inner.op_type in DIVISIONS:
            return f"{inner.op_type} of what may have no quotient"
    return None


def _never(node: onnx.NodeProto) -> bool:
    return False


def nodes_inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The node, and all nodes of its bodies."""
    yield node
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                yield from nodes_inside(inner)
