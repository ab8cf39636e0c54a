"""A module of any phase, run by name: feeds in, outputs out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_function, main_function
from fuseline.runtime.ownership import hand_out, lend
from fuseline.targets.interpreter.host import call_declared

Array = NDArray[Any]


def _names(attributes: Any, count: int, stem: str) -> tuple[str, ...]:
    entries = [entry for entry in attributes.data] if attributes is not None else [DictionaryAttr({})] * count
    named = [entry.data.get("fuseline.name") for entry in entries]
    return tuple(name.data if isinstance(name, StringAttr) else f"{stem}{i}" for i, name in enumerate(named))


class Interpreter:
    """Runs the entry of `module`. Inputs and outputs without a `fuseline.name` are called `input0`, `result0` and so
    on.

    Args:
        resources: the arrays behind `dense_resource` constants.
        double: compute every float in float64: the accuracy reference.
    """

    def __init__(self, module: ModuleOp, resources: Mapping[str, Array] | None = None, *, double: bool = False) -> None:
        self.function: FuncOp = main_function(module)
        self.resources, self.double = resources or {}, double
        self.inputs = _names(self.function.arg_attrs, len(self.function.args), "input")
        self.outputs = _names(self.function.res_attrs, len(self.function.function_type.outputs), "result")

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name; raises E0201 or E0202 for a feed too many or missing, E0305 for IR that cannot be
        executed."""
        for name in feeds:
            if name not in self.inputs:
                raise FuselineError(
                    "E0201",
                    "the program has no such input",
                    node=name,
                    hint=f"inputs: {', '.join(self.inputs) or 'none'}",
                )
        for name in self.inputs:
            if name not in feeds:
                raise FuselineError("E0202", "no feed for this input", node=name)
        arguments = [feeds[name] for name in self.inputs]
        results = evaluate_function(
            self.function, arguments, self.resources, double=self.double, host_call=call_declared
        )
        owned = hand_out(map(lend, results), map(lend, [*arguments, *self.resources.values()]))
        return dict(zip(self.outputs, owned, strict=True))
