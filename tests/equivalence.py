"""Whether passes keep what programs compute: the same functions on the same random inputs, before and after, on the
interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.text import parse_module, split_input
from fuseline.passes.registry import parse_passes
from fuseline.pipeline import PASS_PHASES
from fuseline.targets.interpreter.host import call_declared

Array = NDArray[Any]

DYNAMIC_SIZE = 6
"""What an unknown size is in a test run, where no name says that two are equal."""

TOLERANCE = 1e-5
"""Of the largest magnitude of a result: f32 sums in another order. A pass that changes more than that changes the
program."""


def compare_programs(text: str, pipeline: str, *, split: bool = False, name: str = "<input>") -> Iterator[str]:
    """One line per function of `text` that computes something else after the passes of `pipeline`."""
    for line, part in split_input(text) if split else [(1, text)]:
        yield from _compare(part, pipeline, line, name)


def _compare(text: str, pipeline: str, line: int, name: str) -> Iterator[str]:
    before, after = new_context(), new_context()
    original, changed = (parse_module(text, ctx, name, first_line=line) for ctx in (before, after))
    for step in parse_passes(pipeline, PASS_PHASES):
        step.apply(after, changed)
    functions = {f.sym_name.data: f for f in _functions(changed)}
    for function in _functions(original):
        other = functions.get(function.sym_name.data)
        if other is None or other.function_type != function.function_type:
            continue
        args = random_arguments(function, crc32(function.sym_name.data.encode()))
        try:
            expected = evaluate_function(function, args, before.resources, host_call=call_declared)
        except FuselineError as error:
            if error.code == "E0305":
                continue  # the original cannot run (test.op, a missing weight): nothing to compare with
            raise
        yield from _differences(
            function, expected, evaluate_function(other, args, after.resources, host_call=call_declared)
        )


def _functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]


def random_arguments(function: FuncOp, seed: int) -> list[Array]:
    """One random array (or scalar) per argument; sizes with one name in `fuseline.dims` are equal."""
    rng = np.random.default_rng(seed)
    return [_random(rng, arg.type, _dim_names(function, i)) for i, arg in enumerate(function.args)]


def _dim_names(function: FuncOp, position: int) -> Sequence[str] | None:
    attributes = function.arg_attrs
    entry = attributes.data[position] if attributes is not None else DictionaryAttr({})
    names = entry.data.get("fuseline.dims")
    return [name.data for name in names if isinstance(name, StringAttr)] if isinstance(names, ArrayAttr) else None


def _random(rng: np.random.Generator, type_: Attribute, names: Sequence[str] | None) -> Array:
    shape = type_.get_shape() if isinstance(type_, TensorType) else ()
    sizes = [
        DYNAMIC_SIZE + (crc32(names[d].encode()) % 3 if names else 0) if size < 0 else size
        for d, size in enumerate(shape)
    ]
    dtype = numpy_dtype(type_.get_element_type() if isinstance(type_, TensorType) else type_)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, sizes)).astype(bool)
    if dtype.kind == "i":
        return np.asarray(rng.integers(0, 4, sizes)).astype(dtype)
    return (np.asarray(rng.standard_normal(sizes)) + 0.25).astype(dtype)


def _differences(function: FuncOp, expected: Sequence[Array], got: Sequence[Array]) -> Iterator[str]:
    for k, (a, b) in enumerate(zip(expected, got, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f"@{function.sym_name.data} result {k}: was {a.dtype}{a.shape}, is {b.dtype}{b.shape}"
        elif not _agree(a, b):
            yield f"@{function.sym_name.data} result {k}: differs by {_largest_difference(a, b)}"


def _agree(a: Array, b: Array) -> bool:
    if a.dtype.kind in "bi":
        return bool((a == b).all())
    finite = np.abs(a[np.isfinite(a)].astype(np.float64))
    scale = max(float(finite.max()) if finite.size else 0.0, 1e-30)
    return bool(np.allclose(b.astype(np.float64), a.astype(np.float64), rtol=0, atol=TOLERANCE * scale, equal_nan=True))


def _largest_difference(a: Array, b: Array) -> float:
    return float(np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64))))
