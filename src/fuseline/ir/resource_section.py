"""The section behind a module's text, `{-# dialect_resources: .. external_resources: .. #-}`: the bytes of weights, and
texts that are no part of the IR."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseResourceAttr, TensorType
from xdsl.ir import Operation

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.element_types import numpy_dtype

_SECTION = re.compile(r"^\{-#.*?^#-\}", re.MULTILINE | re.DOTALL)
_BLOB = re.compile(r'"?([\w.$-]+)"?\s*:\s*"0x([0-9A-Fa-f]*)"')
_OURS = re.compile(r"external_resources:\s*\{\s*fuseline:\s*\{")
_TEXT = re.compile(r'\s*(\w+):\s*"((?:[^"\\]|\\.)*)",?')
_ESCAPED = re.compile(rb'\\([\\"nt]|[0-9A-Fa-f]{2})')
_LETTERS = {b"n": b"\n", b"t": b"\t", b"\\": b"\\", b'"': b'"'}


def cut_section(text: str) -> tuple[str, str]:
    """The text of a module without its section, and that (empty where there is none)."""
    found = _SECTION.search(text)
    return (text[: found.start()], found.group()) if found else (text, "")


def resource_constants(module: Operation) -> Iterator[DenseResourceAttr]:
    """Every `dense_resource` that an op of `module` is the value of; one that several have, several times."""
    for op in module.walk():
        for value in (*op.properties.values(), *op.attributes.values()):
            if isinstance(value, DenseResourceAttr):
                yield value


def store_blobs(module: Operation, section: str, ctx: CompilerContext) -> None:
    """Put the weights that a section holds into `ctx.resources`, those that are there already aside. Raises
    FuselineError (E0301) for one of another size than its type says."""
    blobs = {match.group(1): match.group(2) for match in _BLOB.finditer(section)}
    for attribute in resource_constants(module) if blobs else ():
        name = attribute.resource_handle.data
        if name in blobs and name not in ctx.resources and isinstance(attribute.type, TensorType):
            ctx.resources[name] = _decoded(name, blobs[name], attribute.type)


def _decoded(name: str, digits: str, type_: TensorType) -> np.ndarray:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    """The array of a blob: four bytes of alignment, then the elements, little-endian."""
    try:
        data = bytes.fromhex(digits)[4:]
    except ValueError as error:
        raise FuselineError(
            "E0301", f"resource {name} is not written in pairs of hexadecimal digits", node=name
        ) from error
    dtype, shape = numpy_dtype(type_.get_element_type()), type_.get_shape()
    if len(data) != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
        raise FuselineError(
            "E0301", f"resource {name} has {len(data)} bytes, its type {type_} wants another number", node=name
        )
    return np.frombuffer(data, dtype).reshape(shape)


def texts_of(section: str) -> dict[str, str]:
    """The texts that `section_text` wrote, by name."""
    found = _OURS.search(section)
    texts: dict[str, str] = {}
    match = _TEXT.match(section, found.end()) if found else None
    while match is not None:
        texts[match.group(1)] = _ESCAPED.sub(_letter, match.group(2).encode()).decode("utf-8", "replace")
        match = _TEXT.match(section, match.end())
    return texts


def _letter(escaped: re.Match[bytes]) -> bytes:
    """What stands behind a backslash; other tools write any letter as the number of each of its bytes."""
    return _LETTERS.get(escaped.group(1)) or bytes.fromhex(escaped.group(1).decode())


def section_text(arrays: Mapping[str, NDArray[np.generic]], texts: Mapping[str, str]) -> str:
    """The section with the bytes of `arrays`, and `texts` of one line each; empty for none of either."""
    tables: list[str] = []
    if arrays:
        tables.append(_table("dialect_resources", "builtin", [_blob(*item) for item in arrays.items()]))
    if texts:
        lines = [f'{name}: "{_escaped(text)}"' for name, text in texts.items()]
        tables.append(_table("external_resources", "fuseline", lines))
    return "\n{-#\n" + ",\n".join(tables) + "\n#-}\n" if tables else ""


def _table(kind: str, owner: str, lines: list[str]) -> str:
    inner = ",\n".join(f"      {line}" for line in lines)
    return f"  {kind}: {{\n    {owner}: {{\n{inner}\n    }}\n  }}"


def _blob(name: str, array: NDArray[np.generic]) -> str:
    return f'{name}: "0x{struct.pack("<I", array.itemsize).hex()}{np.ascontiguousarray(array).tobytes().hex()}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
