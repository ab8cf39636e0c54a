"""Activations: functions of one float, with the numbers that attributes give them."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable
from typing import TypeVar

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.elementwise import DType, Scalar, constant, unary
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import Body

ActivationT = TypeVar("ActivationT", bound=Callable[..., SSAValue])


def activation(op_type: str, **defaults: float) -> Callable[[ActivationT], ActivationT]:
    """Register `(body, dtype, element, **numbers)` as the lowering of an operator on floats, computed in f32;
    `defaults` are its attributes and what they are where they are left out."""

    def register(function: ActivationT) -> ActivationT:
        def lower(node: OnnxNode) -> Tensor:
            numbers = {name: node.number(name, default) for name, default in defaults.items()}
            return unary(node, lambda b, t, x: function(b, t, x, **numbers), float_only=True)

        onnx_op(op_type, in_f32=True)(lower)
        return function

    return register


@activation("Sigmoid")
def sigmoid(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """`1 / (1 + exp(-x))`, below 0 as `exp(x) / (1 + exp(x))`: an exponential of what is never positive cannot
    overflow, and takes less time."""
    one = constant(b, t, 1.0)
    tail = b.op(math.ExpOp, b.op(arith.NegfOp, b.op(math.AbsFOp, x)))
    share = b.op(arith.SelectOp, s.compare(b, t, "lt", x, constant(b, t, 0.0)), tail, one)
    return b.op(arith.DivfOp, share, b.op(arith.AddfOp, one, tail))


@activation("Softplus")
def softplus(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """`log(1 + exp(x))`, as max(x, 0) + log(1 + exp(-|x|)) so that it does not overflow."""
    tail = b.op(math.ExpOp, b.op(arith.NegfOp, b.op(math.AbsFOp, x)))
    return b.op(arith.AddfOp, b.op(arith.MaximumfOp, x, constant(b, t, 0.0)), _log_of_one_and(b, t, tail))


def _log_of_one_and(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """`log(1 + x)` for x in 0..1, as good for small x, too: what 1 + x loses of x is added to first order."""
    whole = b.op(arith.AddfOp, constant(b, t, 1.0), x)
    lost = b.op(arith.SubfOp, x, b.op(arith.SubfOp, whole, constant(b, t, 1.0)))
    return b.op(arith.AddfOp, b.op(math.LogOp, whole), b.op(arith.DivfOp, lost, whole))


@activation("HardSigmoid", alpha=0.2, beta=0.5)
def hard_sigmoid(b: Body, t: DType, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """`max(0, min(1, alpha * x + beta))`."""
    line = b.op(arith.AddfOp, b.op(arith.MulfOp, x, constant(b, t, alpha)), constant(b, t, beta))
    return b.op(arith.MaximumfOp, b.op(arith.MinimumfOp, line, constant(b, t, 1.0)), constant(b, t, 0.0))


@activation("HardSwish")
def hard_swish(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """x * hard_sigmoid(x)."""
    return b.op(arith.MulfOp, x, hard_sigmoid(b, t, x, 1 / 6, 0.5))


@activation("Softsign")
def softsign(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """x / (1 + |x|)."""
    return b.op(arith.DivfOp, x, b.op(arith.AddfOp, constant(b, t, 1.0), b.op(math.AbsFOp, x)))


@activation("Mish")
def mish(b: Body, t: DType, x: SSAValue) -> SSAValue:
    """x * tanh(softplus(x))."""
    return b.op(arith.MulfOp, x, b.op(math.TanhOp, softplus(b, t, x)))


def _positive(b: Body, t: DType, x: SSAValue) -> SSAValue:
    return s.compare(b, t, "gt", x, constant(b, t, 0))


def _exp_minus_one(b: Body, t: DType, x: SSAValue) -> SSAValue:
    return b.op(arith.SubfOp, b.op(math.ExpOp, x), constant(b, t, 1.0))


@activation("LeakyRelu", alpha=0.01)
def leaky_relu(b: Body, t: DType, x: SSAValue, alpha: float) -> SSAValue:
    """x, or alpha * x below 0."""
    return s.select(b, _positive(b, t, x), x, b.op(arith.MulfOp, x, constant(b, t, alpha)))


@activation("Elu", alpha=1.0)
def elu(b: Body, t: DType, x: SSAValue, alpha: float) -> SSAValue:
    """x, or alpha * (exp(x) - 1) below 0."""
    return s.select(b, _positive(b, t, x), x, b.op(arith.MulfOp, constant(b, t, alpha), _exp_minus_one(b, t, x)))


@activation("Selu", alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)
def selu(b: Body, t: DType, x: SSAValue, alpha: float, gamma: float) -> SSAValue:
    """gamma * elu(x)."""
    below = b.op(arith.MulfOp, constant(b, t, alpha), _exp_minus_one(b, t, x))
    return b.op(arith.MulfOp, constant(b, t, gamma), s.select(b, _positive(b, t, x), x, below))


@activation("Celu", alpha=1.0)
def celu(b: Body, t: DType, x: SSAValue, alpha: float) -> SSAValue:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    zero = constant(b, t, 0.0)
    below = b.op(
        arith.MulfOp, constant(b, t, alpha), _exp_minus_one(b, t, b.op(arith.DivfOp, x, constant(b, t, alpha)))
    )
    return b.op(arith.AddfOp, b.op(arith.MaximumfOp, x, zero), b.op(arith.MinimumfOp, below, zero))


@activation("ThresholdedRelu", alpha=1.0)
def thresholded_relu(b: Body, t: DType, x: SSAValue, alpha: float) -> SSAValue:
    """x above alpha, else 0."""
    return s.select(b, s.compare(b, t, "gt", x, constant(b, t, alpha)), x, constant(b, t, 0.0))


@activation("Shrink", bias=0.0, lambd=0.5)
def shrink(b: Body, t: DType, x: SSAValue, bias: float, lambd: float) -> SSAValue:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    high = s.select(
        b, s.compare(b, t, "gt", x, constant(b, t, lambd)), s.sub(b, t, x, constant(b, t, bias)), constant(b, t, 0)
    )
    return s.select(b, s.compare(b, t, "lt", x, constant(b, t, -lambd)), s.add(b, t, x, constant(b, t, bias)), high)


@onnx_op("Gelu", in_f32=True)
def gelu(node: OnnxNode) -> Tensor:
    """x * Phi(x), exact (erf) or with tanh."""
    body: Scalar = _gelu_tanh if node.text("approximate", "none") == "tanh" else _gelu_erf
    return unary(node, body, float_only=True)


def _gelu_erf(b: Body, t: DType, x: SSAValue) -> SSAValue:
    inner = b.op(math.ErfOp, b.op(arith.MulfOp, x, constant(b, t, pymath.sqrt(0.5))))
    return _half_of(b, t, x, inner)


def _gelu_tanh(b: Body, t: DType, x: SSAValue) -> SSAValue:
    cube = b.op(arith.MulfOp, b.op(arith.MulfOp, x, x), b.op(arith.MulfOp, x, constant(b, t, 0.044715)))
    inner = b.op(
        math.TanhOp, b.op(arith.MulfOp, constant(b, t, pymath.sqrt(2 / pymath.pi)), b.op(arith.AddfOp, x, cube))
    )
    return _half_of(b, t, x, inner)


def _half_of(b: Body, t: DType, x: SSAValue, inner: SSAValue) -> SSAValue:
    """x / 2 * (inner + 1)."""
    return b.op(
        arith.MulfOp, b.op(arith.MulfOp, x, constant(b, t, 0.5)), b.op(arith.AddfOp, inner, constant(b, t, 1.0))
    )
