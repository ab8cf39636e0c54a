"""String attributes that name one of a few things."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.attribute_values import text_of


@pytest.mark.parametrize("value", ["reflect", b"reflect"])
def test_a_known_name_as_text_and_as_bytes(value: str | bytes) -> None:
    assert text_of(value, "Pad", "mode", "p") == "reflect"


def test_what_no_list_limits_may_be_anything() -> None:
    assert text_of("reflect", "Einsum", "equation", "e") == "reflect"
    assert text_of(b"ij->ji", "Einsum", "equation", "e") == "ij->ji"


def test_the_same_attribute_of_every_operator() -> None:
    assert text_of("SAME_LOWER", "Conv", "auto_pad", "c") == "SAME_LOWER"
    with pytest.raises(FuselineError, match="MaxPool knows no auto_pad 'same'"):
        text_of("same", "MaxPool", "auto_pad", "m")


@pytest.mark.parametrize(
    ("value", "message"), [("REFLECT", "Pad knows no mode 'REFLECT'"), (b"\xff\xfe", "mode is not UTF-8")]
)
def test_what_is_refused_names_the_node(value: str | bytes, message: str) -> None:
    with pytest.raises(FuselineError, match=message) as caught:
        text_of(value, "Pad", "mode", "the_pad")
    assert (caught.value.code, caught.value.node) == ("E0105", "the_pad")


def test_the_hint_lists_what_there_is() -> None:
    with pytest.raises(FuselineError) as caught:
        text_of("", "Upsample", "mode", "u")
    assert caught.value.hint == "one of nearest, linear"
