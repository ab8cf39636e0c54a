"""Which loops of a contraction or convolution a target wants to be multiples of something, and how long they become."""

from __future__ import annotations

from collections.abc import Mapping

from fuseline.analysis.contraction_dims import contraction_dims
from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.shapes import Dims
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.target_description import TILE_ROLES


def tile_loops(view: StructuredOp) -> dict[str, int]:
    """The loop of each role; of several loops in one role the last, which is the one that walks memory fastest. Empty
    for any other op."""
    what = kind(view.op)
    if what is Kind.CONTRACTION:
        return _contraction_loops(view)
    return _convolution_loops(view) if what is Kind.CONVOLUTION else {}


def _contraction_loops(view: StructuredOp) -> dict[str, int]:
    dims = contraction_dims(view)
    return (
        {role: loops[-1] for role, loops in zip("MNK", (dims.m, dims.n, dims.k), strict=True) if loops}
        if dims is not None
        else {}
    )


def _convolution_loops(view: StructuredOp) -> dict[str, int]:
    dims = convolution_dims(view)
    if dims is None:
        return {}
    spatial = dims.image_loops
    groups = (spatial[-2:-1], spatial[-1:], dims.output_channel, dims.input_channel)
    return {role: loops[-1] for role, loops in zip(TILE_ROLES, groups, strict=False) if loops}


def tile_extents(view: StructuredOp, extents: Dims, multiples: Mapping[str, int]) -> dict[int, int]:
    """The loops of `view` that have to grow, and how long they become; sizes that are not numbers stay as they are.

    Zeros in the operands add nothing to a sum of products, so summed loops may grow too.
    """
    found: dict[int, int] = {}
    for role, loop in tile_loops(view).items():
        multiple, size = multiples.get(role, 1), extents[loop]
        if not isinstance(size, int) or multiple <= 1 or size % multiple == 0:
            continue
        found[loop] = -(-size // multiple) * multiple
    return found
