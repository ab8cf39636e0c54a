"""Decision trees as tables, walked in NumPy beside the nodes that a model lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops import forests
from fuseline.frontends.onnx.ops.forest_checks import MOST_FEATURES, require_among, well_formed
from fuseline.frontends.onnx.ops.forests import EQ, GT, GTE, LEAF, LEQ, LT, MEMBER, NEQ, Forest, Nodes
from fuseline.frontends.onnx.tensors import NoNativeLowering
from tests.draws import RNG

TESTS: dict[int, Callable[[float, float], bool]] = {
    LEQ: lambda x, v: x <= v,
    LT: lambda x, v: x < v,
    GTE: lambda x, v: x >= v,
    GT: lambda x, v: x > v,
    EQ: lambda x, v: x == v,
    NEQ: lambda x, v: x != v,
}


def _grown(sizes: list[int], modes: list[int], dtype: Any = np.float32) -> Nodes:
    """Trees with so many inner nodes each: every new one takes the place of some leaf."""
    rows: list[list[int]] = []  # passed, failed, mode
    roots: list[int] = []
    for size in sizes:
        roots.append(len(rows))
        rows.append([0, 0, LEAF])
        leaves = [roots[-1]]
        for _ in range(size):
            at = leaves.pop(int(RNG.integers(len(leaves))))
            rows[at] = [len(rows), len(rows) + 1, int(RNG.choice(modes))]
            leaves += [len(rows), len(rows) + 1]
            rows += [[0, 0, LEAF], [0, 0, LEAF]]
    passed, failed, mode = np.array(rows).T
    count = len(rows)
    value = RNG.integers(-2, 3, count).astype(dtype)
    missing = RNG.integers(0, 2, count).astype(bool) & (mode != LEAF)
    return Nodes(np.array(roots), passed, failed, RNG.integers(0, 3, count), value, mode, missing)


def _leaf(nodes: Nodes, root: int, x: Any) -> int:
    """Where a row ends, by the nodes as they are listed."""
    at = root
    while nodes.mode[at] != LEAF:
        feature = x[nodes.feature[at]]
        holds = (
            bool(nodes.missing_passes[at]) or nodes.mode[at] == NEQ
            if np.isnan(feature)
            else TESTS[int(nodes.mode[at])](feature, nodes.value[at])
        )
        at = int(nodes.passed[at] if holds else nodes.failed[at])
    return at


def _walked(forest: Forest, tree: int, x: Any) -> int:
    """Where it ends by the tables, in as many steps as they say."""
    at = tree
    for _ in range(forest.depth):
        feature = x[forest.feature[at]]
        low = True if forest.low is None else forest.low[at] <= feature
        high = True if forest.high is None else feature <= forest.high[at]
        flagged = forest.missing_passes is not None and bool(forest.missing_passes[at]) and np.isnan(feature)
        at = int(forest.child[at]) + int((low and high) or flagged)
    return int(forest.source[at])


@pytest.mark.parametrize("modes", [[LEQ], [LT], [GTE], [GT], [EQ], [NEQ], [LEQ, LT, GTE, GT, EQ, NEQ]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_lead_where_the_nodes_do(modes: list[int], dtype: Any) -> None:
    nodes = _grown([0, 1, 7, 12], modes, dtype)
    forest = forests.forest_of(nodes)
    assert forest.trees == 4
    for _ in range(40):
        x = RNG.choice([-2, -1, 0, 0.5, 1, 2, np.nan, np.inf, -np.inf], 3).astype(dtype)
        for tree, root in enumerate(nodes.roots.tolist()):
            assert _walked(forest, tree, x) == _leaf(nodes, root, x)


def test_what_belongs_to_a_node_lies_together() -> None:
    nodes = replace(_grown([5, 9], [LEQ]), missing_passes=np.zeros(30, bool))
    forest = forests.forest_of(nodes)
    assert forest.low is None and forest.high is not None and forest.missing_passes is None
    words, records = forest.words(), forest.records()
    assert words.dtype == np.int32 and records is not None
    bits = forest.feature_bits
    np.testing.assert_array_equal(words >> (bits + 1), forest.child)
    np.testing.assert_array_equal((words >> 1) & ((1 << bits) - 1), forest.feature)
    assert not (words & 1).any()
    np.testing.assert_array_equal(records & 0xFFFFFFFF, words)
    np.testing.assert_array_equal((records >> 32).astype(np.int32), forest.high.view(np.int32))
    assert forests.forest_of(_grown([3], [LEQ], np.float64)).records() is None
    assert forests.forest_of(_grown([3], [GT])).high is None


def test_places_and_depths() -> None:
    nodes = _grown([0, 3, 8], [LEQ])
    forest = forests.forest_of(nodes)
    tree, depths = forest.trees_of_positions(), forest.depths()
    assert depths[0] == 0 and depths.max() == forest.depth
    for position, source in enumerate(forest.source.tolist()):
        assert nodes.roots[tree[position]] <= source and (
            tree[position] == 2 or source < nodes.roots[tree[position] + 1]
        )


def test_trees_of_about_one_depth_are_walked_together() -> None:
    shallow, deep = [1] * 64, [40] * 16
    nodes = _grown(shallow + deep, [LEQ])
    groups = forests.of_equal_depth(nodes)
    assert len(groups) > 1
    assert sorted(np.concatenate([group.roots for group in groups]).tolist()) == nodes.roots.tolist()
    assert all(len(group.roots) % forests.LANES == 0 for group in groups)
    alike = _grown([1] * 32, [LEQ])
    assert [group.roots.tolist() for group in forests.of_equal_depth(alike)] == [alike.roots.tolist()]


def test_membership_is_a_search() -> None:
    nodes = _grown([1, 1, 1], [LEQ])
    nodes.mode[nodes.roots] = MEMBER
    sets = [np.array([3.0, -1, 0, 2], np.float32), np.array([1.0], np.float32), np.zeros(0, np.float32)]
    split = forests.with_members_split(nodes, sets)
    forest = forests.forest_of(split)
    for x in (-2.0, -1, 0, 1, 2, 2.5, 3, 9):
        row = np.full(3, x, np.float32)
        for tree, (root, members) in enumerate(zip(nodes.roots.tolist(), sets, strict=True)):
            side = nodes.passed if x in members else nodes.failed
            assert _walked(forest, tree, row) == side[root]
    with pytest.raises(NoNativeLowering, match="3 membership tests with 2 sets"):
        forests.with_members_split(nodes, sets[:2])


def test_a_leaf_more() -> None:
    nodes = _grown([2], [LEQ])
    more = forests.with_a_leaf(nodes)
    assert len(more.mode) == len(nodes.mode) + 1 and more.mode[-1] == LEAF
    np.testing.assert_array_equal(more.mode[:-1], nodes.mode)
    np.testing.assert_array_equal(more.roots, nodes.roots)


# -- as models list them -----------------------------------------------------------------------------------------------


def test_nodes_by_tree_and_number() -> None:
    trees, ids = np.array([1, 0, 0, 1]), np.array([0, 5, 2, 3])
    found = forests.positions_of(trees, ids, np.array([0, 1, 0]), np.array([2, 3, 5]))
    assert found.tolist() == [2, 3, 1]
    assert forests.positions_of(trees, ids, np.zeros(0, int), np.zeros(0, int)).tolist() == []
    for wanted in (([0], [9]), ([2], [5])):
        with pytest.raises(NoNativeLowering, match="a node is missing, or there twice"):
            forests.positions_of(trees, ids, *map(np.array, wanted))
    with pytest.raises(NoNativeLowering, match="there twice"):
        forests.positions_of(np.array([0, 0]), np.array([1, 1]), np.array([0]), np.array([1]))


def test_roots_are_no_children() -> None:
    trees = np.array([0, 0, 0, 1])
    passed, failed, leaf = np.array([0, 0, 0, 0]), np.array([0, 2, 0, 0]), np.array([True, False, True, True])
    assert forests.roots_of(trees, passed, failed, leaf).tolist() == [1, 3]
    with pytest.raises(NoNativeLowering, match="a tree has no root, or several"):
        forests.roots_of(trees, passed, failed, np.ones(4, bool))


# -- checks ------------------------------------------------------------------------------------------------------------


def test_trees_that_are_well_formed() -> None:
    nodes = _grown([0, 3, 9], [LEQ, NEQ])
    assert well_formed(nodes, "node") is nodes


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"roots": np.array([99])}, "a root of a tree is number 99..99 of"),
        ({"roots": np.array([-1])}, "a root of a tree is number -1"),
        ({"passed": 99}, "a child of a tree is number"),
        ({"failed": -1}, "a child of a tree is number"),
        ({"feature": -1}, "a feature of a tree is number"),
        ({"feature": MOST_FEATURES}, "a feature of a tree is number"),
        ({"passed": 0}, "a node of a tree is below itself"),
    ],
)
def test_trees_that_are_not(changed: dict[str, Any], words: str) -> None:
    nodes = _grown([4], [LEQ])
    for name, value in changed.items():
        array = value if isinstance(value, np.ndarray) else getattr(nodes, name).copy()
        if not isinstance(value, np.ndarray):
            array[0] = value  # the root, which is no leaf
        nodes = replace(nodes, **{name: array})
    with pytest.raises(FuselineError, match=words) as caught:
        well_formed(nodes, "node")
    assert (caught.value.code, caught.value.node) == ("E0107", "node")


def test_modes_that_nobody_knows() -> None:
    nodes = _grown([2], [LEQ])
    nodes.mode[0] = MEMBER + 1
    with pytest.raises(NoNativeLowering, match=r"unsupported-mode: nodes_modes \[0, 7\]|unsupported-mode"):
        well_formed(nodes, "node")


def test_numbers_among_others() -> None:
    require_among(np.array([0, 4]), 5, "a leaf", "node")
    require_among(np.zeros(0, int), 0, "a leaf", "node")
    for positions in ([-1], [5], [0, 5]):
        with pytest.raises(FuselineError, match="a leaf of a tree is number"):
            require_among(np.array(positions), 5, "a leaf", "node")
