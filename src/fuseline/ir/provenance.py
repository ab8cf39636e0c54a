"""Provenance: the source nodes an op came from, kept in the op's location down to the dispatch.

It lives in the location and not in an attribute, because an attribute would stop CSE from merging equal ops. All rewriting that
replaces ops goes through `replace` (or calls `carry`), which unions it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, FileLineColLoc, FusedLoc, LocationAttr, NameLoc, NoneAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter


def location_of(nodes: Iterable[str]) -> LocationAttr:
    """The location that names `nodes`, sorted and without repeats; unknown for none."""
    names = [NameLoc(StringAttr(node), NoneAttr()) for node in sorted(set(nodes))]
    if not names:
        return UNKNOWN_LOC
    return names[0] if len(names) == 1 else FusedLoc(ArrayAttr[Attribute](names), NoneAttr())


def nodes_in(location: Attribute) -> tuple[str, ...]:
    """The source nodes (or `file:line` places) that `location` names, sorted."""
    if isinstance(location, NameLoc):
        return (location.desc.data,)
    if isinstance(location, FileLineColLoc):
        return (f"{location.filename.data}:{location.line.data}",)
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
        return tuple(sorted({node for part in location.locations for node in nodes_in(part)}))
    return ()


def provenance(op: Operation) -> tuple[str, ...]:
    """The source nodes of `op`, sorted."""
    return nodes_in(op.location)


def carry(sources: Iterable[Operation], targets: Iterable[Operation]) -> None:
    """Add the provenance of all `sources` to each of `targets` (and to none nested inside them)."""
    nodes = {node for source in sources for node in provenance(source)}
    for target in targets:
        union = nodes | set(provenance(target))
        target.location = location_of(union)


def replace(old: Operation, new: Sequence[Operation], results: Sequence[SSAValue | None] | None = None, *, also: Iterable[Operation] = ()) -> None:
    """Insert `new` before `old`, give them old's provenance (and that of `also`), and put `results` (default: those of the
    last new op) in place of old's results; `old` is erased."""
    carry((old, *also), new)
    Rewriter.replace_op(old, list(new), list(results) if results is not None else None)
