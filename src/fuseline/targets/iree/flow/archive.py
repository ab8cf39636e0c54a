"""The archive of parameters beside the text: a safetensors file, which `iree-run-module --parameters=` reads."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from fuseline.ir.stage_file import WRITER
from fuseline.ir.tensor_file import write_tensors
from fuseline.version import VERSION

SUFFIX = ".safetensors"

_ENTRY_BYTES = 512
"""More than the header says of one array beside its name."""


def write_archive(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` as a safetensors file; those of wide elements first, so that each lies aligned."""
    write_tensors(file, arrays, {WRITER: VERSION})


def archive_in_memory(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int8]:
    """The file as bytes that begin on a page; none where there are no arrays."""
    if not arrays:
        return np.empty(0, np.int8)
    header = sum(6 * len(name) + _ENTRY_BYTES for name in arrays) + _ENTRY_BYTES
    memory = mmap.mmap(-1, header + sum(array.nbytes for array in arrays.values()))
    write_archive(cast(BinaryIO, memory), arrays)
    return np.frombuffer(memory, np.int8)[: memory.tell()]
