"""What a product pays for reading through producers: one case per kind and per reason against."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.parser import Parser

from fuseline.analysis.prologue import prologue
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.context import new_context
from fuseline.ir.costs import ASSUMED_COSTS, ASSUMED_SIZE
from tests.draws import RNG

from .prologue_programs import judged, matmul, unary

EXP, NEGATE = "%w = math.exp %v : f32", "%w = arith.negf %v : f32"
CONCAT = "%c = tensor.concat dim(1) %a, %b : (tensor<8x12xf32>, tensor<8x20xf32>) -> tensor<8x32xf32>"


def test_a_slice_is_addressed():
    body = "%s = tensor.extract_slice %a[0, 5] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>" + matmul(
        "%s", "%b", 8, 32, 16
    )
    assert judged(body, "tensor<8x16xf32>", "a: tensor<8x64xf32>", "b: tensor<32x16xf32>") == Prologue("addressed")


def test_a_concat_along_the_reduction_is_segmented():
    body = CONCAT + matmul("%c", "%w", 8, 32, 16)
    arguments = ("a: tensor<8x12xf32>", "b: tensor<8x20xf32>", "w: tensor<32x16xf32>")
    assert judged(body, "tensor<8x16xf32>", *arguments) == Prologue("segmented", pieces=2)


@pytest.mark.parametrize("empty", range(3))
def test_where_a_loop_never_runs_nothing_is_evaluated(empty: int):
    sizes = [int(n) for n in RNG.integers(1, 300, 3)]
    sizes[empty] = 0
    m, k, n = sizes
    body = unary("%w", "%a", f"{m}x{k}", EXP) + matmul("%w", "%b", m, k, n)
    arguments = (f"a: tensor<{m}x{k}xf32>", f"b: tensor<{k}x{n}xf32>")
    assert judged(body, f"tensor<{m}x{n}xf32>", *arguments) == Prologue("addressed")


def test_a_stored_concat_is_one_tensor():
    concat = CONCAT.replace(" : (", " {stored} : (")
    arguments = ("a: tensor<8x12xf32>", "b: tensor<8x20xf32>", "w: tensor<32x16xf32>")
    assert judged(
        concat + matmul("%c", "%w", 8, 32, 16), "tensor<8x16xf32>", *arguments, stored=("stored",)
    ) == Prologue("addressed")


def test_a_concat_that_vectors_run_along_is_packed_per_panel():
    body = CONCAT + matmul("%x", "%c", 300, 8, 32)
    found = judged(
        body, "tensor<300x32xf32>", "x: tensor<300x8xf32>", "a: tensor<8x12xf32>", "b: tensor<8x20xf32>", operand=1
    )
    assert found == Prologue("packed", recompute=5.0, beside_packed=5.0, operations=0)


def test_a_concat_of_rows_is_packed():
    concat = "%c = tensor.concat dim(0) %a, %b : (tensor<3x32xf32>, tensor<5x32xf32>) -> tensor<8x32xf32>"
    found = judged(
        concat + matmul("%c", "%w", 8, 32, 16),
        "tensor<8x16xf32>",
        "a: tensor<3x32xf32>",
        "b: tensor<5x32xf32>",
        "w: tensor<32x16xf32>",
    )
    assert found == Prologue("packed", recompute=1.0, operations=0)


def test_arithmetic_is_evaluated_once_per_block_of_columns():
    body = unary("%n", "%a", "8x32", NEGATE) + unary("%q", "%n", "8x32", EXP) + matmul("%q", "%b", 8, 32, 200)
    found = judged(body, "tensor<8x200xf32>", "a: tensor<8x32xf32>", "b: tensor<32x200xf32>")
    assert (found.kind, found.recompute) == ("packed", 3.0)
    assert found.operations > 2


@pytest.mark.parametrize(("block_uses", "times"), [(16, 12.0), (32, 6.0), (64, 3.0), (128, 1.0)])
def test_a_block_is_as_wide_as_the_machine_makes_it(block_uses: int, times: float):
    body = unary("%q", "%a", "8x32", EXP) + matmul("%q", "%b", 8, 32, 200)
    found = judged(body, "tensor<8x200xf32>", "a: tensor<8x32xf32>", "b: tensor<32x200xf32>", block_uses=block_uses)
    assert found.recompute == times


def test_a_block_of_64_bits_has_half_as_many_columns():
    body = unary("%q", "%a", "8x32", EXP) + matmul("%q", "%b", 8, 32, 200)
    wide = body.replace("f32", "f64").replace("%zero", "%none")
    wide = "%none = arith.constant 0.0 : f64\n" + wide
    found = judged(wide, "tensor<8x200xf64>", "a: tensor<8x32xf64>", "b: tensor<32x200xf64>")
    assert found.recompute == 6.0


def _straight_and_across(steps: int) -> tuple[Prologue, Prologue]:
    """Eight rows of exponentials that lie along the reduction, and across it."""
    product = matmul("%q", "%b", 8, steps, 200)
    straight = judged(
        unary("%q", "%a", f"8x{steps}", EXP) + product,
        "tensor<8x200xf32>", f"a: tensor<8x{steps}xf32>", f"b: tensor<{steps}x200xf32>",
    )  # fmt: skip
    return straight, _across(8, steps, 200)


def _across(rows: int, steps: int, columns: int, weights: str = "") -> Prologue:
    """Rows of exponentials that lie across the reduction, times an argument or `%weights`."""
    product = matmul("%q", "%weights" if weights else "%b", rows, steps, columns)
    product = product.replace("(i, j, l) -> (i, l)", "(i, j, l) -> (l, i)")
    product = product.replace(f"{rows}x{steps}xf32", f"{steps}x{rows}xf32")
    return judged(
        weights + unary("%q", "%a", f"{steps}x{rows}", EXP) + product,
        f"tensor<{rows}x{columns}xf32>", f"a: tensor<{steps}x{rows}xf32>", f"b: tensor<{steps}x{columns}xf32>",
    )  # fmt: skip


def test_columns_left_over_read_the_box_of_the_others():
    def evaluations(columns: int) -> float:
        weights = f"%weights = arith.constant dense<1.0> : tensor<64x{columns}xf32>\n"
        found = _across(1024, 64, columns, weights)
        assert found.kind == "boxed"
        return found.recompute

    assert evaluations(100) == evaluations(112) == evaluations(113) / 2


def test_rows_that_lie_across_the_reduction_have_a_box():
    straight, across = _straight_and_across(32)
    assert (straight.kind, across.kind) == ("packed", "boxed") and not across.gathered
    assert across.recompute == 1.0  # so little arithmetic is one block, whose columns read one box
    straight, across = _straight_and_across(4000)
    assert (straight.kind, across.kind) == ("packed", "boxed") and not across.gathered  # some steps at a time
    assert across.recompute == 1.0


@pytest.mark.parametrize("stored", ["(i, l, k)", "(l, i, k)", "(k, l, i)"])
def test_rows_that_lie_along_one_of_several_summed_loops_are_not_gathered(stored: str):
    """Whichever of them is written last."""
    for loops in ("(i, j, l, k)", "(i, j, k, l)"):
        sizes = {"i": 300, "l": 3, "k": 700}
        shape = "x".join(str(sizes[name]) for name in stored if name in sizes)
        product = matmul("%q", "%b", 300, 2100, 200).replace("300x2100", shape).replace("2100x200", "3x700x200")
        for map_, more in (("(i, l)", stored), ("(l, j)", "(l, k, j)"), ("(i, j)", "(i, j)")):
            product = product.replace(f"(i, j, l) -> {map_}", f"{loops} -> {more}")
        product = product.replace('"reduction"]', '"reduction", "reduction"]')
        made = unary("%q", "%a", shape, EXP).replace("(i, j) -> (i, j)", "(i, j, k) -> (i, j, k)")
        made = made.replace('"parallel"]', '"parallel", "parallel"]')
        found = judged(made + product, "tensor<300x200xf32>", f"a: tensor<{shape}xf32>", "b: tensor<3x700x200xf32>")
        assert (found.kind, found.gathered) == ("boxed" if stored == "(k, l, i)" else "packed", False)


def test_columns_that_lie_along_the_reduction_are_turned_not_gathered():
    product = matmul("%a", "%q", 300, 32, 8)
    turned = product.replace("(i, j, l) -> (l, j)", "(i, j, l) -> (j, l)").replace("tensor<32x8", "tensor<8x32")
    found = judged(
        unary("%q", "%b", "8x32", EXP) + turned,
        "tensor<300x8xf32>",
        "a: tensor<300x32xf32>",
        "b: tensor<8x32xf32>",
        operand=1,
    )
    assert found.kind == "packed" and not found.gathered


@pytest.mark.parametrize(("columns", "steps", "alone", "beside"), [
    (200, 32, 3.0, 4.0),  # 64 columns at the least, whatever the rows are
    (20000, 32, 64.0, 313.0),  # no launch has more workgroups; packed columns are as many as fit
    (640, 1024, 10.0, 10.0),  # a block of 256 steps at a time, of which 112 columns fit beside packed rows
])  # fmt: skip
def test_blocks_are_what_a_launch_has_and_what_fits(columns: int, steps: int, alone: float, beside: float):
    body = unary("%n", "%a", f"8x{steps}", NEGATE) + matmul("%n", "%b", 8, steps, columns)
    found = judged(body, f"tensor<8x{columns}xf32>", f"a: tensor<8x{steps}xf32>", f"b: tensor<{steps}x{columns}xf32>")
    assert (found.kind, found.recompute, found.beside_packed) == ("packed", alone, beside)


@pytest.mark.parametrize(("rows", "threads", "times"), [(28, 1, 1.0), (28, 2, 8.0), (30, 2, 6.0), (3000, 2, 1.0)])
def test_columns_of_a_constant_are_shared_out_as_far_as_threads_lack_blocks_of_rows(
    rows: int, threads: int, times: float
):
    """Of which each thread has eight, of 14 rows. Columns of an argument may be packed as well, in as many blocks as
    there are."""
    arguments = f"tensor<{rows}x512xf32>", f"a: tensor<{rows}x256xf32>"
    exponentials = unary("%q", "%a", f"{rows}x256", EXP)
    weights = "%weights = arith.constant dense<1.0> : tensor<256x512xf32>\n"
    product = matmul("%q", "%weights", rows, 256, 512)
    assert judged(weights + exponentials + product, *arguments, threads=threads).recompute == times
    found = judged(exponentials + product, *arguments, "weights: tensor<256x512xf32>", threads=threads)
    assert found.recompute == 8.0


def test_what_is_stored_on_the_way_is_not_evaluated():
    body = (
        unary("%q", "%a", "8x32", EXP, tag="stored") + unary("%n", "%q", "8x32", NEGATE) + matmul("%n", "%b", 8, 32, 20)
    )
    found = judged(body, "tensor<8x20xf32>", "a: tensor<8x32xf32>", "b: tensor<32x20xf32>", stored=("stored",))
    assert found == Prologue("packed", recompute=1.0, operations=1)


def test_a_reduction_is_not_repeated():
    total = """
    %te = tensor.empty() : tensor<8x32xf32>
    %tf = linalg.fill ins(%zero : f32) outs(%te : tensor<8x32xf32>) -> tensor<8x32xf32>
    %t = linalg.generic {indexing_maps = [affine_map<(i, j, l) -> (i, j, l)>, affine_map<(i, j, l) -> (i, j)>],
        iterator_types = ["parallel", "parallel", "reduction"]} ins(%a : tensor<8x32x9xf32>)
            outs(%tf : tensor<8x32xf32>) attrs = {sum} {
    ^bb0(%v: f32, %o: f32):
      %w = arith.maximumf %v, %o : f32
      linalg.yield %w : f32
    } -> tensor<8x32xf32>"""
    text = total + matmul("%t", "%b", 8, 32, 20)
    module = Parser(new_context(), f"func.func @main(%a: tensor<8x32x9xf32>, %b: tensor<32x20xf32>) -> "
                                   f"tensor<8x20xf32> {{\n"
                    f"%zero = arith.constant 0.0 : f32\n{text}\n}}").parse_module()  # fmt: skip
    entry = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    ops = list(entry.body.block.ops)
    root = next(op for op in ops if kind(op) is Kind.CONTRACTION)
    assert is_generic(root)
    found = prologue(StructuredOp(root), 0, {op for op in ops if kind(op) is Kind.REDUCTION}, ShapeAnalysis())
    assert found.kind is None
    assert "reduction" in found.reason


def test_rows_too_long_for_the_scratch_are_packed_in_blocks():
    body = unary("%n", "%a", "8x5000", NEGATE) + matmul("%n", "%b", 8, 5000, 2000)
    arguments = "tensor<8x2000xf32>", "a: tensor<8x5000xf32>", "b: tensor<5000x2000xf32>"
    found = judged(body, *arguments, block_uses=500)
    assert (found.kind, found.recompute, found.beside_packed) == ("packed", 4, 18)  # 28 Ki elements are 112 of 256


def test_rows_that_are_too_long_along_two_loops_are_packed_in_blocks_of_both():
    body = """
    %ne = tensor.empty() : tensor<8x5000x5000xf32>
    %n = linalg.generic {indexing_maps = [affine_map<(i, j, l) -> (i, j, l)>, affine_map<(i, j, l) -> (i, j, l)>],
        iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<8x5000x5000xf32>)
            outs(%ne : tensor<8x5000x5000xf32>) {
    ^bb0(%v: f32, %o: f32):
      %w = arith.negf %v : f32
      linalg.yield %w : f32
    } -> tensor<8x5000x5000xf32>
    %e = tensor.empty() : tensor<8x20xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x20xf32>) -> tensor<8x20xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j, l, k) -> (i, l, k)>, affine_map<(i, j, l, k) -> (l, k, j)>,
        affine_map<(i, j, l, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
            ins(%n, %b : tensor<8x5000x5000xf32>, tensor<5000x5000x20xf32>) outs(%f : tensor<8x20xf32>) {
    ^bb0(%bx: f32, %by: f32, %bz: f32):
      %bp = arith.mulf %bx, %by : f32
      %bs = arith.addf %bz, %bp : f32
      linalg.yield %bs : f32
    } -> tensor<8x20xf32>
    func.return %r : tensor<8x20xf32>"""
    found = judged(body, "tensor<8x20xf32>", "a: tensor<8x5000x5000xf32>", "b: tensor<5000x5000x20xf32>")
    assert found.kind == "packed" and found.reason == ""


def test_an_unbounded_extent_is_taken_for_what_is_assumed():
    body = unary("%n", "%a", "8x32", NEGATE) + matmul("%n", "%b", 8, 32, 20).replace("x20x", "x?x").replace(
        "empty()", "empty(%size)"
    )
    found = judged(body, "tensor<8x?xf32>", "a: tensor<8x32xf32>", "b: tensor<32x?xf32>", "size: index")
    assert (found.kind, found.recompute) == ("packed", -(-ASSUMED_SIZE // ASSUMED_COSTS.block_uses))
