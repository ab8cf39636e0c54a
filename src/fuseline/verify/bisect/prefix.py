"""Of a pass that is at fault, the op that it breaks: the pass is run on the first ops of the program alone, on fewer
and more of them until one more is one too many.

    %a = ..   %b = f %a   %c = g %b   %d = ..         before the pass
    [  right              ][ wrong from %c on ]       what the pass makes of that much, against the same without it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from fuseline.border import coded
from fuseline.evaluation.program import main_function
from fuseline.ir.provenance import provenance
from fuseline.targets.interpreter import Interpreter
from fuseline.verify.bisect.stages import Stage, Stages

_CLOSE = 1e-7
"""A part of the largest magnitude: both sides compute in float64."""


class Broken(NamedTuple):
    """The op that a pass breaks, and those whose results it reads; how many programs were tried."""

    op: str
    nodes: tuple[str, ...]
    read: tuple[str, ...]
    runs: int


def broken_op(stages: Stages, number: int, feeds: Mapping[str, Any]) -> Broken | None:
    """The op that pass `number` breaks; None where it breaks none of any prefix of the program."""
    stage = stages.behind(number)
    count = sum(1 for op in main_function(stage.module).body.block.ops if not op.has_trait(IsTerminator))
    runs, right, wrong = 1, 0, count
    if not _shows(stages, stage, number, count, feeds):
        return None
    while wrong - right > 1:
        middle, runs = (right + wrong) // 2, runs + 1
        if _shows(stages, stage, number, middle, feeds):
            wrong = middle
        else:
            right = middle
    op = list(main_function(stage.module).body.block.ops)[wrong - 1]
    made = [operand.owner for operand in op.operands if isinstance(operand.owner, Operation)]
    return Broken(op.name, tuple(provenance(op)), tuple(dict.fromkeys(one.name for one in made)), runs)


def _shows(stages: Stages, stage: Stage, number: int, count: int, feeds: Mapping[str, Any]) -> bool:
    """Whether the pass changes what the first `count` ops compute; on what it cannot take it changes nothing."""
    before = _cut(stage.module, count)
    after = before.clone()
    try:
        expected = Interpreter(before, stage.ctx.resources, double=True).run(feeds)
        stages.run_one(number, after, stage.ctx)
        found = Interpreter(after, stage.ctx.resources, double=True).run(feeds)
    except Exception as problem:  # noqa: BLE001 - programs cut short are not what passes are made for
        coded(problem, "bisect")
        return False
    return any(not _same(found[name], expected[name]) for name in expected)


def _cut(module: ModuleOp, count: int) -> ModuleOp:
    """The module with the first `count` ops of its entry, which returns what nobody reads."""
    cut = module.clone()
    main = main_function(cut)
    block = main.body.block
    for op in reversed(list(block.ops)[count:]):
        block.erase_op(op, safe_erase=False)
    results = [
        result
        for op in block.ops
        for result in op.results
        if isinstance(result.type, TensorType) and not result.uses.get_length()
    ]
    block.add_op(ReturnOp(*results))
    main.res_attrs = None
    main.update_function_type()
    return cut


def _same(found: Any, expected: Any) -> bool:
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    if found.shape != expected.shape:
        return False
    magnitude = float(np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0))
    return bool(np.allclose(found, expected, rtol=0, atol=_CLOSE * magnitude, equal_nan=True))
