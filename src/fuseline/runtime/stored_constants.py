"""What of a program's constants a file holds: blocks as kernels read them, or the weights that they are made from when
the file is read (`laid_out.py`, imported only then: few files need it)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fuseline.runtime.memory import Bytes

if TYPE_CHECKING:
    from fuseline.weight_layouts import WeightSource

Constant: TypeAlias = "tuple[Bytes, WeightSource | None]"
"""A block, and what it is made from; None: the file holds the block."""


def with_sources(constants: Sequence[Bytes], sources: Mapping[int, WeightSource]) -> list[Constant]:
    """The constants of a program; `sources` are by number."""
    return [(block, sources.get(number)) for number, block in enumerate(constants)]


def of_both(first: Sequence[Constant], fallback: Sequence[Constant] = ()) -> tuple[list[Constant], list[int]]:
    """The constants of a program and of its fallback, those that they share once; and the numbers of the fallback's."""
    kept = list(first)
    places = {id(block): number for number, (block, _) in enumerate(kept)}
    numbers: list[int] = []
    for block, source in fallback:
        if id(block) not in places:
            places[id(block)] = len(kept)
            kept.append((block, source))
        numbers.append(places[id(block)])
    return kept, numbers


def stored_blocks(constants: Sequence[Constant]) -> tuple[list[Bytes], list[int]]:
    """The sections of a file that holds `constants`, a weight that is read in several forms once; and the section of
    each constant."""
    kept: dict[int, int] = {}
    sections: list[Bytes] = []
    numbers: list[int] = []
    for block, source in constants:
        data = block if source is None else source.data
        if id(data) not in kept:
            kept[id(data)] = len(sections)
            sections.append(data)
        numbers.append(kept[id(data)])
    return sections, numbers


def laid_out_json(constants: Sequence[Constant], places: Sequence[int]) -> Any:
    """What the header says of constants that are made when the file is read, for sections number `places`; None where
    there are none."""
    if all(source is None for _, source in constants):
        return None
    from fuseline.runtime.laid_out import source_to_json

    return [(place, source_to_json(source)) for place, (_, source) in zip(places, constants, strict=True)]


def made_constants(stored: list[Bytes], laid_out: Any) -> tuple[list[Bytes], Mapping[int, WeightSource], float]:
    """The constants of a file with these sections, what they are made from where it does not hold them, and the seconds
    that making them took. `laid_out` is what the header says; raises as `lay_out` does."""
    if laid_out is None:
        return stored, {}, 0.0
    from fuseline.runtime.laid_out import lay_out

    start = time.perf_counter()
    constants, sources = lay_out(stored, laid_out)
    return constants, sources, time.perf_counter() - start
