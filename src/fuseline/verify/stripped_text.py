"""A text of IR without its weights: a copy, and beside it files as the text names them, every tensor of which is seeded
numbers. All of a type overlap, as in `stripped_weights.py`."""

from __future__ import annotations

import json
import re
import struct
from itertools import accumulate
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import StringAttr

from fuseline.errors import FuselineError
from fuseline.ir.tensor_file import DTYPES, METADATA, TensorFile
from fuseline.ir.weights_file import file_name
from fuseline.verify.stripped_weights import seeded_bytes

_WEIGHTS = ("F32", "F64", "F16", "BF16", "I8", "U8")
"""Types of weights; wider integers are indices and sizes, which the program's meaning hangs on, and are kept."""

_BESIDE = re.compile(r'fuseline\.(?:weights = \{file|literal) = "([^"\\]+)"')


def write_stripped_text(source: Path, target: Path) -> None:
    """Write a copy of the text at `source` to `target`, and what lies beside it without weights. What is missing there,
    or broken, stays so; small weights in the text are kept."""
    text = source.read_bytes()
    target.write_bytes(text)
    for name in dict.fromkeys(_BESIDE.findall(text.decode("utf-8", "replace"))):
        try:
            path = source.parent / file_name(StringAttr(name))
            _write_beside(path, target.parent / name)
        except (FuselineError, OSError):
            continue


def _write_beside(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".mlir":
        target.write_bytes(source.read_bytes())
        return
    file = TensorFile(source)
    blocks: dict[str, bytes] = {}  # of a type, or of one tensor of whole numbers
    for name, entry in sorted(file.entries.items(), key=lambda item: item[1].start - item[1].end):
        if entry.dtype in _WEIGHTS:
            blocks.setdefault(entry.dtype, seeded_bytes(entry.end - entry.start, DTYPES[entry.dtype].name).tobytes())
        else:
            blocks[name] = file.array(name).tobytes()
    starts = dict(zip(blocks, accumulate(map(len, blocks.values()), initial=0), strict=False))
    header: dict[str, Any] = {METADATA: file.metadata}
    for name, entry in file.entries.items():
        start = starts[entry.dtype if entry.dtype in _WEIGHTS else name]
        place = [start, start + entry.end - entry.start]
        header[name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": place}
    said = json.dumps(header).encode()
    target.write_bytes(struct.pack("<Q", len(said)) + said + b"".join(blocks.values()))
