"""What a lowering sees of its node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.node_importer import Frame
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from tests.graphs.custom_lowering import computed

F32 = np.dtype(np.float32)


def _node(inputs: list[Tensor | None], outputs: str = "y", **attributes: Any) -> OnnxNode:
    names = [f"x{i}" if t is not None else "" for i, t in enumerate(inputs)]
    results = ["" if name == "-" else name for name in outputs.split()]
    source = ir.from_proto(helper.make_node("Any", names, results, **attributes))
    return OnnxNode(None, None, source, "label", inputs, source.attributes, 18)  # pyright: ignore[reportArgumentType]


def test_inputs() -> None:
    x, y = Tensor(F32, (2,)), Tensor(F32, (3,))
    node = _node([x, None, y])
    assert (node[0], node.get(1), node.get(2), node.get(3), node.present()) == (x, None, y, None, [x, y])
    for index in (1, 3):
        with pytest.raises(NoNativeLowering, match=f"missing-input: input {index} is left out"):
            node[index]


def test_outputs() -> None:
    node = _node([], "a - c")
    assert (node.op_type, node.output_count) == ("Any", 3)
    assert [node.wants_output(i) for i in range(4)] == [True, False, True, False]


def test_attributes() -> None:
    node = _node([], i=3, f=0.1, s="text", ints=[1, 2], floats=[0.1, 2.0], strings=["a", "ä"])
    assert node.has("i") and not node.has("j")
    assert (node.integer("i"), node.integer("j"), node.integer("j", 7)) == (3, 0, 7)
    assert node.number("f") == float(np.float32(0.1)) == node.number("g", 0.1) and node.number("g") == 0
    assert (node.integers("ints"), node.integers("none"), node.integers("none", [4])) == ([1, 2], [], [4])
    assert node.numbers("floats") == [float(np.float32(0.1)), 2.0] and node.numbers("none") == []
    assert (node.texts("strings"), node.texts("none")) == (["a", "ä"], [])
    assert (node.text("s"), node.text("none"), node.text("none", "other")) == ("text", "", "other")


@pytest.mark.parametrize(("axis", "rank", "found"), [(0, 3, 0), (2, 3, 2), (-1, 3, 2), (-3, 3, 0), (0, 0, 0)])
def test_axes(axis: int, rank: int, found: int) -> None:
    assert normal_axis(axis, rank) == found
    assert _node([], axis=axis).axis("axis", 9, rank) == found


@pytest.mark.parametrize(("axis", "rank"), [(3, 3), (-4, 3), (1, 0), (-1, 0)])
def test_axes_outside(axis: int, rank: int) -> None:
    with pytest.raises(NoNativeLowering, match=f"axis-out-of-range: axis {axis} of rank {rank}"):
        _node([]).axis("none", axis, rank)


def test_numbers_as_attributes_or_inputs() -> None:
    given = known(np.array([[3, 4]]))
    assert _node([None, given], axes=[1]).ints_or_input("axes", 1) == [1]
    assert _node([None, given]).ints_or_input("axes", 1) == [3, 4]
    assert _node([None, None]).ints_or_input("axes", 1) is None
    with pytest.raises(NoNativeLowering, match="runtime-value"):
        _node([Tensor(np.dtype(np.int64), (2,))]).ints_or_input("axes", 0)


def test_what_a_subgraph_sees() -> None:
    """The names around the node, and what a frame says of operator sets and attributes."""
    seen: list[Any] = []

    class Importer:
        def inline(self, graph: Any, around: Frame) -> list[Any]:
            seen.append((graph, around))
            return []

    x = Tensor(F32, (2,))
    node = _node([x])
    node.importer, node.scope, node.opsets = Importer(), {"x": x}, {"": 18}  # pyright: ignore[reportAttributeAccessIssue]
    assert node.inline("graph") == []  # pyright: ignore[reportArgumentType]
    ((graph, around),) = seen
    assert graph == "graph"
    assert (around.scope, around.opsets, around.label) == ({"x": x}, {"": 18}, "label")
    assert around.scope is not node.scope and around.attributes == {}
    assert Frame({}, {}).label == ""


def test_what_is_emitted_names_the_node() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        assert node.label == "mine" and node.provenance == ("mine",)
        assert node.ssa(node[0]) is node[0].value
        assert node.index(3) is node.index(3)
        assert "mine" in str(node.emit.location)
        return node[0]

    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(computed("(float[2] x) => (y) { [mine] y = test.Op (x) }", lowering, x)[0], x)
