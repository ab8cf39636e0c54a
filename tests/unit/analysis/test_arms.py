"""Splitting a dispatch into arms: what links, what does not, and that equal arms are equal text in one order."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.printer import Printer

from fuseline.dispatch.arm_entries import Arm, split_arms
from fuseline.dispatch.arms import Output, Subgrid, is_constant_like, subgrids
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


def test_what_walks_one_argument_in_step_stays_together() -> None:
    body = elementwise("p", ["x"], "70x5", "%v = math.absf %a0 : f32") + f"{ZERO}{_sum('s', 'x', 70, 5)}"
    assert len(_arms(_entry("%x: tensor<70x5xf32>", body, {"%p": "tensor<70x5xf32>", "%s": "tensor<70xf32>"}))) == 1
    halves = "".join(
        f"%{n} = tensor.extract_slice %x[0, {at}] [70, 4] [1, 1] : tensor<70x8xf32> to tensor<70x4xf32>\n"
        for n, at in (("l", 0), ("r", 4))
    )
    body = (
        halves
        + elementwise("p", ["l"], "70x4", "%v = math.absf %a0 : f32")
        + elementwise("q", ["r"], "70x4", "%v = arith.negf %a0 : f32")
    )
    assert len(_arms(_entry("%x: tensor<70x8xf32>", body, {"%p": "tensor<70x4xf32>", "%q": "tensor<70x4xf32>"}))) == 1


def test_products_of_one_large_operand_stay_apart() -> None:
    body = ZERO
    for name in "pq":
        body += f"""
    %e_{name} = tensor.empty() : tensor<200x5xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<200x5xf32>) -> tensor<200x5xf32>
    %{name} = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>,
          affine_map<(d0, d1, d2) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w_{name} : tensor<200x9xf32>, tensor<9x5xf32>) outs(%f_{name} : tensor<200x5xf32>) {{
    ^bb0(%a: f32, %b: f32, %s: f32):
      %m = arith.mulf %a, %b : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    }} -> tensor<200x5xf32>"""
    arguments = "%x: tensor<200x9xf32>, %w_p: tensor<9x5xf32>, %w_q: tensor<9x5xf32>"
    assert len(_arms(_entry(arguments, body, {"%p": "tensor<200x5xf32>", "%q": "tensor<200x5xf32>"}))) == 2


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


def test_sums_of_rows_and_of_columns_have_no_steps_in_common() -> None:
    columns = _sum("c", "x", 80, 80).replace("affine_map<(d0, d1) -> (d0, d1)>", "affine_map<(d0, d1) -> (d1, d0)>")
    body = f"{ZERO}{_sum('r', 'x', 80, 80)}{columns}"
    assert len(_arms(_entry("%x: tensor<80x80xf32>", body, {"%r": "tensor<80xf32>", "%c": "tensor<80xf32>"}))) == 2


def test_what_is_gathered_is_not_walked() -> None:
    gather = """
    %e_g = tensor.empty() : tensor<90x4xf32>
    %g = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<90x4xf32>) outs(%e_g : tensor<90x4xf32>) {
    ^bb0(%h: f32, %o: f32):
      %i = arith.constant 3 : index
      %j = linalg.index 1 : index
      %t = tensor.extract %x[%i, %j] : tensor<90x4xf32>
      %u = arith.addf %h, %t : f32
      linalg.yield %u : f32
    } -> tensor<90x4xf32>"""
    body = gather + elementwise("p", ["x"], "90x4", "%v = math.absf %a0 : f32")
    assert len(_arms(_entry("%x: tensor<90x4xf32>", body, {"%g": "tensor<90x4xf32>", "%p": "tensor<90x4xf32>"}))) == 2


def test_few_steps_in_common_are_no_reason() -> None:
    """Five rows of 70: together they could occupy five threads at most."""
    body = elementwise("p", ["x"], "5x70", "%v = math.absf %a0 : f32") + f"{ZERO}{_sum('s', 'x', 5, 70)}"
    assert len(_arms(_entry("%x: tensor<5x70xf32>", body, {"%p": "tensor<5x70xf32>", "%s": "tensor<5xf32>"}))) == 2


def test_other_spaces_or_other_arguments_do_not() -> None:
    flat = "%t = tensor.collapse_shape %x [[0, 1]] : tensor<4x5xf32> into tensor<20xf32>"
    body = (
        elementwise("p", ["x"], "4x5", "%v = math.absf %a0 : f32")
        + f"\n{flat}\n"
        + elementwise("q", ["t"], "20", "%v = arith.negf %a0 : f32")
    )
    assert len(_arms(_entry("%x: tensor<4x5xf32>", body, {"%p": "tensor<4x5xf32>", "%q": "tensor<20xf32>"}))) == 2
    body = elementwise("p", ["x"], "4x5", "%v = math.absf %a0 : f32") + elementwise(
        "q", ["y"], "4x5", "%v = arith.negf %a0 : f32"
    )
    types = {"%p": "tensor<4x5xf32>", "%q": "tensor<4x5xf32>"}
    assert len(_arms(_entry("%x: tensor<4x5xf32>, %y: tensor<4x5xf32>", body, types))) == 2


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
