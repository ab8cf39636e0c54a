"""Which version of an operator a node means."""

from __future__ import annotations

import pytest
from onnx import ModelProto, helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.operator_sets import NEWEST, is_earlier, operator_sets, version_of


def _model(**versions: int) -> ModelProto:
    imports = [helper.make_opsetid(domain.replace("_", "."), version) for domain, version in versions.items()]
    return ModelProto(opset_import=imports)


def test_what_the_model_imports_and_the_newest_of_the_rest() -> None:
    found = operator_sets(_model(ai_onnx=13, com_microsoft=1), "m")
    assert found == {"": 13, "ai.onnx.ml": NEWEST["ai.onnx.ml"], "com.microsoft": 1}
    assert operator_sets(_model(), "m") == NEWEST


def test_both_names_of_the_standard_domain() -> None:
    assert operator_sets(ModelProto(opset_import=[helper.make_opsetid("", 9)]), "m")[""] == 9
    assert operator_sets(_model(ai_onnx=9), "m")[""] == 9


@pytest.mark.parametrize(("domain", "version"), [("ai_onnx", 0), ("ai_onnx", NEWEST[""] + 1), ("ai_onnx_ml", 99)])
def test_a_version_that_no_set_has(domain: str, version: int) -> None:
    with pytest.raises(FuselineError, match=f"operator set {version} of {domain.replace('_', '.')}") as caught:
        operator_sets(_model(**{domain: version}), "model.onnx")
    assert (caught.value.code, caught.value.node) == ("E0105", "model.onnx")


def test_a_domain_of_somebody_else_has_any_version() -> None:
    assert operator_sets(_model(org_example=4000), "m")["org.example"] == 4000


def test_an_operator_before_the_standard_had_it() -> None:
    opsets = {"": 12, "org.example": 3}
    assert is_earlier(opsets, "", "LayerNormalization") and version_of(opsets, "", "LayerNormalization") == 17
    assert not is_earlier({"": 17}, "", "LayerNormalization")
    assert version_of({"": 18}, "", "LayerNormalization") == 18
    assert not is_earlier(opsets, "", "Relu") and version_of(opsets, "", "Relu") == 12
    assert not is_earlier(opsets, "org.example", "LayerNormalization")
    assert version_of(opsets, "org.example", "LayerNormalization") == 3
    assert version_of(opsets, "never.imported", "Relu") == 1
