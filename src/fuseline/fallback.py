"""The program for sizes that broadcast although they are taken to be equal.

    x[h] + y[2 * ceil(h / 2)]       the program requires equal sizes; h = 1, where x repeats, is legal as well

A model with such sizes is compiled twice: once with them taken to be equal, which is fast, and once as they are, each
of them the other's size or 1. A run whose sizes break a requirement of the first program turns to the second, which
takes all that are legal. Constants that both hold are held once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim, to_text
from fuseline.report.records import CompileRecord, decode

Bytes = NDArray[np.uint8]
CompileFallback = Callable[[], Any]
"""Compiles the same model with sizes as they are; raises FuselineError."""

_SAMPLE = 4096


def compile_fallback(
    taken_equal: Mapping[tuple[Dim, Dim], str], record: CompileRecord, compile_: CompileFallback
) -> Any | None:
    """The program for `taken_equal` (see `CompilerContext`) as they are, noted in `record`; None where no such sizes
    are, or where it cannot be compiled. Raises FuselineError (E0901) for a failure of our own."""
    if not taken_equal:
        return None
    (left, right), node = next(iter(taken_equal.items()))
    sizes = f"{node}: sizes {to_text(left)} and {to_text(right)} are taken to be equal"
    try:
        program = compile_()
    except FuselineError as error:
        if error.code == "E0901":
            raise
        record.notes.append(f"{sizes}; where one is 1 and repeats, runs are refused, for: {error}")
        return None
    inner = decode(program.records)
    hosts = f" and {len(inner.host_ops)} host operators" if inner.host_ops else ""
    record.notes.append(
        f"{sizes}; where one is 1 and repeats, a second program of {len(inner.dispatches)} dispatches{hosts} runs"
    )
    return program


def share_constants(kept: Sequence[Bytes], others: Sequence[Bytes]) -> tuple[Bytes, ...]:
    """`others`, with those of `kept` in the place of equal ones."""
    alike: dict[tuple[int, bytes, bytes], list[Bytes]] = {}
    for block in kept:
        alike.setdefault(_sample(block), []).append(block)
    return tuple(
        next((block for block in alike.get(_sample(other), ()) if np.array_equal(block, other)), other)
        for other in others
    )


def _sample(block: Bytes) -> tuple[int, bytes, bytes]:
    """What tells most different constants apart before they are compared whole."""
    return len(block), block[:_SAMPLE].tobytes(), block[-_SAMPLE:].tobytes()
