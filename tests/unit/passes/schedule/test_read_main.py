"""What `@main` computes with sizes, as steps."""

from __future__ import annotations

from collections.abc import Callable

from fuseline.ir import dim as d
from fuseline.program.schedule import Schedule
from fuseline.program.steps import SizesStep

MAIN = """
  func.func @main(%x: tensor<?xf32> {fuseline.name = "x", fuseline.dims = ["batch"]}) -> (tensor<3xi64>) {
    %zero = arith.constant 0 : index
    %more = arith.constant 64 : index
    %m = tensor.dim %x, %zero : tensor<?xf32>
    %s = arith.addi %m, %more : index
    %a = arith.index_cast %m : index to i64
    %b = arith.index_cast %s : index to i64
    %c = arith.constant 5 : i64
    %r = tensor.from_elements %a, %b, %c : tensor<3xi64>
    func.return %r : tensor<3xi64>
  }"""


def test_sizes_are_written_by_a_step_of_their_own(schedule_of: Callable[..., Schedule]) -> None:
    (step,) = schedule_of(MAIN).steps
    assert isinstance(step, SizesStep) and step.target.dtype == "int64"
    batch = d.symbol("batch")
    assert step.values == (batch, d.add(batch, 64), 5)


def test_a_number_among_the_arguments_is_no_input(schedule_of: Callable[..., Schedule]) -> None:
    """Sizes are: the program is given them by name."""
    main = MAIN.replace("%x: ", "%v: f32, %k: index, %x: ")
    assert [one.name for one in schedule_of(main).inputs] == ["k", "x"]
