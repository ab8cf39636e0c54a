"""The CPU as a target: each dispatch goes to the first kernel family that accepts it, and equal kernels are compiled
once."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.analysis.structured import Kind
from fuseline.cache.folder import disabled
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.calls import call_counts
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.kernel_choice import KernelChoices
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.runtime.artifact import Artifact
from fuseline.targets.compiled_kernel import CompiledKernel, kernel_of_arms
from fuseline.targets.cpu import code_text
from fuseline.targets.cpu.code_budget import (
    OVER_BUDGET,
    TOO_LONG,
    as_it_is,
    is_divisible,
    within_budget,
)
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.asked import Answer, built_as_asked
from fuseline.targets.cpu.families.blocked.block import STREAMED_SIZES
from fuseline.targets.cpu.families.family import Family, Plan, Policy, Refusal
from fuseline.targets.cpu.families.winograd.memory import filter_growth_limits
from fuseline.targets.cpu.isa import machine as machine_named
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_classes import KernelClass, kernel_classes
from fuseline.targets.cpu.kernel_facts import compiled_kernel
from fuseline.targets.cpu.kernel_fuel import affordable, spend
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.layout_sharing import layout_price, layout_refusal, reader_plan
from fuseline.targets.cpu.legality import refusal_of
from fuseline.targets.cpu.link.compile import PARALLEL_THRESHOLD, compile_texts, prepare
from fuseline.targets.cpu.link.workers import shared
from fuseline.targets.cpu.shared_kernels import Built, merged
from fuseline.targets.cpu.sharing import sharing_price
from fuseline.targets.cpu.windows_in_blocks import window_refusal
from fuseline.targets.dispatch_caps import ANY_DISPATCH
from fuseline.targets.target import SharingPrice, Target, TargetDescription
from fuseline.timeline import span
from fuseline.weight_layouts import SharedLayout

_PLACEHOLDER = "fuseline_kernel"
_TOO_LONG = CompiledKernel(symbol="", object_code=b"", family="", workgroups=0, too_long=True)


class CpuTarget(Target):
    """Native code for one ISA.

    Args:
        isa: a name of `fuseline.targets.cpu.isa.ISA_NAMES`, or a machine; None for the best this CPU has.
        threads: None for the processors this process may run on.
        numerics: how exact kernels are, one of `ir.target_description.NUMERICS`.
    """

    makes_artifacts = runs_programs = True

    def __init__(
        self,
        isa: str | Machine | None = None,
        threads: int | None = None,
        *,
        use_cache: bool | None = None,
        numerics: str = "default",
    ) -> None:
        self.machine: Machine = isa if isinstance(isa, Machine) else machine_named(isa or "")
        self.use_cache = not disabled("objects") if use_cache is None else use_cache
        self.description = TargetDescription(
            name=f"cpu:{self.machine.name}",
            threads=threads if threads is not None else len(os.sched_getaffinity(0)),
            streamed_points=STREAMED_SIZES[0],
            multiplies_bytes=bool(self.machine.quad_dot),
            numerics=numerics,
            costs=self.machine.costs,
            work_costs=self.machine.work_costs,
        )
        self.caps = ANY_DISPATCH
        self.policy = Policy(numerics, self.description.threads)
        self._numbers = AttributeNumbers()
        self._made: dict[Any, CompiledKernel] = {}
        self._kept: dict[str, Kernel] | None = None

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """Why no family but the loop nest would take a dispatch that is built around a root, or a part of it, or what
        of a description it is beyond."""
        limited = self.caps.refusal(candidate) if self.caps is not ANY_DISPATCH else None
        return limited or refusal_of(candidate, self.description.costs.cached_bytes) or window_refusal(candidate)

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """Why the limits of a description leave out an op wherever it is."""
        return self.caps.op_refusal(op, kind) if self.caps is not ANY_DISPATCH else None

    def sharing_price(self, entry: FuncOp, constant: BodyConstant) -> SharingPrice | None:
        """What a kernel loses that loads `constant` before its loops."""
        return sharing_price(entry, constant, self.machine.costs)

    def layout_price(self, entry: FuncOp, layouts: Mapping[int, SharedLayout]) -> SharingPrice | Refusal:
        """What a kernel loses that reads constants as other kernels asked for them."""
        return layout_refusal(entry, layouts) or layout_price(entry, layouts, self.machine.costs)

    def compile_reader(
        self, entry: FuncOp, kernel: CompiledKernel, layouts: Mapping[int, SharedLayout]
    ) -> CompiledKernel | Refusal:
        """The kernel of the same family that reads constants so."""
        family = next(one for one in families(self.policy) if one.name == kernel.family)
        plan = reader_plan(family, entry, layouts, self.machine)
        if isinstance(plan, Refusal):
            return plan
        found = within_budget(_PLACEHOLDER, self.machine, family, plan)
        if found is None:
            return Refusal("code-budget", TOO_LONG)
        return self._compiled([Built(family, plan, found[0], {}, found[1])], processes=1)[0]

    def follow(self, choices: KernelChoices) -> None:
        """Ask kernels for `choices` from now on, each of its class where that is legal."""
        self.policy = replace(self.policy, choices=choices)

    def kernel_classes(
        self, entries: Sequence[FuncOp], progress: Callable[[int, int], None] | None = None
    ) -> list[KernelClass]:
        """The kernels of a program, by class, in the order in which they are met, and what may be asked of each;
        `progress(done, total)` is told after each entry."""
        return kernel_classes(entries, self.machine, self.policy, progress)

    def keep_code(self) -> None:
        """Keep the kernel IR of what is compiled, by symbol."""
        self._kept = {}

    @property
    def kept_code(self) -> Mapping[str, Kernel]:
        """The kernel IR of what was compiled since `keep_code`, by symbol."""
        return self._kept or {}

    def code_text(self, headings: Mapping[str, Sequence[str]], form: str) -> str:
        """The kernels as kernel IR, as one LLVM module, or as one file of assembly."""
        assert self._kept is not None
        return code_text.code_text(self._kept, headings, form, self.machine)

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """Code for each entry function, in order; kernels whose code is equal, arms of dispatches included, share a
        symbol and an object, and so do those that `merges` lets differ in numbers. Raises FuselineError: E0901 where no
        family takes a dispatch."""
        del resources  # constants arrive as operands, packed by the schedule
        split = [split_arms(entry) for entry in entries]
        counts = [count for count, arms in zip(call_counts(entries), split, strict=True) for _ in arms]
        kernels = iter(self._compile([arm.entry for arms in split for arm in arms], counts, splits, merges))
        return [
            kernel_of_arms(entry.sym_name.data, arms, [next(kernels) for _ in arms])
            for entry, arms in zip(entries, split, strict=True)
        ]

    def _compile(
        self, entries: Sequence[FuncOp], counts: Sequence[int], splits: bool, merges: bool
    ) -> list[CompiledKernel]:
        """Code for each entry function; `counts` says how often each is launched. What an earlier call made is not made
        again."""
        keys = [structural_key(entry, self._numbers) for entry in entries]
        distinct = {key: entry for key, entry in reversed(list(zip(keys, entries, strict=True)))}
        first = list(distinct.values())
        prepare(self.machine)  # LLVM, and below the families: once, before the forks
        families(self.policy)
        here = self._kept is not None or self.fuel is not None  # what is kept or counted must be made here
        forks = len(first) >= PARALLEL_THRESHOLD and not here
        processes = len(os.sched_getaffinity(0)) if forks else 1
        launches: Counter[Any] = Counter()
        for key, count in zip(keys, counts, strict=True):
            launches[key] += count
        policies = self._within_memory([(DispatchView(entry), launches[key]) for key, entry in distinct.items()])
        if merges:
            kernels = dict(zip(distinct, self._sharing(first, policies, splits, processes), strict=True))
            return [kernels[key] for key in keys]
        wanted = [(key, policy, splits) for key, policy in zip(distinct, policies, strict=True)]
        missing = [i for i, what in enumerate(wanted) if what not in self._made]
        made = shared(lambda i: self._kernel(first[missing[i]], policies[missing[i]], splits), len(missing), processes)
        self._made.update(zip([wanted[i] for i in missing], made, strict=True))
        kernels = {what[0]: self._made[what] for what in wanted}
        return [kernels[key] for key in keys]

    def _within_memory(self, dispatches: Sequence[tuple[DispatchView, int]]) -> list[Policy]:
        """The policies for the kernels of a program with these dispatches, each launched so often."""
        return [
            replace(self.policy, filter_growth=limit)
            for limit in filter_growth_limits(dispatches, self.machine, self.policy)
        ]

    def _kernel(self, entry: FuncOp, policy: Policy, splits: bool) -> CompiledKernel:
        """The code of one dispatch, under a name that its text decides; none where it is to be split."""
        with span("kernel", entry.sym_name.data):
            return self._compiled([self._build(entry, policy, splits)], processes=1)[0]

    def _sharing(
        self, entries: Sequence[FuncOp], policies: Sequence[Policy], splits: bool, processes: int
    ) -> list[CompiledKernel]:
        """The code of dispatches that may share it."""
        built = [self._build(entry, policy, splits) for entry, policy in zip(entries, policies, strict=True)]
        return self._compiled(merged(built, _PLACEHOLDER, self.machine, self._numbers), processes)

    def _compiled(self, built: Sequence[Built | None], processes: int) -> list[CompiledKernel]:
        """The code of kernels, each under a name that its text decides; none for what is to be split."""
        texts = {id(one.code): print_llvm([one.code], self.machine) for one in built if one is not None}
        symbols = {text: f"kernel_{hashlib.sha256(text.encode()).hexdigest()[:16]}" for text in texts.values()}
        if self._kept is not None:
            self._kept |= {symbols[texts[id(one.code)]]: one.code for one in built if one is not None}
        named = [text.replace(_PLACEHOLDER, symbol) for text, symbol in symbols.items()]
        codes = dict(
            zip(symbols, compile_texts(named, self.machine, use_cache=self.use_cache, processes=processes), strict=True)
        )
        return [
            _TOO_LONG
            if one is None
            else compiled_kernel(one, symbols[texts[id(one.code)]], codes[texts[id(one.code)]], self.machine)
            for one in built
        ]

    def build(self, entry: FuncOp, policy: Policy | None = None) -> Built:
        """The kernel of one dispatch; `policy` None: what was asked of the target.

        Raises E0901 naming the dispatch when no family emits it, which is a defect.
        """
        built = self._build(entry, policy or self.policy, splits=False)
        assert built is not None
        return built

    def _build(self, entry: FuncOp, policy: Policy, splits: bool) -> Built | None:
        """The kernel of one dispatch: as something is asked of it from outside, where that can be followed, else as
        ever; None: see `_offered`."""
        view = DispatchView(entry)
        built, why = built_as_asked(view, policy, lambda asking: self._offered(view, asking, splits), _answer)
        return built if built is None or why is None else replace(built, plan=replace(built.plan, unfollowed=why))

    def _offered(self, view: DispatchView, policy: Policy, splits: bool) -> Built | None:
        """The kernel of one dispatch, of the first family that has one within the budget, or the smallest of the first
        family.

        None, where `splits`, for one of several ops that the first family cannot emit within the budget.
        """
        entry = view.entry
        refusals: dict[str, str] = {}
        taken: list[tuple[Family, Plan]] = []
        for family in affordable(families(policy), self.fuel):
            plan = family.accepts(view, self.machine)
            if isinstance(plan, Refusal):
                refusals[family.name] = f"{plan.code}: {plan.detail}"
                continue
            found = within_budget(_PLACEHOLDER, self.machine, family, plan)
            if found is not None:
                spend(self.fuel, family, view)
                return Built(family, plan, found[0], refusals, found[1])
            if splits and is_divisible(view):
                return None
            refusals[family.name] = TOO_LONG
            taken.append((family, plan))
        if not taken:
            raise FuselineError("E0901", f"no kernel family takes the dispatch: {refusals}", node=entry.sym_name.data)
        (family, plan), refusals = taken[0], {name: why for name, why in refusals.items() if name != taken[0][0].name}
        return Built(family, plan, as_it_is(_PLACEHOLDER, self.machine, family, plan), refusals, OVER_BUDGET)

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> Artifact:
        """The artifact that runs `schedule` with `kernels` (by executable symbol)."""
        from fuseline.targets.cpu.link.program import assemble

        threads = self.description.threads
        return assemble(
            schedule, kernels, constants, machine=self.machine, threads=threads, records=records, metadata=metadata
        )


def _answer(built: Built) -> Answer | None:
    """What a kernel says of what was asked; None for one over the budget of code."""
    refused = built.plan.choice and built.form == OVER_BUDGET
    return None if refused else Answer(built.plan, built.family.name, built.refusals.values())
