"""Splitting a dispatch into arms: what links, what does not, and that equal arms are equal text in one order."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.printer import Printer

from fuseline.dispatch.arm_entries import Arm, split_arms
from fuseline.dispatch.arms import Output, Subgrid, is_constant_like, subgrids
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.dim_json import to_name
from fuseline.ir.text import parse_module
from tests.unit.targets.cpu.arms.programs import elementwise


def _entry(arguments: str, body: str, returned: dict[str, str]) -> FuncOp:
    values, types = ", ".join(returned), ", ".join(returned.values())
    text = f"func.func @entry({arguments}) -> ({types}) {{ {body}\n func.return {values} : {types} }}"
    module = parse_module(text, new_context())
    return next(op for op in module.ops if isinstance(op, FuncOp))


def _text(arm: Arm) -> str:
    out = StringIO()
    Printer(out).print_op(arm.entry.body.block.parent_op())  # pyright: ignore[reportArgumentType]
    return out.getvalue().replace(arm.entry.sym_name.data, "arm")


def _sum(name: str, source: str, n: int, m: int, *, fill: str = "") -> str:
    made = f"""
    %e_{name}_ = tensor.empty() : tensor<{n}xf32>
    %f_{name}_ = linalg.fill ins(%z : f32) outs(%e_{name}_ : tensor<{n}xf32>) -> tensor<{n}xf32>"""
    return (
        (made if not fill else "")
        + f"""
    %{name} = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
          iterator_types = ["parallel", "reduction"]}}
      ins(%{source} : tensor<{n}x{m}xf32>) outs(%{fill or f"f_{name}_"} : tensor<{n}xf32>) {{
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %s, %a : f32
      linalg.yield %t : f32
    }} -> tensor<{n}xf32>"""
    )


def _arms(entry: FuncOp) -> list[Arm]:
    arms = split_arms(entry)
    for arm in arms:
        arm.entry.verify()
        assert len(DispatchView(arm.entry).tensors) == len(arm.operands) and len(
            DispatchView(arm.entry).results
        ) == len(arm.results)
    return arms


ZERO = "%z = arith.constant 0.0 : f32"


def test_one_piece_is_its_own_arm() -> None:
    entry = _entry(
        "%x: tensor<4x5xf32>", elementwise("y", ["x"], "4x5", "%v = math.absf %a0 : f32"), {"%y": "tensor<4x5xf32>"}
    )
    (arm,) = _arms(entry)
    assert arm.entry is entry and arm.operands == (0,) and [result.position for result in arm.results] == [0]
    view = DispatchView(entry)
    assert subgrids(view) == [Subgrid((Output(0, view.results[0]),), view.members)]


def test_the_only_arm_is_the_dispatch_itself() -> None:
    entry = _entry(
        "%x: tensor<4x5xf32>",
        elementwise("p", ["x"], "4x5", "%v = math.absf %a0 : f32"),
        {"%p": "tensor<4x5xf32>"},
    )
    (arm,) = _arms(entry)
    assert arm.entry is entry and arm.members == DispatchView(entry).members and arm.members


def test_every_arm_may_have_what_costs_nothing_and_reads_no_argument() -> None:
    body = """
    %c = arith.constant 0.0 : f32
    %e = tensor.empty(%n) : tensor<?xf32>
    %same = linalg.fill ins(%c : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %told = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>"""
    entry = _entry("%n: index, %z: f32", body, {"%same": "tensor<?xf32>", "%told": "tensor<?xf32>"})
    found = {str(op.results[0].name_hint): is_constant_like(op) for op in entry.body.block.ops if op.results}
    assert found == {"c": True, "e": True, "same": True, "told": False}


def test_a_shared_fill_links_nothing() -> None:
    fill = f"""{ZERO}
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>"""
    body = fill + _sum("p", "x", 6, 5, fill="f") + _sum("q", "y", 6, 5, fill="f")
    arms = _arms(
        _entry("%x: tensor<6x5xf32>, %y: tensor<6x5xf32>", body, {"%p": "tensor<6xf32>", "%q": "tensor<6xf32>"})
    )
    assert len(arms) == 2 and _text(arms[0]) == _text(arms[1])


@pytest.mark.parametrize(("said", "arms"), [("fuseline.scalar", 2), ("fuseline.constant", 1)])
def test_a_number_that_stands_for_a_constant_links_nothing(said: str, arms: int) -> None:
    parts = [
        elementwise(name, [f"x{name}"], f"{n}x300", "%v = arith.mulf %a0, %c : f32") for name, n in (("p", 5), ("q", 7))
    ]
    entry = _entry(
        f"%xp: tensor<5x300xf32>, %xq: tensor<7x300xf32>, %s: tensor<f32> {{{said}}}",
        "%c = tensor.extract %s[] : tensor<f32>" + "".join(parts),
        {"%p": "tensor<5x300xf32>", "%q": "tensor<7x300xf32>"},
    )
    found = _arms(entry)
    assert len(found) == arms
    assert all(view.is_scalar(view.tensors[-1]) == (arms == 2) for view in (DispatchView(arm.entry) for arm in found))


def test_a_value_made_inside_links() -> None:
    body = elementwise("h", ["x"], "4x5", "%v = math.exp %a0 : f32")
    body += elementwise("p", ["h"], "4x5", "%v = math.absf %a0 : f32") + elementwise(
        "q", ["h"], "4x5", "%v = arith.negf %a0 : f32"
    )
    assert len(_arms(_entry("%x: tensor<4x5xf32>", body, {"%p": "tensor<4x5xf32>", "%q": "tensor<4x5xf32>"}))) == 1


def _says(entry: FuncOp, loops: FusedLoops) -> FuncOp:
    entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops)
    return entry


ROWS = MemberLoops((0, None))


def test_what_goes_along_one_argument_stays_together_where_fusion_says_so() -> None:
    body = elementwise("p", ["x"], "7x5", "%v = math.absf %a0 : f32") + f"{ZERO}{_sum('s', 'x', 7, 5)}"
    results = {"%p": "tensor<7x5xf32>", "%s": "tensor<7xf32>"}
    assert len(_arms(_entry("%x: tensor<7x5xf32>", body, results))) == 2
    entry = _entry("%x: tensor<7x5xf32>", body, results)
    (arm,) = _arms(_says(entry, FusedLoops(((7,),), (ROWS, ROWS), along=((0, 0),))))
    assert arm.is_whole and arm.entry is entry


def test_of_three_parts_two_go_along_one_argument() -> None:
    body = elementwise("p", ["x"], "7x5", "%v = math.absf %a0 : f32") + f"{ZERO}{_sum('s', 'x', 7, 5)}"
    body += elementwise("q", ["y"], "7x5", "%v = arith.negf %a0 : f32")
    entry = _entry(
        "%y: tensor<7x5xf32>, %x: tensor<7x5xf32>",
        body,
        {"%p": "tensor<7x5xf32>", "%s": "tensor<7xf32>", "%q": "tensor<7x5xf32>"},
    )
    members = (ROWS, ROWS, MemberLoops((0, 1), arm=1))
    arms = _arms(_says(entry, FusedLoops(((7,), (7, 5)), members, along=((0, 0),))))
    assert [(arm.operands, [result.position for result in arm.results]) for arm in arms] == [
        ((1,), [0, 1]),
        ((0,), [2]),
    ]
    said = DispatchView(arms[0].entry).said_loops
    assert said is not None and (said.grids, said.along) == (((7,),), ((0, 0),))
    assert not any(arm.is_whole for arm in arms)


def test_the_copy_of_an_argument_is_made_by_the_arm_that_goes_along_it() -> None:
    body = elementwise("p", ["x"], "7x5", "%v = math.absf %a0 : f32")
    body += "%c = tensor.concat dim(1) %x, %p : (tensor<7x5xf32>, tensor<7x5xf32>) -> tensor<7x10xf32>"
    whole = MemberLoops((0, 1))
    for along, expected in ((((0, 0),), [2]), ((), [1, 1])):
        loops = FusedLoops(((7, 5), (7, 10)), (whole, MemberLoops((0, 1), arm=1)), along=along)
        arms = _arms(_says(_entry("%x: tensor<7x5xf32>", body, {"%c": "tensor<7x10xf32>"}), loops))
        assert [len(arm.results) for arm in arms] == expected
        assert sorted(result.offset for arm in arms for result in arm.results) == [0, 5]  # pyright: ignore
        assert not any(arm.is_whole for arm in arms)


def test_a_size_read_off_another_arm_links_nothing() -> None:
    attributes = 'fuseline.dims = ["s0", "5"]'
    arguments = (
        f"%x: tensor<?x5xf32> {{{attributes}}}, %y: tensor<?x5xf32> {{{attributes}}}, %s0: index "
        f'{{fuseline.name = "s0"}}'
    )
    body = elementwise("p", ["x"], "?x5", "%v = math.absf %a0 : f32", sizes="%s0")
    body += "\n%zero = arith.constant 0 : index\n%n = tensor.dim %p, %zero : tensor<?x5xf32>\n"
    body += "%q = tensor.extract_slice %y[0, 0] [%n, 3] [1, 1] : tensor<?x5xf32> to tensor<?x3xf32>"
    arms = _arms(_entry(arguments, body, {"%p": "tensor<?x5xf32>", "%q": "tensor<?x3xf32>"}))
    assert [arm.operands for arm in arms] == [(0,), (1,)]
    assert all('fuseline.name = "s0"' in _text(arm) and "fuseline.bounds" not in _text(arm) for arm in arms)


@pytest.mark.parametrize("names", [("p", "q"), ("q", "p")])
def test_order_follows_the_work_not_the_program(names: Sequence[str]) -> None:
    """The reduction of 6x50 comes before the map of 4x5, wherever both stand and whatever they are called."""
    small, large = names
    parts = {small: elementwise(small, ["x"], "4x5", "%v = math.absf %a0 : f32"), large: _sum(large, "y", 6, 50)}
    types = {small: "tensor<4x5xf32>", large: "tensor<6xf32>"}
    texts: list[list[str]] = []
    for order in (names, names[::-1]):
        body = ZERO + "".join(parts[name] for name in order)
        arms = _arms(
            _entry("%x: tensor<4x5xf32>, %y: tensor<6x50xf32>", body, {f"%{name}": types[name] for name in order})
        )
        assert [arm.operands for arm in arms] == [(1,), (0,)]
        assert [arm.results[0].position for arm in arms] == [order.index(large), order.index(small)]
        texts.append([_text(arm) for arm in arms])
    assert texts[0] == texts[1]


def test_sizes_are_renamed_by_use_and_kept_within_their_bounds() -> None:
    def argument(name: str, size: str) -> str:
        return f'%{name}: tensor<?x5xf32> {{fuseline.dims = ["{size}", "5"]}}'

    def size(name: str, bounds: str) -> str:
        return f'%{name}: index {{fuseline.name = "{name}", fuseline.bounds = "{bounds}"}}'

    body = elementwise("p", ["x"], "?x5", "%v = math.absf %a0 : f32", sizes="%s0")
    body += elementwise("q", ["y"], "?x5", "%v = math.absf %a0 : f32", sizes="%s1")
    arguments = ", ".join((argument("x", "s0"), argument("y", "s1"), size("s0", "1..8"), size("s1", "2..")))
    first, second = _arms(_entry(arguments, body, {"%p": "tensor<?x5xf32>", "%q": "tensor<?x5xf32>"}))
    by_result = {arm.results[0].position: arm for arm in (first, second)}
    assert by_result[0].sizes == (("s0", d.symbol("s0", 1, 8)),) and by_result[1].sizes == (("s0", d.symbol("s1", 2)),)
    view = DispatchView(by_result[1].entry)
    assert view.size_names == ("s0",) and view.shapes.dims(view.results[0]) == (d.symbol("s0", 2), 5)


def test_offsets_of_parts_are_outside_the_code() -> None:
    """Equal parts of a concat are equal text; where each begins is said beside it, in elements."""
    body = elementwise("p", ["x"], "4x5", "%v = math.absf %a0 : f32") + elementwise(
        "q", ["y"], "4x5", "%v = math.absf %a0 : f32"
    )
    body += "%c = tensor.concat dim(1) %p, %q : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x10xf32>"
    arms = _arms(_entry("%x: tensor<4x5xf32>, %y: tensor<4x5xf32>", body, {"%c": "tensor<4x10xf32>"}))
    assert _text(arms[0]) == _text(arms[1])
    assert [(arm.operands, arm.results[0].position, arm.results[0].offset) for arm in arms] == [
        ((0,), 0, 0),
        ((1,), 0, 5),
    ]


def test_a_part_that_is_constant_or_an_argument_is_an_arm_without_members() -> None:
    body = f"""{ZERO}{elementwise("p", ["x"], "4x5", "%v = math.absf %a0 : f32")}
    %e = tensor.empty() : tensor<4x2xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
    %c = tensor.concat dim(1) %f, %p, %y : (tensor<4x2xf32>, tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<4x10xf32>"""
    arms = _arms(_entry("%x: tensor<4x5xf32>, %y: tensor<4x3xf32>", body, {"%c": "tensor<4x10xf32>"}))
    assert [(arm.operands, len(arm.members), arm.results[0].offset) for arm in arms] == [
        ((0,), 1, 2),
        ((1,), 0, 7),
        ((), 0, 0),
    ]


def test_a_size_of_an_arm_may_be_as_small_as_that_of_the_whole() -> None:
    """`max(n, 1)` stays what it is where `n` may be 0."""
    name = to_name(d.maximum(d.symbol("n", 0), 1)).replace('"', '\\"')
    entry = 'fuseline.dims = ["{}", "5"]'
    arguments = f"%x: tensor<?x5xf32> {{{entry.format(name)}}}, %y: tensor<?x5xf32> {{{entry.format(name)}}}, "
    arguments += '%n: index {fuseline.name = "n", fuseline.bounds = "0..100"}'
    sizes = "\n%one = arith.constant 1 : index\n%m = arith.maxsi %n, %one : index\n"
    body = sizes + elementwise("p", ["x"], "?x5", "%v = math.absf %a0 : f32", sizes="%m")
    body += elementwise("q", ["y"], "?x5", "%v = arith.negf %a0 : f32", sizes="%m")
    arms = _arms(_entry(arguments, body, {"%p": "tensor<?x5xf32>", "%q": "tensor<?x5xf32>"}))
    assert len(arms) == 2
    for arm in arms:
        (size,) = DispatchView(arm.entry).shapes.dims(arm.entry.body.block.args[0])[:1]
        (found,) = d.symbols(size)
        assert [d.evaluate(size, {found.name: n}) for n in (0, 1, 7)] == [1, 1, 7]
