"""One-node ONNX models through `onnx.reference`, with what that lacks or has wrong replaced: slow, complete, in
NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuseline.errors import FuselineError

if TYPE_CHECKING:
    import onnx
    from onnx.reference import ReferenceEvaluator

NAME = "onnx.reference"


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """What runs `model` on NumPy arrays; sequences are lists, an empty optional is None."""
    from fuseline.frontends.onnx import reference
    from fuseline.interop.lowered_operators import LOWERED_OPERATORS

    return reference.evaluator_with(LOWERED_OPERATORS, model)


class ReferenceOperator:
    """A model that `onnx.reference` runs. Raises FuselineError (E0106) for an operator or a version that it lacks."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._op_type: str = proto.graph.node[0].op_type
        try:
            self._evaluator: Any = evaluator(proto)
        except Exception as error:
            raise self._failure(error) from error
        _freeze(self._evaluator)
        self._names = [value.name for value in proto.graph.input]

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The outputs for the inputs in order. Raises FuselineError: E0503 for a package that an operator needs, E0106
        for all else."""
        feeds = dict(zip(self._names, operands, strict=True))
        try:
            with np.errstate(all="ignore"):
                return [_plain(result) for result in self._evaluator.run(None, feeds)]
        except ImportError as error:
            raise FuselineError("E0503", f"{self._op_type}: {error}", hint="install the package it names") from error
        except MemoryError:
            raise
        except Exception as error:  # a reference implementation may raise anything
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> FuselineError:
        return FuselineError("E0106", f"{NAME} cannot run {self._op_type}: {error or type(error).__name__}")


def _plain(result: Any) -> Any:
    """A result as programs pass it on: scalars as arrays, strings in object arrays."""
    if isinstance(result, list | tuple):
        return [_plain(item) for item in result]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(result, np.ndarray | np.generic | str):
        array = np.asarray(result)
        return array.astype(object) if array.dtype.kind in "USTO" else array
    return result


def _freeze(evaluator: Any) -> None:
    """Make constants read-only, those inside bodies and functions too: an evaluator may answer them again and again."""
    found, left = {id(evaluator)}, [evaluator]
    while left:
        evaluator = left.pop()
        for value in [
            *evaluator.rt_inits_.values(),
            *(value for node in evaluator.rt_nodes_ for value in vars(node).values()),
        ]:
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            elif hasattr(value, "rt_nodes_") and id(value) not in found:
                found.add(id(value))
                left.append(value)
