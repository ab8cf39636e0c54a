"""What a node of a fusion graph is by itself, as a digest: kind, loops, maps and body, of which names, weights and the
order of the program are no part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation

from fuseline.analysis.moves import Coordinate
from fuseline.ir.dim import Dim, Symbol, substitute, symbol, symbols, to_text
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import operands_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.passes.fusion.node import Node, Read

_CALL_NUMBER = re.compile(r"\.\d+$")


def digest(*fields: str) -> str:
    """A short hash of texts."""
    return hashlib.blake2b("\x1f".join(fields).encode(), digest_size=6).hexdigest()


class Texts:
    """Attributes as text. Ops share most of theirs, and looking one up by identity is far cheaper than hashing it; the
    ops keep them alive."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def of(self, attribute: Attribute) -> str:
        """`attribute` as MLIR prints it; a function on the host by its operator alone: the number behind it is the
        order of the program."""
        found = self._known.get(id(attribute))
        if found is None:
            called = type(attribute) is SymbolRefAttr
            found = self._known[id(attribute)] = (
                _CALL_NUMBER.sub("", attribute.string_value()) if called else attributes.text(attribute)
            )
        return found


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
    fields += _code(node.op, texts)
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


def _code(op: Operation, texts: Texts) -> Iterable[str]:
    """The op and its body: names, types, attributes, and which value each op reads; not the values of constants."""
    numbers: dict[int, int] = {}  # by identity
    for inner in (op, *ops_inside(op)):
        for region in inner.regions:
            for block in region.blocks:
                _number(block, numbers)
        reads = ",".join([str(numbers.get(id(value), "-")) for value in operands_of(inner)]) if inner is not op else ""
        types: list[str] = []
        for result in inner.results:
            numbers[id(result)] = len(numbers)
            types.append(texts.of(result.type))
        attributes = "" if type(inner) is ConstantOp else _attributes(inner.properties, texts)
        yield f"{inner.name}({reads}){' '.join(types)}{attributes}"


def _number(block: Block, numbers: dict[int, int]) -> None:
    for argument in block.args:
        numbers[id(argument)] = len(numbers)


def _attributes(properties: Mapping[str, Attribute], texts: Texts) -> str:
    return (
        "".join([f"{name}={texts.of(properties[name])};" for name in _telling(tuple(properties))]) if properties else ""
    )


@lru_cache(maxsize=256)
def _telling(names: tuple[str, ...]) -> tuple[str, ...]:
    """The properties that say what an op is, by name: not how its operands are grouped."""
    return tuple(sorted(name for name in names if "segment" not in name.lower()))
