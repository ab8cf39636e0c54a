"""Updates combined into computed places, along any axis, from any start."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.sequential.scatter import ScatterFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.target import Refusal

from .generics import empty, fill, function, generic, tensor
from .texts import build, check, parse

SUM, PRODUCT, MAXIMUM, MINIMUM = (
    ("addf", "0.0"),
    ("mulf", "1.0"),
    ("maximumf", "0xFF800000"),
    ("minimumf", "0x7F800000"),
)
LAST = ("last", "0.0")
"""The last update replaces what is there."""


def scatter(
    shape: tuple[int | str, ...], axis: int, updates: int | str, combine: tuple[str, str] = SUM, *,
    element: str = "f32", shared: bool = False,
    swapped: bool = False, index: str = "i64", value: str = "%i1", before: str = "", start: str = "",
    predicate: str = "eq", after: str = "", result: str = "f32",
) -> str:  # fmt: skip
    """The root alone: `value` (made by `before`) of every update goes to the place that the first input names; `shared`
    by a whole slice."""
    rank = len(shape)
    given = tuple(updates if i == axis else size for i, size in enumerate(shape))
    places = (updates,) if shared else given
    loops = ", ".join(f"d{i}" for i in range(rank))
    read = ", ".join(f"d{rank}" if i == axis else f"d{i}" for i in range(rank))
    t, u, p = tensor(shape, element), tensor(given, element), tensor(places, index)
    order = "%place, %w" if swapped else "%w, %place"
    body = f"""%w = linalg.index {axis} : index
%place = arith.index_cast %i0 : {index} to index
{before}
%hit = arith.cmpi {predicate}, {order} : index
%neutral = arith.constant {combine[1]}{"" if element == "i1" else f" : {element}"}
%v = arith.select %hit, {value}, %neutral : {element}
%t = arith.{combine[0]} %o0, %v : {element}"""
    if combine[0] == "last":
        body = "\n".join(body.splitlines()[:-3]) + f"\n%t = arith.select %hit, {value}, %o0 : {element}"
    maps = [f"d{rank}" if shared else read, read, loops]
    op = generic("%y", [("%p", p), ("%u", u)], [("%f", t)], maps, "p" * rank + "r", body, [("%t", element)])
    names = sorted({s for s in (*shape, updates) if isinstance(s, str)})
    text = [empty("e", shape), fill("f", start or combine[1], shape, element), op, after]
    return function(
        [("p", places, index), ("u", given, element)],
        names,
        "\n".join(text),
        [("%z", tensor(shape, result)) if after else ("%y", t)],
    )


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 7, 19), 0), ((5, 7, 19), 1), ((5, 7, 19), 2), ((33,), 0), ((3, 1, 70), 0), ((6, 40), 0)]
)
def test_along_any_axis(shape: tuple[int, ...], axis: int, shared: bool) -> None:
    """Of places from -9 to 9 some are outside."""
    check(scatter(shape, axis, 11, shared=shared), family="scatter")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((5, 7, 19), 0), ((5, 7, 19), 2), ((33,), 0), ((70,), 0)])
def test_the_last_of_several_stays(shape: tuple[int, ...], axis: int, shared: bool) -> None:
    """Of 40 updates several go to one place."""
    check(scatter(shape, axis, 40, LAST, start="2.5", shared=shared), family="scatter")


@pytest.mark.parametrize("element", ["i64", "i8"])
def test_the_last_of_several_integers_stays(element: str) -> None:
    check(scatter((9, 21), 0, 15, ("last", "3"), element=element), family="scatter")


@pytest.mark.parametrize("element", ["f16", "bf16", "i1"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((9, 21), 0), ((3, 5, 70), 1), ((33,), 0)])
def test_halves_and_truths_are_put_in_their_place(
    shape: tuple[int, ...], axis: int, shared: bool, element: str
) -> None:
    start = "true" if element == "i1" else ""
    check(scatter(shape, axis, 15, LAST, element=element, shared=shared, result=element, start=start), family="scatter")


@pytest.mark.parametrize("combine", [SUM, PRODUCT, MAXIMUM, MINIMUM])
def test_what_combines(combine: tuple[str, str]) -> None:
    check(scatter((4, 9), 0, 13, combine), family="scatter")


@pytest.mark.parametrize("element", ["i64", "i32", "i8"])
@pytest.mark.parametrize("shared", [False, True])
def test_integers(element: str, shared: bool) -> None:
    check(scatter((6, 21), 0, 15, ("addi", "0"), element=element, shared=shared), family="scatter")
    check(
        scatter(
            (6, 21),
            0,
            15,
            ("maxsi", {"i64": str(-(2**63)), "i32": str(-(2**31)), "i8": "-128"}[element]),
            element=element,
        ),
        family="scatter",
    )


def test_the_other_operand_order_and_narrow_places() -> None:
    check(scatter((4, 9), 1, 6, swapped=True, index="i32"), family="scatter")


def test_a_start_beside_the_neutral_number() -> None:
    check(scatter((4, 19), 0, 6, start="2.5", shared=True), family="scatter")


def test_updates_and_places_that_are_computed() -> None:
    body = "%q = math.exp %i1 : f32"
    check(scatter((4, 19), 0, 6, before=body, value="%q", shared=True), family="scatter")


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1, "k": 1}, {"n": 5, "m": 8, "k": 3}, {"n": 9, "m": 43, "k": 20}])
@pytest.mark.parametrize("shared", [False, True])
def test_any_size(sizes: dict[str, int], shared: bool) -> None:
    check(scatter(("n", "m"), 0, "k", shared=shared), sizes=sizes, family="scatter")


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_halves_on_every_isa(isa: str) -> None:
    text = scatter((5, 21), 0, 8, LAST, element="f16", shared=True, result="f16")
    assert build(parse(text), machine(isa)).family.name == "scatter"


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_isa(isa: str) -> None:
    assert build(parse(scatter((5, 21), 0, 8, shared=True)), machine(isa)).family.name == "scatter"


def _doubled(shape: tuple[int | str, ...]) -> str:
    t, loops = tensor(shape), ", ".join(f"d{i}" for i in range(len(shape)))
    body = "%d = arith.addf %i0, %i0 : f32"
    return generic("%z", [("%y", t)], [("%e", t)], [loops, loops], "p" * len(shape), body, [("%d", "f32")])


def _compared(shape: tuple[int, ...]) -> str:
    body = "%zero = arith.constant 0.0 : f32\n%d = arith.cmpf ogt, %i0, %zero : f32"
    made = generic(
        "%z", [("%y", tensor(shape))], [("%e1", tensor(shape, "i1"))], ["d0, d1", "d0, d1"], "pp", body, [("%d", "i1")]
    )
    return f"{empty('e1', shape, 'i1')}\n{made}"


@pytest.mark.parametrize("combine", [SUM, LAST])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 7, 19), 0), ((5, 7, 19), 1), ((5, 7, 19), 2), ((33,), 0), ((6, 70), 0)]
)
def test_what_follows_is_computed_when_the_walk_is_over(
    shape: tuple[int, ...], axis: int, shared: bool, combine: tuple[str, str]
) -> None:
    check(scatter(shape, axis, 11, combine, shared=shared, after=_doubled(shape)), family="scatter")


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1, "k": 1}, {"n": 5, "m": 8, "k": 3}, {"n": 9, "m": 43, "k": 20}])
def test_an_epilogue_of_any_size(sizes: dict[str, int]) -> None:
    text = scatter(("n", "m"), 0, "k", shared=True, after=_doubled(("n", "m")))
    check(text, sizes=sizes, family="scatter")


REFUSED = {
    "another neutral number": (scatter((4, 9), 0, 6, ("addf", "1.0")), "not-a-scatter"),
    "another comparison": (scatter((4, 9), 0, 6, predicate="ne"), "not-a-scatter"),
    "updates that know their place": (
        scatter(
            (4, 9),
            0,
            6,
            before="%s = arith.index_cast %w : index to i64\n%q = arith.sitofp %s : i64 to f32",
            value="%q",
        ),
        "not-a-scatter",
    ),
    "halves": (scatter((4, 9), 0, 6, element="f16"), "element-type"),
    "truth": (scatter((4, 9), 0, 6, ("ori", "false"), element="i1"), "element-type"),
    "no result for the totals": (scatter((4, 9), 0, 6, after=_compared((4, 9)), result="i1"), "epilogue"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    """What the family does not take, another one makes as it is written."""
    text, code = REFUSED[name]
    found = ScatterFamily().accepts(parse(text), machine("avx2"))
    assert isinstance(found, Refusal) and found.code == code
    check(text)
