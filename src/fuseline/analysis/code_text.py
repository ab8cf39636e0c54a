"""What an op and its body do, as text: names, weights and the order of the program are no part of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation

from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import operands_of
from fuseline.ir.fast.nesting import ops_inside

_CALL_NUMBER = re.compile(r"\.\d+$")


def digest(*fields: str, size: int = 6) -> str:
    """A short hash of texts, of `size` bytes."""
    return hashlib.blake2b("\x1f".join(fields).encode(), digest_size=size).hexdigest()


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


def code_text(op: Operation, texts: Texts) -> Iterable[str]:
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
        said = "" if type(inner) is ConstantOp else _attributes(inner.properties, texts)
        yield f"{inner.name}({reads}){' '.join(types)}{said}"


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
