"""Weights of a module in a file of tensors beside its text, under the names that the IR has for them:

    builtin.module attributes {fuseline.weights = {file = "x.safetensors", digest = "2f.."}} {
      %0 = arith.constant dense_resource<fc1.weight> : tensor<512x784xf32>

The file lies in the folder of the text or below it, so that both can be moved together; a link in its place is
followed. It is mapped: nothing of a tensor is read before it is used.
"""

from __future__ import annotations

from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseResourceAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType

from fuseline.errors import FuselineError
from fuseline.ir.build import numpy_dtype
from fuseline.ir.context import CompilerContext
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


def name_weights(module: ModuleOp, file: str, digest: str) -> None:
    """Let `module` say that its weights are in `file`, a path from the folder of the text."""
    module.attributes[WEIGHTS_ATTRIBUTE] = DictionaryAttr({"file": StringAttr(file), "digest": StringAttr(digest)})


def load_weights(module: ModuleOp, ctx: CompilerContext, folder: Path) -> Path | None:
    """Take the weights that `module` names from the file beside its text, in `folder`, into `ctx.resources`, mapped;
    answers that file, None where the module names none. The attribute goes.

    Raises FuselineError: E0302 for an attribute that names no file, E0308 for a file that is missing, cut off, of other
    tensors than the IR has, or outside of `folder`.
    """
    said = module.attributes.pop(WEIGHTS_ATTRIBUTE, None)
    if said is None:
        return None
    path = folder / _name_in(said)
    file = TensorFile(path)
    expected = _text(said, "digest")
    written = file.metadata.get(DIGEST)
    if expected and written != expected:
        message = f"it holds the weights of another program: digest {written or 'none'}, the IR wants {expected}"
        raise wrong(str(path), message)
    for attribute in resource_constants(module):
        name = attribute.resource_handle.data
        if name not in ctx.resources:
            ctx.resources[name] = _matching(file, attribute)
    return path


def _text(said: Any, key: str) -> str:
    text = said.data.get(key) if isinstance(said, DictionaryAttr) else None
    return text.data if isinstance(text, StringAttr) else ""


def _name_in(said: Any) -> str:
    name = _text(said, "file")
    if not name:
        hint = "leave the attribute out, or emit the text again"
        raise FuselineError("E0302", f"{WEIGHTS_ATTRIBUTE} must name a file", node=WEIGHTS_ATTRIBUTE, hint=hint)
    parts = PurePosixPath(name).parts
    if "\0" in name or "\\" in name or PurePosixPath(name).is_absolute() or ".." in parts:
        raise wrong(name, "the weights must lie in the folder of the IR, or below it", "put the file beside the IR")
    return name


def _matching(file: TensorFile, attribute: DenseResourceAttr) -> NDArray[Any]:
    """The tensor of an attribute, as its type says."""
    name, type_ = attribute.resource_handle.data, attribute.type
    if name not in file.entries:
        raise wrong(name, f"{file.path.name} has no tensor of this name, the IR wants {type_}")
    array = file.array(name)
    assert isinstance(type_, TensorType)
    dtype, shape = numpy_dtype(type_.get_element_type()), type_.get_shape()
    if array.shape != tuple(shape) or not _holds(array.dtype, dtype):
        wanted = prod(shape) * dtype.itemsize
        there = "x".join([*map(str, array.shape), dtype_name(array)])
        raise wrong(name, f"{file.path.name} has {there} ({array.nbytes} bytes), the IR wants {type_} ({wanted} bytes)")
    return array


def _holds(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether elements are of the type that is wanted; the IR does not tell signed integers from others."""
    both = {found.kind, wanted.kind} <= {"i", "u"} and found.itemsize == wanted.itemsize
    return both or found == wanted
