"""Calls of elementwise operators and reductions on special values: NaN, infinities, both zeros, the ends of every type,
shifts by the width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.one_node import feeds_of, one_node

Array = NDArray[Any]
FLOATS = ("float32", "float64", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)


@dataclass(frozen=True)
class SpecialCall:
    """One node, its operands, and the types by which its test is named."""

    op_type: str
    inputs: Sequence[Array]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 20
    outputs: int = 1
    constants: Sequence[int] = ()

    @property
    def name(self) -> str:
        """Operator, attributes, types."""
        given = ",".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.op_type}-{self.opset}({given})[{','.join(x.dtype.name for x in self.inputs)}]"

    @property
    def model(self) -> onnx.ModelProto:
        """The node; what `constants` names stands in it."""
        return one_node(
            self.op_type, self.inputs, self.attributes, opset=self.opset, outputs=self.outputs, constants=self.constants
        )

    @property
    def feeds(self) -> dict[str, Any]:
        """What to feed it."""
        return feeds_of(self.inputs, self.constants)


def specials(dtype: str) -> Array:
    """The special values of a type, and some beside them that are none."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([True, False, True])
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return np.array(
            [
                0,
                1,
                2,
                7,
                ends.max,
                ends.max - 1,
                ends.min,
                ends.min + 1,
                *((-1, -2, -7) if kind.kind == "i" else (5, 3)),
            ],
            kind,
        )
    ends = np.finfo(kind)
    return np.array(
        [0.5, -2.5, 1.5, 1, -1, 0.0, -0.0, np.nan, np.inf, -np.inf, ends.max, -ends.max, ends.smallest_normal, 3, -7],
        kind,
    )


def pairs(dtype: str, other: str | None = None) -> list[Array]:
    """Every special value with every one of another type."""
    x, y = np.meshgrid(specials(dtype), specials(other or dtype), indexing="ij")
    return [x.reshape(-1), y.reshape(-1)]


# -- element by element ------------------------------------------------------------------------------------------------

FLOAT_UNARY = (
    "Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN "
    "LeakyRelu Log Mish Neg Reciprocal "
    "Round Selu Sigmoid Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu"
).split()


def elementwise_calls() -> Iterator[SpecialCall]:
    """Operators of one and of two operands."""
    yield from (SpecialCall(op, [specials(t)]) for op in FLOAT_UNARY for t in FLOATS)
    yield from (SpecialCall(op, [specials(t)]) for op in ("Abs", "Sign") for t in NUMBERS)
    yield from (SpecialCall("Relu", [specials(t)]) for t in (*FLOATS, *SIGNED))
    yield from (SpecialCall("Neg", [specials(t)]) for t in SIGNED)
    yield from (SpecialCall("Gelu", [specials(t)], {"approximate": "tanh"}) for t in FLOATS)
    yield from (SpecialCall("Shrink", [specials(t)], {"lambd": 1.0, "bias": 0.5}) for t in FLOATS)
    yield from (SpecialCall(op, pairs(t)) for op in ("Add", "Sub", "Mul", "Min", "Max") for t in NUMBERS)
    yield from (
        SpecialCall(op, pairs(t))
        for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
        for t in NUMBERS
    )
    yield from (SpecialCall("PRelu", pairs(t)) for t in (*FLOATS, "int32", "int64", "uint32", "uint64"))
    yield from (SpecialCall("Div", pairs(t)) for t in FLOATS)
    yield from (SpecialCall(op, _without_faults(t)) for op in ("Div", "Mod") for t in INTEGERS)
    yield from (SpecialCall("Mod", pairs(t), {"fmod": 1}) for t in FLOATS)
    yield from (SpecialCall("Mod", _without_faults(t), {"fmod": 1}) for t in INTEGERS)
    yield from (SpecialCall("BitShift", _shifts(t), {"direction": way}) for t in UNSIGNED for way in ("LEFT", "RIGHT"))
    yield from (
        SpecialCall("Pow", pairs(t, o))
        for t, o in ((*((t, t) for t in FLOATS), ("float32", "int32"), ("float64", "int32")))
    )
    yield from (
        SpecialCall("Pow", _powers(t, o)) for t, o in (("int32", "int32"), ("int64", "int64"), ("int32", "float32"))
    )
    for t in NUMBERS:
        low, high = (np.array(v, t) for v in ((0, 6) if t.startswith("u") else (-1, 6)))
        yield SpecialCall("Clip", [specials(t), low, high], constants=(1, 2))
        yield SpecialCall("Clip", [specials(t), high, low])
    for t in FLOATS:
        yield SpecialCall("Clip", [specials(t), np.array(np.nan, t), np.array(1, t)])
        yield SpecialCall("Where", [specials(t) > 0, specials(t), specials(t)[::-1].copy()])


def _without_faults(dtype: str) -> list[Array]:
    """Pairs without those that end onnxruntime's process: divisors of 0, and the lowest number by -1."""
    x, y = pairs(dtype)
    fine = y != 0
    if x.dtype.kind == "i":
        fine &= ~((x == np.iinfo(x.dtype).min) & (y == -1))
    return [x[fine], y[fine]]


def _shifts(dtype: str) -> list[Array]:
    """By every number of bits, by the width and by more."""
    x, by = np.meshgrid(specials(dtype), np.array([*range(np.dtype(dtype).itemsize * 8 + 2), 100], dtype))
    return [x.reshape(-1), by.reshape(-1)]


def _powers(dtype: str, other: str) -> list[Array]:
    x, y = np.meshgrid(np.array([0, 1, 2, 3, -1, -2, 7], dtype), np.array([0, 1, 2, 3, 5], other))
    return [x.reshape(-1), y.reshape(-1)]


# -- along an axis -----------------------------------------------------------------------------------------------------


def rows(dtype: str) -> Array:
    """`[rows, 6]`: each special value in each place of a row of plain ones, two of them side by side, and rows of one
    value alone."""
    values, plain = specials(dtype), np.array([2, 1, 3, 1, 2, 0], dtype)
    found = [np.full(6, value, values.dtype) for value in values]
    for i, value in enumerate(values):
        row = plain.copy()
        row[i % 6], row[(2 * i + 3) % 6] = value, values[(i + 3) % len(values)]
        found += [row, np.where(np.arange(6) == (i + 1) % 6, value, plain).astype(dtype)]
    return np.stack(found)


def reduction_calls() -> Iterator[SpecialCall]:
    """Reductions, orders and softmaxes, row by row."""
    axes = np.array([1], np.int64)
    for t in (*FLOATS, "int8", "int32", "int64", "uint8"):
        yield from (
            SpecialCall(op, [rows(t), axes], {"keepdims": 0}, constants=(1,)) for op in ("ReduceMax", "ReduceMin")
        )
        for op in ("ArgMax", "ArgMin"):
            yield from (SpecialCall(op, [rows(t)], {"axis": 1, "select_last_index": last}) for last in (0, 1))
    for t in (*FLOATS, "int64", "int32", "int8"):
        yield from (
            SpecialCall(
                "TopK", [rows(t), np.array([3])], {"axis": 1, "largest": largest}, outputs=2, constants=(1,), opset=11
            )
            for largest in (0, 1)
        )
    for t in FLOATS:
        for op in (
            "ReduceSum",
            "ReduceMean",
            "ReduceProd",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSum",
            "ReduceLogSumExp",
        ):
            yield SpecialCall(op, [rows(t), axes], {"keepdims": 0}, constants=(1,))
        yield from (SpecialCall(op, [rows(t)], {"axis": 1}) for op in ("Softmax", "LogSoftmax", "Hardmax"))
        yield SpecialCall("CumSum", [rows(t), np.array(1)], constants=(1,))
    for t in ("int32", "int64"):
        for op in ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceSumSquare"):
            yield SpecialCall(op, [rows(t), axes], {"keepdims": 0}, constants=(1,))


# -- quantisation ------------------------------------------------------------------------------------------------------


def quantising_calls() -> Iterator[SpecialCall]:
    """QuantizeLinear of everything that a float may be, to every integer type, in each operator set that changed it."""
    for opset in (10, 13, 19, 21):
        for t in ("uint8", "int8", *(("uint16", "int16") if opset >= 21 else ())):
            for source in ("float32", *(("float16",) if opset >= 19 else ())):
                yield SpecialCall(
                    "QuantizeLinear",
                    [specials(source), np.array(0.5, source), np.array(3, t)],
                    opset=opset,
                    constants=(1, 2),
                )
    yield SpecialCall("QuantizeLinear", [specials("float32"), np.array(0.5, np.float32)], opset=13)


def all_calls() -> list[SpecialCall]:
    """All of them."""
    return [*elementwise_calls(), *reduction_calls(), *quantising_calls()]
