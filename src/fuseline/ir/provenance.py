"""Provenance: the source nodes an op came from, kept in the op's location down to the dispatch.

It lives in the location and not in an attribute, because an attribute would stop CSE from merging equal ops. All
rewriting that replaces ops goes through `replace` (or calls `carry`), which unions it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

_NONE = NoneAttr()


def location_of(nodes: Iterable[str]) -> LocationAttr:
    """The location that names `nodes`, sorted and without repeats; unknown for none."""
    return _location(tuple(sorted(set(nodes))))


@lru_cache(maxsize=1 << 14)
def _location(nodes: tuple[str, ...]) -> LocationAttr:
    if not nodes:
        return UNKNOWN_LOC
    return (
        _name(nodes[0]) if len(nodes) == 1 else FusedLoc(ArrayAttr[Attribute]([_name(node) for node in nodes]), _NONE)
    )


@lru_cache(maxsize=1 << 14)
def _name(node: str) -> NameLoc:
    return NameLoc(StringAttr(node), _NONE)


def nodes_in(location: Attribute) -> tuple[str, ...]:
    """The source nodes (or `file:line` places) that `location` names, sorted."""
    if isinstance(location, NameLoc):
        return (location.desc.data,)
    if location is UNKNOWN_LOC:
        return ()
    if isinstance(location, FileLineColLoc):
        return (f"{location.filename.data}:{location.line.data}",)
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
        return tuple(sorted({node for inner in location.locations for node in nodes_in(inner)}))
    return ()


def provenance(op: Operation) -> tuple[str, ...]:
    """The source nodes of `op`, sorted."""
    return nodes_in(op.location)


def node_names(op: Operation) -> str | None:
    """The source nodes of `op` as errors and reports name them, `a, b`; None where none is known."""
    return ", ".join(provenance(op)) or None


def carry(sources: Iterable[Operation], targets: Iterable[Operation]) -> None:
    """Add the provenance of all `sources` to each of `targets` (and to none nested inside them)."""
    # Most ops that replace one another come from the same nodes, and equal locations are mostly one object.
    found = {id(source.location): source.location for source in sources}
    found.pop(id(UNKNOWN_LOC), None)
    nodes = {node for location in found.values() for node in nodes_in(location)}
    for target in targets:
        if found and not (len(found) == 1 and id(target.location) in found):
            target.location = location_of(nodes.union(nodes_in(target.location)))


def replace(
    old: Operation,
    new: Sequence[Operation],
    results: Sequence[SSAValue | None] | None = None,
    *,
    also: Iterable[Operation] = (),
) -> None:
    """Insert `new` before `old`, give them old's provenance (and that of `also`), and put `results` (default: those of
    the last new op) in place of old's results; `old` is erased."""
    carry((old, *also), new)
    Rewriter.replace_op(old, list(new), list(results) if results is not None else None)
