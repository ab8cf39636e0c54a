"""Special values through every elementwise operator and reduction, on every executor: as onnxruntime has them, or as
the table says.

docs/numerics.md gives the reasons. Whatever onnxruntime does, kernels, the interpreter and both host packages answer
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.interop import onnx_host
from fuseline.interop.onnx_reference import evaluator
from tests.conformance.special_calls import SpecialCall, all_calls
from tests.one_node import by_onnxruntime

TOLERANCE: Mapping[str, float] = {"float16": 2e-2, "float32": 3e-5, "float64": 3e-5}
SAMPLED, SHARES = 23, 6


@dataclass(frozen=True)
class Difference:
    """Elements, or rows, of calls of `ops` in which onnxruntime's answer is not ours: those of which `there` is
    true."""

    ops: str
    there: Callable[[SpecialCall], Any]
    because: str


def _nan(call: SpecialCall) -> Any:
    x = np.asarray(call.inputs[0])
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    return missing.any(-1) if x.ndim == 2 else missing


def _not_finite(call: SpecialCall) -> Any:
    return ~np.isfinite(call.inputs[0]).all(-1)


def _large(call: SpecialCall) -> Any:
    """Rows of integers whose sums and products may leave the type."""
    x = call.inputs[0]
    return (np.abs(x.astype(np.float64)) > 1e6).any(-1) & (x.dtype.kind in "iu")


def _ends(call: SpecialCall) -> Any:
    return (
        np.abs(call.inputs[0]) >= np.finfo(np.float64).max
        if call.inputs[0].dtype == np.float64
        else np.zeros(call.inputs[0].shape, bool)
    )


def _bounded_by_nan(call: SpecialCall) -> Any:
    return np.full(call.inputs[0].shape, bool(np.isnan(call.inputs[1])))


DIFFERENCES = (
    Difference(
        "ReduceMax ReduceMin ArgMax ArgMin Hardmax",
        _nan,
        "NaN is the extreme, as for NumPy and the reference; onnxruntime passes over some",
    ),
    Difference(
        "LogSoftmax",
        _not_finite,
        "a row with NaN or infinity is NaN; onnxruntime's kernel for float64 leaves numbers there",
    ),
    Difference("Sign", _nan, "the sign of NaN is NaN; onnxruntime has 0 for halves"),
    Difference("Clip", _bounded_by_nan, "a bound that is NaN makes NaN, as by the reference"),
    Difference("Shrink", _ends, "onnxruntime computes float64 in float32, where its ends are infinite"),
    Difference(
        "ReduceSum ReduceProd ReduceL1 ReduceSumSquare",
        _large,
        "integers wrap around; onnxruntime adds in floats and cuts off",
    ),
)


def _allowed(call: SpecialCall) -> Any:
    """Where the table lets onnxruntime differ."""
    masks = [entry.there(call) for entry in DIFFERENCES if call.op_type in entry.ops.split()]
    first = np.asarray(call.inputs[0])
    return np.any(masks, 0) if masks else np.zeros(first.shape[:1], bool)


def _executors(call: SpecialCall) -> dict[str, list[Any]]:
    operands = [x for place, x in enumerate(call.inputs) if place not in call.constants]
    native = {
        target: list(fuseline.compile(call.model, threads=1, target=target).run(call.feeds).values())
        for target in ("cpu", "interpreter")
    }
    with np.errstate(all="ignore"):
        reference: Any = evaluator(call.model).run(None, call.feeds)
        return {
            **native,
            "reference": list(reference),
            "host": onnx_host.execute(call.model.SerializeToString(), operands),
        }


def _wanted(call: SpecialCall) -> list[Any] | None:
    """What onnxruntime answers; None where it has no kernel for the types."""
    try:
        return by_onnxruntime(call.model, call.feeds)
    except Exception as error:  # its classes are made as it goes
        if "onnxruntime" not in type(error).__module__:
            raise
        return None


def _off(found: Any, wanted: Any) -> Any:
    """Elements that differ, any of a row as one."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind == "f":
        tolerance = TOLERANCE[found.dtype.name]
        with np.errstate(all="ignore"):
            off = ~np.isclose(
                found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance / 10, equal_nan=True
            )
    else:
        off = found != wanted
    return off.reshape(len(off), -1).any(1)


def _check(calls: Sequence[SpecialCall]) -> None:
    problems: list[str] = []
    for call in calls:
        answers, wanted, allowed = _executors(call), _wanted(call), _allowed(call)
        for name, answer in answers.items():
            for ours, native, theirs in zip(answer, answers["cpu"], wanted or answers["reference"], strict=True):
                alike, right = (
                    _off(np.asarray(ours), np.asarray(native)),
                    _off(np.asarray(ours), np.asarray(theirs)) & ~allowed,
                )
                found = ((alike, "unlike cpu"), (right, "unlike onnxruntime"))
                problems += [
                    f"{call.name} {name}: {off.sum()} of {len(off)} {what}" for off, what in found if off.any()
                ]
    assert not problems, "\n".join(problems)


def test_a_sample() -> None:
    _check(all_calls()[::SAMPLED])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("share", range(SHARES))
def test_all(share: int) -> None:
    _check(all_calls()[share::SHARES])
