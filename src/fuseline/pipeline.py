"""The table of contents of a compile: which passes run, in which order. The only place where order is written.

model file ──read──> linalg on tensors ──passes──> executables + dispatches ──codegen──> kernels
                                                                          ──schedule, assemble──> artifact
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fuseline.compile_options import CompileOptions as CompileOptions
from fuseline.emitted_stage import stage_behind
from fuseline.ir.context import CompilerContext
from fuseline.lowering import STEPS
from fuseline.passes.options import Step, parse_steps, require_run
from fuseline.targets.compiled_kernel import CODE_FORMS

PHASES: dict[str, tuple[str, ...]] = {
    "cleanup": (
        "generalize-named-ops",
        "require-inserts-inside",
        "generalize-tensor-ops",
        "scalars-to-tensors",
        "require-addressable-sizes",
        "require-equal-sizes",
        "unify-equal-sizes",
        "require-maps-inside",
        "clamp-unproven-positions",
        "require-readable-positions",
        "compute-halves-in-f32",
        "widen-factors",
        "canonicalize",
        "cse",
        "convert-before-scatters",
        "compute-before-repeats",
        "round-behind-maxima",
        "fold-requantization",
        "read-halves-in-windows",
        "multiply-in-integers",
        "compute-in-parts",
        "sink-concats",
        "fold-requantization",
        "compute-before-slices",
        "compute-before-repeats",
        "compute-what-is-cut",
        "fold-constants",
        "dead-code",
    ),
    "layout": (
        "convert-convolutions-to-channels-last",
        "fold-unit-dims",
        "sink-collapse-shapes",
        "compute-in-parts",
        "propagate-transposes",
        "fold-constants",
        "lift-row-pads",
        "bubble-expand-shapes",
        "sink-collapse-shapes",
        "sink-expand-shapes",
        "sink-collapse-shapes",
        "collapse-dims",
        "refine-dims",
        "widen-below-reshapes",
        "fold-broadcasts-into-readers",
        "split-transposed-writers",
        "propagate-transposes",
        "fold-unit-dims",
        "read-halves-in-windows",
        "sink-concats",
        "compute-before-repeats",
        "canonicalize",
        "cse",
        "order-constants-as-results",
        "fold-constants",
        "fold-scale-into-weights",
        "multiply-bytes",
        "dead-code",
    ),
    "padding": (
        "pad-to-tile",
        "fold-pad-into-consumer",
        "fold-pad-into-producer",
        "canonicalize",
        "dead-code",
    ),
    "fusion": (
        "compute-sizes-on-host",
        "materialize-fills",
        "clone-reads",
        "form-dispatch-regions",
        "merge-equal-regions",
        "elide-fills",
        "elide-concats",
        "narrow-results",
        "fuse-row-bands",
        "elide-bitcasts",
        "clone-cheap-producers",
        "dead-code",
    ),
    "dispatch": (
        "outline-executables",
        "write-transposed",
        "fuse-elementwise-bodies",
        "collect-rows",
    ),
    "dedup": (
        "deduplicate-executables",
        "canonicalize-executables",
        "compare-executables",
        "constants-to-operands",
        "deduplicate-executables",
        "record-dispatches",
    ),
    "codegen": ("compile-executables",),
    "schedule": (
        "compile-branches",
        "compile-fallback",
        "build-schedule",
        "share-constant-layouts",
        "pack-constants",
    ),
    "assemble": (
        "record-statistics",
        "assemble-artifact",
    ),
}
"""Phases in order. Up to `dedup` each is a list of pass names, and a pass may stand in several places: all of them may
run again. From `codegen` on they are the steps of `lowering.py`, which leave the IR as it is."""

PASS_PHASES = {phase: names for phase, names in PHASES.items() if not set(names) <= STEPS.keys()}

_NEEDED = PHASES["cleanup"][: PHASES["cleanup"].index("canonicalize")]
"""What makes any program safe to run, so that passes of the user cannot leave it out."""

_RECORDS = "record-dispatches"

_CHECKS = [name for name in _NEEDED if name.startswith("require-") or name == "clamp-unproven-positions"]
"""What keeps reads and writes inside of tensors."""

_FORM = "form-dispatch-regions"

_CLONES = "clone-cheap-producers"

OF_A_LEVEL = frozenset(PHASES["dedup"]) - {_RECORDS}
"""Passes that are told how much dispatches may share."""

OPTIONAL = frozenset(
    (
        *PHASES["cleanup"][PHASES["cleanup"].index("canonicalize") :],
        *PHASES["layout"],
        *PHASES["padding"],
        *PHASES["fusion"],
        *PHASES["dispatch"],
        *PHASES["dedup"],
    )
) - {"compute-sizes-on-host", _FORM, _CLONES, "outline-executables", _RECORDS}
"""What a program is right without, if larger and slower: the passes that fuel is for."""

PLAN_STAGE = "plan"

FLOW_STAGE = "flow"

STAGES = ("input", *PASS_PHASES, PLAN_STAGE, FLOW_STAGE, *CODE_FORMS)
"""What `--emit` accepts: the IR as read, or after a phase; the fusion plan; the dispatches for IREE; or the code."""


def steps_left(module: ModuleOp, ctx: CompilerContext, options: CompileOptions) -> dict[str, list[Step]]:
    """The passes of each phase without those that a program has behind it and keeps; what makes it safe is asked of
    every text."""
    phases = phases_of(options)
    behind = stage_behind(module, ctx, options, pipeline_version(), PASS_PHASES)
    done = list(phases)[: list(phases).index(behind) + 1] if behind else []
    if behind == "dedup" and options.dedup != ctx.records.dedup:
        done.remove(behind)
    always = {_RECORDS, *_CHECKS}
    return {
        phase: [step for step in steps if phase not in done or step.name in always] for phase, steps in phases.items()
    }


def phases_of(options: CompileOptions) -> dict[str, list[Step]]:
    """The passes of each phase, with options of their own. Those of the user, where there are some, are the phase
    `fusion`, and before them comes only what of `_NEEDED` they do not run before fusion.

    Raises E0303 or E0304 for a pass or an option that there is not.
    """
    phases = {phase: [Step(name) for name in names] for phase, names in PASS_PHASES.items()}
    if options.passes is not None:
        rest = list(PASS_PHASES)[list(PASS_PHASES).index("dispatch") :]
        own = parse_steps(options.passes, PASS_PHASES)
        names = [step.name for step in own]
        early = names[: names.index(_FORM)] if _FORM in names else names
        first = [Step(name) for name in _NEEDED if name not in early]
        phases = {"fusion": [*first, *own], **{phase: phases[phase] for phase in rest}}
    require_run(options.pass_options, [step.name for steps in phases.values() for step in steps])
    return phases


def pipeline_version(passes: str | None = None, options: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """Identifies the passes, their order and their options; a plan made for another version may not match."""
    own = repr((passes, options)) if passes is not None or options else ""
    return hashlib.blake2b((repr(PHASES) + own).encode(), digest_size=4).hexdigest()
