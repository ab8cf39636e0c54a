"""Running sums, products and maxima along any axis, both ways, with and without the element itself."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.sequential.scan import ScanFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.target import Refusal

from .generics import empty, fill, function, generic, tensor
from .texts import build, check, parse

SUM, PRODUCT, MAXIMUM = ("addf", "0.0"), ("mulf", "1.0"), ("maximumf", "0xFF800000")


def scan(
    shape: tuple[int | str, ...], axis: int, predicate: str = "sge", combine: tuple[str, str] = SUM, *,
    element: str = "f32", swapped: bool = False,
    value: str = "%i0", before: str = "", start: str = "",
) -> str:  # fmt: skip
    """The root alone: `value` (made by `before`) of every element whose index compares with the result's as `predicate`
    says."""
    rank = len(shape)
    t = tensor(shape, element)
    loops = ", ".join(f"d{i}" for i in range(rank))
    read = ", ".join(f"d{rank}" if i == axis else f"d{i}" for i in range(rank))
    order = "%r, %w" if swapped else "%w, %r"
    body = f"""%w = linalg.index {axis} : index
%r = linalg.index {rank} : index
{before}
%c = arith.cmpi {predicate}, {order} : index
%neutral = arith.constant {combine[1]}{"" if element == "i1" else f" : {element}"}
%v = arith.select %c, {value}, %neutral : {element}
%t = arith.{combine[0]} %o0, %v : {element}"""
    op = generic("%y", [("%x", t)], [("%f", t)], [read, loops], "p" * rank + "r", body, [("%t", element)])
    names = sorted({s for s in shape if isinstance(s, str)})
    return function(
        [("x", shape, element)], names, fill("f", start or combine[1], shape, element) + "\n" + op, [("%y", t)]
    )


@pytest.mark.parametrize("predicate", ["sge", "sgt", "sle", "slt"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 7, 19), 0), ((5, 7, 19), 1), ((5, 7, 19), 2), ((33,), 0), ((3, 1, 70), 0), ((6, 40), 0)]
)
def test_both_ways(shape: tuple[int, ...], axis: int, predicate: str) -> None:
    check(scan(shape, axis, predicate), family="scan")


@pytest.mark.parametrize("combine", [SUM, PRODUCT, MAXIMUM])
def test_what_combines(combine: tuple[str, str]) -> None:
    check(scan((4, 9, 11), 1, combine=combine), family="scan")


@pytest.mark.parametrize("element", ["i64", "i32", "i8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers(element: str, axis: int) -> None:
    check(scan((6, 21), axis, combine=("addi", "0"), element=element), family="scan")


def test_the_other_operand_order() -> None:
    check(scan((4, 9), 1, "sle", swapped=True), family="scan")
    check(scan((4, 9), 0, "slt", swapped=True), family="scan")


def test_a_start_beside_the_neutral_number() -> None:
    check(scan((4, 9), 0, start="2.5"), family="scan")


def test_an_element_that_is_computed() -> None:
    check(scan((4, 19), 0, before="%q = math.exp %i0 : f32", value="%q"), family="scan")


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 5, "m": 8}, {"n": 9, "m": 43}])
@pytest.mark.parametrize("axis", [0, 1])
def test_any_size(sizes: dict[str, int], axis: int) -> None:
    check(scan(("n", "m"), axis), sizes=sizes, family="scan")


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_isa(isa: str) -> None:
    assert build(parse(scan((5, 21), 0)), machine(isa)).family.name == "scan"


REFUSED = {
    "another neutral number": (scan((4, 9), 0, combine=("addf", "1.0")), "not-a-scan"),
    "another comparison": (scan((4, 9), 0, "ne"), "not-a-scan"),
    "elements that know their place": (
        scan(
            (4, 9), 0, before="%p = arith.index_cast %w : index to i64\n%q = arith.sitofp %p : i64 to f32", value="%q"
        ),
        "not-a-scan",
    ),
    "halves": (scan((4, 9), 0, element="f16"), "element-type"),
    "truth": (scan((4, 9), 0, combine=("ori", "false"), element="i1"), "element-type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    text, code = REFUSED[name]
    found = ScanFamily().accepts(parse(text), machine("avx2"))
    assert isinstance(found, Refusal) and found.code == code


def test_what_follows_and_what_comes_before() -> None:
    t = tensor((5, 21))
    body = """%w = linalg.index 0 : index
%r = linalg.index 2 : index
%c = arith.cmpi sge, %w, %r : index
%neutral = arith.constant 0.0 : f32
%v = arith.select %c, %i0, %neutral : f32
%t = arith.addf %o0, %v : f32"""
    before = generic(
        "%a", [("%x", t)], [("%e", t)], ["d0, d1", "d0, d1"], "pp", "%z = math.absf %i0 : f32", [("%z", "f32")]
    )
    root = generic("%s", [("%a", t)], [("%f", t)], ["d2, d1", "d0, d1"], "ppr", body, [("%t", "f32")])
    after = generic(
        "%y",
        [("%s", t), ("%x", t)],
        [("%e", t)],
        ["d0, d1"] * 3,
        "pp",
        "%m = arith.mulf %i0, %i1 : f32",
        [("%m", "f32")],
    )
    text = "\n".join([empty("e", (5, 21)), fill("f", "0.0", (5, 21)), before, root, after])
    found = parse(function([("x", (5, 21), "f32")], [], text, [("%y", t)]))
    assert build(found, machine()).family.name == "scan"
    check(function([("x", (5, 21), "f32")], [], text, [("%y", t)]), family="scan")
