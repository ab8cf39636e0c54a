"""`flow.tensor.*`: each op gives the numbers that it says, native code and the interpreter alike; what does not fit is
refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from tests.draws import generator

_HELD = generator(__name__)
A, B = _HELD.standard_normal((4, 6), dtype=np.float32), _HELD.standard_normal((2, 3), dtype=np.float32)
ARGUMENTS = "%a: tensor<4x6xf32>, %d: tensor<?x6xf32>, %b: tensor<2x3xf32>, %s: f32, %i: index, %j: index, %n: index"
FEEDS: dict[str, Any] = {"a": A, "d": A, "b": B, "s": 2.5, "i": 1, "j": 3, "n": 4}


def _updated() -> Any:
    out = A.copy()
    out[1:3, 3:6] = B
    return out


FORMS: dict[str, tuple[str, str, Any]] = {
    "reshape": (
        "%r = flow.tensor.reshape %a : tensor<4x6xf32> -> tensor<2x3x4xf32>",
        "tensor<2x3x4xf32>",
        A.reshape(2, 3, 4),
    ),
    "reshape of unknown size": (
        "%r = flow.tensor.reshape %d : tensor<?x6xf32>{%n} -> tensor<6x?xf32>{%n}",
        "tensor<6x?xf32>",
        A.reshape(6, 4),
    ),
    "reshape of a size that becomes known": (
        "%r = flow.tensor.reshape %d : tensor<?x6xf32>{%n} -> tensor<24xf32>",
        "tensor<24xf32>",
        A.reshape(24),
    ),
    "reshape to no dimension": (
        """%0 = flow.tensor.slice %a[%i, %j for %i, %i] : tensor<4x6xf32> -> tensor<1x1xf32>
%r = flow.tensor.reshape %0 : tensor<1x1xf32> -> tensor<f32>""",
        "tensor<f32>",
        A[1, 3],
    ),
    "reshape from no dimension": (
        "%0 = flow.tensor.splat %s : tensor<f32>\n%r = flow.tensor.reshape %0 : tensor<f32> -> tensor<1x1x1xf32>",
        "tensor<1x1x1xf32>",
        np.full((1, 1, 1), 2.5, np.float32),
    ),
    "bitcast": (
        "%r = flow.tensor.bitcast %a : tensor<4x6xf32> -> tensor<24xi32>",
        "tensor<24xi32>",
        A.reshape(24).view(np.int32),
    ),
    "bitcast of unknown size": (
        "%r = iree_tensor_ext.bitcast %d : tensor<?x6xf32>{%n} -> tensor<?x6xi32>{%n}",
        "tensor<?x6xi32>",
        A.view(np.int32),
    ),
    "load": (
        "%0 = flow.tensor.load %a[%i, %j] : tensor<4x6xf32>\n%r = flow.tensor.splat %0 : tensor<3xf32>",
        "tensor<3xf32>",
        np.full(3, A[1, 3]),
    ),
    "store": (
        "%r = flow.tensor.store %s, %d[%i, %j] : tensor<?x6xf32>{%n}",
        "tensor<?x6xf32>",
        np.where((np.arange(4) == 1)[:, None] & (np.arange(6) == 3), np.float32(2.5), A),
    ),
    "splat": ("%r = flow.tensor.splat %s : tensor<?x3xf32>{%n}", "tensor<?x3xf32>", np.full((4, 3), 2.5, np.float32)),
    "slice": (
        "%r = flow.tensor.slice %a[%i, %j for %j, %i] : tensor<4x6xf32> -> tensor<?x1xf32>{%j}",
        "tensor<?x1xf32>",
        A[1:4, 3:4],
    ),
    "update": (
        "%r = flow.tensor.update %b, %a[%i, %j] : tensor<2x3xf32> -> %a as tensor<4x6xf32>",
        "tensor<4x6xf32>",
        _updated(),
    ),
    "update of unknown size": (
        "%r = flow.tensor.update %b, %d[%i, %j] : tensor<2x3xf32> -> tensor<?x6xf32>{%n}",
        "tensor<?x6xf32>",
        _updated(),
    ),
    "what is handed on": (
        """%0 = flow.tensor.clone %d : tensor<?x6xf32>{%n}
%1 = flow.tensor.transfer %0 : tensor<?x6xf32>{%n} to "there"
%2 = flow.tensor.barrier %1 : tensor<?x6xf32>{%n} on "here"
%3 = flow.tensor.tie_shape %2 : tensor<?x6xf32>{%n}
%r = flow.tensor.encode %3 : tensor<?x6xf32>{%n} -> tensor<?x6xf32>{%n}""",
        "tensor<?x6xf32>",
        A,
    ),
    "empty": (
        """%0 = flow.tensor.empty : tensor<?x3xf32>{%n}
%r = linalg.fill ins(%s : f32) outs(%0 : tensor<?x3xf32>) -> tensor<?x3xf32>""",
        "tensor<?x3xf32>",
        np.full((4, 3), 2.5, np.float32),
    ),
    "constants": (
        """%0 = flow.tensor.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
%1 = flow.tensor.dynamic_constant dense<[1.0, 5.0, 3.0]> : tensor<3xf32> -> tensor<?xf32>
%2 = tensor.cast %1 : tensor<?xf32> to tensor<3xf32>
%r = arith.addf %0, %2 : tensor<3xf32>""",
        "tensor<3xf32>",
        np.array([2, 7, 6], np.float32),
    ),
}


def _text(lines: str, result: str) -> str:
    return f"util.func public @main({ARGUMENTS}) -> {result} {{\n{lines}\nutil.return %r : {result}\n}}"


@pytest.mark.parametrize("name", FORMS)
def test_an_op_gives_the_numbers_that_it_says(name: str, tmp_path: Path):
    lines, result, expected = FORMS[name]
    path = tmp_path / "p.mlir"
    path.write_text(_text(lines, result))
    for target in ("cpu", "interpreter"):
        (got,) = fuseline.compile(path, target=target, threads=1).run(FEEDS).values()
        assert got.shape == np.shape(expected)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_printed_is_read_again(name: str):
    lines, result, _ = FORMS[name]
    printed = print_module(parse_module(_text(lines, result), new_context()))
    assert print_module(parse_module(printed, new_context())) == printed


BROKEN = {
    "index missing": ("%r = flow.tensor.load %a[%i] : tensor<4x6xf32>", "f32", "E0302"),
    "size missing": ("%r = flow.tensor.clone %d : tensor<?x6xf32>", "tensor<?x6xf32>", "E0301"),
    "size too many": ("%r = flow.tensor.splat %s : tensor<?xf32>{%i, %j}", "tensor<?xf32>", "E0301"),
    "element types that differ": (
        "%r = flow.tensor.reshape %a : tensor<4x6xf32> -> tensor<24xi32>",
        "tensor<24xi32>",
        "E0302",
    ),
    "widths that differ": (
        "%r = flow.tensor.bitcast %a : tensor<4x6xf32> -> tensor<4x3xf64>",
        "tensor<4x3xf64>",
        "E0306",
    ),
    "lengths missing": (
        "%r = flow.tensor.slice %a[%i, %j] : tensor<4x6xf32> -> tensor<1x1xf32>",
        "tensor<1x1xf32>",
        "E0302",
    ),
    "another layout": (
        "%r = flow.tensor.encode %a : tensor<4x6xf32> -> tensor<4x6xf32, 1 : i32>",
        "tensor<4x6xf32>",
        "E0301",
    ),
    "parameter of unknown size": (
        '%r = flow.tensor.constant #flow.parameter.named<"m"::"w"> : tensor<?x6xf32>',
        "tensor<?x6xf32>",
        "E0306",
    ),
    "elements that are too few": (
        "%r = flow.tensor.reshape %a : tensor<4x6xf32> -> tensor<4x5xf32>",
        "tensor<4x5xf32>",
        "E0302",
    ),
    "vector": ("%r = flow.tensor.clone %a : vector<4xf32>", "tensor<4x6xf32>", "E0301"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused_by_line(name: str, tmp_path: Path):
    lines, result, code = BROKEN[name]
    path = tmp_path / "p.mlir"
    path.write_text(_text(lines, result))
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code == code, caught.value
    assert str(caught.value.node).startswith("p.mlir:") and str(caught.value.node).count(":") == 2
