"""Operators on elements: one, two or many operands that broadcast, of every type that the operator has."""

from __future__ import annotations

import numpy as np

from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import (
    BOOL,
    F16,
    F64,
    FLOATS,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    NUMBERS,
    U8,
    U16,
    U32,
    U64,
    Value,
    is_float,
)

SIGNED = (*FLOATS, I8, I16, I32, I64)


@recipe(
    "Relu",
    "Tanh",
    "Sigmoid",
    "Exp",
    "Erf",
    "Softplus",
    "Softsign",
    "Sin",
    "Cos",
    "Atan",
    "Sinh",
    "Asinh",
    "Ceil",
    "Floor",
    weight=0.7,
)
def unary(g: Graph, op: str) -> None:
    """One operand, no attribute."""
    g.add(op, g.pick(FLOATS))


@recipe("Round", since=11, weight=0.7)
@recipe("Mish", since=18, weight=0.7)
def later_unary(g: Graph, op: str) -> None:
    """One operand, no attribute, in later operator sets."""
    g.add(op, g.pick(FLOATS))


@recipe("HardSwish", since=14, weight=0.7)
def hard_swish(g: Graph, op: str) -> None:
    """One operand, no attribute."""
    x = g.pick(FLOATS)
    exclude("hard-swish-of-doubles", x.dtype == F64)
    g.add(op, x)


@recipe("Neg", "Abs", "Sign", "Identity", weight=0.7)
def signed(g: Graph, op: str) -> None:
    """One operand of any signed type."""
    x = g.pick(SIGNED)
    exclude(
        "sign-of-a-half-that-is-nan", op == "Sign" and x.dtype == F16 and not x.every(lambda a: not np.isnan(a).any())
    )
    g.add(op, x)


@recipe("Sqrt", "Log", "Reciprocal", "Acosh", "Tan", "Acos", "Asin", "Atanh", "Cosh", weight=0.4)
def partial(g: Graph, op: str) -> None:
    """One operand, moved to where the function is defined and smooth (mostly)."""
    x = g.pick(FLOATS)
    if g.chance(0.9):
        inside = op in ("Acos", "Asin", "Atanh", "Tan")
        x = g.add("Sigmoid", x) if inside else g.add("Abs", x)
        x = x if inside else g.add("Add", x, g.constant(np.asarray(1.25, x.dtype)))
    g.add(op, x)


@recipe("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", weight=0.4)
def with_alpha(g: Graph, op: str) -> None:
    """One operand and alpha."""
    attributes = {"alpha": float(np.float32(g.rng.uniform(0.1, 2)))} if g.chance(0.7) else {}
    g.add(op, g.pick(FLOATS), **attributes)


@recipe("Selu", "HardSigmoid", "Shrink", weight=0.4)
def with_two(g: Graph, op: str) -> None:
    """One operand and two numbers."""
    first, second = {"Selu": ("alpha", "gamma"), "HardSigmoid": ("alpha", "beta"), "Shrink": ("lambd", "bias")}[op]
    x = g.pick((*FLOATS, *INTEGERS) if op == "Shrink" else FLOATS)
    exclude("shrink-of-doubles", op == "Shrink" and x.dtype == F64)
    parts = g.choose([1, 4])
    far = not x.every(lambda a: (np.abs(a.astype(np.float64)) <= 2.0**24).all())
    exclude("integers-shrunk-in-floats", op == "Shrink" and x.dtype in INTEGERS and (parts > 1 or far))
    g.add(op, x, **{first: float(g.number(1, 6)) / parts, second: float(g.number(1, 6)) / parts})


@recipe("Gelu", since=20)
def gelu(g: Graph, op: str) -> None:
    """Exact or by tanh."""
    x = g.pick(FLOATS)
    exclude("gelu-of-doubles", x.dtype == F64)
    g.add(op, x, approximate=g.choose(["none", "tanh"]))


@recipe("Swish", since=24)
def swish(g: Graph, op: str) -> None:
    """With alpha."""
    g.add(op, g.pick(FLOATS), alpha=float(g.choose([1.0, 0.5, 1.75])))


@recipe("Add", "Sub", "Mul", weight=2)
def arithmetic(g: Graph, op: str) -> None:
    """Two operands that broadcast."""
    x = g.pick(NUMBERS)
    pair = [x, g.broadcastable(x)]
    g.add(op, *(pair if g.chance(0.6) else reversed(pair)))


@recipe("Div")
def division(g: Graph, op: str) -> None:
    """Integers by what is not 0, floats by what is mostly far from it."""
    x = g.pick(NUMBERS)
    y = g.broadcastable(x)
    if x.dtype in INTEGERS:
        g.add(op, x, _nonzero(g, y))
        return
    away = g.add("Add", g.add("Abs", y), g.constant(np.asarray(0.5, y.dtype)))
    g.add(op, x, away if g.chance(0.9) else y)


def _nonzero(g: Graph, y: Value) -> Value:
    """`y` where it divides integers (and floats) without a trap, else such a weight: see the exclusion
    `division-by-0-or-minus-1`."""
    if y.every(lambda array: (array != 0).all() and not (array == -1).any()):
        return y
    array = g.contents(y.dtype, (y.shape[-1],) if y.rank and y.fixed(-1) else ())
    return g.constant(
        np.where((array == 0) | (array == np.array(-1).astype(y.dtype)), np.asarray(3, y.dtype), array).astype(y.dtype)
    )


@recipe("Mod", since=10, weight=0.7)
def modulo(g: Graph, op: str) -> None:
    """Of integers, or of floats as C does it."""
    x = g.pick(NUMBERS)
    y = _nonzero(g, g.broadcastable(x))
    g.add(op, x, y, fmod=0 if x.dtype in INTEGERS and g.chance(0.6) else 1)


@recipe("Pow", weight=0.7)
def power(g: Graph, op: str) -> None:
    """A constant power, or a positive base."""
    x = g.pick(FLOATS)
    if g.chance(0.6):
        away = x.every(lambda a: (np.abs(a) > 0.1).all())
        g.add(op, x, g.constant(np.asarray(g.choose([2, 3, 1, 0, 2, 4, -1] if away else [2, 3, 1, 0]), x.dtype)))
        return
    g.add(op, g.add("Add", g.add("Abs", x), g.constant(np.asarray(0.5, x.dtype))), g.broadcastable(x))


@recipe("Min", "Max", since=8)
@recipe("Sum", "Mean", since=8, weight=0.5)
def variadic(g: Graph, op: str) -> None:
    """One to four operands that broadcast."""
    x = g.pick(NUMBERS if op in ("Min", "Max") and g.opset >= 12 else FLOATS)
    g.add(op, x, *(g.broadcastable(x) for _ in range(g.choose([0, 1, 1, 1, 2, 3]))))


@recipe("PRelu", since=9, weight=0.5)
def prelu(g: Graph, op: str) -> None:
    """A slope that broadcasts one way."""
    x = g.pick((*FLOATS, I32, I64, U32, U64))
    g.add(op, x, g.fitting(x))


@recipe("Greater", "Less", "Equal", since=9)
@recipe("GreaterOrEqual", "LessOrEqual", since=12)
def comparison(g: Graph, op: str) -> None:
    """Two operands of any type."""
    x = g.pick((*NUMBERS, BOOL) if op == "Equal" else NUMBERS)
    g.add(op, x, g.broadcastable(x))


@recipe("And", "Or", "Xor", weight=0.6)
def logical(g: Graph, op: str) -> None:
    """Two masks."""
    x = g.pick([BOOL])
    g.add(op, x, g.broadcastable(x))


@recipe("Not", weight=0.5)
def negation(g: Graph, op: str) -> None:
    """One mask."""
    g.add(op, g.pick([BOOL]))


@recipe("IsNaN", since=9, weight=0.3)
@recipe("IsInf", since=10, weight=0.3)
def classification(g: Graph, op: str) -> None:
    """Of floats."""
    attributes = {"detect_negative": g.number(0, 1), "detect_positive": g.number(0, 1)} if op == "IsInf" else {}
    g.add(op, g.pick(FLOATS), **attributes)


@recipe("Where", since=9)
def where(g: Graph, op: str) -> None:
    """A mask and two operands that broadcast."""
    mask = g.pick([BOOL])
    x = g.pick((*NUMBERS, BOOL))
    g.add(op, mask, x, g.broadcastable(x))


@recipe("Clip", weight=1)
def clip(g: Graph, op: str) -> None:
    """Attributes before opset 11, then optional inputs; a lower bound above the upper one at times."""
    low, high = sorted(g.rng.uniform(-1.5, 2.5, 2)) if g.chance(0.95) else (1.0, -1.0)
    if g.opset < 11:
        g.add(op, g.pick(FLOATS), min=float(low), max=float(high))
        return
    x = g.pick(NUMBERS if g.opset >= 12 else FLOATS)
    scale = 3 if x.dtype in INTEGERS else 1
    low = max(low * scale, 0) if x.dtype in (U8, U16, U32, U64) else low * scale
    bounds = [
        g.constant(np.asarray(np.asarray(bound).astype(x.dtype))) if g.chance(0.8) else None
        for bound in (low, max(high, 0) * scale)
    ]
    exclude(
        "infinity-clipped-by-nothing",
        None in bounds and not x.every(lambda a: not is_float(a.dtype) or not np.isinf(a).any()),
    )
    while bounds and bounds[-1] is None:
        bounds.pop()
    g.add(op, x, *bounds)


@recipe("BitShift", since=11, weight=0.4)
def shift(g: Graph, op: str) -> None:
    """By up to more than the width."""
    x = g.pick([U8, U16, U32, U64])
    amounts = g.rng.integers(0, x.dtype.itemsize * 8 + 2, x.shape[-1:] if x.rank and x.fixed(-1) else ())
    g.add(op, x, g.constant(amounts.astype(x.dtype)), direction=g.choose(["LEFT", "RIGHT"]))


@recipe("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18, weight=0.4)
def bitwise(g: Graph, op: str) -> None:
    """Two integers."""
    x = g.pick(INTEGERS)
    g.add(op, x, g.broadcastable(x))


@recipe("BitwiseNot", since=18, weight=0.4)
def bitwise_not(g: Graph, op: str) -> None:
    """One integer."""
    g.add(op, g.pick(INTEGERS))
