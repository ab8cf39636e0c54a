"""The layers that are timed: each as a dispatch of fuseline and as an ONNX model with the same arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, TensorType, UnitAttr, f32
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, Emitter, dims_map, identity_map

Array = NDArray[Any]
dim = AffineExpr.dimension


@dataclass
class Case:
    """A layer: its dispatch, our inputs, the ONNX model and its feeds, and its work."""

    name: str
    view: DispatchView
    arrays: list[Array]
    model: onnx.ModelProto
    feeds: dict[str, Array]
    flops: int
    to_onnx: Callable[[Array], Array] = field(default=lambda x: x)


class _Entry:
    """An entry function with f32 tensor arguments; those in `constants` are packed at compile time."""

    def __init__(self, shapes: Sequence[Sequence[int]], constants: Sequence[int]) -> None:
        self.block = Block(arg_types=[TensorType(f32, list(shape)) for shape in shapes])
        self.x: tuple[SSAValue, ...] = tuple(self.block.args)
        self.attributes = [
            DictionaryAttr({"fuseline.constant": UnitAttr()} if i in constants else {}) for i in range(len(shapes))
        ]
        self.emit = Emitter.at_end(self.block, ["benchmark"])

    def empty(self, shape: Sequence[int]) -> SSAValue:
        return self.emit.add(tensor.EmptyOp([], TensorType(f32, list(shape)))).tensor

    def reduce(
        self, inputs: Sequence[SSAValue], shape: Sequence[int], maps: Sequence[AffineMap], kinds: str
    ) -> SSAValue:
        """A sum of products."""

        def body(b: Body) -> list[SSAValue]:
            return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.args[0], b.args[1]))]

        iterators = ["parallel" if kind == "p" else "reduction" for kind in kinds]
        return self.emit.generic(inputs, [self.emit.fill(0.0, self.empty(shape))], maps, iterators, body).results[0]

    def epilogue(self, x: SSAValue, bias: SSAValue, shape: Sequence[int], residual: SSAValue | None) -> SSAValue:
        """Bias, residual and relu in one op."""
        rank = len(shape)
        inputs = [x, bias, *([residual] if residual is not None else [])]
        maps = [
            identity_map(rank),
            dims_map(rank, [rank - 1]),
            *([identity_map(rank)] if residual is not None else []),
            identity_map(rank),
        ]

        def body(b: Body) -> list[SSAValue]:
            total = b.op(arith.AddfOp, b.args[0], b.args[1])
            if residual is not None:
                total = b.op(arith.AddfOp, total, b.args[2])
            return [b.op(arith.MaximumfOp, total, b.constant(0.0, f32))]

        return self.emit.generic(inputs, [self.empty(shape)], maps, ["parallel"] * rank, body).results[0]

    def pad(self, x: SSAValue, low: Sequence[int], high: Sequence[int]) -> SSAValue:
        assert isinstance(x.type, TensorType)
        shape = [size + a + b for size, a, b in zip(x.type.get_shape(), low, high, strict=True)]
        number = self.emit.scalar(0.0, f32)
        block = Block(arg_types=[IndexType()] * len(shape))
        block.add_op(tensor.YieldOp(number))
        return self.emit.add(tensor.PadOp(x, [], [], Region(block), low, high, TensorType(f32, shape))).result

    def done(self, result: SSAValue) -> DispatchView:
        self.block.add_op(func.ReturnOp(result))
        types: tuple[list[Attribute], list[Attribute]] = ([a.type for a in self.block.args], [result.type])
        return DispatchView(func.FuncOp("entry", types, Region(self.block), arg_attrs=ArrayAttr(self.attributes)))


def _model(
    nodes: Sequence[onnx.NodeProto], feeds: dict[str, Array], weights: dict[str, Array], shape: Sequence[int]
) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list(array.shape)) for name, array in feeds.items()
    ]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, list(shape))
    graph = helper.make_graph(
        list(nodes), "layer", inputs, [output], [numpy_helper.from_array(a, n) for n, a in weights.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def _random(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def matmul(m: int, n: int, k: int) -> Case:
    """`relu(x @ w + b)`, weights constant."""
    rng = np.random.default_rng(0)
    x, w, b = _random(rng, m, k), _random(rng, k, n) * np.float32(k**-0.5), _random(rng, n)
    e = _Entry([(m, k), (k, n), (n,)], [1, 2])
    y = e.reduce(e.x[:2], (m, n), [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])], "ppr")
    view = e.done(e.epilogue(y, e.x[2], (m, n), None))
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"]), helper.make_node("Relu", ["y"], ["out"])]
    return Case(
        f"matmul {m}x{n}x{k}",
        view,
        [x, w, b],
        _model(nodes, {"x": x}, {"w": w, "b": b}, (m, n)),
        {"x": x},
        2 * m * n * k,
    )


def product(m: int, n: int, k: int) -> Case:
    """`relu(x @ w + b)`, all known at run time only."""
    case = matmul(m, n, k)
    rng = np.random.default_rng(0)
    x, w, b = _random(rng, m, k), _random(rng, k, n) * np.float32(k**-0.5), _random(rng, n)
    e = _Entry([(m, k), (k, n), (n,)], [])
    y = e.reduce(e.x[:2], (m, n), [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])], "ppr")
    view = e.done(e.epilogue(y, e.x[2], (m, n), None))
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"]), helper.make_node("Relu", ["y"], ["out"])]
    feeds = {"x": x, "w": w, "b": b}
    return Case(f"product {m}x{n}x{k}", view, [x, w, b], _model(nodes, feeds, {}, (m, n)), feeds, case.flops)


def scores(heads: int, s: int, d: int) -> Case:
    """`q @ k^T` of attention, both at run time."""
    rng = np.random.default_rng(0)
    q, k = _random(rng, s, heads, d), _random(rng, s, heads, d)
    e = _Entry([q.shape, k.shape], [])
    y = e.reduce(
        e.x[:2], (heads, s, s), [dims_map(4, [1, 0, 3]), dims_map(4, [2, 0, 3]), dims_map(4, [0, 1, 2])], "pppr"
    )
    nodes = [
        helper.make_node("Transpose", ["q"], ["qt"], perm=[1, 0, 2]),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 2, 0]),
        helper.make_node("MatMul", ["qt", "kt"], ["out"]),
    ]  # fmt: skip
    feeds = {"q": q, "k": k}
    return Case(
        f"scores {heads}x{s}x{s}x{d}",
        e.done(y),
        [q, k],
        _model(nodes, feeds, {}, (heads, s, s)),
        feeds,
        2 * heads * s * s * d,
    )


def values(heads: int, s: int, d: int) -> Case:
    """`p @ v` of attention, written back as [s, heads, d]."""
    rng = np.random.default_rng(0)
    p, v = _random(rng, heads, s, s), _random(rng, s, heads, d)
    e = _Entry([p.shape, v.shape], [])
    y = e.reduce(
        e.x[:2], (s, heads, d), [dims_map(4, [0, 1, 3]), dims_map(4, [3, 0, 2]), dims_map(4, [1, 0, 2])], "pppr"
    )
    nodes = [
        helper.make_node("Transpose", ["v"], ["vt"], perm=[1, 0, 2]), helper.make_node("MatMul", ["p", "vt"], ["y"]),
        helper.make_node("Transpose", ["y"], ["out"], perm=[1, 0, 2]),
    ]  # fmt: skip
    feeds = {"p": p, "v": v}
    return Case(
        f"values {heads}x{s}x{d}x{s}",
        e.done(y),
        [p, v],
        _model(nodes, feeds, {}, (s, heads, d)),
        feeds,
        2 * heads * s * s * d,
    )


def convolution(
    size: int, ic: int, oc: int, kernel: int, stride: int = 1, *, residual: bool = False, first: bool = False
) -> Case:
    """A square convolution, bias, optional residual, relu; channels last, or (`first`) an image with its channels
    first."""
    rng = np.random.default_rng(0)
    pad, out = kernel // 2, (size + 2 * (kernel // 2) - kernel) // stride + 1
    x, w = (
        _random(rng, 1, ic, size, size),
        _random(rng, oc, ic, kernel, kernel) * np.float32((ic * kernel * kernel) ** -0.5),
    )
    b, r = _random(rng, oc), _random(rng, 1, oc, out, out)
    ours, hwio = (
        np.ascontiguousarray(x if first else x.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(w.transpose(2, 3, 1, 0)),
    )
    shape = (1, out, out, oc)
    e = _Entry([ours.shape, hwio.shape, b.shape, *([shape] if residual else [])], [1, 2])
    low = [0, 0, pad, pad] if first else [0, pad, pad, 0]
    image = e.pad(e.x[0], low, low) if pad else e.x[0]
    at = [dim(1) * stride + dim(4), dim(2) * stride + dim(5)]
    maps = [
        AffineMap(7, 0, (dim(0), dim(6), *at) if first else (dim(0), *at, dim(6))),
        dims_map(7, [4, 5, 6, 3]),
        dims_map(7, [0, 1, 2, 3]),
    ]
    y = e.reduce([image, e.x[1]], shape, maps, "pppprrr")
    view = e.done(e.epilogue(y, e.x[2], shape, e.x[3] if residual else None))
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
        )
    ]
    nodes += [helper.make_node("Add", ["y", "r"], ["z"])] if residual else []
    nodes += [helper.make_node("Relu", ["z" if residual else "y"], ["out"])]
    feeds = {"x": x, "r": r} if residual else {"x": x}
    arrays = [ours, hwio, b, *([np.ascontiguousarray(r.transpose(0, 2, 3, 1))] if residual else [])]
    name = f"conv {size}x{size}x{ic}->{oc} {kernel}x{kernel}/{stride}{' nchw' if first else ''}"
    flops = 2 * out * out * oc * ic * kernel * kernel
    return Case(
        name,
        view,
        arrays,
        _model(nodes, feeds, {"w": w, "b": b}, (1, oc, out, out)),
        feeds,
        flops,
        lambda y: y.transpose(0, 3, 1, 2),
    )


def depthwise(size: int, c: int, stride: int = 1, kernel: int = 3) -> Case:
    """A depthwise convolution, bias, relu."""
    rng = np.random.default_rng(0)
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    x, w, b = _random(rng, 1, c, size, size), _random(rng, c, 1, kernel, kernel), _random(rng, c)
    shape = (1, out, out, c)
    e = _Entry([(1, size, size, c), (kernel, kernel, c), (c,)], [1, 2])
    image = e.pad(e.x[0], [0, pad, pad, 0], [0, pad, pad, 0])
    maps = [
        AffineMap(6, 0, (dim(0), dim(1) * stride + dim(4), dim(2) * stride + dim(5), dim(3))), dims_map(6, [4, 5, 3]),
        dims_map(6, [0, 1, 2, 3]),
    ]  # fmt: skip
    view = e.done(e.epilogue(e.reduce([image, e.x[1]], shape, maps, "pppprr"), e.x[2], shape, None))
    conv = helper.make_node(
        "Conv", ["x", "w", "b"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=c
    )
    nodes = [conv, helper.make_node("Relu", ["y"], ["out"])]
    arrays = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(w[:, 0].transpose(1, 2, 0)), b]
    model = _model(nodes, {"x": x}, {"w": w, "b": b}, (1, c, out, out))
    name = f"depthwise {size}x{size}x{c} {kernel}x{kernel}/{stride}"
    return Case(
        name, view, arrays, model, {"x": x}, 2 * out * out * c * kernel * kernel, lambda y: y.transpose(0, 3, 1, 2)
    )


def grouped(size: int, groups: int, inner: int, outputs: int, stride: int = 1, kernel: int = 3) -> Case:
    """A convolution in groups of `inner` channels that make `outputs` each, no epilogue."""
    rng = np.random.default_rng(0)
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    x, w = (
        _random(rng, 1, groups * inner, size, size),
        _random(rng, groups * outputs, inner, kernel, kernel) * np.float32((inner * kernel**2) ** -0.5),
    )
    shape = (1, out, out, groups, outputs)
    e = _Entry([(1, size, size, groups, inner), (kernel, kernel, groups, inner, outputs)], [1])
    image = e.pad(e.x[0], [0, pad, pad, 0, 0], [0, pad, pad, 0, 0])
    at = [dim(1) * stride + dim(5), dim(2) * stride + dim(6)]
    maps = [AffineMap(8, 0, (dim(0), *at, dim(3), dim(7))), dims_map(8, [5, 6, 3, 7, 4]), dims_map(8, [0, 1, 2, 3, 4])]
    view = e.done(e.reduce([image, e.x[1]], shape, maps, "ppppprrr"))
    node = helper.make_node(
        "Conv", ["x", "w"], ["out"], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups
    )
    filters = w.reshape(groups, outputs, inner, kernel, kernel).transpose(3, 4, 0, 2, 1)
    arrays = [
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)).reshape(1, size, size, groups, inner),
        np.ascontiguousarray(filters),
    ]
    channels = groups * outputs
    model = _model([node], {"x": x}, {"w": w}, (1, channels, out, out))
    name = f"grouped {size}x{size} {groups}x{inner}->{outputs} {kernel}x{kernel}/{stride}"
    flops = 2 * out * out * channels * inner * kernel * kernel
    return Case(
        name, view, arrays, model, {"x": x}, flops, lambda y: y.reshape(1, out, out, channels).transpose(0, 3, 1, 2)
    )


GROUPS: dict[str, list[Callable[[], Case]]] = {
    "resnet50": [
        lambda: convolution(224, 3, 64, 7, 2, first=True), lambda: convolution(56, 64, 64, 1),
        lambda: convolution(56, 64, 64, 3),
        lambda: convolution(56, 64, 256, 1, residual=True), lambda: convolution(56, 256, 512, 1, 2),
        lambda: convolution(56, 128, 128, 3, 2),
        lambda: convolution(28, 128, 128, 3), lambda: convolution(28, 128, 512, 1, residual=True),
        lambda: convolution(28, 512, 128, 1),
        lambda: convolution(14, 256, 256, 3), lambda: convolution(14, 256, 1024, 1, residual=True),
        lambda: convolution(14, 1024, 256, 1),
        lambda: convolution(7, 512, 512, 3), lambda: convolution(7, 512, 2048, 1, residual=True),
        lambda: convolution(7, 2048, 512, 1),
        lambda: matmul(1, 1000, 2048),
    ],
    "mobilenet_v2": [
        lambda: convolution(224, 3, 32, 3, 2, first=True), lambda: depthwise(112, 32),
        lambda: convolution(112, 32, 16, 1),
        lambda: depthwise(112, 96, 2), lambda: convolution(56, 24, 144, 1), lambda: depthwise(56, 144),
        lambda: convolution(56, 144, 24, 1),
        lambda: depthwise(28, 192), lambda: depthwise(14, 576), lambda: convolution(14, 96, 576, 1),
        lambda: depthwise(7, 960),
        lambda: convolution(7, 320, 1280, 1), lambda: matmul(1, 1000, 1280),
    ],
    "grouped": [
        lambda: grouped(56, 32, 4, 4), lambda: grouped(56, 32, 8, 8, 2), lambda: grouped(28, 32, 8, 8),
        lambda: grouped(14, 32, 16, 16),
        lambda: grouped(28, 13, 8, 8), lambda: grouped(56, 32, 2, 4),
    ],
    "minilm": [
        lambda: matmul(128, 384, 384), lambda: matmul(128, 1536, 384), lambda: matmul(128, 384, 1536),
        lambda: scores(12, 128, 32),
        lambda: values(12, 128, 32), lambda: matmul(1, 384, 384),
    ],
    "odd": [
        lambda: matmul(1000, 1, 1000), lambda: matmul(1000, 3, 1000), lambda: convolution(128, 64, 3, 3),
        lambda: convolution(128, 3, 1, 3),
        lambda: convolution(28, 1, 8, 5, first=True), lambda: convolution(14, 8, 16, 5), lambda: product(512, 512, 512),
        lambda: product(1, 1024, 1024), lambda: product(128, 128, 32), lambda: convolution(33, 96, 100, 3),
        lambda: convolution(4, 512, 512, 3),
        lambda: convolution(2, 512, 512, 3), lambda: convolution(224, 3, 192, 16, 16, first=True),
    ],
    "products": [lambda: matmul(1024, 1024, 1024), lambda: matmul(256, 4096, 4096), lambda: matmul(3136, 64, 576),
        lambda: matmul(17, 65, 129)],
}  # fmt: skip
