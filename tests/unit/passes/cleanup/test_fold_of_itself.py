"""What integers make of a number and itself is known, whatever the number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

import fuseline
from fuseline.evaluation import evaluate_module
from fuseline.passes.cleanup.folds.scalars import fold_of_itself
from fuseline.passes.cleanup.folds.worklist import Worklist
from tests.draws import RNG
from tests.unit.passes.cleanup.test_folds import folded, parsed

COMPARISONS = [f"arith.cmpi {name}," for name in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")]


def operation_of(value: SSAValue) -> Operation:
    """The op that makes a value."""
    assert isinstance(value.owner, Operation)
    return value.owner


@pytest.mark.parametrize("type_", ["i8", "i64", "index"])
@pytest.mark.parametrize("name", [*COMPARISONS, "arith.subi", "arith.xori"])
def test_a_number_and_itself(name: str, type_: str):
    result = "i1" if "cmpi" in name else type_
    module, block = parsed(f"%r = {name} %x, %x : {type_}", f"%x: {type_}", result)
    x = np.asarray(RNG.integers(-100, 100), np.int8 if type_ == "i8" else np.int64)
    (wanted,) = evaluate_module(module, [x])
    end = block.last_op
    assert end is not None and fold_of_itself(operation_of(end.operands[0]), Worklist({}))
    assert isinstance(end.operands[0].owner, arith.ConstantOp)
    module.verify()
    assert evaluate_module(module, [x])[0] == wanted
    assert folded(fold_of_itself, f"%r = {name} %x, %y : {type_}", f"%x: {type_}, %y: {type_}", result) is None


def test_a_tensor_compared_with_itself_is_a_fill(tmp_path: Path):
    path = tmp_path / "same.mlir"
    path.write_text("""func.func @main(%x: tensor<4x?xi32>) -> tensor<4x?xi1> {
  %r = arith.cmpi sge, %x, %x : tensor<4x?xi32>
  return %r : tensor<4x?xi1>
}""")
    program = fuseline.compile(path)
    x = RNG.integers(-9, 9, (4, int(RNG.integers(1, 30)))).astype(np.int32)
    (found,) = program.run({"x": x}).values()
    assert found.dtype == np.bool_ and found.shape == x.shape and found.all()
    assert program.stats["dispatches"] == 0 and program.stats["fills"] == 1
