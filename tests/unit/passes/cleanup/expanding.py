"""Ops written as others, one kind at a time, and what the program then computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

OpT = TypeVar("OpT", bound=Operation)


def expanded(text: str, kind: type[OpT], expand: Callable[[OpT], object]) -> ModuleOp:
    """The program with every op of a kind expanded."""
    module = parse_module(text, new_context())
    for op in [op for op in module.walk() if isinstance(op, kind)]:
        expand(op)
    module.verify()
    return module


def run(module: ModuleOp, *arguments: Any) -> Any:
    """The one result of the one function."""
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    (result,) = evaluate_function(function, [np.asarray(argument) for argument in arguments], {})
    return result


def names(module: ModuleOp) -> set[str]:
    """The ops that there are."""
    return {op.name for op in module.walk()}


def numbers(*shape: int, seed: int = 3) -> NDArray[np.float32]:
    """Random ones."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)
