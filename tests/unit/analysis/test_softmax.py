"""What is taken for granted in a softmax, and all that may not be."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import AddfOp, MaximumfOp
from xdsl.dialects.linalg.ops import GenericOp

from fuseline.analysis.softmax import SoftmaxFacts, reduction_of, softmax_facts
from tests.unit.targets.cpu.nests.generics import empty, fill, function, generic, tensor
from tests.unit.targets.cpu.nests.texts import parse

T, R = tensor((4, 6)), tensor((4,))
EXP = "%d = arith.subf %i0, %i1 : f32\n%v = math.exp %d : f32"
DIV = "%v = arith.divf %i0, %i1 : f32"


def facts(
    *, top: str = "maximumf", start: str = "0xFF800000", shift: str = EXP, row: str = "d0", of: str = "%x",
    zero: str = "0.0", total: str = "d0",
    divide: str = DIV, divided_by: str = "d0", results: tuple[str, ...] = ("%y",), more: str = "", extra: str = "",
) -> SoftmaxFacts:  # fmt: skip
    """The facts of a softmax with one part changed."""
    one = [("%v", "f32")]
    lines = [
        empty("e", (4, 6)),
        fill("lo", start, (4,)),
        fill("z", zero, (4,)),
        generic("%m", [(of, T)], [("%lo", R)], ["d0, d1", "d0"], "pr", f"%v = arith.{top} %i0, %o0 : f32", one),
        generic("%p", [("%x", T), ("%m", R)], [("%e", T)], ["d0, d1", row, "d0, d1"], "pp", shift, one),
        generic(
            "%s",
            [("%p", T)],
            [("%z", R)],
            ["d0, d1", total],
            "pr" if total == "d0" else "rp",
            "%v = arith.addf %i0, %o0 : f32",
            one,
        ),
        generic("%y", [("%p", T), ("%s", R)], [("%e", T)], ["d0, d1", divided_by, "d0, d1"], "pp", divide, one),
        extra,
    ]
    types = {"%m": R, "%s": R}
    arguments = [("x", (4, 6), "f32"), ("w", (4, 6), "f32")]
    text = function(arguments, [], "\n".join(lines), [(name, types.get(name, T)) for name in results])
    return softmax_facts(parse(text.replace("%w: tensor", "%n: f32, %w: tensor")).members)


def counts(found: SoftmaxFacts) -> tuple[int, int, int]:
    """Exponents, quotients, maxima."""
    return len(found.exponents), len(found.quotients), len(found.maxima)


def test_softmax() -> None:
    assert counts(facts()) == (1, 1, 1)
    assert counts(facts(top="maxnumf")) == (1, 1, 1)


def test_nothing_is_known_of_other_exponentials() -> None:
    assert counts(facts(top="minimumf")) == (0, 0, 0)
    assert counts(facts(of="%w")) == (0, 0, 0)
    assert counts(facts(shift="%d = arith.subf %i1, %i0 : f32\n%v = math.exp %d : f32")) == (0, 0, 0)
    assert counts(facts(shift="%d = arith.addf %i0, %i1 : f32\n%v = math.exp %d : f32")) == (0, 0, 0)


@pytest.mark.parametrize("sides", ["%i0, %n", "%n, %i1"])
def test_a_number_of_the_function_is_no_operand(sides: str) -> None:
    """It has a place among the arguments, too, but not among those of the body."""
    assert counts(facts(shift=EXP.replace("%i0, %i1", sides))) == (0, 0, 0)


def test_what_is_written_is_no_operand() -> None:
    assert counts(facts(shift=EXP.replace("%i0, %i1", "%i0, %o0"))) == (0, 0, 0)


def test_the_sum_is_at_least_one_only_where_the_maximum_is_an_element_of_it() -> None:
    assert counts(facts(start="0.0")) == (1, 0, 0)
    assert counts(facts(zero="-1.0")) == (1, 0, 0)


def test_other_quotients_are_divided() -> None:
    assert counts(facts(divide="%v = arith.divf %i1, %i0 : f32")) == (1, 0, 0)


@pytest.mark.parametrize("results", [("%y", "%m"), ("%y", "%p")])
def test_a_maximum_whose_nan_is_seen_keeps_it(results: tuple[str, ...]) -> None:
    assert counts(facts(results=results)) == (1, 1, 0)


def test_a_sum_that_is_a_result_is_nan_all_the_same() -> None:
    assert counts(facts(results=("%y", "%s"))) == (1, 1, 1)


def test_exponentials_that_are_used_undivided_keep_the_nan_of_the_maximum() -> None:
    assert counts(facts(divide=f"{DIV.replace('%v', '%q')}\n%v = arith.addf %q, %i0 : f32")) == (1, 1, 0)
    assert counts(
        facts(shift="%d = arith.subf %i0, %i1 : f32\n%t = math.exp %d : f32\n%v = arith.addf %t, %i1 : f32")
    ) == (1, 0, 0)


def square(row: str, total: str, divided_by: str) -> SoftmaxFacts:
    """A softmax over the columns of a square, whose parts are read along the rows by mistake."""
    t, r = tensor((5, 5)), tensor((5,))
    one = [("%v", "f32")]
    lines = [
        empty("e", (5, 5)),
        fill("lo", "0xFF800000", (5,)),
        fill("z", "0.0", (5,)),
        generic("%m", [("%x", t)], [("%lo", r)], ["d0, d1", "d0"], "pr", "%v = arith.maximumf %i0, %o0 : f32", one),
        generic("%p", [("%x", t), ("%m", r)], [("%e", t)], ["d0, d1", row, "d0, d1"], "pp", EXP, one),
        generic(
            "%s",
            [("%p", t)],
            [("%z", r)],
            ["d0, d1", total],
            "pr" if total == "d0" else "rp",
            "%v = arith.addf %i0, %o0 : f32",
            one,
        ),
        generic("%y", [("%p", t), ("%s", r)], [("%e", t)], ["d0, d1", divided_by, "d0, d1"], "pp", DIV, one),
    ]
    return softmax_facts(parse(function([("x", (5, 5), "f32")], [], "\n".join(lines), [("%y", t)])).members)


def test_every_part_belongs_to_the_same_row() -> None:
    assert counts(square("d0", "d0", "d0")) == (1, 1, 1)
    assert counts(square("d1", "d0", "d0")) == (0, 0, 0)
    assert counts(square("d0", "d1", "d1")) == (1, 0, 0)
    assert counts(square("d0", "d0", "d1")) == (1, 0, 0)


@pytest.mark.parametrize(("kept", "kinds", "size"), [(0, "pr", 4), (1, "rp", 6)])
def test_a_reduction_is_its_op_the_step_and_what_is_kept(kept: int, kinds: str, size: int) -> None:
    row = tensor((size,))
    sums = generic(
        "%s",
        [("%x", T)],
        [("%z", row)],
        ["d0, d1", f"d{kept}"],
        kinds,
        "%v = arith.addf %i0, %o0 : f32",
        [("%v", "f32")],
    )
    view = parse(function([("x", (4, 6), "f32")], [], "\n".join([fill("z", "0.0", (size,)), sums]), [("%s", row)]))
    (op,) = [op for op in view.members if isinstance(op, GenericOp)]
    found = reduction_of(op.results[0], (AddfOp,))
    assert found is not None
    assert (found.op, found.combine.name, found.source, found.kept) == (op, "arith.addf", op.inputs[0], (kept,))
    assert reduction_of(op.results[0], (MaximumfOp,)) is None
    assert reduction_of(op.inputs[0], (AddfOp,)) is None
