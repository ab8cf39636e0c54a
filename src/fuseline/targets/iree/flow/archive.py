"""The archive of parameters beside the text: a safetensors file, which `iree-run-module --parameters=` reads."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

SUFFIX = ".safetensors"

_NAMES = {"bool": "BOOL", "bfloat16": "BF16"}
_ALIGNMENT = 64


def write_archive(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` as a safetensors file; those of wide elements first, so that each lies aligned."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, Any] = {}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _dtype_name(array), "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, array in ordered:
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _dtype_name(array: NDArray[Any]) -> str:
    name = array.dtype.name
    return _NAMES.get(name) or f"{array.dtype.kind.upper()}{array.itemsize * 8}"
