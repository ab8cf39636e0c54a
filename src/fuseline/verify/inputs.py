"""Deterministic inputs for a model nobody gave inputs for: valid ones, so that embeddings are looked up in range and
masks keep their rows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import onnx

from fuseline.buffers import INDEX_TYPE
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dispatch_functions import without_dispatch_functions

Extent = int | str | None

INDEX_LIMIT = 1000
"""Upper end (exclusive) of generated indices where the model does not tell: what ImageNet classes and small
vocabularies allow."""

_SAME_ELEMENTS = frozenset({"Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Transpose", "Flatten"})
"""Operators whose result has the elements of their first input: indices stay indices."""

_SAME_EXTENTS = frozenset({"Cast", "DequantizeLinear", "Identity", "QuantizeLinear"})
"""Operators whose result has the extents of their first input."""


class Input(Protocol):
    """What a session tells of one input; `shape` holds ints for fixed and names (or None) for free extents, `type` is
    empty for numbers."""

    @property
    def name(self) -> str:
        """What feeds call it."""
        ...

    @property
    def shape(self) -> Sequence[Extent]:
        """Extents: an int where fixed; a name, or None, where free."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""
        ...

    @property
    def type(self) -> str:
        """Empty for a tensor of numbers, else what it is instead (a string, a sequence)."""
        ...


@dataclass(frozen=True, slots=True)
class Hints:
    """What a model says of its inputs: `ranges` per input (inclusive low, exclusive high), `sizes` per symbolic
    extent."""

    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])


def hints_of(model: onnx.ModelProto) -> Hints:
    """Ranges from the tables that integer inputs are looked up in, overridden by the metadata keys `*.inputs` and
    `*.dims` (JSON)."""
    graph = without_dispatch_functions(model).graph
    ranges: dict[str, tuple[float, float]] = {name: (0, limit) for name, limit in _gather_limits(graph).items()}
    sizes: dict[str, int] = {}
    for entry in model.metadata_props:
        if entry.key.endswith(".inputs"):
            ranges |= _stated_ranges(_json_mapping(entry.value), ranges)
        elif entry.key.endswith(".dims"):
            sizes |= {name: int(size) for name, size in _json_mapping(entry.value).items() if isinstance(size, int)}
    return Hints(ranges, sizes)


def _json_mapping(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _stated_ranges(
    stated: Mapping[str, Any], known: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    out: dict[str, tuple[float, float]] = {}
    for name, spec in stated.items():
        if isinstance(spec, dict) and ("lo" in spec or "hi" in spec):
            low, high = known.get(name, (0, INDEX_LIMIT))
            out[name] = (spec.get("lo", low), spec.get("hi", high))
    return out


def _gather_limits(graph: onnx.GraphProto) -> dict[str, int]:
    """For each tensor that reaches a Gather as indices, the smallest dimension it is looked up in."""
    extents = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in _SAME_EXTENTS and node.input[0] in extents:
            extents[node.output[0]] = extents[node.input[0]]
    limits: dict[str, int] = {}
    for node in reversed(graph.node):
        if node.op_type == "Gather" and node.input[0] in extents:
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            _lower(limits, node.input[1], extents[node.input[0]][axis])
        elif node.op_type in _SAME_ELEMENTS and node.output[0] in limits:
            _lower(limits, node.input[0], limits[node.output[0]])
    return limits


def _lower(limits: dict[str, int], name: str, limit: int) -> None:
    limits[name] = min(limit, limits.get(name, limit))


def generate(inputs: Iterable[Input], *, seed: int = 0, hints: Hints | None = None) -> dict[str, np.ndarray]:
    """One array per input, the same for the same name, shape and `seed`: normal floats, indices in range, masks of
    ones, words.

    Raises FuselineError (E0202) for an input that is no tensor.
    """
    given, known = list(inputs), hints or Hints()
    known = replace(known, sizes={**_sizes(given), **known.sizes})
    return {item.name: _array(item, seed, known) for item in given}


def _sizes(inputs: Iterable[Input]) -> dict[str, int]:
    """One size for each symbol, however many inputs have it: a length where any of them has it as one."""
    found: dict[str, int] = {}
    for item in inputs:
        for axis, extent in enumerate(item.shape):
            if isinstance(extent, str):
                found[extent] = max(found.get(extent, 0), _free_size(axis))
    return found


def _array(item: Input, seed: int, hints: Hints) -> np.ndarray:
    shape = tuple(_size(extent, axis, hints.sizes) for axis, extent in enumerate(item.shape))
    rng = np.random.default_rng((zlib.crc32(item.name.encode()), seed))
    if item.type == INDEX_TYPE:
        return np.ones((), item.dtype)  # an offset that is inside, or a size that is not empty
    if item.dtype == object:
        return _words(item, shape, rng)
    name = item.name.lower()
    if item.dtype.kind == "b" or ("mask" in name and item.name not in hints.ranges):
        return np.ones(shape, item.dtype)
    if item.dtype.kind in "iu":
        low, high = hints.ranges.get(item.name, (0, 2 if "type" in name else _integer_limit(item.dtype)))
        return rng.integers(int(low), max(int(high), int(low) + 1), size=shape).astype(item.dtype)
    if item.name in hints.ranges:
        return rng.uniform(*hints.ranges[item.name], size=shape).astype(item.dtype)
    return rng.standard_normal(shape).astype(item.dtype)


def _words(item: Input, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if item.type != "tensor(string)":
        raise FuselineError(
            "E0202", f"no feed for this input of type {item.type}", node=item.name, hint="give it from Python"
        )
    out = np.empty(int(np.prod(shape)), object)
    out[:] = ["".join(rng.choice(list("abcdefgh"), 5).tolist()) for _ in range(out.size)]
    return out.reshape(shape)


def _integer_limit(dtype: np.dtype[Any]) -> int:
    return min(INDEX_LIMIT, int(np.iinfo(dtype).max))


def _size(extent: Extent, axis: int, sizes: Mapping[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    return _free_size(axis) if extent is None else sizes[extent]


def _free_size(axis: int) -> int:
    """Free batch extents come first by custom; anything else is a length."""
    return 1 if axis == 0 else 16
