"""A value written into a box of a larger tensor is walked in runs as long as memory allows."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.nests.loop_nest import nest_plan
from fuseline.targets.cpu.isa import machine
from tests.unit.targets.cpu.arms.programs import elementwise
from tests.unit.targets.cpu.nests.texts import parse


@pytest.mark.parametrize(("whole", "run"), [("9x20x24", 3), ("5x30x24", 2), ("5x20x48", 1)])
def test_axes_behind_the_cut_are_one_run(whole: str, run: int) -> None:
    """Cut along the first axis the box is one stretch of memory; along the second one stretch per row of the first;
    else a row at a time."""
    out = f"tensor<{whole}xf32>"
    text = f"""func.func @f(%x: tensor<5x20x24xf32>) -> {out} {{
    {elementwise("p", ["x"], "5x20x24", "%v = math.absf %a0 : f32")}
    %e = tensor.empty() : {out}
    %r = tensor.insert_slice %p into %e[0, 0, 0] [5, 20, 24] [1, 1, 1] : tensor<5x20x24xf32> into {out}
    func.return %r : {out} }}"""
    assert len(nest_plan(parse(text), machine()).schedule.vector_loops) == run
