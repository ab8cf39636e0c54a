"""Which nodes are about images whose sizes only the run knows.

    conv(y, x, ..) reads image[y + ky, x + kx]        sizes of y and x are those of pixels, wherever else they occur

A batch may be of one image, and a decoder's steps have one row; an image of one pixel is rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import WINDOWS
from fuseline.ir.dim import Dim, symbols
from fuseline.passes.fusion.node import Node


def mark_pixels(nodes: Sequence[Node]) -> None:
    """Note at each node whether its loops have unknown sizes of pixels."""
    found = {name for node in nodes if node.kind in WINDOWS for name in _slid_over(node)}
    for node in nodes:
        node.unknown_pixels = bool(found) and not found.isdisjoint(_names(node.loops))


def _slid_over(node: Node) -> Iterable[str]:
    """The names in the sizes of loops along which a window slides: those that share a coordinate with another."""
    if node.structured is None:
        return ()
    shared = (dims_of(at) for map_ in node.structured.input_maps for at in map_.results)
    loops = {loop for dims in shared if len(dims) > 1 for loop in dims}
    return _names(node.loops[loop] for loop in loops)


def _names(sizes: Iterable[Dim]) -> set[str]:
    return {symbol.name for size in sizes if not isinstance(size, int) for symbol in symbols(size)}
