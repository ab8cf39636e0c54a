"""The arguments of `@main` and what they say of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from fuseline.frontends.onnx.host_values import HostValue
from fuseline.frontends.onnx.main_arguments import MainArguments, with_dtype
from fuseline.frontends.onnx.model_file import load_model
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from tests.graphs.onnx_text import onnx_model

N = symbol("n", 0)


def _read(inputs: str, **shapes: Any) -> tuple[MainArguments, dict[str, Any]]:
    """The arguments of a graph that answers its inputs, as ONNX's text declares them."""
    names = ", ".join(declaration.split()[-1] for declaration in inputs.split("; "))
    loaded = load_model(onnx_model(f"({inputs.replace('; ', ', ')}) => ({names}) {{}}"))
    ctx = new_context()
    arguments = MainArguments(loaded, Program(ctx), ctx)
    return arguments, arguments.read(loaded.model.graph, shapes)


def _texts(attributes: Any) -> dict[str, Any]:
    plain = {key.removeprefix("fuseline."): value for key, value in attributes.items()}
    return {
        key: [item.data for item in value] if isinstance(value, ArrayAttr) else value.data  # pyright: ignore
        for key, value in plain.items()
    }


@pytest.mark.parametrize(
    ("kind", "element", "more"),
    [
        ("float", "f32", {}),
        ("bfloat16", "bf16", {}),
        ("int8", "i8", {}),
        ("uint8", "i8", {"dtype": "uint8"}),
        ("uint64", "i64", {"dtype": "uint64"}),
        ("bool", "i1", {}),
    ],
)
def test_tensors(kind: str, element: str, more: dict[str, str]) -> None:
    arguments, scope = _read(f"{kind}[n, 3] x; {kind}[2] y")
    assert [str(arg.type) for arg in arguments.program.block.args] == [f"tensor<?x3x{element}>", f"tensor<2x{element}>"]
    assert [_texts(one) for one in arguments.attributes] == [
        {"name": "x", "dims": ["n", "3"], **more},
        {"name": "y", **more},
    ]
    x = scope["x"]
    assert isinstance(x, Tensor) and (x.dims, x.name) == ((N, 3), "x")
    assert x.value is arguments.program.block.args[0]
    assert arguments.program.is_bound(N)


def test_sizes_that_nobody_bounds_are_assumed() -> None:
    arguments, scope = _read("float[n, m, k] x", n=4, m=(2, 9))
    assert arguments.program.assumed == {"k"}
    assert arguments.ctx.symbols == {"n": 4, "m": symbol("m", 2, 9), "k": symbol("k", 0)}
    assert scope["x"].dims == (4, symbol("m", 2, 9), symbol("k", 0))


@pytest.mark.parametrize(
    ("info", "said", "noted"),
    [
        (
            "string[n, 2] x",
            {"type": "tensor(string)", "dtype": "object", "dims": ["n", "2"]},
            0,
        ),
        ("float[] x", {"type": "any_rank(tensor(float32))", "dtype": "object", "dims": []}, 1),
        ("string[] x", {"type": "any_rank(tensor(string))", "dtype": "object", "dims": []}, 0),
        (
            "seq(float[]) x",
            {"type": "seq(tensor(float32))", "dtype": "object", "dims": []},
            0,
        ),
        (
            "float8e5m2[3] x",
            {"type": "tensor(float8_e5m2)", "dtype": "float8_e5m2", "dims": ["3"]},
            0,
        ),
    ],
)
def test_what_only_the_host_holds(info: str, said: dict[str, Any], noted: int) -> None:
    arguments, scope = _read(info)
    assert isinstance(scope["x"], HostValue)
    assert str(arguments.program.block.args[0].type) == "!flow.host"
    assert _texts(arguments.attributes[0]) == {"name": "x", **said}
    notes = arguments.ctx.records.notes
    assert len(notes) == noted and all("give its sizes with --shape" in note for note in notes)


def test_the_caller_may_tell_a_rank() -> None:
    arguments, scope = _read("float[] x", x=(2, 3))
    assert isinstance(scope["x"], Tensor) and scope["x"].dims == (2, 3)
    assert not arguments.ctx.records.notes


def test_inputs_without_a_type_are_a_problem_each() -> None:
    arguments, scope = _read("x; float[2] y; z")
    assert list(scope) == ["y"]
    assert [(problem.code, problem.node) for problem in arguments.problems] == [("E0105", "x"), ("E0105", "z")]


def test_an_unsigned_type_is_written_beside_the_name() -> None:
    given = {"fuseline.name": StringAttr("x")}
    assert with_dtype(dict(given), np.dtype(np.uint32)) == {**given, "fuseline.dtype": StringAttr("uint32")}
    for dtype in (np.int32, np.float32, bool):
        assert with_dtype(dict(given), np.dtype(dtype)) == given
