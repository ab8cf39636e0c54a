"""Operators of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from tests.conformance.node_calls.draw import Call, Draw, calls

ML = "ai.onnx.ml"
POST = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _numbers(d: Draw, count: int, low: float = -2, high: float = 2) -> list[float]:
    return [d.number(low, high) for _ in range(count)]


@calls("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(d: Draw) -> Call:
    sizes = d.sizes(1, 2)
    return Call(
        [
            d.values(sizes),
            d.rng.integers(0, sizes[-1], (1, d.whole(1, 4)) if d.chance() else d.whole(1, 4)).astype(np.int64),
        ]
    )


@calls("Binarizer", domain=ML)
def binarizer(d: Draw) -> Call:
    return Call([d.values(d.sizes(1, 3))], d.some(threshold=d.number()))


@calls("CategoryMapper", domain=ML)
def category_mapper(d: Draw) -> Call:
    x = d.words(d.sizes(1, 2)) if d.holds_words() else d.rng.integers(0, 6, d.sizes(1, 2)).astype(np.int64)
    given = {"cats_strings": ["a", "b", "fuse"], "cats_int64s": [1, 2, 5]}
    return Call([x], {**given, **d.some(default_int64=9, default_string="none")})


@calls("FeatureVectorizer", domain=ML)
def feature_vectorizer(d: Draw) -> Call:
    rows, widths = d.whole(1, 3), [d.whole(1, 3) for _ in range(d.whole(1, 3))]
    return Call([d.values((rows, width)) for width in widths], {"inputdimensions": widths})


@calls("Imputer", domain=ML)
def imputer(d: Draw) -> Call:
    columns = d.whole(1, 4)
    x = d.values((d.whole(1, 3), columns))
    if x.dtype.kind == "f":
        gaps = np.where(d.rng.random(x.shape) < 0.4, np.nan if d.chance() else 7, x).astype(x.dtype)
        return Call(
            [gaps],
            {
                "imputed_value_floats": _numbers(d, d.one_of(1, columns)),
                "replaced_value_float": float(np.nan if np.isnan(gaps).any() else 7),
            },
        )
    return Call(
        [x],
        {
            "imputed_value_int64s": [d.whole(-5, 5) for _ in range(d.one_of(1, columns))],
            "replaced_value_int64": d.whole(-2, 2),
        },
    )


@calls("LabelEncoder", domain=ML)
def label_encoder(d: Draw) -> Call:
    keys, values = _side(d.dtype()), _side(d.dtypes["T2"])
    x = d.words(d.sizes(1, 2)) if d.holds_words() else d.rng.integers(0, 5, d.sizes(1, 2)).astype(d.dtype())
    if d.before(2):
        return Call([x], {"classes_strings": ["a", "b", "fuse"], **d.some(default_int64=7, default_string="none")})
    if d.before(4) or (d.chance() and not {keys[0], values[0]} & {"tensor"}):
        return Call(
            [x],
            {
                f"keys_{keys[0]}": keys[1],
                f"values_{values[0]}": values[1],
                **d.some(**{f"default_{values[0][:-1]}": values[2]}),
            },
        )
    keys = (
        (keys[0], [*keys[1][:-1], keys[1][d.whole(0, 2)]], keys[2]) if d.chance() else keys
    )  # perhaps one of them twice
    tensors = {"keys_tensor": _tensor(keys[1], d.dtype()), "values_tensor": _tensor(values[1], d.dtypes["T2"])}
    return Call([x], {**tensors, **d.some(default_tensor=_tensor([values[2]], d.dtypes["T2"]))})


def _side(dtype: np.dtype[Any]) -> tuple[str, list[Any], Any]:
    name = {"O": "strings", "int64": "int64s", "float32": "floats"}.get(
        dtype.char if dtype.kind == "O" else dtype.name, "tensor"
    )
    return {"strings": (name, ["a", "b", "fuse"], "other"), "int64s": (name, [1, 2, 4], 9)}.get(
        name, (name, [1.0, 2.0, 4.0], 9.0)
    )


def _tensor(items: list[Any], dtype: np.dtype[Any]) -> TensorProto:
    return numpy_helper.from_array(np.array(items, dtype))


@calls("LinearClassifier", domain=ML)
def linear_classifier(d: Draw) -> Call:
    width, classes = d.whole(1, 4), d.whole(1, 4)
    labels = max(classes, 2)
    given = {"coefficients": _numbers(d, classes * width), **_names(d, labels)}
    return Call(
        [d.values((d.whole(1, 4), width))],
        {**given, **d.some(intercepts=_numbers(d, classes), post_transform=d.one_of(*POST[:4]))},
        2,
    )


def _names(d: Draw, count: int) -> dict[str, Any]:
    return (
        {"classlabels_strings": [f"c{i}" for i in range(count)]}
        if d.chance()
        else {"classlabels_ints": [3 * i + 1 for i in range(count)]}
    )


@calls("LinearRegressor", domain=ML)
def linear_regressor(d: Draw) -> Call:
    width, targets = d.whole(1, 4), d.whole(1, 3)
    given = {"coefficients": _numbers(d, targets * width), "targets": targets}
    return Call(
        [d.values((d.whole(1, 4), width))],
        {**given, **d.some(intercepts=_numbers(d, targets), post_transform=d.one_of(*POST[:4]))},
    )


@calls("Normalizer", domain=ML)
def normalizer(d: Draw) -> Call:
    return Call([d.values(d.sizes(2, 2))], d.some(norm=d.one_of("MAX", "L1", "L2")))


@calls("OneHotEncoder", domain=ML)
def one_hot_encoder(d: Draw) -> Call:
    cats = {"cats_strings": ["a", "b", "fuse"]} if d.holds_words() else {"cats_int64s": [0, 2, 3]}
    x = d.words(d.sizes(1, 2)) if d.holds_words() else d.rng.integers(0, 5, d.sizes(1, 2)).astype(d.dtype())
    return Call([x], {**cats, "zeros": 1})


@calls("Scaler", domain=ML)
def scaler(d: Draw) -> Call:
    columns = d.whole(1, 4)
    count = d.one_of(1, columns)
    return Call([d.values((d.whole(1, 3), columns))], {"offset": _numbers(d, count), "scale": _numbers(d, count)})


@calls("SVMRegressor", domain=ML)
def svm_regressor(d: Draw) -> Call:
    width, vectors = d.whole(1, 4), d.whole(1, 4)
    kernel = d.one_of("LINEAR", "POLY", "RBF", "SIGMOID")
    given = {
        "coefficients": _numbers(d, vectors),
        "support_vectors": _numbers(d, vectors * width),
        "n_supports": vectors,
        "rho": _numbers(d, 1),
    }
    kernel_given = {"kernel_type": kernel, "kernel_params": [d.number(0.1, 0.6), d.number(), float(d.whole(1, 3))]}
    return Call([d.values((d.whole(1, 4), width))], {**given, **kernel_given, **d.some(one_class=d.whole(0, 1))})


@calls("SVMClassifier", domain=ML)
def svm_classifier(d: Draw) -> Call:
    width, classes = d.whole(1, 4), d.whole(2, 4)
    if d.chance(0.2):
        return _without_vectors(d, width, classes)
    per = [d.whole(1, 3) for _ in range(classes)]
    pairs, vectors = classes * (classes - 1) // 2, sum(per)
    given = {
        "coefficients": _numbers(d, (classes - 1) * vectors),
        "support_vectors": _numbers(d, vectors * width),
        "vectors_per_class": per,
    }
    given |= {
        "kernel_type": d.one_of("LINEAR", "POLY", "RBF", "SIGMOID"),
        "kernel_params": [d.number(0.1, 0.6), d.number(), float(d.whole(1, 3))],
    }
    given |= {"rho": _numbers(d, pairs), **_names(d, classes)}
    if d.chance():
        given |= {"prob_a": _numbers(d, pairs, -2, -0.5), "prob_b": _numbers(d, pairs, -0.5, 0.5)}
    return Call([d.values((d.whole(1, 4), width))], {**given, **d.some(post_transform=d.one_of(*POST[:4]))}, 2)


def _without_vectors(d: Draw, width: int, classes: int) -> Call:
    given: dict[str, Any] = {
        "coefficients": _numbers(d, classes * width),
        "kernel_type": "LINEAR",
        "kernel_params": [0.0, 0.0, 0.0],
    }
    apart = {"classlabels_ints": [20, 30]}  # of two classes, so that the table of disagreements can speak of them
    given |= {
        "rho": _numbers(d, 1),
        **(apart if classes == 2 else _names(d, classes)),
        **d.some(post_transform=d.one_of(*POST[:4])),
    }
    return Call([d.values((d.whole(1, 4), width))], given, 2)


def _trees(d: Draw, width: int) -> dict[str, list[Any]]:
    """Random trees of depth 0 to 2 in the columns of the older operators; leaves are named by their places."""
    names = (
        "treeids",
        "nodeids",
        "featureids",
        "values",
        "modes",
        "truenodeids",
        "falsenodeids",
        "hitrates",
        "missing_value_tracks_true",
    )
    rows: list[tuple[Any, ...]] = []
    mode = d.one_of("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ")
    for tree in range(d.whole(1, 3)):
        inner = (2 ** d.whole(0, 2)) - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            where = (0, 0) if leaf else (2 * node + 1, 2 * node + 2)
            rows.append(
                (
                    tree,
                    node,
                    d.whole(0, width - 1),
                    d.number(),
                    "LEAF" if leaf else mode,
                    *where,
                    1.0,
                    0 if leaf else d.whole(0, 1),
                )
            )
    return {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _leaves(d: Draw, trees: dict[str, list[Any]], prefix: str, count: int) -> dict[str, list[Any]]:
    leaves = [i for i, mode in enumerate(trees["nodes_modes"]) if mode == "LEAF"]
    chosen = [(i, k) for i in leaves for k in range(count)]
    return {
        f"{prefix}_treeids": [trees["nodes_treeids"][i] for i, _ in chosen],
        f"{prefix}_nodeids": [trees["nodes_nodeids"][i] for i, _ in chosen],
        f"{prefix}_ids": [k for _, k in chosen],
        f"{prefix}_weights": _numbers(d, len(chosen)),
    }


def _as_tensors(d: Draw, given: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The lists of floats as the tensors that version 3 has besides."""
    kind = np.float64 if d.dtype() == np.float64 else np.float32
    names = ("nodes_values", "nodes_hitrates", f"{prefix}_weights", "base_values")
    return {
        (f"{name}_as_tensor" if name in names else name): numpy_helper.from_array(np.array(value, kind))
        if name in names
        else value
        for name, value in given.items()
    }


@calls("TreeEnsembleRegressor", domain=ML)
def tree_regressor(d: Draw) -> Call:
    width, targets = d.whole(1, 3), d.whole(1, 3)
    trees = _trees(d, width)
    given = {**trees, **_leaves(d, trees, "target", targets), "n_targets": targets}
    given |= d.some(
        base_values=_numbers(d, targets),
        aggregate_function=d.one_of("SUM", "AVERAGE", "MIN", "MAX"),
        post_transform=d.one_of(*POST[:4]),
    )
    if not d.before(3) and (d.dtype() == np.float64 or d.chance(0.3)):
        given = _as_tensors(d, given, "target")
    return Call([d.values((d.whole(1, 4), width))], given)


@calls("TreeEnsembleClassifier", domain=ML)
def tree_classifier(d: Draw) -> Call:
    width, classes = d.whole(1, 3), d.whole(2, 4)
    trees = _trees(d, width)
    binary = classes == 2 and d.chance()
    leaves = _leaves(d, trees, "class", 1 if binary else classes)
    given: dict[str, Any] = {**trees, **leaves}
    apart = classes == 2 and not binary  # named apart, so that the table of disagreements can speak of them
    names: dict[str, Any] = {"classlabels_strings": ["left", "right"] if apart else [f"c{i}" for i in range(classes)]}
    if d.chance():
        names = {"classlabels_int64s": [20, 30] if apart else [3 * i + 1 for i in range(classes)]}
    given |= {
        **names,
        **d.some(
            post_transform=d.one_of(*POST[:4]),
            base_values=_numbers(d, 1 if binary else classes) if classes != 2 or binary else None,
        ),
    }
    if not d.before(3) and (d.dtype() == np.float64 or d.chance(0.3)):
        given = _as_tensors(d, given, "class")
    return Call([d.values((d.whole(1, 4), width))], given, 2)


@calls("TreeEnsemble", domain=ML)
def tree_ensemble(d: Draw) -> Call:
    width, targets, trees = d.whole(1, 3), d.whole(1, 2), d.whole(1, 3)
    leaves = 2 * trees
    kind = d.dtype()
    given: dict[str, Any] = {
        "n_targets": targets,
        "aggregate_function": d.one_of(0, 1, 2, 3),
        "post_transform": d.whole(0, 3),
        "tree_roots": list(range(trees)),
        "nodes_modes": numpy_helper.from_array(np.array([d.whole(0, 5)] * trees, np.uint8)),
        "nodes_featureids": [d.whole(0, width - 1) for _ in range(trees)],
        "nodes_splits": numpy_helper.from_array(np.array(_numbers(d, trees), kind)),
        "nodes_truenodeids": [2 * i for i in range(trees)],
        "nodes_trueleafs": [1] * trees,
        "nodes_falsenodeids": [2 * i + 1 for i in range(trees)],
        "nodes_falseleafs": [1] * trees,
        "leaf_targetids": [d.whole(0, targets - 1) for _ in range(leaves)],
        "leaf_weights": numpy_helper.from_array(np.array(_numbers(d, leaves), kind)),
    }
    return Call([d.values((d.whole(1, 4), width))], given)
