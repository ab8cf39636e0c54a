"""One step of reading MLIR text: what a program computes after it, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.draws import RNG

Step = Callable[[ModuleOp, FuncOp], object]


def normal(*shape: int) -> NDArray[np.float32]:
    """Numbers around 0."""
    return RNG.standard_normal(shape).astype(np.float32)


def main_of(module: ModuleOp) -> FuncOp:
    """The function called `main`."""
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")


def after(text: str, step: Step) -> ModuleOp:
    """The program after `step`, verified."""
    module = parse_module(text, new_context(), "p.mlir")
    step(module, main_of(module))
    module.verify()
    return module


def computed(text: str, step: Step, *arguments: Any) -> list[Any]:
    """What the program answers after `step`."""
    return evaluate_function(main_of(after(text, step)), [np.asarray(item) for item in arguments], {})


def ops_after(text: str, step: Step) -> list[str]:
    """The names of the ops of `main` after `step`, those inside of others left out."""
    return [op.name for op in main_of(after(text, step)).body.block.ops]


def refused(text: str, step: Step, words: str, code: str = "E0306") -> None:
    """`step` refuses the program, naming a line of it."""
    with pytest.raises(FuselineError, match=words) as caught:
        after(text, step)
    assert caught.value.code == code
    assert caught.value.node is not None and caught.value.node.startswith("p.mlir:")


def function(arguments: str, lines: str, results: Sequence[str] = (), names: str = "%r") -> str:
    """`@main` with a body of `lines`, which returns `names`."""
    types = ", ".join(results)
    end = f"return {names} : {types}" if results else "return"
    return f"func.func @main({arguments}) -> ({types}) {{\n{lines}\n{end}\n}}"
