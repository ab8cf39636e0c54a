"""Which dispatches run one kernel: those of one form, those whose own kernels are alike, and nobody else."""

from __future__ import annotations

from dataclasses import replace

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import MachineCosts
from fuseline.targets.cpu.code_budget import within_budget
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.shared_kernels import Built, merged
from fuseline.targets.target import Refusal
from tests.graphs.program import Program

ISA = replace(machine("avx512"), costs=MachineCosts(sharing_loss=1.0))


def _built(family: Family, view: DispatchView) -> Built:
    plan = family.accepts(view, ISA)
    assert isinstance(plan, Plan) and not isinstance(plan, Refusal)
    found = within_budget("kernel", ISA, family, plan)
    assert found is not None
    return Built(family, plan, found[0], {}, found[1])


def _product(rows: int, columns: int, steps: int) -> Built:
    p = Program((rows, steps), (steps, columns), constants=[1])
    return _built(ContractionFamily(), p.dispatch(p.matmul(p.x[0], p.x[1])))


def _negated(rows: int, columns: int) -> Built:
    p = Program((rows, columns))
    return _built(LoopNest(), p.dispatch(p.unary(p.x[0])))


def _merged(*built: Built | None) -> list[Built | None]:
    found = merged(built, "kernel_of_all", ISA, AttributeNumbers())
    assert [one is None for one in found] == [one is None for one in built]
    return found


def test_dispatches_of_one_form_are_one_kernel_with_numbers_of_their_own() -> None:
    one, other = _merged(_product(196, 256, 64), _product(784, 128, 96))
    assert one is not None and other is not None
    assert one.merged is not None and one.merged is other.merged
    assert one.code is one.merged and one.merged.symbol == "kernel_of_all"
    assert len(one.numbers) == len(other.numbers) > 0 and one.numbers != other.numbers
    assert 0 <= one.lost <= 1 and 0 <= other.lost <= 1


def test_what_is_alone_keeps_its_kernel() -> None:
    own = _product(196, 256, 64)
    (found,) = _merged(own)
    assert found is not None and found.merged is None and found.code is own.kernel and found.numbers == ()


def test_kernels_of_other_families_are_never_one() -> None:
    product, nest, none = _merged(_product(196, 256, 64), _negated(37, 19), None)
    assert product is not None and nest is not None and none is None
    assert product.merged is None and nest.merged is None


def test_kernels_that_are_alike_up_to_numbers_are_one_without_a_form() -> None:
    small, large = _merged(_negated(37, 640), _negated(90, 1280))
    assert small is not None and large is not None
    assert small.merged is not None and small.merged is large.merged
    assert (small.unshared, large.unshared) == ((), ())
