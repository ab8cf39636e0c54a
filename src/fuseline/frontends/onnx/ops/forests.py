"""Decision trees as tables: every node asks whether one feature lies in an interval, and its children stand side by
side.

    node  <-  child[node] + (low[node] <= x[feature[node]] <= high[node])
            as many times as the deepest tree is deep

A leaf is its own child, with a test that nothing passes. All comparisons of ONNX are such tests, `x != v` is `x == v`
with the children exchanged, and membership in a set is several. What is no number passes none but those that are
flagged. What belongs to a node lies together: reading memory is what a walk takes its time for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.frontends.onnx.tensors import NoNativeLowering

Array = NDArray[Any]
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(len(MODES))
LEAF = -1
LANES = 16
"""Trees that a target may well walk together: groups of trees are multiples of it."""

MOST_GROUPS = 4
WORTH_A_GROUP = 0.9
"""What share of the steps one more walk may leave to be worth it."""


@dataclass
class Nodes:
    """Nodes of any number of trees as a model lists them, one entry each: the places of the children among them (of a
    leaf any), the feature, the number compared with, the mode (`LEAF`, or one of `MODES`) and whether what is no number
    passes. `roots`: one per tree."""

    roots: Array
    passed: Array
    failed: Array
    feature: Array
    value: Array
    mode: Array
    missing_passes: Array


@dataclass(frozen=True)
class Forest:
    """The tables; the first `trees` nodes are the roots. `low` and `high` are None where they bound nothing, `source`
    is the node of the model. `missing_passes` is None where it nowhere does."""

    trees: int
    depth: int
    feature: Array
    child: Array
    missing_passes: Array | None
    low: Array | None
    high: Array | None
    source: NDArray[np.int64]

    @property
    def feature_bits(self) -> int:
        """How many bits of a word the feature takes."""
        return int(self.feature.max(initial=0)).bit_length()

    def trees_of_positions(self) -> Array:
        """Which tree each place belongs to; of one that several share, one of them."""
        tree = np.full(len(self.child), -1)
        for here, above in self._levels():
            tree[here] = np.arange(self.trees) if above is None else tree[above]
        return tree

    def depths(self) -> Array:
        """How many tests each tree takes at most."""
        tree, depth = self.trees_of_positions(), np.zeros(self.trees, np.int64)
        for level, (here, _) in enumerate(self._levels()):
            depth[tree[here]] = level
        return depth

    def _levels(self) -> Iterator[tuple[Array, Array | None]]:
        """Places level by level, with those above them."""
        here: Array = np.arange(self.trees)
        above: Array | None = None
        while here.size:
            yield here, above
            inner = here[self.child[here] != here]
            here, first = np.unique(np.concatenate([self.child[inner], self.child[inner] + 1]), return_index=True)
            above = np.concatenate([inner, inner])[first]

    def words(self) -> Array:
        """`child, feature, flag` in one integer per node, the flag in its last bit; as narrow as they fit."""
        flag = (
            np.zeros(len(self.child), np.int64) if self.missing_passes is None else self.missing_passes.astype(np.int64)
        )
        wide = (self.child << (self.feature_bits + 1)) | (self.feature << 1) | flag
        return wide.astype(np.int32) if wide.max(initial=0) <= np.iinfo(np.int32).max else wide

    def records(self) -> Array | None:
        """Words with the bits of `high` above them, which one read fetches together; None where they take more than 64
        bits."""
        words = self.words()
        if self.high is None or self.high.dtype != np.float32 or words.dtype != np.int32:
            return None
        return (self.high.view(np.int32).astype(np.int64) << 32) | words.astype(np.int64)


@dataclass
class _Tests:
    """Nodes as interval tests; a leaf has the test that nothing passes and no children."""

    low: Array
    high: Array
    passed: Array
    failed: Array
    feature: Array
    leaf: Array


def forest_of(nodes: Nodes) -> Forest:
    """The tables of `nodes`; a mode that is `MEMBER` must have been split up before.

    Raises:
        NoNativeLowering: the nodes make no trees.
    """
    tests = _tests(nodes)
    source, child = _laid_out(nodes.roots, tests)
    asked = ~tests.leaf[source]
    low, high, missing = (
        tests.low[source],
        tests.high[source],
        (nodes.missing_passes & (nodes.mode != NEQ) & ~tests.leaf)[source],
    )
    bounded_below, bounded_above = bool((low[asked] != -np.inf).any()), bool((high[asked] != np.inf).any())
    return Forest(
        trees=len(nodes.roots),
        depth=_depth(child, len(nodes.roots)),
        feature=np.where(asked, tests.feature[source], 0).astype(np.int64),
        child=child,
        missing_passes=missing if missing.any() else None,
        low=low if bounded_below else None,
        high=high if bounded_above or not bounded_below else None,
        source=source,
    )


def with_nodes(nodes: Nodes, **columns: Array) -> Nodes:
    """`nodes` and some more, of which all columns but the roots are given."""
    return Nodes(
        nodes.roots, **{name: np.concatenate([getattr(nodes, name), added]) for name, added in columns.items()}
    )


def with_a_leaf(nodes: Nodes) -> Nodes:
    """`nodes` and one leaf behind them."""
    return with_nodes(
        nodes, **{name: np.full(1, LEAF if name == "mode" else 0, getattr(nodes, name).dtype) for name in _COLUMNS}
    )


def of_equal_depth(nodes: Nodes) -> list[Nodes]:
    """The trees in up to `MOST_GROUPS` groups of about equal depth, where that takes notably fewer steps than to walk
    all as deep as the deepest."""
    depths = forest_of(nodes).depths()
    order = np.argsort(depths, kind="stable")
    best, least = [order], _steps(depths, [order]) * WORTH_A_GROUP
    for count in range(2, MOST_GROUPS + 1):
        size = -(-len(order) // (count * LANES)) * LANES
        groups = [order[first : first + size] for first in range(0, len(order), size)]
        if _steps(depths, groups) < least:
            best, least = groups, _steps(depths, groups) * WORTH_A_GROUP
    return [replace(nodes, roots=nodes.roots[np.sort(group)]) for group in best]


def _steps(depths: Array, groups: Sequence[Array]) -> int:
    return sum(-(-len(group) // LANES) * LANES * (int(depths[group].max()) + 1) for group in groups)


def _tests(nodes: Nodes) -> _Tests:
    value, mode = nodes.value, nodes.mode
    never = np.full_like(value, np.nan)
    below = np.where(value == -np.inf, never, np.nextafter(value, np.full_like(value, -np.inf)))
    above = np.where(value == np.inf, never, np.nextafter(value, np.full_like(value, np.inf)))
    leaf, same = mode == LEAF, (mode == EQ) | (mode == NEQ)
    high = np.select([leaf, (mode == LEQ) | same, mode == LT], [never, value, below], np.inf)
    low = np.select([leaf, (mode == GTE) | same, mode == GT], [never, value, above], -np.inf)
    exchanged = mode == NEQ
    passed, failed = np.where(exchanged, nodes.failed, nodes.passed), np.where(exchanged, nodes.passed, nodes.failed)
    return _Tests(low.astype(value.dtype), high.astype(value.dtype), passed, failed, nodes.feature, leaf)


def _laid_out(roots: Array, tests: _Tests) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which node lies at each place, level by level, and the place of its child that fails; the one that passes lies
    behind it."""
    levels, children = [roots.astype(np.int64)], list[NDArray[np.int64]]()
    first_child = np.full(len(tests.leaf), -1, np.int64)
    begin, end = 0, len(roots)
    while levels[-1].size:
        here = levels[-1]
        fresh = np.unique(here[~tests.leaf[here] & (first_child[here] < 0)])
        first_child[fresh] = end + 2 * np.arange(len(fresh))
        children.append(np.where(tests.leaf[here], begin + np.arange(len(here)), first_child[here]))
        levels.append(np.stack([tests.failed[fresh], tests.passed[fresh]], axis=1).reshape(-1))
        begin, end = end, end + 2 * len(fresh)
    return np.concatenate(levels), np.concatenate(children)


def _depth(child: NDArray[np.int64], trees: int) -> int:
    """How many tests it takes at most."""
    here = np.arange(trees)
    for depth in range(len(child) + 1):
        below = child[here]
        inner = below[below != here]
        if not inner.size:
            return depth
        here = np.unique(np.concatenate([inner, inner + 1]))
    raise NoNativeLowering("malformed-trees", "a node is below itself")


# -- as models list them -----------------------------------------------------------------------------------------------


def positions_of(trees: Array, ids: Array, wanted_trees: Array, wanted_ids: Array) -> NDArray[np.int64]:
    """Where the nodes wanted, named by tree and number, stand in a list; raises NoNativeLowering for one that is
    missing or there twice."""
    keys, wanted = _keys(trees, ids), _keys(wanted_trees, wanted_ids)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    at = np.minimum(np.searchsorted(ordered, wanted), max(len(keys) - 1, 0))
    if (ordered[1:] == ordered[:-1]).any() or (len(wanted) and (not len(keys) or (ordered[at] != wanted).any())):
        raise NoNativeLowering("malformed-trees", "a node is missing, or there twice")
    return order[at] if len(wanted) else np.zeros(0, np.int64)


def _keys(trees: Array, ids: Array) -> NDArray[np.int64]:
    return (trees.astype(np.int64) << 32) + ids.astype(np.int64)


def roots_of(trees: Array, passed: Array, failed: Array, leaf: Array) -> NDArray[np.int64]:
    """The one node of each tree that is no child, in the order of the trees."""
    inner = ~leaf
    is_child = np.zeros(len(trees), bool)
    is_child[passed[inner]] = is_child[failed[inner]] = True
    (roots,) = np.nonzero(~is_child)
    if len(np.unique(trees[roots])) != len(roots) or len(roots) != len(np.unique(trees)):
        raise NoNativeLowering("malformed-trees", "a tree has no root, or several")
    return roots


def with_members_split(nodes: Nodes, members: list[Array]) -> Nodes:
    """Each membership test (in order, of the values in `members`) as a search among them; at its end is a test for one
    value.

    A search that is at no member fails all its tests, or passes some and fails the last one: both end at the child of
    those that fail.
    """
    (tests,) = np.nonzero(nodes.mode == MEMBER)
    if len(tests) != len(members):
        raise NoNativeLowering("malformed-trees", f"{len(tests)} membership tests with {len(members)} sets")
    for test, values in zip(tests.tolist(), members, strict=True):
        nodes = _search(nodes, test, np.unique(values))
    return nodes


def _search(nodes: Nodes, test: int, values: Array) -> Nodes:
    """The test replaced by `x <= middle`, above searches in both halves; of one value, by the test for it. An empty set
    is never met."""
    out = with_nodes(
        nodes,
        **{name: np.repeat(getattr(nodes, name)[test : test + 1], max(2 * len(values) - 2, 0)) for name in _COLUMNS},
    )
    free = iter(range(len(nodes.mode), len(out.mode)))
    passed, failed = int(nodes.passed[test]), int(nodes.failed[test])
    pending = [(test, values)]
    while pending:
        at, some = pending.pop()
        if len(some) < 2:
            out.mode[at], out.value[at] = EQ, some[0] if len(some) else np.nan
            out.passed[at], out.failed[at] = passed, failed
            continue
        half, children = len(some) // 2, (next(free), next(free))
        out.mode[at], out.value[at], out.missing_passes[at] = LEQ, some[half - 1], False
        out.passed[at], out.failed[at] = children
        pending += [(children[0], some[:half]), (children[1], some[half:])]
    return out


_COLUMNS = ("passed", "failed", "feature", "value", "mode", "missing_passes")
