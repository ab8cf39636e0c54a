"""The C source and header of a program, from templates beside this file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fuseline.buffers import TensorSpec
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.cpu import cpuinfo_names
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.sizes import Size, symbol_of
from fuseline.size_requirement import Relation
from fuseline.targets.cpu.c_export.launches import launches
from fuseline.targets.cpu.c_export.sizes import SizeTable

_LARGEST_EXTENT = 2**31 - 1
"""So that no product of four extents leaves 128 bits."""


_RELATIONS: Mapping[Relation, str] = {"equal": "==", "at_least": ">=", "differ": "!="}


def sources(name: str, artifact: Artifact, file: bytes, constants_at: Sequence[int]) -> dict[str, str]:
    """Text by file name: source, header and example of the program that `file` holds, its constants at these offsets.
    `name` is a C identifier."""
    values = {**_of_program(artifact), **_of_file(artifact, file, constants_at), "NAME": name}
    templates = {"model.c.in": f"{name}.c", "model.h.in": f"{name}.h", "example.c.in": "example.c"}
    return {target: _filled(template, values) for template, target in templates.items()}


def _filled(template: str, values: Mapping[str, str]) -> str:
    text = (Path(__file__).parent / template).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], text)


def _of_program(artifact: Artifact) -> dict[str, str]:
    program = artifact.program
    size = SizeTable({name: place for place, name in enumerate(program.symbols)})
    lines = list(launches(program.steps, size))
    inputs, outputs = (", ".join(_shape(spec, size) for spec in side) for side in (program.inputs, program.outputs))
    holds = [f"{size(one.left)} {_RELATIONS[one.relation]} {size(one.right)}" for one in program.requirements]
    arena = size(program.arena_bytes)
    bounds = list(program.symbols.values())
    return {
        "LAUNCHES": _lines(lines),
        "INPUT_SHAPES": inputs or "{0}",
        "OUTPUT_SHAPES": outputs or "{0}",
        "REQUIREMENTS": " && ".join(holds) or "1",
        "ARENA_BYTES": arena,
        "SCRATCH_BYTES": str(-(-max(program.scratch_bytes, 1) // 64) * 64),
        "FILL": _lines(size.statements()),
        "WORDS": str(size.length + 1),
        "LOW": _numbers(low for low, _ in bounds),
        "HIGH": _numbers(_LARGEST_EXTENT if high is None else min(high, _LARGEST_EXTENT) for _, high in bounds),
        "SYMBOL_COUNT": str(len(bounds)),
        "SYMBOLS": "\n".join(_fields(program.symbols)) or "  int64_t none; /* all sizes are fixed */",
        "ALIGNMENT": str(program.input_alignment),
        "INPUTS": str(len(program.inputs)),
        "OUTPUTS": str(len(program.outputs)),
        "RANK": str(max([1, *(len(spec.shape) for spec in (*program.inputs, *program.outputs))])),
        "TENSORS": "\n".join([*_described("input", program.inputs), *_described("output", program.outputs)]),
    }


def _of_file(artifact: Artifact, file: bytes, constants_at: Sequence[int]) -> dict[str, str]:
    words = ["|".join(sorted(cpuinfo_names(feature))) for feature in artifact.cpu_features]
    return {
        "CODE_BYTES": str(len(artifact.code)),
        "CONSTANTS": str(len(constants_at)),
        "CONSTANT_AT": _numbers(constants_at),
        "FIXUPS": ", ".join([*(f"{{{at}, {target}}}" for at, target in artifact.fixups), "{-1, 0}"]),
        "FEATURES": ", ".join([*(json.dumps(word) for word in words), "0"]),
        "FILE_START": ", ".join(map(str, file[:64])),
        "FILE_BYTES": f"INT64_C({len(file)})",
    }


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"  {text}" for text in texts)


def _numbers(values: Iterable[int]) -> str:
    return ", ".join([*(f"INT64_C({value})" for value in values), "0"])


def _shape(spec: TensorSpec, size: SizeTable) -> str:
    dims = ", ".join(size(extent) for extent in spec.shape) or "0"
    return f"{{{len(spec.shape)}, {dtype_named(spec.dtype).itemsize}, {{{dims}}}}}"


def identifier(text: str) -> str:
    """A C identifier like `text`.

    >>> identifier("resnet-50.v1"), identifier("1x")
    ('resnet_50_v1', 'm_1x')
    """
    word = re.sub(r"\W", "_", text, flags=re.ASCII)
    return word if re.match(r"[A-Za-z]", word) else f"m_{word}"


def _fields(symbols: Mapping[str, tuple[int, int | None]]) -> Iterable[str]:
    taken: set[str] = set()
    for name, (low, high) in symbols.items():
        word = f"size_{identifier(name)}"
        while word in taken:
            word += "_"
        taken.add(word)
        yield f"  int64_t {word}; /* {low} to {_LARGEST_EXTENT if high is None else high} */"


def _described(what: str, specs: Iterable[TensorSpec]) -> Iterable[str]:
    for number, spec in enumerate(specs):
        shape = ", ".join(_extent(extent) for extent in spec.shape)
        yield f"   {what} {number}: {identifier(spec.name)}, {spec.dtype}[{shape}]"


def _extent(size: Size) -> str:
    found = str(size) if isinstance(size, int) else symbol_of(size)
    return "?" if found is None else found if isinstance(size, int) else identifier(found)
