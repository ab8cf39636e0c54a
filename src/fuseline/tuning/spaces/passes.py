"""Variants of the pipeline: rules and passes that may be left out, or do more, without another result.

Only what is in the tables here is ever tried. Each entry keeps the meaning of every program: a rule decides which ops
run together, and the passes named change how a program is written, not what it computes;
`tests/unit/tuning/spaces/test_passes.py` compiles with each of them and compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fuseline.pipeline import PASS_PHASES
from fuseline.report.records import CompileRecord
from fuseline.tuning.knob import Knob

RULES = (
    "channel-window",
    "concat-slices",
    "long-rows",
    "read-in-place",
    "root-chain",
    "row-chain",
    "same-space",
    "shared-operand",
    "slice-epilogue",
    "small-ops",
    "streamed-softmax",
)
"""Rules and joins without which a program has more dispatches. `elementwise-*` are not among them: what they fuse only
saves work."""

PASSES = (
    "clone-reads",
    "collapse-dims",
    "fold-scale-into-weights",
    "fuse-row-bands",
    "pad-to-tile",
    "propagate-transposes",
    "sink-concats",
)
"""Passes that may be left out."""

LEVEL = "passes/aggressive"
_WITHOUT_RULE = "passes/without-rule/"
_WITHOUT_PASS = "passes/without-pass/"
OFF, ON = "no", "yes"


def pass_knobs(record: CompileRecord) -> list[Knob]:
    """The variants for a program whose default compile left `record`: rules that did nothing are not worth leaving
    out."""
    fired = {decision.rule for decision in record.decisions if decision.verdict == "fused"}
    level = [Knob(LEVEL, "passes", (OFF, ON), "fuse what is predicted up to 15 % slower")]
    rules = [
        Knob(_WITHOUT_RULE + name, "passes", (OFF, ON), f"leave out the rule {name}") for name in RULES if name in fired
    ]
    passes = [Knob(_WITHOUT_PASS + name, "passes", (OFF, ON), f"leave out the pass {name}") for name in PASSES]
    return [*level, *rules, *passes]


def pass_arguments(configuration: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `fuseline.compile` that a configuration changes, over those that every trial has."""
    on = [name for name, choice in configuration.items() if name.startswith("passes/") and choice == ON]
    rules = [name.removeprefix(_WITHOUT_RULE) for name in on if name.startswith(_WITHOUT_RULE)]
    passes = {name.removeprefix(_WITHOUT_PASS) for name in on if name.startswith(_WITHOUT_PASS)}
    found: dict[str, Any] = {}
    if LEVEL in on:
        found["fusion"] = "aggressive"
    if rules:
        found["without_rules"] = [*options.get("without_rules", ()), *rules]
    if passes:
        found["passes"] = pipeline_without(passes)
    return found


def pipeline_without(left_out: Iterable[str]) -> str:
    """The phases up to `fusion` as the argument `passes`, without some passes.

    >>> "collapse-dims" in pipeline_without(["collapse-dims"]), "cse" in pipeline_without(["collapse-dims"])
    (False, True)
    """
    gone = frozenset(left_out)
    return ",".join(name for phase in _PHASES for name in PASS_PHASES[phase] if name not in gone)


_PHASES = list(PASS_PHASES)[: list(PASS_PHASES).index("dispatch")]
