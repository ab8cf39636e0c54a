"""What a node of a fusion graph is by itself, as a digest: kind, loops, maps and body, of which names, weights and the
order of the program are no part."""

from __future__ import annotations

from functools import lru_cache

from fuseline.analysis.code_text import Texts, code_text, digest
from fuseline.analysis.moves import Coordinate
from fuseline.ir.dim import Dim, Symbol, substitute, symbol, symbols, to_text
from fuseline.passes.fusion.node import Node, Read


def local_digest(node: Node, texts: Texts) -> str:
    """What a node is by itself: kind, loops, maps and body. Constants enter by type, symbols by their bounds and where
    they occur in the op."""
    names = _SymbolNames()
    fields = [
        node.kind.value,
        node.op.name,
        ",".join(names.text(dim) for dim in node.loops),
        ",".join(node.iterators),
        str(node.escapes),
    ]
    fields += [",".join(map(str, axes)) for axes in node.written]
    fields += [_read_text(read) + texts.of(read.value.type) for read in node.reads]
    fields += code_text(node.op, texts)
    return digest(*fields)


def _read_text(read: Read) -> str:
    return ",".join([_coordinate(coordinate) for coordinate in read.coordinates]) + ("r" if read.regrouped else "")


@lru_cache(maxsize=1024)
def _coordinate(coordinate: Coordinate) -> str:
    return str(coordinate)


class _SymbolNames:
    """Numbers symbols in the order in which one node mentions them."""

    def __init__(self) -> None:
        self.seen: dict[Symbol, Dim] = {}

    def text(self, dim: Dim) -> str:
        if isinstance(dim, int):
            return str(dim)
        for found in sorted(symbols(dim), key=lambda known: (known.lo, known.hi or 0, known.name)):
            self.seen.setdefault(found, symbol(f"s{len(self.seen)}_{found.lo}_{found.hi}", found.lo, found.hi))
        renamed = substitute(dim, {known.name: new for known, new in self.seen.items()})
        text = to_text(renamed)
        return f"{text} {renamed!r}" if ".." in text else text  # a text that leaves out parts says too little
