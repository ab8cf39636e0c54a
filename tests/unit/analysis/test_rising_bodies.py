"""What rises with what it reads: bodies step by step, and what their bounds say of integers."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import linalg

from fuseline.analysis.rising_bodies import rising
from fuseline.evaluation import evaluate_module, main_function
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.draws import RNG

CLAMPED = "maxnumf 0.0; minnumf 255.0"
BYTE = "fptosi i32; trunci i8"
RISING = {
    "bytes": f"divf 0.1; roundeven; addf 120.0; {CLAMPED}; {BYTE}; extui i32; subi 120; sitofp f32; mulf 0.1",
    "with a sign": "divf 0.3; roundeven; maxnumf -128.0; minnumf 127.0; fptosi i8; extsi i32; sitofp f32",
    "by a factor": f"mulf 3.7; roundeven; subf 4.0; {CLAMPED}; fptoui i16; uitofp f32",
    "bounded only": "maxnumf -2.5; minimumf 3.5",
    "narrow steps": f"{CLAMPED}; fptosi i32; addi -7; sitofp f32",
}
OTHERS = {
    "falls": "mulf -1.0; maxnumf 0.0; minnumf 9.0",
    "a step of nothing": "mulf 0.0; maxnumf 0.0; minnumf 9.0",
    "falls with an integer": f"{CLAMPED}; fptosi i32; rsubi 3; sitofp f32",
    "NaN is the largest": "minnumf 9.0; maxnumf 0.0",
    "NaN stays": "maximumf 0.0; minimumf 9.0",
    "NaN lies between": "maxnumf 0.0; minnumf 9.0; addf 0.0; negf",
    "without end": "maxnumf 0.0",
    "too large for its bits": f"{CLAMPED}; fptosi i8; sitofp f32",
    "cut off": f"maxnumf 0.0; minnumf 256.0; {BYTE}; extui i32; sitofp f32",
    "another sign": f"{CLAMPED}; {BYTE}; extsi i32; sitofp f32",
    "below 0 without a sign": "maxnumf -1.0; minnumf 9.0; fptosi i32; trunci i8; extui i32; sitofp f32",
    "wraps": "maxnumf 0.0; minnumf 2147483520.0; fptosi i32; addi 2147483647; sitofp f32",
    "no f32 for it": "maxnumf 0.0; minnumf 2147483520.0; fptosi i32; sitofp f32",
}


def _ops(body: str) -> list[linalg.ops.GenericOp]:
    block = main_function(parse_module(body, new_context())).body.block
    return [op for op in block.ops if isinstance(op, linalg.ops.GenericOp)]


def _text(steps: str, size: int) -> str:
    lines, value, type_ = list[str](), "%in", "f32"
    for n, step in enumerate(steps.split("; ")):
        name, *more = step.split()
        given = more[0] if more else None
        if given is None:
            lines.append(f"%v{n} = {'math' if name == 'roundeven' else 'arith'}.{name} {value} : {type_}")
        elif given[0] in "if":
            lines.append(f"%v{n} = arith.{name} {value} : {type_} to {given}")
            type_ = given
        else:
            sides = f"%c{n}, {value}" if name == "rsubi" else f"{value}, %c{n}"
            op = name.removeprefix("r") if name == "rsubi" else name
            lines += [f"%c{n} = arith.constant {given} : {type_}", f"%v{n} = arith.{op} {sides} : {type_}"]
        value = f"%v{n}"
    body = "\n".join(lines)
    return f"""func.func @main(%x: tensor<{size}xf32>) -> tensor<{size}x{type_}> {{
      %e = tensor.empty() : tensor<{size}x{type_}>
      %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%x : tensor<{size}xf32>) outs(%e : tensor<{size}x{type_}>) {{
      ^bb0(%in: f32, %out: {type_}):
        {body}
        linalg.yield {value} : {type_}
      }} -> tensor<{size}x{type_}>
      return %r : tensor<{size}x{type_}>
    }}"""


@pytest.mark.parametrize("name", RISING)
def test_what_rises(name: str):
    """And it does: sorted numbers stay sorted, NaN gives the least."""
    size = int(RNG.integers(40, 90))
    text = _text(RISING[name], size)
    assert rising(_ops(text)) is not None
    x = np.sort(RNG.normal(0, 40, size).astype(np.float32))
    x[0], x[1] = np.nan, -np.inf
    (found,) = evaluate_module(parse_module(text, new_context()), [x])
    assert found[0] == found[1] and (np.diff(np.asarray(found, np.float64)) >= 0).all()


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_known_to_rise(name: str):
    assert rising(_ops(_text(OTHERS[name], 4))) is None


def test_a_body_of_two_operands_is_none():
    text = _text(RISING["bounded only"], 4).replace("%in, %c0", "%in, %out")
    assert rising(_ops(text)) is None
