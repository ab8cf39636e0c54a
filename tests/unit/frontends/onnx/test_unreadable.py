"""What is said of a node that a lowering stumbled over."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.host_models import HostNode
from fuseline.frontends.onnx.tensors import known
from fuseline.frontends.onnx.unreadable import unreadable
from tests.graphs.custom_lowering import read_with

PROBLEM = IndexError("tuple index out of range")


def _node(op_type: str, *arrays: Any, **attributes: Any) -> HostNode:
    names = [f"x{i}" for i in range(len(arrays))]
    source = ir.from_proto(helper.make_node(op_type, names, ["y"], **attributes))
    return HostNode(source, "the node", [known(array) for array in arrays], source.attributes, "", {"": 18}, {}, {})


def test_what_the_standard_has_against_it() -> None:
    error = unreadable(_node("MatMul", np.ones((2, 3)), np.ones((4, 5))), PROBLEM)
    assert (error.code, error.node) == ("E0107", "the node")
    assert "Incompatible dimensions" in error.message
    assert error.hint is not None and "full_check" in error.hint
    assert error.__cause__ is PROBLEM


def test_where_the_standard_has_nothing_against_it_the_fault_is_ours() -> None:
    error = unreadable(_node("MatMul", np.ones((2, 3)), np.ones((3, 5))), PROBLEM)
    assert (error.code, error.node) == ("E0901", "the node")
    assert "tuple index out of range" in error.message
    assert error.__cause__ is PROBLEM


def test_a_node_that_the_standard_cannot_even_judge() -> None:
    assert unreadable(_node("Cast", np.ones(2), to=77), PROBLEM).code == "E0107"


def test_it_is_what_a_model_is_refused_with() -> None:
    def broken(node: Any) -> Any:
        raise PROBLEM

    with pytest.raises(FuselineError, match="tuple index out of range") as caught:
        read_with("(float[3] x) => (y) { [mine] y = test.Op (x) }", broken)
    assert caught.value.node == "mine"
