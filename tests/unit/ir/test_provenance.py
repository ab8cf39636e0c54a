"""How errors and reports name the source nodes of an op."""

from __future__ import annotations

from xdsl.dialects import test

from fuseline.ir.provenance import carry, location_of, node_names, provenance


def op_from(*nodes: str) -> test.TestOp:
    op = test.TestOp()
    op.location = location_of(nodes)
    return op


def test_the_nodes_are_named_in_order_with_commas() -> None:
    assert node_names(op_from("mul_7", "add_1", "mul_7")) == "add_1, mul_7"
    assert node_names(op_from("add_1")) == "add_1"


def test_an_op_from_nowhere_has_no_names() -> None:
    assert node_names(test.TestOp()) is None


def test_carried_nodes_are_named_beside_its_own() -> None:
    target = op_from("mul_7")
    carry([op_from("add_1"), op_from("sub_2")], [target])
    assert provenance(target) == ("add_1", "mul_7", "sub_2")
    assert node_names(target) == "add_1, mul_7, sub_2"
