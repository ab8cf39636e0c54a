"""A target file of random limits holds of the code of every dispatch, whatever passes ran behind the rules; what it
cannot run is a counted host op with its reason, and outputs are those of the interpreter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.api import emit
from tests.draws import RNG
from tests.properties.random_models import INPUTS, RandomModel
from tests.wishes.compared import agree

LACKED = ("tanh", "exp", "maximumf", "divf", "rsqrt", "absf", "negf", "subf", "mulf")
"""Scalar operations that random models are made of."""

COUNTS = {"members": (1, 7), "operands": (2, 7), "results": (1, 3), "loops": (6, 8)}
"""From where to where a limit is drawn: an op alone is within all of them."""

_EXECUTABLE = re.compile(r"^  flow\.executable private @(\S+) .*?^  }$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"= flow\.dispatch @(\w+)::\S+?\((.*?)\).*-> \((.*)\)$", re.MULTILINE)
_VIEW = re.compile(r"(%\S+) = tensor\.(?:collapse|expand)_shape (%\S+) ")
_SCALAR = re.compile(r"= (?:arith|math)\.(?!constant)(\w+) [^:]*: (?!index)")
_LOOPS = re.compile(r"iterator_types = \[(.*?)\]")


def _model() -> onnx.ModelProto:
    steps = [tuple(int(n) for n in RNG.integers(0, 100, 3)) for _ in range(int(RNG.integers(3, 12)))]
    return RandomModel(int(RNG.integers(1000))).build([(a, b, c) for a, b, c in steps])


def _limits() -> dict[str, Any]:
    """Each limit with a chance of a half."""
    drawn: dict[str, Any] = {name: int(RNG.integers(*span)) for name, span in COUNTS.items() if RNG.integers(2)}
    if RNG.integers(2):
        drawn["without_ops"] = [str(name) for name in RNG.choice(LACKED, int(RNG.integers(1, 4)), replace=False)]
    return drawn


def _file(folder: Path, limits: dict[str, Any]) -> Path:
    lines = [f"{name} = {value!r}".replace("'", '"') for name, value in limits.items()]
    path = folder / "npu.toml"
    path.write_text("\n".join(["[limits]", *lines]), encoding="utf-8")
    return path


def _check_code(text: str, limits: dict[str, Any]) -> None:
    bodies = {found[1]: found[0] for found in _EXECUTABLE.finditer(text)}
    views = dict(_VIEW.findall(text[: text.index("flow.executable ")])) if bodies else {}
    assert len(_CALL.findall(text)) == text.count(" flow.dispatch ")
    for name, operands, results in _CALL.findall(text):
        body = bodies[name]
        assert not {*_SCALAR.findall(body)} & {*limits.get("without_ops", ())}, body
        counts = {
            "operands": len({_source(operand, views) for operand in operands.split(", ")}),
            "results": results.count("tensor<"),
            "loops": max((len(found.split(",")) for found in _LOOPS.findall(body)), default=0),
        }
        assert {key: count for key, count in counts.items() if count > limits.get(key, count)} == {}, body


def _source(value: str, views: dict[str, str]) -> str:
    """What is read: a tensor that is reshaped in several ways is one operand."""
    while value in views:
        value = views[value]
    return value


@pytest.mark.parametrize("number", range(36))
def test_limits_hold_of_all_dispatches(number: int, tmp_path: Path):
    model, limits = _model(), _limits()
    path, level = _file(tmp_path, limits), str(RNG.choice(["default", "aggressive"]))
    options: dict[str, Any] = {"target": f"cpu:{path}", "threads": 1 + number % 2, "fusion": level, "cache": False}
    program = fuseline.compile(model, **options)
    feeds = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in INPUTS.items()}
    wanted = fuseline.compile(model, target="interpreter", fusion="none", cache=False).run(feeds)
    found = program.run(feeds)
    for name, expected in wanted.items():
        agree(found[name], expected, f"{name} with {limits}")
    _check_code(emit(model, "dispatch", **options), limits)
    for dispatch in program.record.dispatches:
        assert len(dispatch.members) <= limits.get("members", len(dispatch.members))
    for one in program.record.host_ops:
        assert limits.keys() & {"without_ops", "operands"}, one
        assert "npu.toml:" in str(one), one
