"""What a fusion rule is, and how rules are found.

A rule judges legality only. It reads the graph and never changes it; the driver weighs profit, applies the answers and
records every one. Rules live one per file in `rules/` (or in a user's file: `--rules my_rules.py`), each with an
`EXPORT`.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from xdsl.dialects.func import CallOp, FuncOp

from fuseline.errors import FuselineError
from fuseline.evaluation.program import lookup
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.decision import Answer, WhyNot
from fuseline.passes.fusion.evaluated_rows import with_rows_evaluated
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import Alignment, align, cut_behind, inline_into, merged
from fuseline.passes.fusion.node import Node, Read

RESERVED_NAMES = frozenset(
    {
        "structure",
        "none",
        "plan",
        "chain-cuts",
        "concat-slices",
        "shared-operand",
        "same-space",
        "small-ops",
        "elide-concats",
        "elide-fills",
        "streamed-softmax",
    }
)
"""What decisions say where no rule of a pair spoke: the driver, a plan, a join of several groups."""


class Shape(Enum):
    """How a merge joins two groups: over the loops they share, with rows between them in scratch or evaluated by each
    reader; by reading the producer in place; or by cutting what the producer stores."""

    SHARED = "shared"
    EVALUATED = "evaluated"
    INLINE_PRODUCER = "inline-producer"
    CUT = "cut"


@dataclass(eq=False)
class Merge:
    """A candidate: two groups, the reads between them, and what merging would give (computed when asked for)."""

    producer: Group
    consumer: Group
    target: TargetDescription
    joint: ClassVar[bool] = False
    """Whether the two would be arms of one dispatch, or parts of a softmax that streams: no rule forms that, but one
    may forbid it."""

    @cached
    def reads(self) -> tuple[Read, ...]:
        """The edges between the two groups."""
        return tuple(self.consumer.reads_from(self.producer))

    @cached
    def alignment(self) -> Alignment:
        """The grid loops that correspond along all edges."""
        return align(self.producer, self.consumer)

    @cached
    def shared(self) -> Group:
        """The merged group over the loops that correspond."""
        return merged(self.producer, self.consumer, self.alignment)

    @cached
    def evaluated(self) -> Group | None:
        """The same with rows that are evaluated by each reader; None where there are none."""
        return with_rows_evaluated(self.shared)

    @cached
    def inlined(self) -> Group:
        """The consumer with the producer read in place."""
        return inline_into(self.producer, self.consumer)

    @cached
    def scratch(self) -> int | None:
        """Bytes of scratch of `shared`; None where a size is unbounded."""
        return self.shared.scratch_bytes

    def formed(self, shape: Shape) -> Group:
        """The merged group, joined as `shape` says."""
        if shape is Shape.SHARED:
            return self.shared
        if shape is Shape.EVALUATED:
            return self.shared if self.evaluated is None else self.evaluated
        return self.inlined if shape is Shape.INLINE_PRODUCER else cut_behind(self.producer, self.consumer)

    @property
    def members(self) -> list[Node]:
        """The ops that would be in one dispatch: those of the producer, then those of the consumer."""
        return [*self.producer.members, *self.consumer.members]

    @property
    def regrouped(self) -> bool:
        """Whether a reshape that regroups dimensions lies on an edge."""
        return any(read.regrouped for read in self.reads)

    @property
    def leaks(self) -> bool:
        """Whether anyone but the consumer reads the producer."""
        mine, theirs = self.producer.member_set, self.consumer.member_set
        return any(
            node.escapes or any([read.consumer not in mine and read.consumer not in theirs for read in node.readers])
            for node in self.producer.body.leaving
        )


class FusionRule(ABC):
    """One kind of legal merge.

    `after` names rules that must have had their chance first; `shape` says which merged group the rule is about.
    `late`: its merges come after those by which roots evaluate what they read. `last`: it is asked when softmaxes have
    streamed, about what other rules refuse for want of a bound.
    `origin` is the file of a rule from outside.
    """

    name: ClassVar[str]
    after: ClassVar[tuple[str, ...]] = ()
    shape: ClassVar[Shape] = Shape.SHARED
    late: ClassVar[bool] = False
    last: ClassVar[bool] = False
    origin: ClassVar[str] = ""

    @abstractmethod
    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """Whether the merge is legal by this rule: `Legal`, `WhyNot`, or `NotApplicable` for ops the rule is not about.

        `Forbid`, of a rule from outside, wins over what all others say. Such a rule is also asked about two groups that
        would be joined otherwise (`merge.joint`), where there may be no reads and nothing but `Forbid` counts.
        """


def count_roots(group: Group) -> int:
    """How many roots a group has."""
    return sum(node.heavy for node in group.members)


def roots_refusal(group: Group, target: TargetDescription, at: str) -> WhyNot | None:
    """The refusal of a group with more roots than the target runs one after the other, seen at the node `at`."""
    roots, limit = count_roots(group), target.roots_limit
    if roots <= limit and limit != 1:
        return None
    detail = f"{roots} roots, the target runs {limit} in a dispatch"
    return WhyNot("roots-limit", detail, at, {"roots": float(roots)})


def scratch_refusal(merge: Merge) -> WhyNot | None:
    """The refusal of a merge whose scratch is too much for the target, None where it fits."""
    return scratch_limit_refusal(merge.scratch, merge.target.scratch_bytes_limit, merge.consumer.root.name)


def scratch_limit_refusal(scratch: int | None, limit: int, at: str) -> WhyNot | None:
    """The refusal of a group that needs `scratch` bytes where the target allows `limit`, seen at the node `at`."""
    if scratch is None:
        return WhyNot("unbounded-size", "the scratch depends on a size without an upper bound", at)
    if scratch > limit:
        numbers = {"scratch_bytes": scratch, "limit_bytes": limit}
        return WhyNot("scratch", f"{scratch:,} bytes of scratch, the target allows {limit:,}", at, numbers)
    return None


def unmergeable(group: Group) -> WhyNot | None:
    """Why nothing can be merged with a group, None where rules may speak about it."""
    return None if group.fusable else unfusable(group.root)


def unfusable(node: Node) -> WhyNot:
    """Why an op that no dispatch takes stays outside: it is a loop of the program, or it runs on the host."""
    if isinstance(node.op, CallOp):
        callee = lookup(node.op, node.op.callee.root_reference.data)
        if isinstance(callee, FuncOp) and not callee.is_declaration:
            return WhyNot("loop", f"@{callee.sym_name.data} repeats steps of its own", node.name)
    if isinstance(node.op, DispatchRegionOp):
        return WhyNot("region", "the region holds ops that no fusion rule covers", node.name)
    return WhyNot("host-op", f"{node.op.name} runs on the host", node.name)


def builtin_rules() -> list[FusionRule]:
    """The rules in `rules/`, in the order that their `after` asks for, by name among equals. Raises FuselineError:
    E0901 for a file without a rule of its name."""
    from fuseline.passes.fusion import rules

    found = [
        _export(importlib.import_module(f"{rules.__name__}.{info.name}"), info.name)
        for info in pkgutil.iter_modules(rules.__path__)
    ]
    return order_rules(found)


def is_builtin(rule: FusionRule) -> bool:
    """Whether a rule is one of those in `rules/`."""
    return type(rule).__module__.startswith(f"{__package__}.rules.")


def _export(module: Any, file_name: str) -> FusionRule:
    export = getattr(module, "EXPORT", None)
    if not (isinstance(export, type) and issubclass(export, FusionRule)):
        raise FuselineError("E0901", f"rule file {file_name} has no EXPORT that is a FusionRule")
    if export.name != file_name.replace("_", "-"):
        raise FuselineError("E0901", f"rule {export.name} lies in {file_name}.py")
    return export()


def order_rules(rules: Iterable[FusionRule]) -> list[FusionRule]:
    """Rules so that each comes after those it names; raises E0704 for a cycle, a repeated or an unknown name."""
    waiting: dict[str, FusionRule] = {}
    for rule in rules:
        if rule.name in waiting or rule.name in RESERVED_NAMES:
            raise _second_of_its_name(rule, waiting.get(rule.name))
        waiting[rule.name] = rule
    for rule in waiting.values():
        unknown = set(rule.after) - waiting.keys()
        if unknown:
            raise FuselineError(
                "E0704", f"rule {rule.name} comes after {sorted(unknown)[0]}, which is no rule", node=rule.name
            )
    done: dict[str, FusionRule] = {}
    while waiting:
        ready = sorted(name for name, rule in waiting.items() if set(rule.after) <= done.keys())
        if not ready:
            raise _cycle(waiting)
        done |= {name: waiting.pop(name) for name in ready}
    return list(done.values())


def _second_of_its_name(rule: FusionRule, first: FusionRule | None) -> FuselineError:
    """What to say of a rule whose name is taken, by `first` or by what decisions call something else."""
    where = [_file_of(one) for one in (first, rule) if one is not None]
    said = (
        f"two rules are called {rule.name}: in {' and in '.join(where)}"
        if first is not None
        else (f"{rule.name}, in {where[0]}, has a name that decisions give to something else")
    )
    return FuselineError("E0704", said, node=rule.name, hint="`fuseline compile --list-rules` lists the names")


def _file_of(rule: FusionRule) -> str:
    return "the tree" if is_builtin(rule) else rule.origin or type(rule).__module__


def _cycle(waiting: Mapping[str, FusionRule]) -> FuselineError:
    """What to say of rules that wait for each other: those of one circle, each with the one that it waits for."""
    path = [min(waiting)]
    while path.count(path[-1]) == 1:
        path.append(min(name for name in waiting[path[-1]].after if name in waiting))
    circle = path[path.index(path[-1]) : -1]
    said = ", ".join(f"{name} after {later}" for name, later in zip(circle, [*circle[1:], circle[0]], strict=True))
    hint = f"leave {circle[0]} out of the `after` of one of them"
    return FuselineError("E0704", f"rules wait for each other: {said}", node=min(circle), hint=hint)
