"""Attention as onnxruntime's transformer optimiser writes it, with each kind of mask, past and bias: native, with
onnxruntime's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import onnx_model
from tests.unit.frontends.contrib.calls import RNG, Array, agree, ints, normal, one_call, ort

B, S, L, P, N, H = 6, 5, 9, 7, 2, 4
D = N * H
FREE = (B, S, L, P)


def masks(keys: int) -> dict[str, Array]:
    """One of each kind that onnxruntime's CPU kernel takes. Each query sees a key: scores that are all near -10000 hold
    three digits only."""
    starts, ends = ints(3, B), 3 + ints(keys - 2, B)
    padding, whole = ints(2, B, keys), ints(2, B, S, keys)
    padding[:, 0] = whole[:, :, 0] = 1
    return {
        "padding": padding,
        "whole": whole,
        "ends": ends,
        "ends and starts": np.concatenate([ends, starts]),
        "ends and offsets": np.concatenate([ends, np.zeros(2 * B + 2, np.int32)]),
    }


def attention(mask: Array | None = None, past: Array | None = None, bias: Array | None = None, **more: Any) -> None:
    agree(
        "Attention",
        [normal(B, S, 6), normal(6, 3 * D), normal(3 * D), mask, past, bias],
        constants=(1, 2),
        num_heads=N,
        **more,
    )


@pytest.mark.parametrize("free", [(), FREE])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("kind", ["none", "padding", "whole", "ends", "ends and starts", "ends and offsets"])
def test_masks(kind: str, causal: int, free: tuple[int, ...]):
    """A length of the mask that symbols do not compare with the batch is left to the host."""
    value = float(RNG.choice([-10000.0, -3.0]))
    unsure = free and kind in ("ends and starts", "ends and offsets")
    attention(masks(S).get(kind), unidirectional=causal, mask_filter_value=value, free=free, host=int(bool(unsure)))


@pytest.mark.parametrize("free", [(), FREE])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("kind", ["none", "padding", "whole"])
def test_behind_what_is_past(kind: str, causal: int, free: tuple[int, ...]):
    if kind != "none" and free:  # the sizes of such a mask are a sum of symbols, which the model cannot say
        return
    attention(masks(P + S).get(kind), normal(2, B, N, P, H), asked=(0, 1), unidirectional=causal, free=free)


@pytest.mark.parametrize("sizes", [(B, N), (1, N), (B, 1), (1, 1)])
def test_a_bias_of_the_scores(sizes: tuple[int, int]):
    attention(masks(S)["padding"], bias=normal(*sizes, S, S), scale=0.3)


def test_a_stand_in_for_no_mask():
    attention(np.ones((B, 1), np.int32))


def test_values_of_another_width_and_what_is_present():
    agree("Attention", [normal(B, S, 6), normal(6, 20), normal(20)], num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    agree("Attention", [normal(B, S, 6), normal(6, 24), normal(24)], num_heads=2, asked=(0, 1))


def test_one_dispatch_streams_it():
    proto = one_call("Attention", [normal(2, 64, 32), normal(32, 96), normal(96)], constants=(1, 2), num_heads=4)
    assert fuseline.compile(proto, threads=1).stats["dispatches"] <= 2


@pytest.mark.parametrize("free", [(), FREE])
@pytest.mark.parametrize("value_width", [D, 12])
def test_many_heads_over_other_keys(value_width: int, free: tuple[int, ...]):
    bias = normal(2 * D + value_width)
    agree(
        "MultiHeadAttention",
        [normal(B, S, D), normal(B, L, D), normal(B, L, value_width), bias],
        num_heads=N,
        scale=0.4,
        free=free,
    )


@pytest.mark.parametrize("free", [(), FREE])
@pytest.mark.parametrize("kind", ["padding", "whole", "ends", "ends and offsets"])
def test_many_heads_with_masks(kind: str, free: tuple[int, ...]):
    inputs = [normal(B, S, D), normal(B, L, D), normal(B, L, D), None, masks(L)[kind], normal(1, 1, S, L)]
    agree("MultiHeadAttention", inputs, num_heads=N, free=free, host=int(free != () and kind == "ends and offsets"))


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_many_heads_with_keys_by_head(target: str):
    by_head = [normal(B, N, L, H) for _ in range(2)]
    agree("MultiHeadAttention", [normal(B, S, D), *by_head, normal(3 * D)], num_heads=N, target=target)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_many_heads_behind_what_is_past(causal: int, target: str):
    new, past = [normal(B, S, D) for _ in range(3)], [normal(B, N, P, H) for _ in range(2)]
    inputs = [*new, normal(3 * D), None, None, *past]
    agree("MultiHeadAttention", inputs, num_heads=N, unidirectional=causal, asked=(0, 1, 2), free=FREE, target=target)


def test_the_scores_as_an_output():
    inputs = [normal(B, S, D), normal(B, L, D), normal(B, L, D), None, masks(L)["padding"]]
    proto = one_call("MultiHeadAttention", inputs, asked=(0, 3), num_heads=N)
    proto.graph.output[1].type.CopyFrom(
        helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    )  # which onnxruntime does not infer
    feeds = {f"i{position}": array for position, array in enumerate(inputs) if array is not None}
    expected = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    program = fuseline.compile(proto, target="interpreter")
    assert program.stats["host_ops"] == 0
    for found, wanted in zip(program.run(feeds).values(), expected, strict=True):
        np.testing.assert_allclose(
            found, wanted, rtol=1e-5, atol=2e-3
        )  # scores around -10000 hold three digits behind the point


def test_time_between_queries_and_other_keys_stays_on_the_host():
    """onnxruntime's kernel lets the last query see all keys, however many there are."""
    agree(
        "MultiHeadAttention", [normal(B, S, D), normal(B, L, D), normal(B, L, D)], num_heads=N, unidirectional=1, host=1
    )


def test_quantized_attention():
    def number(value: float, dtype: Any) -> Array:
        return np.asarray(value, dtype)

    quantized: list[Array | None] = [
        ints(256, B, S, 6, dtype=np.uint8),
        ints(256, 6, 3 * D, dtype=np.uint8),
        normal(3 * D),
    ]
    scales, zeros = [number(0.05, np.float32), number(0.03, np.float32)], [number(120, np.uint8), number(128, np.uint8)]
    agree("QAttention", [*quantized, *scales, masks(S)["padding"], *zeros], constants=(1, 2, 3, 4, 6, 7), num_heads=N)
    inputs = [*quantized, *scales, None, *zeros, normal(2, B, N, P, H)]
    agree("QAttention", inputs, constants=(1, 2, 3, 4, 6, 7), num_heads=N, unidirectional=1, asked=(0, 1))


def test_what_onnxruntime_cannot_run_either_is_refused_by_its_node():
    with pytest.raises(FuselineError, match="Packed QKV") as raised:
        fuseline.compile(
            one_call("MultiHeadAttention", [normal(B, S, N, 3, H)], num_heads=N), target="interpreter"
        ).run({"i0": normal(B, S, N, 3, H)})
    assert (raised.value.code, raised.value.node) == ("E0106", "node")


def test_sizes_that_no_head_has_are_refused():
    with pytest.raises(FuselineError) as raised:
        fuseline.compile(one_call("Attention", [normal(B, S, 6), normal(6, 21), normal(21)], num_heads=N)).run(
            {"i0": normal(B, S, 6), "i1": normal(6, 21), "i2": normal(21)}
        )
    assert (raised.value.code, raised.value.node) == ("E0106", "node")


def test_attention_in_the_body_of_a_loop():
    """A loop that reads rows one after another expands the body as any function."""
    call = one_call("Attention", [normal(B, S, 6), normal(6, 3 * D), normal(3 * D)], constants=(1, 2), num_heads=N)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in call.graph.initializer}
    made = f"float[{B}, {S}, {D}]"
    branch = f"branch () => ({made} o0) {{ [node] o0 = com.microsoft.Attention<num_heads = {N}>(i0, i1, i2) }}"
    proto = onnx_model(
        f"(float[{B}, {S}, 6] i0, bool yes) => ({made} y)"
        f" {{ [if] y = If<then_branch = {branch}, else_branch = {branch}>(yes) }}",
        weights,
        imports={"": 17, "com.microsoft": 1},
    )
    x = normal(B, S, 6)
    inside = fuseline.compile(proto, target="interpreter").run({"i0": x, "yes": np.asarray(True)})["y"]
    np.testing.assert_allclose(
        inside, fuseline.compile(call, target="interpreter").run({"i0": x})["o0"], rtol=1e-5, atol=1e-5
    )
