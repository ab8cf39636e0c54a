"""Values of dispatches pulled point by point, in kernels that do nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_function
from fuseline.ir.build import element_of
from fuseline.ir.element_types import numpy_dtype
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import Array, arrays_for, shape_at

Pull = Callable[[BodyEmitter, SSAValue, Sequence[AnyIndex], int, "Operand | None"], Value]


def _value_at(e: BodyEmitter, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    return e.value_at(value, index, lanes, active)


def pulled(
    view: DispatchView,
    arrays: Sequence[Array],
    *,
    lanes: int = 1,
    axis: int = -1,
    sizes: Mapping[str, int] | None = None,
    pull: Pull = _value_at,
) -> Array:
    """The one result of a dispatch, `lanes` elements along `axis` at a time, the last of them masked."""
    k = KernelBuilder("pulled", machine("avx2"))
    emitter = BodyEmitter(k, view)
    (value,), shape = view.results, shape_at(view, view.results[0], sizes or {})
    axis %= len(shape)
    strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]

    def walk(at: list[Operand]) -> tuple[()]:
        if len(at) < len(shape):
            step = lanes if len(at) == axis else 1
            extent = emitter.buffers.operand(view.shapes.dims(value)[len(at)])
            k.loop(0, extent, step, lambda i: walk([*at, i]))
            return ()
        left = k.sub(emitter.buffers.operand(view.shapes.dims(value)[axis]), at[axis])
        active = None if lanes == 1 else k.min(left, lanes)
        index = [Index(place, 1 if i == axis and lanes > 1 else 0) for i, place in enumerate(at)]
        found = k.splat(pull(emitter, value, index, lanes, active), lanes)
        flat: Operand = 0
        for place, stride in zip(at, strides, strict=True):
            flat = k.add(flat, k.mul(place, stride))
        memory = emitter.buffers.result(0)
        k.scatter(memory, k.lane_indices(flat, strides[axis], lanes), found, active)
        return ()

    walk([])
    out = np.zeros(shape, numpy_dtype(element_of(value)))
    evaluate(k.finish(), [*(array.copy() for array in arrays), out], [(sizes or {})[name] for name in view.size_names])
    return out


def check_pulled(view: DispatchView, sizes: Mapping[str, int] | None = None, **more: Any) -> None:
    """What is pulled is what the dispatch means, by elements and by vectors, along its last and its first axis."""
    arrays = arrays_for(view, sizes)
    numbers = [np.asarray((sizes or {})[name]) for name in view.size_names]
    (expected,) = evaluate_function(view.entry, [*arrays, *numbers])
    for lanes, axis in ((1, -1), (8, -1), (4, 0)):
        found = pulled(view, arrays, lanes=lanes, axis=axis, sizes=sizes, **more)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
