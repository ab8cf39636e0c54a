"""Functions of kernel IR on whole arrays, evaluated and, where a machine is given, native."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import call

Array = NDArray[Any]
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i1": np.bool_,
}
NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}


def on_lanes(
    function: Callable[..., Any],
    *arrays: Array,
    result: str | None = None,
    native: bool = False,
    isa: Machine | None = None,
) -> Array:
    """`function(k, *vectors)` on all elements at once, as `result` (as the first array, if not given)."""
    isa = isa or machine("avx2")
    k, lanes = KernelBuilder("kernel", isa), arrays[0].size
    kind = result or NAMES[arrays[0].dtype]
    vectors = [k.load(k.binding(i, NAMES[array.dtype], lanes), 0, lanes) for i, array in enumerate(arrays)]
    found = k.as_value(function(k, *vectors), vectors[0].type)
    k.store(k.binding(len(arrays), kind, lanes, writable=True), 0, k.splat(found, lanes))
    kernel, out = k.finish(), np.zeros(lanes, DTYPES[kind])
    buffers = [array.copy() for array in arrays] + [out]
    if native:
        call(kernel, isa, buffers)
    else:
        evaluate(kernel, buffers)
    return out
