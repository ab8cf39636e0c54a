"""Ensembles of decision trees of ai.onnx.ml, all rows at a time: every step takes each row one node further.

TreeEnsembleRegressor, TreeEnsembleClassifier   every aggregation and post transform, attributes as tensors, targets
                                                that no leaf speaks of
TreeEnsemble                                    the same, in the columns of the newer operator
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node
from fuseline.frontends.onnx.reference.scores import named, transformed, two_classes

Array = NDArray[Any]
_MODES: Mapping[str, Callable[[Array, Array], Array]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}
_NEWER_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class _Trees:
    """Nodes and leaves by place. `children` [nodes, 2] are where a node goes when its test is false and true; a leaf
    goes to itself."""

    roots: Array
    features: Array
    splits: Array
    modes: list[str]
    missing_is_true: Array
    children: Array
    members: Mapping[int, Array]

    def leaves(self, x: Array) -> Array:
        """The node [rows, trees] at which each row of `x` ends in each tree."""
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        for _ in range(len(self.modes) + 1):
            further = self.children[at, self._true(x, at).astype(np.int64)]
            if (further == at).all():
                break
            at = further
        return at

    def _true(self, x: Array, at: Array) -> Array:
        values = np.take_along_axis(x, self.features[at], 1)
        out = np.zeros(at.shape, bool)
        for mode in sorted(set(self.modes) - {"LEAF"}):
            chosen = np.array([m == mode for m in self.modes])[at]
            holds = self._member(values, at) if mode == "BRANCH_MEMBER" else _MODES[mode](values, self.splits[at])
            out |= chosen & holds
        return out | (np.isnan(values) & self.missing_is_true[at])

    def _member(self, values: Array, at: Array) -> Array:
        out = np.zeros(at.shape, bool)
        for node, members in self.members.items():
            out |= (at == node) & np.isin(values, members)
        return out


def _column(given: Mapping[str, Any], name: str) -> Any:
    """A list attribute, or the tensor that version 3 has in its place; None where neither is given."""
    tensor = given.get(f"{name}_as_tensor")
    found = given.get(name) if tensor is None or not np.size(tensor) else tensor
    return None if found is None or not len(found) else np.asarray(found)


def _of_columns(given: Mapping[str, Any]) -> tuple[_Trees, dict[tuple[int, int], int]]:
    """The trees of the older operators, and the place of each (tree, node)."""
    trees, nodes = np.asarray(given["nodes_treeids"], np.int64), np.asarray(given["nodes_nodeids"], np.int64)
    place = {(int(tree), int(node)): i for i, (tree, node) in enumerate(zip(trees, nodes, strict=True))}
    modes = [mode.decode() if isinstance(mode, bytes) else str(mode) for mode in given["nodes_modes"]]
    children = np.array(
        [
            (i, i) if mode == "LEAF" else (place[int(tree), int(false)], place[int(tree), int(true)])
            for i, (mode, tree, false, true) in enumerate(
                zip(modes, trees, given["nodes_falsenodeids"], given["nodes_truenodeids"], strict=True)
            )
        ]
    )
    missing = _column(given, "nodes_missing_value_tracks_true")
    roots = np.array([int(np.flatnonzero(trees == tree)[0]) for tree in dict.fromkeys(trees.tolist())])
    flags = np.zeros(len(trees), bool) if missing is None else missing.astype(bool)
    features = np.asarray(given["nodes_featureids"], np.int64)
    return _Trees(roots, features, np.asarray(_column(given, "nodes_values")), modes, flags, children, {}), place


@dataclass(frozen=True)
class _Votes:
    """What leaves say: (node, target, weight), row by row."""

    nodes: Array
    targets: Array
    weights: Array

    def added(self, at: Array, targets: int, how: str, dtype: Any) -> tuple[Array, Array]:
        """Over all trees [rows, targets], and whether any leaf spoke of each; 0 where none did."""
        start = {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0)
        combine: Any = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
        out, spoken = np.full((len(at), targets), start, dtype), np.zeros((len(at), targets), bool)
        for tree in at.T:
            rows, votes = np.nonzero(tree[:, None] == self.nodes[None])
            combine.at(out, (rows, self.targets[votes]), self.weights[votes].astype(dtype))
            spoken[rows, self.targets[votes]] = True
        out = np.where(spoken, out, 0).astype(dtype)
        return (out / at.shape[1] if how == "AVERAGE" else out).astype(dtype), spoken


def _votes(given: Mapping[str, Any], prefix: str, place: Mapping[tuple[int, int], int]) -> _Votes:
    nodes = [place[int(t), int(n)] for t, n in zip(given[f"{prefix}_treeids"], given[f"{prefix}_nodeids"], strict=True)]
    return _Votes(
        np.array(nodes), np.asarray(given[f"{prefix}_ids"], np.int64), np.asarray(_column(given, f"{prefix}_weights"))
    )


def _rows(x: Any) -> Array:
    wide = np.float64 if x.dtype == np.float64 else np.float32
    return np.atleast_2d(x).astype(wide)


class TreeEnsembleRegressor(Node):
    """Targets [rows, n_targets]."""

    op_domain = "ai.onnx.ml"

    def _run(self, x: Any, **given: Any) -> tuple[Any, ...]:
        trees, place = _of_columns(given)
        rows, targets = _rows(x), int(given.get("n_targets") or 1)
        out, _ = _votes(given, "target", place).added(
            trees.leaves(rows), targets, given.get("aggregate_function") or "SUM", rows.dtype
        )
        base = _column(given, "base_values")
        return (
            transformed(out if base is None else out + base.astype(rows.dtype), given.get("post_transform")).astype(
                np.float32
            ),
        )


class TreeEnsembleClassifier(Node):
    """Labels [rows], scores [rows, classes]."""

    op_domain = "ai.onnx.ml"

    def _run(
        self, x: Any, classlabels_int64s: Any = None, classlabels_strings: Any = None, **given: Any
    ) -> tuple[Any, ...]:
        trees, place = _of_columns(given)
        rows, classes = _rows(x), len(classlabels_strings or classlabels_int64s or ())
        votes, transform = _votes(given, "class", place), given.get("post_transform")
        at, base = trees.leaves(rows), _column(given, "base_values")
        if classes == 2 and set(votes.targets.tolist()) == {1} and (base is None or len(base) < 2):
            scores, _ = votes.added(at, 2, "SUM", rows.dtype)
            places = (scores[:, 1] > (0.5 if (votes.weights >= 0).all() else 0)).astype(np.int64)
            scores = transformed(scores, transform)
        elif classes == 2 and len(set(votes.targets.tolist())) == 1:
            places, scores = self._binary(votes, at, base, transform, rows.dtype)
        else:
            sums, spoken = votes.added(at, classes, "SUM", rows.dtype)
            sums = sums if base is None else sums + base.astype(rows.dtype)
            if classes == 1:  # its side of 0, whatever it is called
                return (sums[:, 0] > 0).astype(np.int64), transformed(sums, transform).astype(np.float32)
            ranked = np.where(spoken, sums, -np.inf) if classes > 2 and base is None else sums
            places, scores = ranked.argmax(1), transformed(sums, transform)
        return named(places, classlabels_strings, classlabels_int64s), scores.astype(np.float32)

    @staticmethod
    def _binary(votes: _Votes, at: Array, base: Any, transform: Any, dtype: Any) -> tuple[Array, Array]:
        """One score for two classes: a probability where no weight is negative, else a decision value."""
        one = _Votes(votes.nodes, np.zeros_like(votes.targets), votes.weights)
        score, _ = one.added(at, 1, "SUM", dtype)
        score = score if base is None else score + base.astype(dtype)[-1]
        probability = bool((votes.weights >= 0).all())
        chosen = (score[:, 0] > (0.5 if probability else 0)).astype(np.int64)
        return chosen, two_classes(score, transform, probability=probability)


class TreeEnsemble(Node):
    """Targets [rows, n_targets] of trees whose leaves are numbered by themselves."""

    op_domain = "ai.onnx.ml"

    def _run(self, x: Any, **given: Any) -> tuple[Any, ...]:
        trees, inner = self._trees(given)
        targets = np.asarray(given["leaf_targetids"], np.int64)
        votes = _Votes(np.arange(len(targets)) + inner, targets, np.asarray(given["leaf_weights"]).reshape(-1))
        how = _AGGREGATES[int(1 if given.get("aggregate_function") is None else given["aggregate_function"])]
        out, _ = votes.added(trees.leaves(_rows(x)), int(given.get("n_targets") or 1), how, _rows(x).dtype)
        return (transformed(out, _TRANSFORMS[int(given.get("post_transform") or 0)]).astype(x.dtype),)

    @staticmethod
    def _trees(given: Mapping[str, Any]) -> tuple[_Trees, int]:
        """Leaves stand behind the nodes."""
        modes = [_NEWER_MODES[int(mode)] for mode in np.asarray(given["nodes_modes"]).reshape(-1)]
        inner, leaves = len(modes), len(given["leaf_targetids"])
        sides = [
            np.asarray(given[f"nodes_{side}nodeids"], np.int64)
            + inner * np.asarray(given[f"nodes_{side}leafs"], np.int64)
            for side in ("false", "true")
        ]
        own = np.arange(inner, inner + leaves)
        children = np.concatenate([np.stack(sides, 1), np.stack([own, own], 1)])
        splits = np.asarray(given["nodes_splits"]).reshape(-1)
        missing = given.get("nodes_missing_value_tracks_true")
        flags = np.zeros(inner, bool) if missing is None or not len(missing) else np.asarray(missing, bool)
        blank = np.zeros(leaves, np.int64)
        features = np.concatenate([np.asarray(given["nodes_featureids"], np.int64), blank])
        columns = (
            np.concatenate([splits, blank.astype(splits.dtype)]),
            modes + ["LEAF"] * leaves,
            np.concatenate([flags, blank.astype(bool)]),
        )
        return _Trees(
            np.asarray(given["tree_roots"], np.int64), features, *columns, children, _members(given, modes)
        ), inner


def _members(given: Mapping[str, Any], modes: list[str]) -> dict[int, Array]:
    """The sets of the nodes that ask for membership: in order, each ended by a NaN."""
    flat = given.get("membership_values")
    sets: list[list[float]] = [[]]
    for value in [] if flat is None else np.asarray(flat).reshape(-1).tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    return {
        node: np.array(members)
        for node, members in zip((i for i, mode in enumerate(modes) if mode == "BRANCH_MEMBER"), sets, strict=False)
    }


TREES: tuple[type[OpRun], ...] = (TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble)
"""What to give `ReferenceEvaluator` as `new_ops`."""
