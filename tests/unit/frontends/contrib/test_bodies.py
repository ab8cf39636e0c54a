"""What rules of onnxruntime's operators build bodies with; and which rule an operator has."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.frontends.onnx.contrib_bodies import (
    activations,
    attention,
    contrib_body,
    grouped_attention,
    normalization,
    products,
    rotary,
    standard,
)
from fuseline.frontends.onnx.contrib_bodies.body import BODIES, ContribBody, contrib_op
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.dim import symbol
from tests.unit.frontends.contrib.bodies import call, normal, ran

N = symbol("n")

RULES = {
    activations.gelu: "Gelu",
    activations.bias_gelu: "BiasGelu",
    activations.fast_gelu: "FastGelu",
    activations.quick_gelu: "QuickGelu",
    attention.attention: "Attention",
    attention.quantized_attention: "QAttention",
    attention.multi_head_attention: "MultiHeadAttention",
    grouped_attention.group_query_attention: "GroupQueryAttention",
    normalization.skip_layer_norm: "SkipLayerNormalization",
    normalization.skip_simplified_layer_norm: "SkipSimplifiedLayerNormalization",
    normalization.embed_layer_norm: "EmbedLayerNormalization",
    normalization.quantized_embed_layer_norm: "QEmbedLayerNormalization",
    products.fused_matmul: "FusedMatMul TransposeMatMul",
    products.fused_gemm: "FusedGemm",
    products.fused_convolution: "FusedConv",
    products.matmul_of_few_bits: "MatMulNBits",
    rotary.rotary_embedding: "RotaryEmbedding",
    standard.same: "Trilu GatherND Range",
    standard.grid_sample: "GridSample",
    standard.pad: "Pad",
    standard.expand_dims: "ExpandDims",
    standard.channels_last_max_pool: "NhwcMaxPool",
    standard.channels_last_average_pool: "QLinearGlobalAveragePool QLinearAveragePool",
    standard.channels_last_convolution: "QLinearConv",
    standard.flat_softmax: "QLinearSoftmax",
    standard.quantized_where: "QLinearWhere",
    standard.distances: "CDist",
}


def test_each_operator_has_its_rule() -> None:
    assert contrib_body(call("Tokenizer", [(2,)])) is None
    assert {name: rule for rule, names in RULES.items() for name in names.split()} == BODIES


def test_inputs_and_attributes_of_a_body() -> None:
    node = call("Any", [(2, N), None, np.ones(3)], num_heads=2, real=0.5, mode="cubic")
    b = ContribBody(node)
    assert (b.names, [b.input(i) for i in range(4)]) == (["i0", "i1", "i2"], ["i0", "", "i2", ""])
    assert (b.dims(0), b.dims(0, 2), b.size(0, 0)) == ((2, N), (2, N), 2)
    assert (b.heads(), b.integer("none", 7), b.integer("num_heads", 7)) == (2, 7, 2)
    assert (b.real_number("real", 1.0), b.real_number("none", 1.5)) == (0.5, 1.5)
    assert (b.text("mode"), b.text("none", "x"), b.text("none")) == ("cubic", "x", "")
    b.refuse_inputs(1, 3)
    for refused, words in (
        (lambda: b.tensor(1), "missing-input: input 1"),
        (lambda: b.tensor(3), "missing-input: input 3"),
        (lambda: b.dims(0, 3), "unsupported-rank: input 0 has 2"),
        (lambda: b.size(0, 1), "symbolic-size"),
        (lambda: b.refuse_inputs(1, 2), "unsupported-input: input 2"),
        (lambda: ContribBody(call("Any", [])).heads(), "num_heads is 0"),
    ):
        with pytest.raises(NoNativeLowering, match=words):
            refused()


def test_values_of_a_body() -> None:
    """A body of one's own, of each kind of node that rules share."""

    def rule(b: ContribBody) -> list[str | None]:
        x = b.input(0)
        second, first = b.split(x, (2, 3), 1)
        size = b.sized(x, 1)
        positions = b.positions(size, (0, 2))
        return [b.op("Add", x, b.like(2.0)), second, first, b.cast(positions, np.float32), b.ints(3, 4)]

    BODIES["Mine"] = rule
    try:
        assert contrib_op("Mine")(rule) is rule
        x = normal(4, 5)
        found = ran(call("Mine", [(4, 5)], "a b c d e"), x)
    finally:
        del BODIES["Mine"]
    wanted = [x + 2, x[:, :2], x[:, 2:], np.arange(5, dtype=np.float32).reshape(1, 5, 1), np.array([3, 4])]
    for one, expected in zip(found, wanted, strict=True):
        assert one.dtype == expected.dtype
        np.testing.assert_allclose(one, expected, rtol=1e-6)


def test_outputs_of_a_body() -> None:
    b = ContribBody(call("Any", [(2,)], "y - z"))
    assert b.named_outputs(["a", None, "c"]) == ["a", "a", "c"]
    assert b.named_outputs(["a", "b", "c"]) == ["a", "b", "c"]
    for outputs in (["a", "b", None], ["a", "b"]):
        with pytest.raises(NoNativeLowering, match="unsupported-output: output 2"):
            b.named_outputs(outputs)
