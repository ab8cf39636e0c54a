"""Structured ops as lowerings want them: operands broadcast, views read through, loops that are none left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, linalg

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import emission
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.scalars import add, loop_index, mul
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, known_sizes, view
from tests.draws import RNG
from tests.graphs.custom_lowering import computed, read_with

F32 = np.dtype(np.float32)
Lowering = Callable[[OnnxNode], Tensor]


def _normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def _text(*sizes: str) -> str:
    inputs = ", ".join(f"float[{size}] x{i}" for i, size in enumerate(sizes))
    return f"({inputs}) => (y) {{ y = test.Op ({', '.join(f'x{i}' for i in range(len(sizes)))}) }}"


def _generics(text: str, lowering: Lowering) -> list[linalg.ops.GenericOp]:
    return [op for op in read_with(text, lowering)[0].walk() if isinstance(op, linalg.ops.GenericOp)]


def _sum(b: Any, *elements: Any) -> Any:
    out = elements[0]
    for element in elements[1:]:
        out = add(b, F32, out, element)
    return out


@pytest.mark.parametrize("sizes", [("2, 3", "3"), ("2, 1", "1, 3"), ("n, 3", "1"), ("n, 3", "n, 1")])
def test_operands_broadcast(sizes: tuple[str, str]) -> None:
    def lowering(node: OnnxNode) -> Tensor:
        return emission.elementwise(node, node.present(), F32, _sum)

    arrays = [_normal(*(int(size.replace("n", "4")) for size in text.split(",") if size)) for text in sizes]
    np.testing.assert_allclose(computed(_text(*sizes), lowering, *arrays)[0], arrays[0] + arrays[1], rtol=1e-6)


def test_one_operand_is_read_once_and_numbers_stand_in_the_body() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        two, size = known(np.full((1, 1), 2, np.float32)), Tensor(F32, (1,), array=known_sizes(node[0].dims[:1]).array)
        return emission.elementwise(node, [node[0], node[0], two, size], F32, _sum, (*node[0].dims,))

    (op,) = _generics(_text("n, 3"), lowering)
    assert len(op.inputs) == 1
    x = _normal(5, 3)
    np.testing.assert_allclose(computed(_text("n, 3"), lowering, x)[0], x + x + 2 + 5, rtol=1e-5)


def test_loops_that_are_given() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        x, y = node.present()
        return emission.mapped(node, [(x, [1, 0]), (y, [None, 2])], (3, 2, 4), F32, lambda b, p, q: mul(b, F32, p, q))

    x, y = _normal(2, 3), _normal(1, 4)
    wanted = x.T[:, :, None] * y[0]
    np.testing.assert_allclose(computed(_text("2, 3", "1, 4"), lowering, x, y)[0], wanted, rtol=1e-6)


@pytest.mark.parametrize("axes", [[0], [1], [0, 1], []])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("sizes", ["3, 4", "n, 4", "3, 1", "1, n"])
def test_reductions(axes: list[int], keep: bool, sizes: str) -> None:
    def lowering(node: OnnxNode) -> Tensor:
        return emission.reduce(node, [node[0]], axes, 0.5, lambda b, p, acc: add(b, F32, acc, p), dtype=F32, keep=keep)

    x = _normal(*(int(size.replace("n", "5")) for size in sizes.split(",")))
    found = computed(_text(sizes), lowering, x)[0]
    np.testing.assert_allclose(found, 0.5 + x.sum(tuple(axes), keepdims=keep), rtol=1e-4, atol=1e-5)


def test_what_repeats_is_counted_as_often() -> None:
    """A dimension that no operand spells is no loop, unless it is summed over."""

    def lowering(node: OnnxNode) -> Tensor:
        wide = emission.broadcast_to(node[0], (4, 3))
        return emission.reduce(node, [wide], [0], 0, lambda b, p, acc: add(b, F32, acc, p), dtype=F32)

    x = _normal(1, 3)
    np.testing.assert_allclose(computed(_text("1, 3"), lowering, x)[0], 4 * x[0], rtol=1e-5)


def test_bodies_count_the_loops_that_are_left() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        def body(b: Any, p: Any, acc: Any) -> Any:
            position = b.op(arith.IndexCastOp, loop_index(b, 2), emission.mlir_element(np.dtype(np.int64)))
            return add(b, F32, acc, mul(b, F32, p, b.op(arith.SIToFPOp, position, emission.mlir_element(F32))))

        return emission.reduce(node, [node[0]], [2], 0.0, body, dtype=F32)

    x = _normal(3, 1, 4)
    np.testing.assert_allclose(
        computed(_text("3, 1, 4"), lowering, x)[0], (x * np.arange(4)).sum(2), rtol=1e-4, atol=1e-5
    )


def test_a_reduction_from_a_tensor_on() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        x, start = node.present()
        return emission.reduce(node, [x], [1], start, lambda b, p, acc: add(b, F32, acc, p), dtype=F32)

    x, start = _normal(3, 4), _normal(3)
    np.testing.assert_allclose(
        computed(_text("3, 4", "3"), lowering, x, start)[0], start + x.sum(1), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("inner", [4, 1])
def test_sums_of_products(inner: int) -> None:
    def lowering(node: OnnxNode) -> Tensor:
        a, b = node.present()
        return emission.contract(node, (a, [0, 2]), (b, [2, 1]), [3, 5, inner], [0, 1], F32)

    a, b = _normal(3, inner), _normal(inner, 5)
    np.testing.assert_allclose(
        computed(_text(f"3, {inner}", f"{inner}, 5"), lowering, a, b)[0], a @ b, rtol=1e-4, atol=1e-5
    )


def test_a_product_with_what_repeats() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        a, b = node.present()
        wide = emission.broadcast_to(a, (3, 4))
        return emission.contract(
            node, (wide, [0, 2]), (emission.broadcast_to(b, (4, 5)), [2, 1]), [3, 5, 4], [0, 1], F32
        )

    a, b = _normal(3, 1), _normal(1, 5)
    np.testing.assert_allclose(computed(_text("3, 1", "1, 5"), lowering, a, b)[0], 4 * a @ b, rtol=1e-4)


@pytest.mark.parametrize(
    ("to", "sizes"), [((6, 2), "3, 4"), ((3, 1, 4), "3, 4"), ((12,), "3, 4"), ((3, 4), "1, 3, 1, 4"), ((0, 5), "0, 4")]
)
def test_other_dimensions(to: Sequence[int], sizes: str) -> None:
    x = _normal(*map(int, sizes.split(",")))
    found = computed(_text(sizes), lambda node: emission.reshape(node, node[0], to), x)[0]
    np.testing.assert_array_equal(found, x.reshape(to))
    held = computed(_text(sizes), lambda node: emission.reshape(node, known(x), to), x)[0]
    np.testing.assert_array_equal(held, x.reshape(to))


def test_dimensions_that_cannot_be() -> None:
    with pytest.raises(FuselineError, match=r"E0107 .*the sizes \[3, 4\] hold 12 elements, \[5, 2\] take 10"):
        read_with(_text("3, 4"), lambda node: emission.reshape(node, node[0], (5, 2)))
    read_with(
        _text("3, 4"), lambda node: node[0] if emission.reshape(node, node[0], (3, 4)) is node[0] else known(np.ones(1))
    )


def test_axes_joined_and_units_put_in() -> None:
    x = _normal(2, 3, 4)
    found = computed(_text("2, 3, 4"), lambda node: emission.collapse(node, node[0], [[0, 1], [2]]), x)[0]
    np.testing.assert_array_equal(found, x.reshape(6, 4))
    small = computed(_text("2, 3"), lambda node: emission.with_units(node[0], [0, 3], 4), _normal(2, 3))[0]
    assert small.shape == (1, 2, 3, 1)
    t = Tensor(F32, (2, 3))
    assert emission.broadcast_to(t, (2, 3)) is t
    assert emission.broadcast_to(t, (4, 2, 3)).axes == view(t, (4, 2, 3), [1, 2]).axes


def test_conversions_and_numbers_everywhere() -> None:
    t = Tensor(F32, (2,))
    x = _normal(2, 3)
    assert emission.cast(None, t, F32) is t  # pyright: ignore[reportArgumentType]
    found = computed(_text("2, 3"), lambda node: emission.cast(node, node[0], np.dtype(np.int32)), x)[0]
    np.testing.assert_array_equal(found, x.astype(np.int32))
    filled = computed(
        _text("n, 3"), lambda node: emission.result(emission.filled(node, 2.5, node[0].dims, F32), node[0].dims, F32), x
    )[0]
    np.testing.assert_array_equal(filled, np.full((2, 3), 2.5))


def test_ranks_that_are_refused() -> None:
    t = Tensor(F32, (2, 3))
    emission.require_rank(t, 2)
    emission.require_rank(t, 1, 2)
    for low, high in ((3, None), (0, 1)):
        with pytest.raises(NoNativeLowering, match="unsupported-rank: rank 2"):
            emission.require_rank(t, low, high)
