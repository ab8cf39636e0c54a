"""Files of the safetensors format, read as plainly as can be."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np

_WORDS = {"F": "float", "I": "int", "U": "uint"}


def read_tensors(data: bytes) -> dict[str, Any]:
    """The arrays of a file, by their names."""
    start = 8 + int.from_bytes(data[:8], "little")
    found: dict[str, Any] = {}
    for name, said in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = said["data_offsets"]
            found[name] = np.frombuffer(data[start + first : start + last], _dtype(said["dtype"])).reshape(
                said["shape"]
            )
    return found


def _dtype(name: str) -> np.dtype[Any]:
    if name == "BF16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(bool) if name == "BOOL" else np.dtype(f"{_WORDS[name[0]]}{name[1:]}")
