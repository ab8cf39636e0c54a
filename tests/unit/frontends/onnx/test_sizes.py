"""Sizes of inputs: what the model declares and what the caller makes of it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.sizes import InputSizes, graph_inputs
from fuseline.ir.dim import Dim, lower_bound, symbol, upper_bound
from tests.graphs.onnx_text import onnx_model


def _inputs(**declared: list[int | str | None] | None) -> list[ir.Value]:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in declared.items()]
    return list(ir.from_proto(helper.make_graph([], "g", infos, [])).inputs)


def _sizes(declared: dict[str, Any], **shapes: Any) -> dict[str, tuple[Dim, ...] | None]:
    """The sizes of each input under the options `shapes`."""
    values = _inputs(**declared)
    sizes = InputSizes(values, shapes)
    return {str(value.name): sizes.of(value) for value in values}


N, M = symbol("n", 0), symbol("m", 0)


def test_what_the_model_declares() -> None:
    declared = {"x": ["n", 3], "y": ["m", "n"], "z": [], "r": None}
    assert _sizes(declared) == {"x": (N, 3), "y": (M, N), "z": (), "r": None}


@pytest.mark.parametrize("unknown", [-1, "?", "", "None", "unknown", "42"])
def test_unknown_sizes_are_named_after_their_place(unknown: int | str) -> None:
    found = _sizes({"x": [unknown, 3, unknown], "y": [unknown]})
    assert found == {"x": (symbol("x_0", 0), 3, symbol("x_2", 0)), "y": (symbol("y_0", 0),)}


def test_symbols_that_remain_are_kept() -> None:
    values = _inputs(x=["n", 3], y=["m", "k"])
    sizes = InputSizes(values, {"n": 4, "k": (2, 9)})
    assert [sizes.of(value) for value in values] == [(4, 3), (M, symbol("k", 2, 9))]
    assert sizes.symbols == {"n": 4, "m": M, "k": symbol("k", 2, 9)}
    assert (lower_bound(sizes.symbols["k"]), upper_bound(sizes.symbols["k"])) == (2, 9)
    assert sizes.of(values[1])[0] is sizes.symbols["m"]  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.parametrize(
    ("option", "size"), [(7, 7), (0, 0), ((7, 7), 7), ([2, 5], symbol("n", 2, 5)), ((0, 1), symbol("n", 0, 1))]
)
def test_a_symbol_of_one_size_or_within_bounds(option: Any, size: Dim) -> None:
    assert _sizes({"x": ["n", 3], "y": ["n"]}, n=option) == {"x": (size, 3), "y": (size,)}


def test_all_sizes_of_an_input() -> None:
    assert _sizes({"x": ["n", 3], "y": ["n", "m"]}, x=(5, 3)) == {"x": (5, 3), "y": (5, M)}
    assert _sizes({"x": ["n", 3], "y": ["n", "m"]}, x=[5, 3], y=(5, 0)) == {"x": (5, 3), "y": (5, 0)}
    assert _sizes({"r": None}, r=(2, 4)) == {"r": (2, 4)}


@pytest.mark.parametrize(
    ("shapes", "node", "words"),
    [
        ({"nobody": 3}, "nobody", "no input and no symbolic size"),
        ({"nobody": (3, 4)}, "nobody", "no input and no symbolic size"),
        ({"x": 3}, "x", "no input and no symbolic size"),  # one size for an input of two
        ({"n": -1}, "n", "size -1 is negative"),
        ({"n": (5, 2)}, "n", "are not .low, high."),
        ({"n": (-1, 2)}, "n", "are not .low, high."),
        ({"n": (1, 2, 3)}, "n", "are not .low, high."),
        ({"x": (3,)}, "x", "1 sizes given, the model has 2"),
        ({"x": (4, 4)}, "x", r"size 4 contradicts 3"),
        ({"x": (-4, 3)}, "x", "size -4 contradicts"),
        ({"x": (4, 3), "y": (5, 1)}, "y", r"size 5 contradicts 4 \(n\)"),
    ],
)
def test_options_that_do_not_fit(shapes: dict[str, Any], node: str, words: str) -> None:
    with pytest.raises(FuselineError, match=words) as caught:
        _sizes({"x": ["n", 3], "y": ["n", "m"]}, **shapes)
    assert (caught.value.code, caught.value.node) == ("E0108", node)


def test_what_could_have_been_named_is_listed() -> None:
    with pytest.raises(FuselineError) as caught:
        _sizes({"x": ["n", 3]}, b=2)
    assert caught.value.hint == "known: n, x"
    with pytest.raises(FuselineError) as caught:
        _sizes({}, b=2)
    assert caught.value.hint == "known: none"


def test_an_input_with_a_default_is_not_fed() -> None:
    proto = onnx_model("(float[2] x, float[2] w) => (y) { y = Add(x, w) }", w=[1.0, 2.0])
    assert [value.name for value in graph_inputs(ir.from_proto(proto).graph)] == ["x"]
