"""The two packages that run host operators, against ONNX's own node tests and against the native form: it must not
matter which is installed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from fuseline.interop.host_choice import nodes_inside
from fuseline.interop.onnx_reference import ReferenceOperator
from fuseline.runtime.ownership import lend
from tests.conformance.conformance_gaps import expected_kind
from tests.conformance.node_cases import RANDOM, NodeCase, compare, interpreted, node_cases, with_constant_parameters

SHARES, SAMPLED = 4, 6


def _single_nodes() -> list[str]:
    return sorted(
        name
        for name, case in node_cases().items()
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type != "Scatter"
    )


def _check(names: list[str]) -> None:
    """Chosen for each node, and as it is without onnxruntime: outputs are as expected, and operands stay what they
    are."""
    for name in names:
        case = node_cases()[name]
        if expected_kind(name) == "wrong":
            continue
        before = [np.array(x) if isinstance(x, np.ndarray) else None for x in case.inputs]
        model = case.model.SerializeToString()
        for run in (partial(onnx_host.execute, model), ReferenceOperator(case.model).run):
            compare(run([lend(x) for x in case.inputs]), case)
        for x, kept in zip(case.inputs, before, strict=True):
            assert kept is None or kept.tobytes() == x.tobytes(), name


@pytest.mark.parametrize("share", range(SHARES))
def test_sampled_node_tests(share: int) -> None:
    _check(_single_nodes()[::SAMPLED][share::SHARES])


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_all_node_tests(share: int) -> None:
    _check(_single_nodes()[share::SHARES])


# -- special values ----------------------------------------------------------------------------------------------------

UNLIKE = frozenset("Attention ConvTranspose DFT DynamicQuantizeLinear GridSample LpPool Resize RoiAlign STFT".split())
"""Operators whose host form, or whose native form, has special values elsewhere; docs/numerics.md says which, or
nothing defines them."""


def _with_specials(case: NodeCase, seed: int) -> tuple[onnx.ModelProto, list[Any]] | None:
    """The case with some elements of its first float operand not finite."""
    model, inputs = with_constant_parameters(case)
    floats = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size > 3]
    if not floats:
        return None
    rng, array = np.random.default_rng(seed), np.array(inputs[floats[0]])
    places = rng.integers(0, array.size, max(1, min(array.size // 6, 4)))
    array.reshape(-1)[places] = rng.choice([np.nan, np.inf, -np.inf], len(places))
    return model, [array if i == floats[0] else x for i, x in enumerate(inputs)]


def _check_specials(names: list[str]) -> int:
    """Not finite where the native form is not, wherever there is a native form; answers how many nodes were
    compared."""
    compared = 0
    for name in names:
        case = node_cases()[name]
        node = case.model.graph.node[0]
        if expected_kind(name) == "wrong":  # in onnx.reference
            continue
        if {inner.op_type for inner in nodes_inside(node)} & (UNLIKE | {*RANDOM, "Dropout"}):
            continue
        fed = _with_specials(case, seed=len(name))
        if fed is None:
            continue
        try:
            (native,), hosts = interpreted(*fed)
        except FuselineError:
            continue
        if hosts:
            continue
        compared += 1
        for found, wanted in zip(onnx_host.execute(fed[0].SerializeToString(), fed[1]), native, strict=True):
            same = np.asarray(wanted).view(found.dtype) if found.dtype.kind in "iu" else wanted
            np.testing.assert_allclose(
                found.astype(np.float64), same.astype(np.float64), rtol=1e-3, atol=1e-4, err_msg=name
            )
    return compared


def test_special_values_of_sampled_nodes_are_where_the_native_form_has_them() -> None:
    assert _check_specials(_single_nodes()[::SAMPLED]) > 50


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_special_values_of_all_nodes(share: int) -> None:
    assert _check_specials(_single_nodes()[share::SHARES]) > 80
