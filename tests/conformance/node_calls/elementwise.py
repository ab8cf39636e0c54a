"""Operators that compute element by element."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.conformance.node_calls.draw import NAMED, Call, Draw, calls

UNARY = (
    "Abs Asin Asinh Acos Acosh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish IsNaN Log Mish Neg Not Reciprocal "
    "Relu Round Sigmoid Sign Sin Sinh "
    "Softplus Softsign Sqrt Tan Tanh BitwiseNot Identity"
).split()
POSITIVE = ("Acosh", "Log", "Sqrt")
SMALL = ("Asin", "Acos", "Atanh", "Exp", "Sinh", "Cosh")


@calls(*UNARY)
def unary(d: Draw) -> Call:
    sizes = d.sizes(0, 4)
    x = (
        d.positive(sizes) + (d.schema.name == "Acosh")
        if d.schema.name in POSITIVE
        else d.values(sizes, scale=0.2 if d.schema.name in SMALL else 1)
    )
    x = np.asarray(x, d.dtype())
    return Call([d.extreme(x) if d.chance(0.3) else x])


@calls("Celu", "Elu", "HardSigmoid", "LeakyRelu", "Selu", "Shrink", "ThresholdedRelu", "Gelu", "Swish", "IsInf")
def parametrised(d: Draw) -> Call:
    given = {
        "Celu": {"alpha": d.number(0.5, 2)},
        "HardSigmoid": {"alpha": d.number(0.1, 0.5), "beta": d.number(0, 1)},
        "Selu": {"alpha": d.number(1, 2), "gamma": d.number(1, 2)},
        "Shrink": {"lambd": d.number(0, 1), "bias": d.number()},
        "Gelu": {"approximate": d.one_of("none", "tanh")},
        "IsInf": {"detect_negative": d.whole(0, 1), "detect_positive": d.whole(0, 1)},
    }.get(d.schema.name, {"alpha": d.number(0.25, 2)})
    x = d.values(d.sizes(0, 4))
    return Call([d.extreme(x) if d.chance(0.3) else x], d.some(**given))


@calls(
    "Add",
    "Sub",
    "Mul",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
)
def binary(d: Draw) -> Call:
    left, right = d.broadcast(2)
    x, y = d.values(left), d.values(right)
    return Call([d.extreme(x), d.extreme(y)] if d.chance(0.3) else [x, y])


@calls("Div")
def division(d: Draw) -> Call:
    left, right = d.broadcast(2)
    y = d.positive(right)
    return Call([d.values(left), np.where(d.values(right, bool), y, -y).astype(y.dtype) if y.dtype.kind != "u" else y])


@calls("Mod")
def modulo(d: Draw) -> Call:
    whole = division(d)
    return Call(whole.inputs, {"fmod": 1} if d.dtype().kind == "f" else d.some(fmod=d.whole(0, 1)))


@calls("Pow")
def power(d: Draw) -> Call:
    left, right = d.broadcast(2)
    exponent = d.positive(right, place=1) if d.dtype().kind in "iu" else d.values(right, place=1)
    if exponent.dtype.kind in "iu":
        exponent = (exponent % 4).astype(exponent.dtype)
    return Call([d.positive(left) if d.chance() else d.values(left), exponent])


@calls("BitShift")
def shift(d: Draw) -> Call:
    left, right = d.broadcast(2)
    return Call([d.values(left), d.values(right, place=1) % 8], {"direction": d.one_of("LEFT", "RIGHT")})


@calls("Max", "Min", "Sum", "Mean")
def variadic(d: Draw) -> Call:
    count = d.whole(1, 4)
    arrays = [d.values(sizes) for sizes in (d.broadcast(count) if not d.before(8) else [d.sizes()] * count)]
    return Call([d.extreme(x) for x in arrays] if d.chance(0.3) else arrays)


@calls("PRelu")
def prelu(d: Draw) -> Call:
    whole = d.sizes()
    return Call([d.values(whole), d.values(d.part_of(whole))])


@calls("Where")
def where(d: Draw) -> Call:
    shapes = d.broadcast(3)
    return Call([d.values(shapes[0], bool), d.values(shapes[1], place=1), d.values(shapes[2], place=1)])


@calls("Clip")
def clip(d: Draw) -> Call:
    x, low, high = d.values(d.sizes(0, 4)), d.values(()), d.values(())
    if d.before(11):
        return Call([x], d.some(min=float(min(low, high)), max=float(max(low, high))))
    if d.chance(0.8):
        low, high = np.minimum(low, high), np.maximum(low, high)
    return Call([x, low if d.chance(0.7) else None, high])


@calls("Cast")
def cast(d: Draw) -> Call:
    target = d.one_of(*NAMED.values())
    return Call([castable(d, target)], {"to": helper.np_dtype_to_tensor_dtype(target) if target.kind != "O" else 8})


@calls("CastLike")
def cast_like(d: Draw) -> Call:
    return Call([castable(d, d.dtype(1)), d.values((1,), place=1)])


def castable(d: Draw, target: np.dtype[np.generic]) -> np.ndarray:
    """Values of the input's type that the target has a defined answer for."""
    sizes = d.sizes(0, 3)
    if d.holds_words():
        words = d.rng.choice(
            ["1", "2.5", "-3", "1e3", "NaN", "INF", "-INF"] if target.kind == "f" else ["1", "25", "7"], sizes
        )
        return np.asarray(words, object)
    x = d.values(sizes)
    if d.dtype().kind == "f" and target.kind in "u":
        return np.abs(x)
    return d.extreme(x) if x.dtype.kind in "iu" or target.kind in {"f", "O"} else x


@calls("Dropout")
def dropout(d: Draw) -> Call:
    x = d.values(d.sizes())
    if d.before(12):
        return Call([x], d.some(ratio=d.number(0, 0.9)), d.whole(1, 1 if d.before(10) else 2))
    return Call(
        [x, np.asarray(0.4, d.dtype(1)) if d.chance() else None, np.array(False) if d.chance() else None],
        outputs=d.whole(1, 2),
    )


@calls("BitCast")
def bit_cast(d: Draw) -> Call:
    target = d.one_of(
        *(dtype for dtype in NAMED.values() if dtype.kind != "O" and dtype.itemsize == d.dtype().itemsize)
    )
    return Call([d.values(d.sizes())], {"to": helper.np_dtype_to_tensor_dtype(target)})


@calls("SwiGLU")
def swiglu(d: Draw) -> Call:
    sizes = d.sizes()
    return Call([d.values((*sizes[:-1], 2 * sizes[-1]))])
