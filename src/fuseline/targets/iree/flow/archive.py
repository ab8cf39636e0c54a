"""The archive of parameters beside the text: a safetensors file, which `iree-run-module --parameters=` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from numpy.typing import NDArray

from fuseline.ir.stage_file import WRITER
from fuseline.ir.tensor_file import write_tensors
from fuseline.version import VERSION

SUFFIX = ".safetensors"


def write_archive(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` as a safetensors file; those of wide elements first, so that each lies aligned."""
    write_tensors(file, arrays, {WRITER: VERSION})
