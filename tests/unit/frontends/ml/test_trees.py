"""Ensembles of decision trees natively, against onnxruntime: every mode, aggregate and transform, few rows and many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

import fuseline
from fuseline.errors import FuselineError
from tests.native import assert_as_onnxruntime, assert_same, native
from tests.one_node import by_onnxruntime, one_node
from tests.unit.frontends.ml.ensembles import FEATURES, MODES, Ensemble, rows

ML = "ai.onnx.ml"


def regress(x: Any, attributes: dict[str, Any], targets: int, **more: Any) -> None:
    opset = 3 if any(name.endswith("as_tensor") for name in attributes) else 1
    assert_as_onnxruntime(
        "TreeEnsembleRegressor", [x], attributes=attributes | {"n_targets": targets} | more, domain=ML, opset=opset
    )


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("modes", [*((mode,) for mode in MODES), MODES[:4], MODES], ids=lambda modes: " ".join(modes))
def test_modes(modes: tuple[str, ...], missing: bool):
    forest = Ensemble(1, 7, 5, modes, missing)
    regress(rows(50, missing=missing), forest.attributes("target", forest.each(1)), 1)


@pytest.mark.parametrize("says", ["each", "own", "some"])
@pytest.mark.parametrize(
    ("targets", "aggregate"), [(1, "SUM"), (3, "SUM"), (20, "SUM"), (3, "AVERAGE"), (1, "MIN"), (20, "MIN"), (3, "MAX")]
)
def test_aggregates(says: str, targets: int, aggregate: str):
    """Where a target has base values and nothing is said of it, onnxruntime forgets them."""
    forest = Ensemble(targets, 41, 4)
    attributes = forest.attributes("target", getattr(forest, says)(targets))
    base = {} if says == "some" else {"base_values": [0.5 + i for i in range(targets)]}
    regress(rows(3), attributes, targets, aggregate_function=aggregate, **base)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("targets", [1, 3])
def test_transforms(post: str, targets: int):
    forest = Ensemble(5, 2, 3)
    attributes = forest.attributes("target", forest.each(targets), positive=True)
    if post == "PROBIT":
        attributes["target_weights"] = [0.05 + 0.4 * (i % 10) / 10 for i in range(len(attributes["target_weights"]))]
    regress(rows(30), attributes, targets, post_transform=post)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_types_of_features(dtype: Any):
    forest = Ensemble(3, 6, 4)
    attributes = forest.attributes("class", forest.each(3)) | {"classlabels_int64s": [3, 1, 7]}
    assert_as_onnxruntime(
        "TreeEnsembleClassifier", [rows(40, dtype)], attributes=attributes, domain=ML, opset=1, outputs=2
    )


def test_thresholds_in_double():
    """Which a float cannot tell from the features."""
    forest = Ensemble(3, 6, 4)
    attributes = forest.attributes("target", forest.each(1))
    for name in ("nodes_values", "target_weights"):
        attributes[f"{name}_as_tensor"] = numpy_helper.from_array(np.asarray(attributes.pop(name)) + 1e-12, name)
    attributes.pop("nodes_hitrates", None)
    model = one_node(
        "TreeEnsembleRegressor", [x := rows(60, np.float64)], attributes | {"n_targets": 1}, domain=ML, opset=3
    )
    assert_same(native(model, {"i0": x}), by_onnxruntime(model, {"i0": x}))


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("base", [False, True])
def test_classes(post: str, base: bool):
    forest = Ensemble(3, 9, 4)
    attributes = forest.attributes("class", forest.each(3)) | {"classlabels_int64s": [4, -1, 9], "post_transform": post}
    if base:
        attributes["base_values"] = [0.3, -0.2, 0.1]
    assert_as_onnxruntime("TreeEnsembleClassifier", [rows(40)], attributes=attributes, domain=ML, opset=1, outputs=2)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sign", [-1, 1])
def test_classes_that_nothing_is_said_of(seed: int, sign: int):
    """Are no label where another has a score, however low."""
    forest = Ensemble(seed, 1 + seed % 3, 3)
    said = [[int(seed % 2 + 2 * forest.rng.integers(2))] for _ in forest.leaves]
    attributes = forest.attributes("class", said, True) | {"classlabels_int64s": [7, 3, 9, 1]}
    attributes["class_weights"] = [sign * weight for weight in attributes["class_weights"]]
    assert_as_onnxruntime("TreeEnsembleClassifier", [rows(40)], attributes=attributes, domain=ML, opset=1, outputs=2)


def test_two_classes_that_are_both_scored():
    """The larger score decides; onnxruntime looks at the second one alone, and answers 0 and 1 whatever the labels
    are."""
    forest = Ensemble(2, 9, 4)
    attributes = forest.attributes("class", forest.each(2)) | {"classlabels_int64s": [4, -1]}
    model = one_node("TreeEnsembleClassifier", [x := rows(40)], attributes, domain=ML, opset=1, outputs=2)
    scores = by_onnxruntime(model, {"i0": x})[1]
    assert len({tuple(row) for row in scores.tolist()}) > 9
    assert_same(native(model, {"i0": x}), [np.array([4, -1])[scores.argmax(axis=1)], scores])


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("base", [[], [0.2]])
def test_one_score_for_two_classes(post: str, positive: bool, base: list[float]):
    """Whose sum decides, against a half where it is a share."""
    forest = Ensemble(8, 5, 4)
    attributes = forest.attributes("class", forest.each(1), positive) | {
        "classlabels_int64s": [0, 1],
        "post_transform": post,
    }
    if base:
        attributes["base_values"] = base
    assert_as_onnxruntime("TreeEnsembleClassifier", [rows(40)], attributes=attributes, domain=ML, opset=1, outputs=2)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("base", [[], [0.2]])
def test_one_score_that_the_model_gives_to_the_second_class(post: str, positive: bool, base: list[float]):
    """The first class keeps nothing, and what is added to it is not."""
    forest = Ensemble(8, 5, 4)
    attributes = forest.attributes("class", [[1] for _ in forest.leaves], positive)
    attributes |= {"classlabels_int64s": [4, 9], "post_transform": post} | ({"base_values": base} if base else {})
    assert_as_onnxruntime("TreeEnsembleClassifier", [rows(40)], attributes=attributes, domain=ML, opset=1, outputs=2)


def test_labels_that_are_strings_are_looked_up_on_the_host():
    forest = Ensemble(8, 5, 4)
    attributes = forest.attributes("class", forest.each(3)) | {"classlabels_strings": ["low", "middle", "high"]}
    model = one_node("TreeEnsembleClassifier", [x := rows(40)], attributes, domain=ML, opset=1, outputs=2)
    labels, scores = by_onnxruntime(model, {"i0": x})
    for target in ("interpreter", "cpu"):
        program = fuseline.compile(model, threads=1, target=target)
        assert [op.op_type for op in program.record.host_ops] == ["Gather"]
        ours = program.run({"i0": x})
        assert list(ours["o0"]) == list(labels)
        np.testing.assert_allclose(ours["o1"], scores, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [1, 100, 1000])
def test_any_number_of_rows(count: int):
    """Of trees of very different depth, which are walked apart."""
    forest = Ensemble(2, 90, 12)
    attributes = forest.attributes("target", forest.each(1)) | {"n_targets": 1}
    model = one_node("TreeEnsembleRegressor", [rows(count)], attributes, domain=ML, opset=1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    feeds = {"i0": rows(count)}
    assert_same(native(model, feeds), by_onnxruntime(model, feeds), 1e-4, 1e-4)


def test_rows_with_too_few_features_are_refused():
    forest = Ensemble(2, 9, 5)
    attributes = forest.attributes("target", forest.each(1)) | {"n_targets": 1}
    model = one_node("TreeEnsembleRegressor", [rows(2)], attributes, domain=ML, opset=1)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "f"
    with pytest.raises(FuselineError, match=f"at least {FEATURES}") as error:
        fuseline.compile(model, threads=1).run({"i0": rows(2)[:, :3]})
    assert error.value.code == "E0203"


def listed_apart(forest: Ensemble, members: dict[int, list[float]]) -> dict[str, Any]:
    """The attributes of TreeEnsemble; the inner nodes in `members` ask whether the feature is one of some values
    instead."""
    nodes, inner = forest.nodes, [i for i, mode in enumerate(forest.nodes["modes"]) if mode != "LEAF"]
    at = {(nodes["treeids"][i], nodes["nodeids"][i]): i for i in range(len(nodes["modes"]))}
    leaves = [i for i in range(len(nodes["modes"])) if i not in inner]
    number = {i: n for group in (inner, leaves) for n, i in enumerate(group)}
    sides = {side: [at[nodes["treeids"][i], nodes[f"{side}nodeids"][i]] for i in inner] for side in ("true", "false")}
    modes = [6 if n in members else MODES.index(nodes["modes"][i]) for n, i in enumerate(inner)]
    roots = [number[at[tree, 0]] for tree in sorted(set(nodes["treeids"])) if at[tree, 0] in inner]
    values = [value for n in sorted(members) for value in [*members[n], np.nan]]
    return {
        "tree_roots": roots,
        "nodes_featureids": [nodes["featureids"][i] for i in inner],
        "nodes_splits": numpy_helper.from_array(np.array([nodes["values"][i] for i in inner], np.float32)),
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
        **{f"nodes_{side}nodeids": [number[i] for i in positions] for side, positions in sides.items()},
        **{f"nodes_{side}leafs": [int(i in leaves) for i in positions] for side, positions in sides.items()},
        "leaf_targetids": [n % 2 for n in range(len(leaves))],
        "leaf_weights": numpy_helper.from_array(np.arange(1, len(leaves) + 1, dtype=np.float32)),
        "n_targets": 2,
    } | ({"membership_values": numpy_helper.from_array(np.array(values, np.float32))} if members else {})


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "sets", [{}, {0: [1.0]}, {1: [-1.0, 2.0, 1.0], 4: [2.0, 1.0, -1.0, 0.0, -2.0]}], ids=["plain", "one", "several"]
)
def test_leaves_listed_apart(sets: dict[int, list[float]], aggregate: int):
    attributes = listed_apart(Ensemble(6, 6, 4, MODES), sets) | {"aggregate_function": aggregate}
    assert_as_onnxruntime("TreeEnsemble", [np.rint(rows(60))], attributes=attributes, domain=ML, opset=5)
