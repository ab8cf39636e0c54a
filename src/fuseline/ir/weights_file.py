"""Weights of a module in a file of tensors beside its text, under the names that the IR has for them:

    builtin.module attributes {fuseline.weights = {file = "x.safetensors", digest = "2f.."}} {
      %0 = arith.constant dense_resource<fc1.weight> : tensor<512x784xf32>

The file lies in the folder of the text or below it, so that both can be moved together; a link in its place is
followed. It is mapped: nothing of a tensor is read before it is used. Weights that are one block of memory, read along
other axes (an embedding, and its transpose for the product with it), are one tensor there and stay one block:

    views = {wte_turned = {of = "wte", order = [1, 0]}}         axes of the view, as they lie in the tensor
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseResourceAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.resource_section import resource_constants
from fuseline.ir.tensor_file import DIGEST, TensorFile, dtype_name, wrong

WEIGHTS_ATTRIBUTE = "fuseline.weights"
SUFFIX = ".safetensors"
INLINE_BYTES = 256
"""Weights up to this size stand in the text."""


def weights_beside(module: ModuleOp, ctx: CompilerContext, inline: int = INLINE_BYTES) -> dict[str, NDArray[Any]]:
    """The weights of `module` that are too large for its text, by name; those that are names only, because the text
    that it was read from had no data, stay so."""
    names = {attribute.resource_handle.data for attribute in resource_constants(module)}
    return {
        name: ctx.resources[name] for name in names if name in ctx.resources and ctx.resources[name].nbytes > inline
    }


class View(NamedTuple):
    """A weight that lies in the tensor `of`: its axes in the order in which they lie there."""

    of: str
    order: tuple[int, ...]

    def as_attribute(self) -> DictionaryAttr:
        """As the text has it."""
        return DictionaryAttr(
            {"of": StringAttr(self.of), "order": ArrayAttr([IntegerAttr(i, i64) for i in self.order])}
        )


def views_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, View]:
    """Which of `arrays` lie in the memory of another one of them, all of it in the order of its own elements."""
    blocks: dict[tuple[int, int, str], str] = {}
    for name, array in arrays.items():
        if array.flags.c_contiguous:
            blocks.setdefault((*np.lib.array_utils.byte_bounds(array), array.dtype.str), name)
    found: dict[str, View] = {}
    for name, array in arrays.items():
        of = blocks.get((*np.lib.array_utils.byte_bounds(array), array.dtype.str), name)
        order = _memory_order(array)
        if of != name and array.nbytes == arrays[of].nbytes and array.transpose(order).flags.c_contiguous:
            found[name] = View(of, order)
    return found


def _memory_order(array: NDArray[Any]) -> tuple[int, ...]:
    """The axes from the one with the longest steps to that with the shortest; those of size 1 last."""
    return tuple(sorted(range(array.ndim), key=lambda axis: (array.shape[axis] == 1, -array.strides[axis])))


def name_weights(module: ModuleOp, file: str, digest: str, views: Mapping[str, View]) -> None:
    """Let `module` say that its weights are in `file`, a path from the folder of the text."""
    said: dict[str, Attribute] = {"file": StringAttr(file), "digest": StringAttr(digest)}
    if views:
        said["views"] = DictionaryAttr({name: view.as_attribute() for name, view in views.items()})
    module.attributes[WEIGHTS_ATTRIBUTE] = DictionaryAttr(said)


def load_weights(module: ModuleOp, ctx: CompilerContext, folder: Path) -> Path | None:
    """Take the weights that `module` names from the file beside its text, in `folder`, into `ctx.resources`, mapped;
    answers that file, None where the module names none. The attribute goes.

    Raises FuselineError: E0302 for an attribute that names no file, E0308 for a file that is missing, cut off, of other
    tensors than the IR has, or outside of `folder`.
    """
    said = module.attributes.pop(WEIGHTS_ATTRIBUTE, None)
    if said is None:
        return None
    path = folder / file_name(said.data.get("file") if isinstance(said, DictionaryAttr) else said)
    file = TensorFile(path)
    expected = _text(said, "digest")
    written = file.metadata.get(DIGEST)
    if expected and written != expected:
        message = f"it holds the weights of another program: digest {written or 'none'}, the IR wants {expected}"
        raise wrong(str(path), message)
    views = _views_in(said)
    for attribute in resource_constants(module):
        name = attribute.resource_handle.data
        if name not in ctx.resources:
            ctx.resources[name] = matching(file, attribute, views.get(name, View(name, ())))
    return path


def _views_in(said: Any) -> dict[str, View]:
    try:
        entries = said.data["views"].data if "views" in said.data else {}
        return {
            name: View(entry.data["of"].data, tuple(axis.value.data for axis in entry.data["order"]))
            for name, entry in entries.items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        hint = "leave the attribute out, or emit the text again"
        raise FuselineError("E0302", "views must say a tensor and axes", node=WEIGHTS_ATTRIBUTE, hint=hint) from error


def _text(said: Any, key: str) -> str:
    text = said.data.get(key) if isinstance(said, DictionaryAttr) else None
    return text.data if isinstance(text, StringAttr) else ""


def file_name(said: Any) -> str:
    """The path in an attribute, from the folder of the text. Raises FuselineError: E0302 for none, E0308 for one that
    leads out."""
    name = said.data if isinstance(said, StringAttr) else ""
    if not name:
        hint = "leave the attribute out, or emit the text again"
        raise FuselineError("E0302", "what lies beside the IR must name a file", node=WEIGHTS_ATTRIBUTE, hint=hint)
    folders = PurePosixPath(name).parts
    if "\0" in name or "\\" in name or PurePosixPath(name).is_absolute() or ".." in folders:
        raise wrong(name, "files must lie in the folder of the IR, or below it", "put the file beside the IR")
    return name


def matching(file: TensorFile, attribute: DenseResourceAttr, view: View) -> NDArray[Any]:
    """The tensor of an attribute, which `file` has as `view`, as its type says. Raises FuselineError: E0308 where it
    has none, or one of other sizes or another type."""
    name, type_ = attribute.resource_handle.data, attribute.type
    if view.of not in file.entries:
        raise wrong(name, f"{file.path.name} has no tensor called {view.of}, the IR wants {type_}")
    array = file.array(view.of)
    assert isinstance(type_, TensorType)
    dtype, shape = numpy_dtype(type_.get_element_type()), type_.get_shape()
    lying = [shape[axis] for axis in view.order if axis < len(shape)]
    if sorted(view.order) == list(range(len(shape))) and prod(lying) == array.size:
        array = array.reshape(lying).transpose(np.argsort(view.order))
    if array.shape != tuple(shape) or not _holds(array.dtype, dtype):
        wanted = prod(shape) * dtype.itemsize
        there = "x".join([*map(str, array.shape), dtype_name(array)])
        raise wrong(name, f"{file.path.name} has {there} ({array.nbytes} bytes), the IR wants {type_} ({wanted} bytes)")
    return array


def _holds(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether elements are of the type that is wanted; the IR does not tell signed integers from others."""
    both = {found.kind, wanted.kind} <= {"i", "u"} and found.itemsize == wanted.itemsize
    return both or found == wanted
