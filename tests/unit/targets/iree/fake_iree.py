"""IREE's compiler and runtime as tests without them have them: the text is what is run, by our own evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseResourceAttr
from xdsl.dialects.func import FuncOp

from fuseline.evaluation import evaluate_function
from fuseline.interop import iree_host
from fuseline.ir.context import new_context
from fuseline.ir.flow_constants import ConstantOp as FlowConstantOp
from fuseline.ir.flow_parameters import NamedParameterAttr
from fuseline.ir.text import parse_module
from fuseline.targets.iree import target
from fuseline.targets.iree.compiler import Compiled, Failure
from tests.tensor_files import read_tensors

Array = NDArray[Any]
Judge = Callable[[str], Sequence[Failure]]


def _takes_all(text: str) -> Sequence[Failure]:
    del text
    return ()


@dataclass
class FakeIree:
    """What was compiled, and how often modules were loaded and called. `judge` says what is wrong with a text."""

    judge: Judge = _takes_all
    texts: list[str] = field(default_factory=list[str])
    arguments: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    devices: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])

    def compile_text(self, text: str, arguments: Sequence[str]) -> Compiled:
        """The text as its own code."""
        self.texts.append(text)
        self.arguments.append(arguments)
        failures = list(self.judge(text))
        figures = {"dispatches": text.count("flow.dispatch.region"), "executables": 1, "transient_bytes": 64}
        return Compiled(b"" if failures else text.encode(), failures, {} if failures else figures)

    def module(self, code: Array, parameters: Array, device: str) -> FakeModule:
        """The text, loaded."""
        self.devices.append(device)
        return FakeModule(self, code.tobytes().decode(), read_tensors(parameters.tobytes()) if parameters.size else {})


class FakeModule:
    """A text whose functions are evaluated."""

    def __init__(self, iree: FakeIree, text: str, parameters: dict[str, Array]) -> None:
        ctx = new_context()
        self.iree, self.module, self.resources = iree, parse_module(text, ctx), {**ctx.resources, **parameters}
        for op in list(self.module.walk()):
            if isinstance(op, FlowConstantOp) and isinstance(op.value, NamedParameterAttr):
                _as_resource(op, op.value)

    def call(self, function: str, arguments: Sequence[Any]) -> list[Array]:
        """The results of a function."""
        self.iree.calls.append(function)
        (found,) = (op for op in self.module.ops if isinstance(op, FuncOp) and op.sym_name.data == function)
        given = [np.asarray(value, np.int64) if isinstance(value, int) else value for value in arguments]
        return [np.asarray(result) for result in evaluate_function(found, given, self.resources)]


def _as_resource(op: FlowConstantOp, parameter: NamedParameterAttr) -> None:
    value: Any = DenseResourceAttr.from_params(parameter.key.data, op.res[0].type)  # pyright: ignore[reportArgumentType]
    constant = ConstantOp(value)
    assert op.parent is not None
    op.parent.insert_op_before(constant, op)
    op.res[0].replace_all_uses_with(constant.result)
    op.detach()
    op.erase()


def install(monkeypatch: pytest.MonkeyPatch, judge: Judge = _takes_all) -> FakeIree:
    """Put the fake in IREE's place for a test."""
    fake = FakeIree(judge)
    monkeypatch.setattr(target, "compile_text", fake.compile_text)
    monkeypatch.setattr(iree_host, "Module", fake.module)
    iree_host.forget()
    return fake
