"""Which loops of a contraction or convolution a target wants to be multiples of something, and how long they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fuseline.analysis.contraction_dims import contraction_dims
from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.shapes import Dims
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.target_description import TILE_ROLES

ClassMultiples = Mapping[str, Mapping[str, int]]
"""Multiples by role for the classes of convolutions in `TILE_CLASSES`."""


def tile_loops(view: StructuredOp) -> dict[str, int]:
    """The loop of each role; of several loops in one role the last, which is the one that traverses memory fastest.
    Empty for any other op."""
    what = kind(view.op)
    if what is Kind.CONTRACTION:
        return _contraction_loops(view)
    return _convolution_loops(view) if what is Kind.CONVOLUTION else {}


def tile_class(view: StructuredOp, extents: Dims) -> str:
    """The class of a convolution (of `TILE_CLASSES`), empty for other ops. A product over an image of two loops or more
    is a convolution of one window element."""
    what = kind(view.op)
    if what is Kind.CONTRACTION:
        return "pointwise" if _pointwise_loops(view) else ""
    if what is Kind.DEPTHWISE:
        return "depthwise"
    dims = convolution_dims(view) if what is Kind.CONVOLUTION else None
    return "pointwise" if dims is not None and all(extents[loop] == 1 for loop in dims.window_loops) else ""


def class_loops(view: StructuredOp) -> dict[str, int]:
    """The loop of each role of a convolution that has a class."""
    what = kind(view.op)
    return _pointwise_loops(view) if what is Kind.CONTRACTION else _convolution_loops(view)


def _pointwise_loops(view: StructuredOp) -> dict[str, int]:
    """The roles of a convolution in a product; none where neither side has two loops of its own."""
    dims = contraction_dims(view)
    if dims is None or dims.batch:
        return {}
    image, channels = (dims.m, dims.n) if len(dims.m) > 1 else (dims.n, dims.m)
    if len(image) < 2:
        return {}
    groups = (image[-2:-1], image[-1:], channels, dims.k)
    return {role: loops[-1] for role, loops in zip(TILE_ROLES, groups, strict=False) if loops}


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
    groups = (spatial[-2:-1], spatial[-1:], dims.output_channel or dims.depth, dims.input_channel)
    return {role: loops[-1] for role, loops in zip(TILE_ROLES, groups, strict=False) if loops}


def tile_extents(
    view: StructuredOp, extents: Dims, multiples: Mapping[str, int], of_class: ClassMultiples | None = None
) -> dict[int, int]:
    """The loops of `view` that have to grow, and how long they become; sizes that are not numbers stay as they are.

    `multiples` are by role; for a convolution with a class in `of_class`, those of the class count alone. Zeros in the
    operands add nothing to a sum of products, so summed loops may grow too.
    """
    found: dict[int, int] = {}
    for _, loop, multiple in _wanted(view, extents, multiples, of_class):
        size = extents[loop]
        if isinstance(size, int) and size % multiple:
            found[loop] = -(-size // multiple) * multiple
    return found


def unknown_loops(
    view: StructuredOp, extents: Dims, multiples: Mapping[str, int], of_class: ClassMultiples | None = None
) -> dict[str, int]:
    """The multiples, by role, of the loops of `view` that stay as they are because only the run knows their size."""
    wanted = _wanted(view, extents, multiples, of_class)
    return {role: multiple for role, loop, multiple in wanted if not isinstance(extents[loop], int)}


def _wanted(
    view: StructuredOp, extents: Dims, multiples: Mapping[str, int], of_class: ClassMultiples | None
) -> Iterator[tuple[str, int, int]]:
    """Role, loop and multiple of each loop that the target asks something of."""
    own = (of_class or {}).get(tile_class(view, extents) if of_class else "")
    loops, multiples = (_loops_for(view, multiples), multiples) if own is None else (class_loops(view), own)
    for role, loop in loops.items():
        if multiples.get(role, 1) > 1:
            yield role, loop, multiples[role]


def _loops_for(view: StructuredOp, multiples: Mapping[str, int]) -> dict[str, int]:
    """The loop of each role; a product over an image is a convolution to a target that says nothing of products."""
    loops = tile_loops(view)
    says = kind(view.op) is not Kind.CONTRACTION or not multiples.keys().isdisjoint(loops)
    return loops if says else _pointwise_loops(view)
