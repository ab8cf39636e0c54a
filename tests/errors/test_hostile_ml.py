"""Operators of ai.onnx.ml and of com.microsoft on empty tensors, numbers that are none, and parameters that do not fit:
every access of their kernels is proved to stay inside; onnxruntime's answer where it has one, else a coded error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.errors.test_hostile_indices import MICROSOFT, ML, Array, Case, answer, floats, numbers
from tests.errors.test_hostile_parameters import MOST, NAN, agrees
from tests.one_node import by_onnxruntime, feeds_of, one_node
from tests.proved import ProvedProgram

EMPTY, WILD_ROWS = floats(0, 3), np.array([[NAN, 0, 1], [1e4, -1e4, 3e4], [0, -0.0, 1e-40]], np.float32)
ROWS = {"no rows": EMPTY, "one row": floats(1, 3), "wild rows": WILD_ROWS, "a row alone": floats(3)}
ON_ML: dict[str, Any] = {**ML}
TWO_LABELS: dict[str, Any] = ON_ML | {"outputs": 2}
VECTORS = [float(x) for x in np.random.default_rng(3).standard_normal(12)]


def machine(kind: str, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"kernel_type": kind, "kernel_params": [0.5, 1.0, 2.0], "rho": [0.25, -0.5, 1.0]}
    given |= {"support_vectors": VECTORS, "coefficients": VECTORS[:8]}
    return given | {"vectors_per_class": [2, 1, 1], "classlabels_ints": [5, 7, 2]} | more


def regression(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "kernel_type": "RBF",
        "kernel_params": [0.5, 0.0, 3.0],
        "rho": [0.25],
        "support_vectors": VECTORS,
    }
    return given | {"coefficients": VECTORS[:4], "n_supports": 4} | more


ON_ROWS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    **{f"SVMClassifier {kind}": ("SVMClassifier", machine(kind), TWO_LABELS) for kind in ("LINEAR", "POLY", "SIGMOID")},
    "SVMClassifier RBF": ("SVMClassifier", machine("RBF"), TWO_LABELS),
    "SVMRegressor": ("SVMRegressor", regression(), ML),
    "SVMRegressor of one class": ("SVMRegressor", regression(one_class=1), ML),
    "LinearRegressor": ("LinearRegressor", {"coefficients": VECTORS[:6], "targets": 2}, ML),
    "LinearClassifier": (
        "LinearClassifier",
        {"coefficients": VECTORS[:9], "classlabels_ints": [1, 2, 3], "post_transform": "SOFTMAX"},
        TWO_LABELS,
    ),
    "Scaler": ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.0, 1e30, -1.0]}, ML),
    "Binarizer": ("Binarizer", {"threshold": 0.5}, ML),
    "Imputer": ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": NAN}, ML),
    **{f"Normalizer {norm}": ("Normalizer", {"norm": norm}, ML) for norm in ("L1", "L2")},
}


@pytest.mark.parametrize("given", ["known", "symbolic"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", ON_ROWS)
def test_rows_of_any_number(name: str, rows: str, given: str):
    op_type, attributes, options = ON_ROWS[name]
    model = one_node(op_type, [ROWS[rows]], attributes, **options)
    if given == "symbolic":
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    if given == "symbolic" and op_type.startswith("SVM"):  # `check_bounds` cannot follow the tail of their loops
        found = fuseline.compile(model, threads=1).run({"i0": ROWS[rows]}).values()
        for ours, theirs in zip(found, by_onnxruntime(model, {"i0": ROWS[rows]}), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
        return
    agrees(model, {"i0": ROWS[rows]})


ROW = floats(2, 3)
UNFIT: dict[str, Case] = {
    **{
        f"SVMClassifier {key} {number}": Case("SVMClassifier", [ROW], machine("RBF") | {key: value}, TWO_LABELS)
        for number, (key, value) in enumerate(
            (
                ("vectors_per_class", [2, 1, 9]),
                ("vectors_per_class", [2, -1, 3]),
                ("vectors_per_class", [4]),
                ("coefficients", VECTORS[:7]),
                ("support_vectors", VECTORS[:11]),
                ("rho", [0.5]),
                ("classlabels_ints", [1]),
            )
        )
    },
    **{
        f"SVMRegressor {key} {value}": Case("SVMRegressor", [ROW], regression(**{key: value}), ML)
        for key, value in (("n_supports", 5), ("n_supports", -1), ("coefficients", [1.0]), ("n_supports", MOST))
    },
    **{
        f"FeatureVectorizer {widths}": Case("FeatureVectorizer", [ROW, x], {"inputdimensions": widths}, ML)
        for widths, x in (
            ([-1, 2], floats(2, 2)),
            ([MOST, 2], floats(2, 2)),
            ([3], floats(2, 2)),
            ([3, 4], floats(5, 2)),
        )
    },
    "Scaler of others": Case("Scaler", [ROW], {"offset": [1.0, 2.0], "scale": [1.0]}, ML),
    "LinearRegressor of others": Case("LinearRegressor", [ROW], {"coefficients": VECTORS[:5], "targets": 2}, ML),
}


@pytest.mark.parametrize("name", UNFIT)
def test_parameters_that_do_not_fit(name: str):
    """Are refused; onnxruntime is not asked, which some of them end."""
    case = UNFIT[name]
    model, feeds = one_node(case.op_type, case.inputs, case.attributes, **case.options), feeds_of(case.inputs)
    native = answer(lambda: ProvedProgram(model).run(feeds))
    reference = answer(lambda: list(fuseline.compile(model, target="interpreter").run(feeds).values()))
    assert isinstance(native, str) and native == reference and native != "E0901"


SVM_UNFIT = {name: case for name, case in UNFIT.items() if name.startswith("SVM")} | {
    "SVMRegressor without an offset": Case(
        "SVMRegressor", [ROW], {key: value for key, value in regression().items() if key != "rho"}, ML
    ),
    "SVMRegressor support_vectors": Case("SVMRegressor", [ROW], regression(support_vectors=VECTORS[:11]), ML),
    "SVMClassifier prob_b": Case(
        "SVMClassifier", [ROW], machine("RBF") | {"prob_a": [1.0] * 3, "prob_b": [1.0]}, TWO_LABELS
    ),
}


@pytest.mark.parametrize("given", ["known", "symbolic"])
@pytest.mark.parametrize("name", SVM_UNFIT)
def test_machines_whose_attributes_do_not_fit_are_refused_when_compiled(name: str, given: str):
    """By their attributes alone, whether or not the number of features is known."""
    case = SVM_UNFIT[name]
    model = one_node(case.op_type, case.inputs, case.attributes, **case.options)
    if given == "symbolic":
        for axis, symbol in enumerate("nf"):
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = symbol
    with pytest.raises(FuselineError, match=r"E0105 \[node\]"):
        fuseline.compile(model, threads=1)


def test_a_machine_of_other_features_is_refused_when_compiled():
    model = one_node("SVMRegressor", [floats(2, 4)], regression(), **ON_ML)
    with pytest.raises(FuselineError, match=r"E0105 \[node\].*12 support_vectors are no 4 rows of 4"):
        fuseline.compile(model, threads=1)


NAN_ROW = np.array([[0.5, NAN, 1.0]], np.float32)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_a_row_of_nan(classes: int, target: str):
    """Are NaN beside a label that is onnxruntime's, which shares them out evenly."""
    pairs = classes * (classes - 1) // 2
    given = machine("RBF") | {"vectors_per_class": [2] * classes, "rho": [0.1] * pairs}
    given |= {"support_vectors": (2 * VECTORS)[: 6 * classes], "coefficients": VECTORS[: 2 * classes * (classes - 1)]}
    given |= {"prob_a": [-1.0] * pairs, "prob_b": [0.1] * pairs, "classlabels_ints": [7, 5, 9][:classes]}
    model = one_node("SVMClassifier", [NAN_ROW], given, **TWO_LABELS)
    label, scores = fuseline.compile(model, threads=1, target=target).run({"i0": NAN_ROW}).values()
    wanted = by_onnxruntime(model, {"i0": NAN_ROW})
    assert label.tolist() == wanted[0].tolist() and np.isnan(scores).all()
    np.testing.assert_allclose(wanted[1], 1 / classes, rtol=1e-6)


@pytest.mark.parametrize("widths", [[3, 2], [5, 1], [0, 2], [3, 0]])
def test_features_of_any_width(widths: list[int]):
    inputs = [floats(2, 3), floats(2, 2)]
    agrees(one_node("FeatureVectorizer", inputs, {"inputdimensions": widths}, **ON_ML), feeds_of(inputs))


def test_features_of_no_rows():
    """Which end onnxruntime."""
    inputs = [EMPTY, floats(0, 2)]
    model = one_node("FeatureVectorizer", inputs, {"inputdimensions": [4, 1]}, **ON_ML)
    assert ProvedProgram(model).run(feeds_of(inputs))[0].shape == (0, 5)
    model = one_node("ArrayFeatureExtractor", [EMPTY, numbers(0, 2)], **ON_ML)
    agrees(model, feeds_of([EMPTY, numbers(0, 2)]))


def attention(*lengths: int, batch: int = 2, steps: int = 3) -> Case:
    inputs: list[Array | None] = [floats(batch, steps, 8), floats(8, 24), floats(24), np.array(lengths, np.int32)]
    return Case("Attention", inputs, {"num_heads": 2}, MICROSOFT)


LENGTHS: dict[str, Case] = {
    f"lengths {lengths}": attention(*lengths)
    for lengths in ((2, 1), (3, 3), (0, 3), (-1, 2), (9, 1), (2**31 - 1, -(2**31)), (1, 2, 3), (1, 2, 0, 1))
} | {
    "no batch": Case("Attention", attention(0, batch=0).inputs[:3], {"num_heads": 2}, MICROSOFT),
    "no steps": Case("Attention", attention(0, steps=0).inputs[:3], {"num_heads": 2}, MICROSOFT),
    "heads that do not divide": Case("Attention", attention(1, 1).inputs[:3], {"num_heads": 3}, MICROSOFT),
    "no heads": Case("Attention", attention(1, 1).inputs[:3], {"num_heads": 0}, MICROSOFT),
}


@pytest.mark.parametrize("given", ["in the model", "at run time"])
@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_attention(name: str, given: str):
    case = LENGTHS[name]
    held = (1, 2, 3)[: len(case.inputs) - 1] if given == "in the model" else (1, 2)
    model = one_node(case.op_type, case.inputs, case.attributes, constants=held, **case.options)
    agrees(model, feeds_of(case.inputs, held))
