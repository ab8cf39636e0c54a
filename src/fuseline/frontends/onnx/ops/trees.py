"""Ensembles of decision trees of ai.onnx.ml: their attributes read, the scores of `tree_scores.py` finished as the
operator asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import DType, cast, elementwise, reshape
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.forest_checks import require_among, well_formed
from fuseline.frontends.onnx.ops.forests import LEAF, MEMBER, MODES, Nodes, positions_of, roots_of, with_members_split
from fuseline.frontends.onnx.ops.ml_scores import classified, finished, plus_row
from fuseline.frontends.onnx.ops.tree_scores import AGGREGATES, Weights, columns_of, forest_scores
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body

Array = NDArray[Any]
ML = "ai.onnx.ml"
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(node: OnnxNode) -> Tensor:
    """What the leaves say, combined per target, in f32."""
    x = _rows(node)
    targets = node.integer("n_targets", 1)
    nodes, weights = _listed(node, "target", targets, x.dtype)
    scores = forest_scores(node, x, nodes, weights, _aggregate(node))
    based = plus_row(node, scores, _numbers(node, "base_values", x.dtype))
    return cast(node, finished(node, based, node.text("post_transform", "NONE")), FLOAT32)


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(node: OnnxNode) -> list[Any]:
    """The label that the leaves say most of, and what they say of each class."""
    x = _rows(node)
    labels = node.integers("classlabels_int64s") or node.texts("classlabels_strings")
    if not labels:
        raise NoNativeLowering("unsupported-labels", f"{len(labels)} classes")
    nodes, weights = _listed(node, "class", len(labels), x.dtype)
    scores = forest_scores(node, x, nodes, weights, "SUM")
    base = _numbers(node, "base_values", x.dtype)
    ranked = None
    if len(labels) > 2 and not len(base) and _may_be_silent(node, nodes, weights):
        ranked = _where_spoken_of(node, scores, forest_scores(node, x, nodes, weights.counted(), "SUM"))
    positive = bool((weights.weight >= 0).all())
    return classified(node, scores, labels, base, columns_of(weights), positive=positive, ranked=ranked)


def _may_be_silent(node: OnnxNode, nodes: Nodes, weights: Weights) -> bool:
    """Whether a class of which a row's leaves say nothing may pass for one with a score: no tree always speaks of it,
    and what is said of others is not always more than the 0 that it has."""
    if (weights.weight > 0).all():
        return False
    spoken = np.zeros((len(nodes.mode), weights.targets), bool)
    spoken[weights.position, weights.target] = True
    trees, leaf = _integers(node, "nodes_treeids"), nodes.mode == LEAF
    always = [spoken[leaf & (trees == tree)].all(0) for tree in np.unique(trees)]
    return not np.any(always, axis=0).all()


def _where_spoken_of(node: OnnxNode, scores: Tensor, count: Tensor) -> Tensor:
    """The scores of classes that a row's leaves say something of, `count` times; onnxruntime gives no other label."""
    dtype, element = scores.dtype, mlir_element(scores.dtype)

    def body(b: Body, score: SSAValue, times: SSAValue) -> SSAValue:
        said = s.compare(b, dtype, "gt", times, b.constant(0.0, element))
        return s.select(b, said, score, b.constant(-np.inf, element))

    return elementwise(node, [scores, count], dtype, body)


@onnx_op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(node: OnnxNode) -> Tensor:
    """The same with a leaf list of its own, in the dtype of the rows."""
    x = _rows(node)
    nodes, weights = _listed_apart(node, x.dtype)
    aggregate = _named(node, "aggregate_function", 1, ("AVERAGE", "SUM", "MIN", "MAX"))
    post = _named(node, "post_transform", 0, ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"))
    scores = finished(node, forest_scores(node, x, nodes, weights, aggregate), post)
    return cast(node, scores, node[0].dtype)


def _rows(node: OnnxNode) -> Tensor:
    """The input as rows of features, in a float that the trees compare in."""
    x = node[0]
    if x.rank not in (1, 2):
        raise NoNativeLowering("unsupported-rank", f"rank {x.rank}")
    wide = (
        cast(node, x, FLOAT64 if x.dtype == FLOAT64 else FLOAT32)
        if not (is_float(x.dtype) and x.dtype.itemsize >= 4)
        else x
    )
    return reshape(node, wide, (1, x.dims[0])) if x.rank == 1 else wide


def _named(node: OnnxNode, attribute: str, default: int, names: Sequence[str]) -> str:
    number = node.integer(attribute, default)
    if not 0 <= number < len(names):
        raise NoNativeLowering("unsupported-mode", f"{attribute} {number}")
    return names[number]


def _aggregate(node: OnnxNode) -> str:
    name = node.text("aggregate_function", "SUM")
    if name not in AGGREGATES:
        raise NoNativeLowering("unsupported-mode", f"aggregate_function {name}")
    return name


def _numbers(node: OnnxNode, name: str, dtype: DType) -> Array:
    """A list of numbers, which stands in one of two attributes; empty where it is left out."""
    held = node.attributes.get(f"{name}_as_tensor")
    array = (
        np.asarray(held.value.numpy()).reshape(-1) if held is not None else np.asarray(node.numbers(name), np.float32)
    )
    return array.astype(dtype)


def _integers(node: OnnxNode, name: str) -> Array:
    return np.asarray(node.integers(name), np.int64)


def _missing(node: OnnxNode, count: int) -> Array:
    """Whether what is no number passes, by node."""
    return (
        _integers(node, "nodes_missing_value_tracks_true")
        if node.has("nodes_missing_value_tracks_true")
        else np.zeros(count)
    ).astype(bool)


def _modes(node: OnnxNode) -> Array:
    numbers = {name: number for number, name in enumerate(MODES[:MEMBER])} | {"LEAF": LEAF}
    unknown = set(node.texts("nodes_modes")) - set(numbers)
    if unknown:
        raise NoNativeLowering("unsupported-mode", f"nodes_modes {sorted(unknown)}")
    return np.asarray([numbers[mode] for mode in node.texts("nodes_modes")], np.int64)


def _listed(node: OnnxNode, kind: str, targets: int, dtype: DType) -> tuple[Nodes, Weights]:
    """Nodes and weights as the operators of version 1 to 3 list them: leaves among the nodes, all named by tree and
    number."""
    trees, ids, mode = _integers(node, "nodes_treeids"), _integers(node, "nodes_nodeids"), _modes(node)
    leaf = mode == LEAF
    passed, failed = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    for out, name in ((passed, "nodes_truenodeids"), (failed, "nodes_falsenodeids")):
        out[~leaf] = positions_of(trees, ids, trees[~leaf], _integers(node, name)[~leaf])
    missing = _missing(node, len(ids))
    value, feature = _numbers(node, "nodes_values", dtype), _integers(node, "nodes_featureids")
    nodes = Nodes(roots_of(trees, passed, failed, leaf), passed, failed, feature, value, mode, missing & ~leaf)
    position = positions_of(trees, ids, _integers(node, f"{kind}_treeids"), _integers(node, f"{kind}_nodeids"))
    target, weight = _integers(node, f"{kind}_ids"), _numbers(node, f"{kind}_weights", dtype)
    return well_formed(nodes, node.label), _checked(Weights(targets, position, target, weight))


def _listed_apart(node: OnnxNode, dtype: DType) -> tuple[Nodes, Weights]:
    """Nodes and weights as version 5 lists them: leaves behind the nodes, and values of membership tests apart."""
    weight = _tensor(node, "leaf_weights").astype(dtype)
    inner, leaves = len(_integers(node, "nodes_featureids")), len(weight)
    missing = _missing(node, inner)
    sides = [_children(node, side, inner, leaves) for side in ("true", "false")]
    nothing = np.zeros(leaves, np.int64)
    nodes = Nodes(
        roots=_integers(node, "tree_roots"),
        passed=np.concatenate([sides[0], nothing]),
        failed=np.concatenate([sides[1], nothing]),
        feature=np.concatenate([_integers(node, "nodes_featureids"), nothing]),
        value=np.concatenate([_tensor(node, "nodes_splits").astype(dtype), nothing.astype(dtype)]),
        mode=np.concatenate([_tensor(node, "nodes_modes").astype(np.int64), np.full(leaves, LEAF)]),
        missing_passes=np.concatenate([missing, nothing.astype(bool)]),
    )
    weights = Weights(
        node.integer("n_targets", 1), inner + np.arange(leaves), _integers(node, "leaf_targetids"), weight
    )
    return with_members_split(well_formed(nodes, node.label), _members(node, dtype)), _checked(weights)


def _children(node: OnnxNode, side: str, inner: int, leaves: int) -> Array:
    """The places of children among `inner` nodes and the leaves behind them, which are numbered apart."""
    ids, leaf = _integers(node, f"nodes_{side}nodeids"), _integers(node, f"nodes_{side}leafs") != 0
    require_among(ids[leaf], leaves, "a leaf", node.label)
    require_among(ids[~leaf], inner, "a child", node.label)
    return np.where(leaf, ids + inner, ids)


def _tensor(node: OnnxNode, name: str) -> Array:
    return np.asarray(node.attributes[name].value.numpy()).reshape(-1)


def _members(node: OnnxNode, dtype: DType) -> list[Array]:
    """The values of each membership test; they end where something is no number."""
    if not node.has("membership_values"):
        return []
    values = _tensor(node, "membership_values").astype(dtype)
    ends = np.flatnonzero(np.isnan(values))
    return [group[~np.isnan(group)] for group in np.split(values, ends)[: len(ends)]]


def _checked(weights: Weights) -> Weights:
    if not len(weights.target) == len(weights.weight) == len(weights.position):
        raise NoNativeLowering("malformed-trees", "as many weights as targets are needed")
    if len(weights.target) and not 0 <= weights.target.min() <= weights.target.max() < weights.targets:
        raise NoNativeLowering("malformed-trees", f"target {weights.target.max()} of {weights.targets}")
    return weights
