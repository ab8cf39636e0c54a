"""What a compile made of the model: its records, and which ops each source node began as."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.structured import COMPUTING, FREE, PRODUCTS, Kind, kind
from fuseline.compile_options import CompileOptions
from fuseline.frontends.onnx.model_file import OpenedModel
from fuseline.gc_pause import gc_paused
from fuseline.ir.functions import functions
from fuseline.ir.printed_after import START
from fuseline.ir.provenance import provenance
from fuseline.phase_runner import run_phases
from fuseline.report.records import CompileRecord
from fuseline.source_program import prepare

LAST_PHASE = "dedup"
"""The last phase before code: it names the dispatches."""

_NOT_COUNTED = FREE | {Kind.RESHAPE, Kind.OTHER}


@dataclass(frozen=True)
class Partition:
    """The records of a compile; `op_kinds`: how many ops of each kind a source node began as, by its name; `names`:
    those of the nodes of the model."""

    record: CompileRecord
    op_kinds: Mapping[str, Counter[Kind]]
    names: frozenset[str]

    def homes(self) -> dict[str, list[int]]:
        """The numbers of the dispatches that hold a source node, by its name: those first that have an op of it alone.

        An op that one of several nodes was folded into names all of them. A node that sums or multiplies is where an op
        of that kind is; others, which cost little, may be wherever they are named.
        """
        found: dict[str, dict[int, tuple[bool, bool]]] = defaultdict(dict)
        for number, dispatch in enumerate(self.record.dispatches):
            for member in dispatch.members:
                for name in spelled_from(member.nodes, self.names):
                    fits, alone = found[name].get(number, (False, False))
                    fits = fits or _fits(Kind(member.kind), self.op_kinds.get(name, Counter()))
                    found[name][number] = (fits, alone or len(member.nodes) == 1)
        return {name: _chosen(places) for name, places in found.items()}

    def is_repeatable(self, name: str) -> bool:
        """Whether a node in several dispatches is computed in each of them: it is one op, and no root."""
        op_kinds = self.op_kinds.get(name, Counter())
        return op_kinds.total() <= 1 and not COMPUTING & op_kinds.keys()


def _fits(member: Kind, op_kinds: Mapping[Kind, int]) -> bool:
    heavy = COMPUTING & op_kinds.keys()
    if not heavy or member in op_kinds:
        return True
    return member in PRODUCTS and bool(PRODUCTS & heavy)


def _chosen(places: Mapping[int, tuple[bool, bool]]) -> list[int]:
    fitting = [number for number, (fits, _) in places.items() if fits] or list(places)
    return sorted(fitting, key=lambda number: (not places[number][1], number))


def partition_of(model: OpenedModel, options: CompileOptions) -> Partition:
    """Compile `model` as far as its dispatches. Raises FuselineError as a compile does."""
    from fuseline.targets import create_target

    op_kinds: dict[str, Counter[Kind]] = {}
    names = frozenset(node.name for node in model.split.proto.graph.node)

    def observe(place: str, module: ModuleOp, ctx: Any) -> None:
        del ctx
        if place == START:
            op_kinds.update(_op_kinds(module, names))

    chosen = replace(options, after_pass=observe)
    with gc_paused():
        module, ctx = prepare(model, chosen, create_target(options.target, options.threads, options.numerics))
        run_phases(module, ctx, chosen, until=LAST_PHASE)
    return Partition(ctx.records, op_kinds, names)


def _op_kinds(module: ModuleOp, names: frozenset[str]) -> dict[str, Counter[Kind]]:
    found: dict[str, Counter[Kind]] = defaultdict(Counter)
    for function in functions(module):
        for op in function.walk():
            if kind(op) not in _NOT_COUNTED:
                for name in spelled_from(provenance(op), names):
                    found[name][kind(op)] += 1
    return found


def spelled_from(names: Iterable[str], known: Container[str]) -> set[str]:
    """The nodes behind names in the IR or the records: operators of onnxruntime's are read as several, named after
    them."""
    found = (name if name in known else name.rpartition("/")[0] for name in names)
    return {name for name in found if name in known}
