"""Knobs about kernels: per class what may be chosen in place of what its family chooses, the best by the families' own
models. Layers that repeat share a class, and so a knob."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.call_options import compile_options
from fuseline.compilation import target_of
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.kernel_choice import DEFAULT
from fuseline.passes.fusion.plan import id_of
from fuseline.phase_runner import run_phases
from fuseline.source_program import prepare
from fuseline.targets.cpu.kernel_classes import KernelClass
from fuseline.targets.cpu.target import CpuTarget
from fuseline.targets.target import Target
from fuseline.tuning.knob import Knob

KERNEL = "kernel/"
"""What these knobs are called, before the name of the class."""

MOST_CHOICES = 4
"""Choices of a class beside the default. Each is a compile and a measurement, for every class."""

SLOWEST = 1.25
"""How much slower than the default a choice may be predicted to be: the models are mistaken by less."""

LEAST_SHARE = 0.002
"""Of the predicted time of all kernels, what a class has at the least: less could not be measured."""


def kernel_knobs(
    model: str | Path, options: Mapping[str, Any], progress: Callable[[int, int], None] | None = None
) -> list[Knob]:
    """The knobs of a model as a compile with `options` (arguments of `fuseline.compile`) has its kernels, the class
    first that takes longest; none on a target whose kernels have no choices. Raises what a compile raises."""
    chosen = compile_options(**options)
    target = target_of(chosen)
    if not isinstance(target, CpuTarget):
        return []
    module, ctx = prepare(model, chosen, target)
    run_phases(module, ctx, chosen, until="dedup")
    return knobs_of_program(module, ctx, target, progress)


def knobs_of_program(
    module: ModuleOp, ctx: CompilerContext, target: Target, progress: Callable[[int, int], None] | None = None
) -> list[Knob]:
    """The same of a program whose dispatches are outlined."""
    if not isinstance(target, CpuTarget):
        return []
    entries = [entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)]
    classes = target.kernel_classes(entries, progress)
    whole = sum(one.ns for one in classes)
    nodes, members = _nodes(ctx), _members(ctx)
    knobs = [_knob(one, nodes, members) for one in classes if one.ns >= LEAST_SHARE * whole]
    order = {KERNEL + one.name: -one.ns for one in classes}
    return sorted((knob for knob in knobs if len(knob.choices) > 1), key=lambda knob: (order[knob.name], knob.name))


def _knob(one: KernelClass, nodes: Mapping[str, tuple[str, ...]], members: Mapping[str, list[tuple[str, ...]]]) -> Knob:
    offered = [other for other in one.alternatives if other.time <= SLOWEST][:MOST_CHOICES]
    gain = one.ns * (1 - offered[0].time) if offered else 0.0
    times = f", {one.launches} times a run" if one.launches > 1 else ""
    said = ", ".join(f"{name} {value}" for name, value in one.notes if name in ("tile", "block", "filtering"))
    return Knob(
        name=KERNEL + one.name,
        space="kernels",
        choices=(DEFAULT, *(other.text for other in offered)),
        detail=f"{one.name} {one.shape}{times}: {one.family} with {said}",
        gain_ns=float(round(gain)),
        nodes=tuple(dict.fromkeys(node for name in one.executables for node in nodes.get(name, ()))),
        ops=tuple(ids for name in one.executables for ids in members.get(name, ())),
    )


def _nodes(ctx: CompilerContext) -> dict[str, tuple[str, ...]]:
    """Source nodes by the name of an executable."""
    found: dict[str, tuple[str, ...]] = {}
    for dispatch in ctx.records.dispatches:
        mine = (node for member in dispatch.members for node in member.nodes)
        found[dispatch.executable] = tuple(dict.fromkeys((*found.get(dispatch.executable, ()), *mine)))
    return found


def _members(ctx: CompilerContext) -> dict[str, list[tuple[str, ...]]]:
    """The structural ids of each dispatch, by the name of its executable."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for dispatch in ctx.records.dispatches:
        found.setdefault(dispatch.executable, []).append(tuple(id_of(member.id) for member in dispatch.members))
    return found
