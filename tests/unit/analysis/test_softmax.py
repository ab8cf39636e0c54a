"""What is taken for granted in a softmax, and all that may not be."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import AddfOp, MaximumfOp
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.softmax import Reduction, SoftmaxFacts, is_plain, matches, reduction_of, softmax_facts
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
    found = facts()
    assert [[op.name for op in ops] for ops in (found.exponents, found.quotients, found.maxima)] == [
        ["math.exp"],
        ["arith.divf"],
        ["arith.maximumf"],
    ]


def test_softmax_whose_quotient_something_else_follows_in_the_same_op() -> None:
    assert counts(facts(divide="%q = arith.divf %i0, %i1 : f32\n%v = arith.divf %q, %n : f32")) == (1, 1, 1)
    assert counts(facts(divide="%q = arith.divf %i0, %i1 : f32\n%v = arith.divf %q, %i1 : f32")) == (1, 1, 0)


def _reduction(
    body: str = "%v = arith.addf %i0, %o0 : f32",
    inputs: int = 1,
    outputs: int = 1,
    maps: tuple[str, str] = ("d0, d1", "d0"),
    made: str = "%v",
) -> Reduction | None:
    """A sum over rows with a part changed, as far as it is one."""
    text = generic(
        "%s" if outputs == 1 else "%s:2",
        [("%x", tensor((6, 6)))] * inputs,
        [("%z", tensor((6,)))] * outputs,
        [maps[0]] * inputs + [maps[1]] * outputs,
        "pr",
        body,
        [(made, "f32")] * outputs,
    )
    result = "%s" if outputs == 1 else "%s#0"
    lines = "\n".join([fill("z", "0.0", (6,)), text])
    view = parse(function([("x", (6, 6), "f32")], [], lines, [(result, tensor((6,)))]))
    (op,) = [op for op in view.members if isinstance(op, GenericOp)]
    return reduction_of(op.results[0], (AddfOp,))


def test_what_is_no_reduction_of_one_operand() -> None:
    assert _reduction() is not None
    assert _reduction(inputs=2, body="%v = arith.addf %i0, %o0 : f32") is None
    assert _reduction(outputs=2) is None
    assert _reduction(made="%o0") is None
    assert _reduction(body="%v = arith.mulf %i0, %o0 : f32") is None
    assert _reduction(body="%v = arith.addf %i0, %i0 : f32") is None
    assert _reduction(maps=("d1, d0", "d0")) is not None


def test_a_map_is_plain_where_every_coordinate_is_a_loop_of_its_own() -> None:
    d0, d1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
    assert is_plain(AffineMap(2, 0, (d1, d0))) and is_plain(AffineMap(2, 0, ()))
    assert not is_plain(AffineMap(2, 0, (d0, d0))) and not is_plain(AffineMap(2, 0, (d0, d1 + 1)))


def test_a_reader_sees_the_result_of_its_own_row() -> None:
    found = _reduction()
    assert found is not None
    d0, d1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
    whole = AffineMap(2, 0, (d0, d1))
    assert matches(found, whole, AffineMap(2, 0, (d0,)))
    assert not matches(found, whole, AffineMap(2, 0, (d1,)))
    assert not matches(found, whole, AffineMap(2, 0, (d0, d1)))
    assert not matches(found, AffineMap(2, 0, (d0, d0)), AffineMap(2, 0, (d0,)))


def test_the_sum_is_along_what_the_maximum_is_of_wherever_that_stands_among_the_operands() -> None:
    """A mask before it in the list, of other loops."""
    one = [("%v", "f32")]
    masked = "%t = arith.subf %i1, %i2 : f32\n%v = math.exp %t : f32"
    lines = [
        empty("e", (4, 6)),
        fill("lo", "0xFF800000", (4,)),
        fill("z", "0.0", (4,)),
        generic("%m", [("%x", T)], [("%lo", R)], ["d0, d1", "d0"], "pr", "%v = arith.maximumf %i0, %o0 : f32", one),
        generic(
            "%p",
            [("%w", tensor((6, 4))), ("%x", T), ("%m", R)],
            [("%e", T)],
            ["d1, d0", "d0, d1", "d0", "d0, d1"],
            "pp",
            masked,
            one,
        ),
        generic("%s", [("%p", T)], [("%z", R)], ["d0, d1", "d0"], "pr", "%v = arith.addf %i0, %o0 : f32", one),
        generic("%y", [("%p", T), ("%s", R)], [("%e", T)], ["d0, d1", "d0", "d0, d1"], "pp", DIV, one),
    ]
    text = function([("x", (4, 6), "f32"), ("w", (6, 4), "f32")], [], "\n".join(lines), [("%y", T)])
    assert counts(softmax_facts(parse(text).members)) == (1, 1, 1)


def test_every_quotient_by_the_sum_is_found_and_no_other() -> None:
    """Beside the right one, by the sum of another value and of the sum by the value."""
    one = [("%v", "f32")]
    both = "%a = arith.divf %i1, %i0 : f32\n%b = arith.divf %i0, %i1 : f32\n%v = arith.addf %a, %b : f32"
    found = facts(divide=both)
    assert counts(found) == (1, 1, 0)
    maps = ["d0, d1", "d0", "d0, d1"]
    other = generic("%q", [("%w", T), ("%s", R)], [("%e", T)], maps, "pp", DIV, one)
    again = generic("%r", [("%p", T), ("%s", R)], [("%e", T)], maps, "pp", DIV, one)
    assert counts(facts(extra=f"{other}\n{again}", results=("%y", "%q", "%r"))) == (1, 2, 1)


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
