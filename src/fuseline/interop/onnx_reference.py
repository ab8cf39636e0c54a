"""Host operators through `onnx.reference`: what has no native lowering runs here, in NumPy, between native parts of a program.

`install` registers it with the runtime; onnx itself is imported by the first host operator that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.runtime import host

Array = NDArray[Any]

EXECUTOR = "onnx"
"""The name under which artifacts ask for it."""


def install() -> None:
    """Let the runtime run ONNX operators through `onnx.reference`."""
    host.register(EXECUTOR, execute)


def execute(model: bytes, operands: Sequence[Any]) -> list[Any]:
    """Run a serialised ONNX model of one node on its inputs in order: arrays, lists for sequences, None for an empty optional.

    Raises FuselineError: E0503 without the onnx package (or one that an operator needs), E0106 where the reference implementation fails.
    """
    evaluator, names = _evaluator(model)
    feeds = dict(zip(names, operands, strict=True))
    try:
        return [_plain(result) for result in evaluator.run(None, feeds)]
    except ImportError as error:
        raise FuselineError("E0503", str(error), node=evaluator.proto_.graph.node[0].op_type, hint="install the package it names") from error
    except Exception as error:  # a reference implementation may raise anything
        node = evaluator.proto_.graph.node[0]
        raise FuselineError("E0106", f"onnx.reference cannot run {node.op_type}: {error}", node=node.name or node.op_type) from error


def _plain(result: Any) -> Any:
    """A result as programs pass it on: scalars as arrays, strings in object arrays."""
    if isinstance(result, list | tuple):
        return [_plain(item) for item in result]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(result, np.ndarray | np.generic | str):
        array = np.asarray(result)
        return array.astype(object) if array.dtype.kind in "USTO" else array
    return result


@lru_cache(maxsize=256)
def _evaluator(model: bytes) -> tuple[Any, list[str]]:
    """The evaluator of a one-node model and the names of its inputs."""
    try:
        import onnx

        from fuseline.frontends.onnx.reference import evaluator
    except ImportError as error:
        hint = "pip install onnx"
        raise FuselineError("E0503", "the artifact has operators that run through the onnx package, which is missing", hint=hint) from error
    proto = onnx.load_model_from_string(model)
    made = evaluator(proto)
    _freeze(made)
    return made, [value.name for value in proto.graph.input]


def _freeze(evaluator: Any) -> None:
    """Make constants read-only, those inside bodies too: an evaluator may answer them again and again."""
    for array in evaluator.rt_inits_.values():
        _freeze_array(array)
    for node in evaluator.rt_nodes_:
        for value in vars(node).values():
            if hasattr(value, "rt_nodes_"):
                _freeze(value)
            _freeze_array(value)


def _freeze_array(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
