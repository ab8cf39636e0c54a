"""Text of options: shapes in both spellings, thread lists, and refusals."""

from __future__ import annotations

import pytest

from fuseline.cli.options import parse_shape, parse_threads
from fuseline.errors import FuselineError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1x3x224x224", ("x", "1x3x224x224")),
        ("x:1x3x224x224", ("x", "1x3x224x224")),
        ("seq=128", ("seq", "128")),
        ("seq=1..512", ("seq", "1..512")),
        ("serving_default_x:0=1x3", ("serving_default_x:0", "1x3")),
    ],
)
def test_shapes(text: str, expected: tuple[str, str]):
    assert parse_shape(text) == expected


@pytest.mark.parametrize("text", ["x", "x=", "=1x3", "x=1x", "x=ax3", "x=1...3", "x=-1x3", "seq=1..", "x=1,3"])
def test_other_shapes_are_refused(text: str):
    with pytest.raises(FuselineError) as caught:
        parse_shape(text)
    assert caught.value.code == "E0501"
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(("text", "expected"), [("1", [1]), ("1,2", [1, 2]), ("4, 8", [4, 8])])
def test_thread_lists(text: str, expected: list[int]):
    assert parse_threads(text) == expected


@pytest.mark.parametrize("text", ["", "0", "1,", "-1", "two"])
def test_other_thread_lists_are_refused(text: str):
    with pytest.raises(FuselineError, match="E0501"):
        parse_threads(text)
