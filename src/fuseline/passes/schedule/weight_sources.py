"""What packed constants are made from, for artifacts that hold the weights as the model does: equal bytes once, whether
they are read as they are or in a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from fuseline.passes.schedule.equal_bytes import Sample, same_bytes, sample
from fuseline.weight_layouts import Bytes, LayoutKey, WeightSource, weight_source


def weight_sources(
    made: Mapping[int, tuple[NDArray[Any], LayoutKey]], blocks: Sequence[Bytes]
) -> dict[int, WeightSource]:
    """The sources of the blocks number `made`, by number. One whose bytes a plain block has is that block; blocks
    without one (parts of weights) are stored as they are."""
    known: dict[Sample, list[Bytes]] = {}
    for number, block in enumerate(blocks):
        if number not in made:
            known.setdefault(sample(block), []).append(block)
    found: dict[int, WeightSource] = {}
    for number, (array, key) in made.items():
        source = weight_source(array, key)
        if source is not None:
            found[number] = replace(source, data=_once(source.data, known.setdefault(sample(source.data), [])))
    return found


def _once(data: Bytes, alike: list[Bytes]) -> Bytes:
    """The first of `alike` that has the bytes of `data`, which joins them where none does."""
    for other in alike:
        if same_bytes(other, data):
            return other
    alike.append(data)
    return data
