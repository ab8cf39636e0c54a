"""Host operators: what has no native lowering runs here, between native parts of a program, in onnxruntime or in NumPy.

    one-node model ──why_numpy?──> onnxruntime ──not taken──> onnx.reference with corrections

`install` registers it with the runtime; the packages are imported by the first host operator that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fuseline import executors
from fuseline.errors import FuselineError
from fuseline.interop import onnx_reference, onnx_runtime
from fuseline.interop.host_choice import DIVISIONS, FINITE_ONLY, TOTALS, only_in_onnxruntime, why_numpy
from fuseline.interop.onnx_reference import ReferenceOperator
from fuseline.interop.onnx_runtime import NotInstalled, NotTaken, OrtOperator
from fuseline.runtime import host

if TYPE_CHECKING:
    import onnx

OPERATORS_KEPT = 1024
"""Operators that are kept ready; the least recently used goes first."""


def install() -> None:
    """Let the runtime run ONNX operators here."""
    host.register(executors.ONNX, execute, chosen)


def execute(model: bytes, operands: Sequence[Any]) -> list[Any]:
    """Run a serialised ONNX model of one node on its inputs in order: arrays, lists for sequences, None for an empty
    optional.

    Raises FuselineError: E0503 without the onnx package (or one that an operator needs), E0106 where the operator
    cannot be run on these operands. The error names the node if the model does.
    """
    return _operator(model).run(operands)


def chosen(model: bytes) -> str:
    """The package that runs a serialised model of one node, as far as it is known before it has run. Raises E0503
    without onnx."""
    return _operator(model).package


def forget() -> None:
    """Forget the operators that are kept ready: the next call chooses anew."""
    _operator.cache_clear()


class _Operator:
    """A node, ready to run."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        node = proto.graph.node[0]
        self._proto, self._name, self._only_fast = proto, node.name or None, only_in_onnxruntime(node)
        self._op_type = node.op_type
        self._numpy: ReferenceOperator | None = None
        try:
            self._fast = None if why_numpy(node) is not None else OrtOperator(proto)
        except NotTaken as reason:
            if self._only_fast:
                raise self._lacking(reason) from reason
            self._fast = None

    @property
    def package(self) -> str:
        """What runs it."""
        return onnx_reference.NAME if self._fast is None else onnx_runtime.NAME

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The outputs for the inputs in order."""
        try:
            return self._run(operands)
        except FuselineError as error:
            raise FuselineError(error.code, error.message, node=self._name, hint=error.hint) from error

    def _run(self, operands: Sequence[Any]) -> list[Any]:
        fast = self._fast
        if fast is not None and not self._only_fast and _of_nothing(operands):
            with suppress(FuselineError):  # of what NumPy does not know, onnxruntime may know something
                return self._by_numpy(operands)
        if fast is not None and (self._only_fast or not _stays(self._op_type, operands)):
            try:
                return fast.run(operands)
            except NotTaken as reason:
                if self._only_fast:
                    raise self._lacking(reason) from reason
                self._fast = None
        return self._by_numpy(operands)

    def _by_numpy(self, operands: Sequence[Any]) -> list[Any]:
        if self._numpy is None:
            self._numpy = ReferenceOperator(self._proto)
        return self._numpy.run(operands)

    def _lacking(self, reason: NotTaken) -> FuselineError:
        """What to say where nothing runs the node: only onnxruntime could."""
        op_type = self._proto.graph.node[0].op_type
        if not isinstance(reason, NotInstalled):
            return FuselineError("E0106", f"{onnx_runtime.NAME} cannot run {op_type}: {reason}", node=self._name)
        message = f"{op_type} has no native lowering and runs in {onnx_runtime.NAME}, which is not installed"
        return FuselineError("E0503", message, node=self._name, hint=f"pip install {onnx_runtime.NAME}")


def _of_nothing(operands: Sequence[Any]) -> bool:
    """Whether an operand has no elements: there onnxruntime leaves results unwritten, and kernels of it end the process
    (Unique along an axis)."""
    return any(isinstance(x, np.ndarray) and x.size == 0 for x in operands)


def _stays(op_type: str, operands: Sequence[Any]) -> bool:
    """Whether onnxruntime computes the operator in another way on these operands."""
    if op_type in FINITE_ONLY:
        return _not_finite(operands)
    if op_type in DIVISIONS:
        return _no_quotient(operands)
    return op_type in TOTALS and operands[0].dtype.kind in "iu"


def _not_finite(operands: Sequence[Any]) -> bool:
    return any(isinstance(x, np.ndarray) and x.dtype.kind == "f" and not np.isfinite(x).all() for x in operands)


def _no_quotient(operands: Sequence[Any]) -> bool:
    """Whether some integer has no quotient, or may have none (where the model holds an operand): of a division by 0, or
    of the lowest integer by -1, which ends a process on x86."""
    x, y = operands[0], operands[-1]
    if y.dtype.kind not in "iu" or len(operands) < 2:
        return y.dtype.kind in "iu"
    return bool((y == 0).any()) or bool(y.dtype.kind == "i" and (y == -1).any() and (x == np.iinfo(x.dtype).min).any())


@lru_cache(maxsize=OPERATORS_KEPT)
def _operator(model: bytes) -> _Operator:
    try:
        import onnx
    except ImportError as error:
        hint = "pip install onnx"
        raise FuselineError(
            "E0503", "the artifact has operators that run through the onnx package, which is missing", hint=hint
        ) from error
    return _Operator(onnx.load_model_from_string(model))
