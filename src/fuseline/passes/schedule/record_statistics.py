"""The statistics of a compile: counts and bytes over the finished schedule and the code of its dispatches (`stats
--json`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fuseline.dispatch.work import as_made
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.work_costs import ASSUMED_WORK_COSTS, FILTERED, MADE, WorkCosts, predicted_ns, share_of
from fuseline.passes.schedule.quantization_left import complete_quantization
from fuseline.passes.schedule.record_lives import transient_records
from fuseline.program.schedule import PackedConstants, Schedule, bytes_of
from fuseline.program.steps import DispatchStep, HostStep, LoopStep, flat_steps
from fuseline.report.edge_counts import count_edges
from fuseline.report.records import CompileRecord, DispatchRecord, MemberRecord
from fuseline.targets.compiled_kernel import CompiledKernel

TRANSPOSES, COPIES, FILLS = ("transpose",), ("copy", "slice", "concat", "pad"), ("fill", "broadcast")
"""Roots of dispatches, and of arms, that only move data: what a perfect fusion leaves none of."""

GATHER = "gather"
"""What reads by index, and is not counted among what a perfect fusion leaves none of."""

_MOVING = (*TRANSPOSES, *COPIES, *FILLS)
_ROOTS = ("contraction", "convolution", "depthwise", "pooling")

_WALKS = ("scan", "scatter", "rank")
"""Idioms that are written as a reduction over all pairs of two loops."""


LAST_FAMILY = "loop-nest"
"""The family that takes what no other does."""


def record_statistics(
    record: CompileRecord,
    kernels: Mapping[str, CompiledKernel],
    schedule: Schedule,
    constants: PackedConstants,
    *,
    shared: bool = True,
    work_costs: WorkCosts = ASSUMED_WORK_COSTS,
) -> None:
    """Fill `record.statistics`, and each dispatch's family, traffic and scratch. `shared`: whether equal executables
    count once, in number and in bytes. `work_costs`: what dispatches are predicted with, now that kernels are known."""
    steps = [step for step in flat_steps(schedule.steps) if isinstance(step, DispatchStep)]
    for dispatch in record.dispatches:
        kernel = kernels.get(dispatch.executable)
        _complete(record, dispatch, kernel)
        if kernel is not None and any(body.object_code for body in kernel.bodies):
            _predict(record, dispatch, kernel, work_costs)
    _complete_sharing(record)
    threads = record.threads
    record.transients = transient_records(schedule, record.dispatches, threads)
    bodies = [body for kernel in kernels.values() for body in kernel.bodies]
    scratch = max((kernel.scratch_bytes for kernel in kernels.values()), default=0)
    figures = schedule.statistics
    moving = Counter(root for dispatch in record.dispatches for root in _moves(dispatch))
    record.statistics = {
        "dispatches": len(steps),
        "loops": [d.to_text(loop.trips) for loop in schedule.loops],
        "launches": _number(d.sum_of(trips for trips, _ in _repeated(schedule))),
        "executables": len({body.object_code or body.symbol for body in bodies}) if shared else len(bodies),
        "barriers": figures.barriers,
        "host_ops": _host_ops(record, [step for step in schedule.steps if isinstance(step, HostStep)]),
        "fills": figures.fills + sum(moving[kind] for kind in FILLS),
        "copies": figures.copies + sum(moving[kind] for kind in COPIES),
        "standalone_transposes": sum(moving[kind] for kind in TRANSPOSES),
        "gathers": sum(_gathers(dispatch) for dispatch in record.dispatches),
        "inside": _inside(record.dispatches),
        "code_bytes": sum(len(code) for code in _emitted(bodies, shared)),
        "bytes_moved": _number(d.sum_of(d.mul(trips, _moved(step, kernels)) for trips, step in _repeated(schedule))),
        **_memory(schedule, scratch, threads),
        "constant_bytes": {
            "original": constants.original_bytes,
            "packed": constants.packed_bytes,
            "repeated": sum(one.bytes for one in record.layouts if one.verdict == "repeated"),
        },
        "quantization": complete_quantization(record),
        "generic_ops_before": record.generic_ops_before,
        "generic_ops_after": record.generic_ops_after,
        "edges": _edges(record),
        "families": dict(Counter(dispatch.family for dispatch in record.dispatches)),
        "idioms": dict(Counter(node.idiom for node in record.fusion_nodes.values() if node.idiom)),
        "near_idioms": len([remark for remark in record.remarks if remark.code.startswith("near-")]),
        "fallbacks": sum(bool(dispatch.fallback) for dispatch in record.dispatches),
        "forms": dict(Counter(dispatch.form for dispatch in record.dispatches if dispatch.form)),
        "phase_seconds": record.phase_seconds,
    }


def _emitted(bodies: Sequence[CompiledKernel], shared: bool) -> Collection[bytes]:
    """The code of a program: that of each body, equal ones once where they are `shared`."""
    codes = [body.object_code for body in bodies]
    return set(codes) if shared else codes


def _memory(schedule: Schedule, scratch: int, threads: int) -> dict[str, Any]:
    """What a run takes beside its constants, inputs and outputs, bytes: the most of the arena that is in use at once,
    the arena, the most scratch of a thread, and all of it together. Scratch that lies in the arena is counted there."""
    arena = _number(schedule.arena_bytes) or 0
    refused = Counter(one.refusal for one in schedule.in_place if one.refusal)
    return {
        "transient_bytes": arena + (scratch * threads if schedule.scratch is None else 0),
        "largest_live_bytes": _number(schedule.live_bytes),
        "arena_bytes": arena,
        "scratch_bytes_max": scratch,
        "in_place": {"taken": sum(not one.refusal for one in schedule.in_place), **refused},
    }


def _repeated(schedule: Schedule) -> Iterator[tuple[Dim, DispatchStep]]:
    """Each dispatch, and how often a run launches it."""
    for step in schedule.steps:
        trips: Dim = step.trips if isinstance(step, LoopStep) else 1
        yield from ((trips, inner) for inner in flat_steps([step]) if isinstance(inner, DispatchStep))


def _host_ops(record: CompileRecord, steps: Sequence[HostStep]) -> int:
    """How many source nodes run on the host; the record forgets those whose results nothing needed."""
    left = {node for step in steps for node in step.nodes}
    record.host_ops = [host for host in record.host_ops if host.node in left]
    return len(record.host_ops) or len(steps)


def _complete(record: CompileRecord, dispatch: DispatchRecord, kernel: CompiledKernel | None) -> None:
    if kernel is None:
        return
    dispatch.family, dispatch.form = kernel.family, kernel.form
    dispatch.scratch_bytes = kernel.scratch_bytes
    dispatch.workgroups = d.to_text(kernel.workgroups)
    dispatch.kernels = tuple(dict.fromkeys(body.symbol for body in kernel.bodies))
    dispatch.code_bytes = sum(len(code) for code in {body.object_code for body in kernel.bodies})
    dispatch.unshared = tuple(why for body in kernel.bodies for why in body.notes.get("unshared", ()))
    dispatch.sharing_loss = max((body.notes.get("lost", 0.0) for body in kernel.bodies), default=0.0)
    dispatch.fallback = _fallback(record, dispatch, kernel)
    for arm, kernel_arm in zip(dispatch.arms, kernel.arms, strict=False):
        arm.family, arm.scratch_bytes = kernel_arm.kernel.family, kernel_arm.kernel.scratch_bytes
        arm.workgroups = d.to_text(d.substitute(kernel_arm.kernel.workgroups, dict(kernel_arm.sizes)))


def _predict(record: CompileRecord, dispatch: DispatchRecord, kernel: CompiledKernel, costs: WorkCosts) -> None:
    """What the kernel is expected to take, with the algorithm that it has and the workgroups that it is cut into."""
    filtered = [body.notes[FILTERED] for body in kernel.bodies if FILTERED in body.notes]
    made = [body.notes[MADE] for body in kernel.bodies if MADE in body.notes]
    dispatch.work = as_made(dispatch.work, filtered, made)
    dispatch.share = share_of(record.threads, d.upper_bound(kernel.workgroups))
    dispatch.predicted_ns = round(predicted_ns(dispatch.work, costs, dispatch.share))


def _complete_sharing(record: CompileRecord) -> None:
    """Dispatches that look alike share code where they have a kernel in common, unless none is to be shared."""
    if record.dedup == "none":
        return
    kernels = {dispatch.name: set(dispatch.kernels) for dispatch in record.dispatches}
    record.sharing = [
        msgspec.structs.replace(one, verdict="shared", code="shared", ns=0.0)
        if kernels[one.first] & kernels[one.second]
        else one
        for one in record.sharing
    ]


def _fallback(record: CompileRecord, dispatch: DispatchRecord, kernel: CompiledKernel) -> dict[str, str]:
    """Why no family but the last took a dispatch, or an arm or a unit of one, whose root is worth a kernel of its
    own."""
    if not any(member.kind in _ROOTS or _is_walk(record, member) for member in dispatch.members):
        return {}
    refused: dict[str, str] = {}
    for body in kernel.bodies:
        refused |= body.notes.get("refused", {}) if body.family == LAST_FAMILY else body.notes.get("refused_units", {})
    return refused


def _is_walk(record: CompileRecord, member: MemberRecord) -> bool:
    """Whether an op takes the square of the time where it is not made in one walk."""
    node = record.fusion_nodes.get(member.id)
    return node is not None and node.idiom in _WALKS


def _moves(dispatch: DispatchRecord) -> Iterator[str]:
    """The kind of a dispatch that only moves data, or those of the arms that do where others compute."""
    kinds = {member.id: member.kind for member in dispatch.members}
    arms = [arm for arm in dispatch.arms if all(kinds[member] in _MOVING for member in arm.members)]
    if len(arms) < len(dispatch.arms):
        yield from (arm.root for arm in arms)
    elif all(member.kind in _MOVING for member in dispatch.members):
        yield arms[0].root if arms else dispatch.root


def _gathers(dispatch: DispatchRecord) -> bool:
    """Whether a dispatch reads by index and computes nothing."""
    kinds = {member.kind for member in dispatch.members}
    return GATHER in kinds and kinds <= {GATHER, *_MOVING}


def _inside(dispatches: Sequence[DispatchRecord]) -> dict[str, int]:
    """The ops that move data inside of dispatches that compute, by what `stats` calls dispatches of nothing else."""
    kinds = Counter(
        member.kind
        for dispatch in dispatches
        if any(member.kind not in (GATHER, *_MOVING) for member in dispatch.members)
        for member in dispatch.members
    )
    groups = {"fills": FILLS, "copies": COPIES, "transposes": TRANSPOSES, "gathers": (GATHER,)}
    return {name: sum(kinds[kind] for kind in group) for name, group in groups.items()}


def _moved(step: DispatchStep, kernels: Mapping[str, CompiledKernel]) -> Dim:
    kernel = kernels[step.executable]
    emitted = d.substitute(d.add(kernel.bytes_read, kernel.bytes_written), dict(step.sizes))
    if emitted != 0:
        return emitted
    return d.sum_of(bytes_of(operand) for operand in (*step.operands, *step.results))


def _number(size: Dim) -> int | None:
    """The upper bound; None where there is none."""
    return d.upper_bound(size)


def _edges(record: CompileRecord) -> dict[str, Any]:
    counts = count_edges(record.decisions)
    missed = dict(sorted(counts.missed.items()))
    return {
        "fused": counts.fused,
        "superseded": counts.superseded,
        "side_by_side": counts.side_by_side,
        "missed": missed,
    }
