"""Products with something before or behind them, and those of weights in a few bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op


@contrib_op("FusedMatMul", "TransposeMatMul")
def fused_matmul(b: ContribBody) -> list[str | None]:
    """alpha * a' @ b', where the matrices of a' and b' may be transposed, and their batch dimensions stand behind the
    first one."""
    product = b.op("MatMul", *(_turned(b, index, side) for index, side in enumerate("AB")))
    alpha = b.real_number("alpha", 1.0)
    return [product if alpha == 1.0 else b.op("Mul", product, b.like(alpha))]


def _turned(b: ContribBody, index: int, side: str) -> str:
    rank = b.tensor(index).rank
    order = list(range(rank))
    if b.integer(f"transBatch{side}") and rank > 2:
        order = [*order[1:-1], order[0], order[-1]]
    if b.integer(f"trans{side}") and rank > 1:
        order[-2:] = order[:-3:-1]
    return b.input(index) if order == sorted(order) else b.op("Transpose", b.input(index), perm=order)


_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "": (),
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "LeakyRelu": ("alpha",),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
}


@contrib_op("FusedGemm")
def fused_gemm(b: ContribBody) -> list[str | None]:
    """Gemm and an activation, whose parameters are called `activation_<name>`."""
    activation = b.text("activation")
    if activation not in _ACTIVATIONS:
        b.refuse("unsupported-attribute", f"the activation {activation}")
    product = b.op("Gemm", b.input(0), b.input(1), b.input(2), **b.kept("alpha", "beta", "transA", "transB"))
    given = {
        name: b.attributes[f"activation_{name}"]
        for name in _ACTIVATIONS[activation]
        if f"activation_{name}" in b.attributes
    }
    return [b.op(activation, product, **given) if activation else product]


_CONVOLVED = ("", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid")


@contrib_op("FusedConv")
def fused_convolution(b: ContribBody) -> list[str | None]:
    """Conv, input Z added to it, and an activation with its parameters in a row."""
    activation = b.text("activation")
    if activation not in _CONVOLVED:
        b.refuse("unsupported-attribute", f"the activation {activation}")
    window = b.kept("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    out = b.op("Conv", b.input(0), b.input(1), b.input(2), **window)
    out = b.op("Add", out, b.input(3)) if b.input(3) else out
    given = dict(zip(_ACTIVATIONS[activation], b.attributes.get("activation_params", ()), strict=False))
    return [b.op(activation, out, **given) if activation else out]


@contrib_op("MatMulNBits")
def matmul_of_few_bits(b: ContribBody) -> list[str | None]:
    """A [.., K] @ B^T of constant B [N, K / block, block * bits / 8], with a scale and a zero point for each block;
    bias [N] behind it."""
    bits, block, inner, columns = b.integer("bits", 4), b.integer("block_size"), b.integer("K"), b.integer("N")
    if bits not in (2, 4, 8) or block < 1 or b.integer("weight_prepacked") or b.input(4):
        b.refuse("unsupported-attribute", f"weights of {bits} bits in blocks of {block}, packed or in another order")
    blocks = -(-inner // block)
    if inner < 1 or columns < 1:
        raise b.wrong_size(f"a weight of {inner} rows and {columns} columns")
    codes = unpacked(_shaped(b, 1, (columns, blocks * (-(-block * bits // 8)))), bits)[:, : blocks * block].reshape(
        columns, blocks, block
    )
    scales = _shaped(b, 2, (columns, blocks, 1))
    real = (codes.astype(np.float32) - _zero_points(b, bits, columns, blocks)) * scales.astype(np.float32)
    weight = np.ascontiguousarray(real.reshape(columns, -1)[:, :inner].T).astype(b.tensor(0).dtype)
    product = b.op("MatMul", b.input(0), b.array(weight, weight.dtype))
    return [b.op("Add", product, b.input(5)) if b.input(5) else product]


def _zero_points(b: ContribBody, bits: int, columns: int, blocks: int) -> NDArray[np.float32]:
    """[columns, blocks, 1]: as given, a number each or packed like the weights; half of the range by default."""
    if not b.input(3):
        return np.full((columns, blocks, 1), 2 ** (bits - 1), np.float32)
    if b.tensor(3).dtype != np.uint8:
        return _shaped(b, 3, (columns, blocks, 1)).astype(np.float32)
    codes = unpacked(_shaped(b, 3, (columns, -(-blocks * bits // 8))), bits)[:, :blocks]
    return codes.reshape(columns, blocks, 1).astype(np.float32)


def _shaped(b: ContribBody, index: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """The content of a constant as `shape`; raises FuselineError (E0107) where it has more or fewer elements."""
    found = b.tensor(index).numbers()
    if found.size != math.prod(shape):
        raise b.wrong_size(f"input {index} has {found.size} elements, {math.prod(shape)} are needed")
    return found.reshape(shape)


def unpacked(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Rows of bytes as rows of numbers of `bits` each, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return numbers.reshape(*packed.shape[:-1], math.prod(packed.shape[-1:]) * len(shifts))
