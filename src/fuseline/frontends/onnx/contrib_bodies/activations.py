"""Gelu and what is near it, perhaps with a bias."""

from __future__ import annotations

import math

from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op


@contrib_op("Gelu")
def gelu(b: ContribBody) -> list[str | None]:
    """X * (1 + erf(X / sqrt(2))) / 2."""
    return [_gelu_of(b, b.input(0))]


@contrib_op("BiasGelu")
def bias_gelu(b: ContribBody) -> list[str | None]:
    """Gelu of A [.., N] + B [N]."""
    b.check_vector(1)
    return [_gelu_of(b, b.op("Add", b.input(0), b.input(1)))]


def _gelu_of(b: ContribBody, x: str) -> str:
    inner = b.op("Add", b.op("Erf", b.op("Mul", x, b.like(math.sqrt(0.5)))), b.like(1.0))
    return b.op("Mul", b.op("Mul", x, inner), b.like(0.5))


@contrib_op("FastGelu")
def fast_gelu(b: ContribBody) -> list[str | None]:
    """Gelu by tanh of X [.., N], plus bias [N] where there is one."""
    b.check_vector(1)
    x = b.op("Add", b.input(0), b.input(1)) if b.input(1) else b.input(0)
    cube = b.op("Mul", b.op("Mul", x, x), b.op("Mul", x, b.like(0.044715)))
    inner = b.op("Tanh", b.op("Mul", b.op("Add", x, cube), b.like(math.sqrt(2 / math.pi))))
    return [b.op("Mul", b.op("Mul", x, b.op("Add", inner, b.like(1.0))), b.like(0.5))]


@contrib_op("QuickGelu")
def quick_gelu(b: ContribBody) -> list[str | None]:
    """X * sigmoid(alpha * X)."""
    scaled = b.op("Mul", b.input(0), b.like(b.real_number("alpha", 1.702)))
    return [b.op("Mul", b.input(0), b.op("Sigmoid", scaled))]
