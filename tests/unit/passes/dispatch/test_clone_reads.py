"""A slice, pad or transpose per reader, so that each may read the tensor below in place."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, linalg, math, tensor
from xdsl.dialects.builtin import DenseArrayBase, f16, f32, i8, i16, i64
from xdsl.ir import SSAValue

import fuseline
from fuseline.ir.context import new_context
from fuseline.ir.costs import ASSUMED_COSTS
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.clone_reads import CloneReadsPass
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import same_results

Read = tensor.ExtractSliceOp | tensor.PadOp


def _cloned(p: Program) -> list[Read]:
    """The reads afterwards."""
    with same_results(p):
        CloneReadsPass().apply(new_context(), p.module)
    return [op for op in p.function.walk() if isinstance(op, Read)]


def _one_reader_each(reads: list[Read]) -> bool:
    return all(len({use.operation for use in op.results[0].uses}) == 1 for op in reads)


def _columns(p: Program) -> SSAValue:
    """Some columns, which do not lie side by side."""
    return p.columns(p.x[0], 1, 3)


def test_each_reader_has_its_own() -> None:
    p = Program((4, 6))
    cut = _columns(p)
    reads = _cloned(p.done(p.unary(cut), p.relu(cut), p.reduce(cut)))
    assert len(reads) == 3 and _one_reader_each(reads)
    assert len({provenance(op) for op in reads}) == 1 and provenance(reads[0])


def test_a_reader_that_reads_twice_needs_one() -> None:
    p = Program((4, 6))
    cut = _columns(p)
    assert len(_cloned(p.done(p.add(cut, cut)))) == 1


def test_a_pad_of_a_slice_makes_the_slice_as_often_read() -> None:
    p = Program((4, 6))
    padded = p.pad(_columns(p), [1, 0], [0, 2])
    reads = _cloned(p.done(p.unary(padded), p.relu(padded)))
    assert [type(op).__name__ for op in reads].count("PadOp") == 2
    assert len(reads) == 4 and _one_reader_each(reads)


def test_what_the_caller_gets_is_stored_once() -> None:
    p = Program((4, 6))
    cut = _columns(p)
    reads = _cloned(p.done(cut, p.unary(cut), cut))
    assert len(reads) == 2 and _one_reader_each(reads)


def test_rows_in_one_piece_are_a_view_and_stay() -> None:
    p = Program((4, 6))
    rows = p.slice(p.x[0], [1, 0], [2, 6])
    assert len(_cloned(p.done(p.unary(rows), p.relu(rows)))) == 1


# transposes -----------------------------------------------------------------------------------------------------------


def _turned(p: Program, x: SSAValue, permutation: list[int]) -> SSAValue:
    shape = p.shape(x)
    out = p.empty(*(shape[axis] for axis in permutation))
    op = linalg.ops.TransposeOp(x, out, DenseArrayBase.from_list(i64, permutation), out.type)
    p.function.body.block.add_op(op)
    return op.results[0]


def _transposes(p: Program) -> int:
    with same_results(p):
        CloneReadsPass().apply(new_context(), p.module)
    return sum(isinstance(op, linalg.ops.TransposeOp) for op in p.function.walk())


@pytest.mark.parametrize("size", [(3, 5), (7, 1), (13, 30)])
def test_a_turned_argument_is_read_by_each_concat_and_pad(size: tuple[int | str, int]) -> None:
    p = Program(size, (size[1], size[0]))
    turned = _turned(p, p.x[0], [1, 0])
    read = [p.concat(turned, p.x[1]), p.pad(turned, [1, 0], [0, 2]), p.concat(turned, turned, axis=0)]
    assert _transposes(p.done(*(p.unary(value) for value in read))) == 3


def test_a_product_reads_a_turned_argument_itself() -> None:
    p = Program((8, 6), (8, 4))
    turned = _turned(p, p.x[0], [1, 0])
    assert _transposes(p.done(p.matmul(turned, p.x[1]), p.unary(p.concat(turned, turned)))) == 2


def test_elementwise_readers_share_one_turned_argument() -> None:
    p = Program((3, 5))
    turned = _turned(p, p.x[0], [1, 0])
    assert _transposes(p.done(p.unary(turned), p.concat(turned, turned))) == 1


def test_what_is_computed_is_written_turned_by_whoever_computes_it() -> None:
    p = Program((3, 5))
    turned = _turned(p, p.unary(p.x[0]), [1, 0])
    assert _transposes(p.done(p.concat(turned, turned), p.pad(turned, [1, 0], [0, 2]))) == 1


@pytest.mark.parametrize(("more", "count"), [(0, 2), (1, 1)])
def test_large_arguments_are_turned_once(more: int, count: int) -> None:
    p = Program((ASSUMED_COSTS.crossed_elements // 8 + more, 8))
    turned = _turned(p, p.x[0], [1, 0])
    assert _transposes(p.done(p.concat(turned, turned), p.pad(turned, [1, 0], [0, 2]))) == count


# quantised arguments --------------------------------------------------------------------------------------------------


def _quantised(p: Program, x: SSAValue) -> SSAValue:
    """Rounded to integers of 8 bits, and those as floats."""
    narrow = p.elementwise([x], p.empty(*p.shape(x), element=i8), lambda b: b.op(arith.FPToSIOp, b.args[0], i8))
    return p.elementwise([narrow], p.empty(*p.shape(x)), lambda b: b.op(arith.SIToFPOp, b.args[0], f32))


def _roundings(p: Program, level: str = "default") -> int:
    with same_results(p):
        CloneReadsPass(level=level).apply(new_context(), p.module)
    return sum(isinstance(op, arith.FPToSIOp) for op in p.function.walk())


def test_an_argument_is_quantised_by_each_reader() -> None:
    p = Program((6, 8), (8, 5), constants=[1])
    both = _quantised(p, p.x[0])
    assert _roundings(p.done(p.matmul(both, p.x[1]), p.relu(both))) == 2


@pytest.mark.parametrize(("level", "count"), [("default", 1), ("aggressive", 2)])
def test_an_argument_that_no_product_reads_is_quantised_once_by_default(level: str, count: int) -> None:
    p = Program((6, 8))
    both = _quantised(p, p.x[0])
    assert _roundings(p.done(p.reduce(both), p.relu(both)), level) == count


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    ("readers", "count"), [("we", 2), ("wp", 2), ("wpe", 3), ("ww", 1), ("wwp", 1), ("w", 1), ("ee", 1)]
)
def test_a_window_quantises_what_others_read_but_several_windows_share_it(
    readers: str, count: int, padded: bool
) -> None:
    """`w`: a depthwise window, through a pad or not; `p`: a product; `e`: an elementwise op."""
    rows, columns = int(RNG.integers(6, 20)), int(RNG.integers(4, 20))
    p = Program((rows, columns), (columns, 5), (3, columns), constants=[1, 2])
    both = _quantised(p, p.x[0])
    made = {
        "w": lambda: p.depthwise(p.pad(both, (1, 0), (1, 0)) if padded else both, p.x[2]),
        "p": lambda: p.matmul(both, p.x[1]),
        "e": lambda: p.relu(both),
    }
    assert _roundings(p.done(*(made[reader]() for reader in readers))) == count


def _halves(p: Program, x: SSAValue) -> SSAValue:
    """Rounded to f16 and widened again by whoever reads it."""
    return p.elementwise([x], p.empty(*p.shape(x), element=f16), lambda b: b.op(arith.TruncFOp, b.args[0], f16))


@pytest.mark.parametrize(("readers", "count"), [("pe", 2), ("pp", 2), ("ee", 2), ("e", 1)])
def test_an_argument_is_rounded_to_halves_by_each_reader(readers: str, count: int) -> None:
    """`p`: a product; `e`: an elementwise op; each widens what it reads."""
    rows, columns = int(RNG.integers(6, 20)), int(RNG.integers(4, 20))
    p = Program((rows, columns), (columns, 5), constants=[1])
    half = _halves(p, p.x[0])

    def wide() -> SSAValue:
        return p.elementwise([half], p.empty(*p.shape(half)), lambda b: b.op(arith.ExtFOp, b.args[0], f32))

    made = {
        "p": lambda: p.matmul(wide(), p.x[1]),
        "e": lambda: p.relu(wide()),
    }
    results = [made[reader]() for reader in readers]
    with same_results(p.done(*results)):
        CloneReadsPass().apply(new_context(), p.module)
    rounded = [op for op in p.function.walk() if isinstance(op, arith.TruncFOp)]
    assert len(rounded) == count


def test_a_quantised_argument_is_turned_once() -> None:
    p = Program((6, 8), (6, 5), (6, 3))
    turned = _turned(p, _quantised(p, p.x[0]), [1, 0])
    assert _transposes(p.done(p.matmul(turned, p.x[1]), p.matmul(turned, p.x[2]))) == 1


# integers that are cut ------------------------------------------------------------------------------------------------


def _widened_cuts(reader: str, *, stored: bool = True) -> int:
    """How often columns of integers are widened that a product reads, and `reader` too."""
    rows, width = int(RNG.integers(6, 20)), int(RNG.integers(5, 20))
    p = Program((rows, width), (width - 2, 5), (3, width - 2), constants=[1])
    made = p.elementwise([p.x[0]], p.empty(rows, width, element=i8), lambda b: b.op(arith.FPToSIOp, b.args[0], i8))
    if not stored:
        made = p.elementwise([made], p.empty(rows, width, element=i16), lambda b: b.op(arith.ExtSIOp, b.args[0], i16))
    cut = p.columns(made, 1, width - 2)
    wide = p.elementwise([cut], p.empty(*p.shape(cut)), lambda b: b.op(arith.SIToFPOp, b.args[0], f32))
    other = p.depthwise(wide, p.x[2]) if reader == "window" else p.relu(wide)
    product = p.relu(wide) if reader == "elements alone" else p.matmul(wide, p.x[1])
    p.done(product, other, made)
    with same_results(p):
        CloneReadsPass().apply(new_context(), p.module)
    return sum(isinstance(op, arith.SIToFPOp) for op in p.function.walk())


def test_what_is_made_of_cut_integers_is_made_by_each_reader() -> None:
    assert _widened_cuts("elements") == 2


def test_a_window_or_no_product_reads_them_made() -> None:
    assert _widened_cuts("window") == _widened_cuts("elements alone") == 1


def test_other_numbers_are_made_once_of_a_slice() -> None:
    assert _widened_cuts("elements", stored=False) == 1


# small values ---------------------------------------------------------------------------------------------------------


def _shared(columns: int, rows: int, *, chain: int = 1, of_argument: bool = True) -> int:
    """How many functions of a vector two large ops have."""
    p = Program((columns,), (rows, columns), (4, rows, columns))
    small = p.x[0] if of_argument else p.reduce(p.x[1], axis=0)
    for _ in range(chain):
        small = p.unary(small, math.TanhOp)
    p.done(p.bias(p.x[1], small, 1), p.bias(p.x[2], small, 2))
    with same_results(p):
        CloneReadsPass().apply(new_context(), p.module)
    return sum(isinstance(op, math.TanhOp) for op in p.function.walk())


@pytest.mark.parametrize("chain", [1, 3])
def test_a_small_vector_is_made_by_each_large_reader(chain: int) -> None:
    assert _shared(16, 60, chain=chain) == 2 * chain


def test_a_vector_that_is_long_dear_or_read_seldom_is_made_once() -> None:
    assert _shared(2000, 60) == _shared(16, 2) == _shared(16, 60, of_argument=False) == 1
    assert _shared(60, 60, chain=12) == 12


@pytest.mark.parametrize(
    ("end", "count"),
    [
        ("y = Add(c, h)", 1),
        ("d = Conv(h, v)  y = Concat<axis = 1>(c, d)", 1),
        ("d = Conv<group = 12>(h, u)  y = Mul(c, d)", 2),
    ],
)
@pytest.mark.parametrize("half", [False, True])
def test_a_network_of_halves_whose_argument_is_f32_has_as_many_dispatches(end: str, count: int, half: bool) -> None:
    """A depthwise window beside others has an image that is made once."""
    element = np.float16 if half else np.float32
    first = "h = Cast<to = 10>(x)" if half else "h = Identity(x)"
    text = f"(float[1, 12, 13, 11] x) => (y) {{ {first}  c = Conv<pads = [1, 1, 1, 1]>(h, w)  {end} }}"
    weights = {"w": (12, 12, 3, 3), "v": (7, 12, 1, 1), "u": (12, 1, 1, 1)}
    held = {name: RNG.standard_normal(shape).astype(element) for name, shape in weights.items() if f", {name})" in text}
    program = fuseline.compile(onnx_model(text, held, opset=20), target="null", threads=1)
    assert len(program.record.dispatches) <= count + half * (count - 1)
