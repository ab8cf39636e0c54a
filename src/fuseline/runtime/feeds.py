"""Feeds: what a caller passes by name, checked against the program's inputs. Every refusal names the feed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import TensorSpec
from fuseline.errors import FuselineError
from fuseline.runtime.boxed import admit_boxed, box, is_tensor_type
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.program import Program
from fuseline.runtime.requirements import check_requirements
from fuseline.runtime.sizes import Size, SizeEvaluator, symbol_of, symbols_of

Array = NDArray[Any]


def admit(inputs: Sequence[TensorSpec], feeds: Mapping[str, Any]) -> list[Array]:
    """The feeds in the order of `inputs` as arrays of the right dtype.

    Raises FuselineError: E0501 for what is no mapping, E0201 for a name that is no input, E0202 for a missing one,
    E0204 for a dtype.
    """
    if not isinstance(feeds, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = f"give {{name: array}}; inputs: {', '.join(spec.name for spec in inputs) or 'none'}"
        raise FuselineError(
            "E0501", f"feeds are a {type(feeds).__name__}, must be a mapping from input names to arrays", hint=hint
        )
    known = {spec.name for spec in inputs}
    for name in feeds:
        if name not in known:
            raise FuselineError(
                "E0201",
                "the model has no such input",
                node=str(name),
                hint=f"inputs: {', '.join(s.name for s in inputs) or 'none'}",
            )
    return [_admit_one(spec, feeds) for spec in inputs]


def _admit_one(spec: TensorSpec, feeds: Mapping[str, Any]) -> Array:
    if spec.name not in feeds:
        raise FuselineError(
            "E0202", f"no feed for this input of type {spec.dtype}{_shape_text(spec.shape)}", node=spec.name
        )
    if spec.slot is not None:
        value = admit_boxed(spec.name, spec.type, feeds[spec.name])
        return value if is_tensor_type(spec.type) else box(value)
    wanted = dtype_named(spec.dtype)
    array = _python_number(spec.name, feeds[spec.name], wanted)
    array = as_array(feeds[spec.name], spec.name) if array is None else array
    if spec.is_index and array.dtype.kind in "iu" and array.shape == () and array.dtype != wanted:
        array = _python_number(spec.name, int(array), wanted)  # how wide the caller's integer is says nothing
        assert array is not None
    if array.dtype != wanted:
        raise FuselineError(
            "E0204",
            f"dtype is {array.dtype}, must be {wanted}",
            node=spec.name,
            hint=f"convert it: x.astype({str(wanted)!r})",
        )
    return array


def _python_number(name: str, feed: Any, wanted: np.dtype[Any]) -> Array | None:
    """A Python number, which has no dtype of its own, as one of dtype `wanted`; None for any other feed.

    Raises FuselineError (E0204) for a number that the dtype cannot hold: a fraction where integers are wanted, a number
    out of range.
    """
    if type(feed) not in (bool, int, float):
        return None
    kinds = {bool: "b", int: "iuf", float: "f"}[type(feed)]
    if wanted.kind in kinds or (wanted.kind == "V" and type(feed) is not bool):
        array = _in_range(feed, wanted)
        if array is not None:
            return array
    raise FuselineError("E0204", f"{feed!r} is no {wanted}", node=name, hint="give a number of that kind and range")


def _in_range(number: float, wanted: np.dtype[Any]) -> Array | None:
    """A Python number as `wanted`, None where it lies beyond its range: NumPy makes an infinity of one that a float
    cannot hold."""
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(number, wanted)
        lost = math.isfinite(number) and not math.isfinite(array)
    except OverflowError:
        return None
    return None if lost else array


def shapes_of(inputs: Sequence[TensorSpec], arrays: Sequence[Array]) -> tuple[tuple[int, ...], ...]:
    """The shapes of `arrays`, as `bind_sizes` wants them: an input of type `index` stands there with its value.

    Raises FuselineError (E0203) for an array with dimensions where a number is wanted.
    """
    return tuple(
        [_value(spec, array) if spec.is_index else array.shape for spec, array in zip(inputs, arrays, strict=True)]
    )


def _value(spec: TensorSpec, array: Array) -> tuple[int, ...]:
    if array.shape:
        raise FuselineError("E0203", f"shape is {array.shape}, must be a number without dimensions", node=spec.name)
    return (int(array),)


def as_array(feed: Any, name: str) -> Array:
    """A NumPy view of an array, a DLPack exporter, a scalar or a nested list; raises FuselineError (E0204) for anything
    else."""
    if isinstance(feed, np.ndarray):
        return feed  # pyright: ignore[reportUnknownVariableType]
    try:
        array = np.from_dlpack(feed) if hasattr(feed, "__dlpack__") else np.asarray(feed)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise FuselineError("E0204", f"{type(feed).__name__} cannot be read as an array: {error}", node=name) from error
    return array


def bind_sizes(program: Program, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The values of the symbols under the inputs' `shapes` (see `shapes_of`).

    Raises FuselineError (E0203) for a rank or size that does not fit, a symbol that two inputs disagree on, a value
    outside its bounds, or sizes that break a requirement of the program.
    """
    values: dict[str, int] = {}
    bound_by: dict[str, str] = {}
    for spec, shape in zip(program.inputs, shapes, strict=True):
        if len(shape) != len(spec.dims):
            raise FuselineError(
                "E0203",
                f"shape is {shape}, must have {len(spec.dims)} dimensions: {_shape_text(spec.dims)}",
                node=spec.name,
            )
        for axis, (size, actual) in enumerate(zip(spec.dims, shape, strict=True)):
            _bind_axis(program, values, bound_by, spec, axis, size, actual)
    _check_expressions(program, shapes, values)
    check_requirements(program.requirements, values)
    return values


def _bind_axis(
    program: Program,
    values: dict[str, int],
    bound_by: dict[str, str],
    spec: TensorSpec,
    axis: int,
    size: Size,
    actual: int,
) -> None:
    name = symbol_of(size)
    if name is None:  # a number or an expression: checked once all symbols are known
        return
    what = "the value" if spec.is_index else f"size of axis {axis} ({name})"
    if values.setdefault(name, actual) != actual:
        detail = f"{what} is {actual}, but {values[name]} in feed {bound_by[name]!r}"
        raise FuselineError("E0203", detail, node=spec.name)
    bound_by.setdefault(name, spec.name)
    low, high = program.symbols.get(name, (1, None))
    if actual < low or (high is not None and actual > high):
        bounds = f"at least {low}" if high is None else f"in {low}..{high}"
        raise FuselineError("E0203", f"{what} is {actual}, must be {bounds}", node=spec.name)


def _check_expressions(program: Program, shapes: Sequence[tuple[int, ...]], values: Mapping[str, int]) -> None:
    evaluate = SizeEvaluator(values)
    for spec, shape in zip(program.inputs, shapes, strict=True):
        for axis, (size, actual) in enumerate(zip(spec.dims, shape, strict=True)):
            if symbols_of(size) <= values.keys() and evaluate(size) != actual:
                raise FuselineError(
                    "E0203", f"size of axis {axis} is {actual}, must be {evaluate(size)}", node=spec.name
                )


def _shape_text(dims: Sequence[Size]) -> str:
    return "[" + ", ".join(str(size) if isinstance(size, int) else symbol_of(size) or "?" for size in dims) + "]"
