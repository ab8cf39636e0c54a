"""The table of moves against the interpreter, which evaluates each op with NumPy's own function for it: chains of
random ops, all elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects import func, tensor
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.linear_forms import Floor, Linear, LinearCoordinates
from fuseline.analysis.moves import MOVES, AffineCoordinates, Coordinates, affine_sources, kept_axes, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.dim import Dim
from fuseline.ir.text import parse_module

Array = NDArray[Any]
SHAPES: tuple[tuple[int, ...], ...] = ((4, 6), (3, 1, 4), (12,), (2, 3, 2))
BORDER = -7.0


class Text:
    """A function of moving ops as MLIR text: `values` are the tensors so far, with their shapes."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random, self.lines = random, list[str]()
        self.values = [(f"%x{i}", shape) for i, shape in enumerate(SHAPES)]

    def grow(self) -> None:
        """Add one random op over one of the last values, where it fits."""
        name, shape = self.values[int(self.random.integers(max(0, len(self.values) - 3), len(self.values)))]
        rule = _GROW[int(self.random.integers(len(_GROW)))]
        made = rule(self, name, shape)
        if made is not None and int(np.prod(made[1])) <= 3000:
            result = f"%v{len(self.values)}"
            self.lines += [line.replace("%new", result) for line in made[0]]
            self.values.append((result, made[1]))

    def pick(self, *choices: Any) -> Any:
        """One of several."""
        return choices[int(self.random.integers(len(choices)))]

    def upto(self, low: int, high: int) -> int:
        """A number in `low..high`."""
        return int(self.random.integers(low, high + 1))

    def program(self) -> str:
        """The function; it returns the last value."""
        name, shape = self.values[-1]
        arguments = ", ".join(f"%x{i}: {_type(s)}" for i, s in enumerate(SHAPES))
        body = "\n".join(["%pad = arith.constant -7.0 : f32", *self.lines, f"return {name} : {_type(shape)}"])
        return f"func.func @main({arguments}) -> {_type(shape)} {{\n{body}\n}}"


Made = tuple[list[str], tuple[int, ...]] | None


def _type(shape: Sequence[int]) -> str:
    return "tensor<" + "x".join([*map(str, shape), "f32"]) + ">"


def _init(
    name: str, op: str, attribute: str, shape: Sequence[int], new: Sequence[int]
) -> tuple[list[str], tuple[int, ...]]:
    init = f"%new_init = tensor.empty() : {_type(new)}"
    return [init, f"%new = {op} ins({name} : {_type(shape)}) outs(%new_init : {_type(new)}) {attribute}"], tuple(new)


def _transpose(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    order = [int(i) for i in t.random.permutation(len(shape))]
    return _init(name, "linalg.transpose", f"permutation = {order}", shape, [shape[i] for i in order])


def _broadcast(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    axis = t.upto(0, len(shape))
    return _init(
        name, "linalg.broadcast", f"dimensions = [{axis}]", shape, [*shape[:axis], t.upto(1, 3), *shape[axis:]]
    )


def _groups(wide: Sequence[int], t: Text) -> tuple[list[list[int]], list[int]]:
    cuts = sorted({0, len(wide), *(t.upto(0, len(wide)) for _ in range(2))})
    groups = [list(range(a, b)) for a, b in pairwise(cuts)]
    return groups, [int(np.prod([wide[i] for i in group])) for group in groups]


def _collapse(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    groups, narrow = _groups(shape, t)
    return [f"%new = tensor.collapse_shape {name} {groups} : {_type(shape)} into {_type(narrow)}"], tuple(narrow)


def _expand(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    wide, groups = list[int](), list[list[int]]()
    for size in shape:
        inner = t.pick(*[n for n in range(1, size + 1) if size % n == 0] or [1])
        parts = t.pick([size], [inner, size // inner], [1, size], [size // inner, inner])
        groups.append(list(range(len(wide), len(wide) + len(parts))))
        wide += parts
    if len(wide) > 5:
        return None
    return [
        f"%new = tensor.expand_shape {name} {groups} output_shape {wide} : {_type(shape)} into {_type(wide)}"
    ], tuple(wide)


def _slice(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    offsets = [t.upto(0, size - 1) for size in shape]
    strides = [t.upto(1, 2) for _ in shape]
    cut = [
        t.upto(1, (size - offset - 1) // stride + 1)
        for size, offset, stride in zip(shape, offsets, strides, strict=True)
    ]
    kept = cut if t.upto(0, 1) else [size for size in cut if size != 1]
    return [f"%new = tensor.extract_slice {name}{offsets} {cut} {strides} : {_type(shape)} to {_type(kept)}"], tuple(
        kept
    )


def _pad(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    low, high = ([t.pick(0, 0, 1, 3) for _ in shape] for _ in range(2))
    wide = [a + size + b for a, size, b in zip(low, shape, high, strict=True)]
    indices = ", ".join(f"%i{i}: index" for i in range(len(shape)))
    body = f"{{\n^bb0({indices}):\ntensor.yield %pad : f32\n}}"
    return [f"%new = tensor.pad {name} low{low} high{high} {body} : {_type(shape)} to {_type(wide)}"], tuple(wide)


def _concat(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    if not shape:
        return None
    axis = t.upto(0, len(shape) - 1)
    fits = [
        v
        for v in t.values
        if len(v[1]) == len(shape)
        and all(a == b for i, (a, b) in enumerate(zip(v[1], shape, strict=True)) if i != axis)
    ]
    parts = [(name, shape), *(t.pick(*fits) for _ in range(t.upto(0, 2)))]
    types = ", ".join(_type(s) for _, s in parts)
    whole = (*shape[:axis], sum(s[axis] for _, s in parts), *shape[axis + 1 :])
    return [f"%new = tensor.concat dim({axis}) {', '.join(n for n, _ in parts)} : ({types}) -> {_type(whole)}"], whole


def _insert(t: Text, name: str, shape: tuple[int, ...]) -> Made:
    offsets = [t.upto(0, 2) for _ in shape]
    wide = [size + offset + t.upto(0, 1) for size, offset in zip(shape, offsets, strict=True)]
    box, type_ = f"{offsets} {list(shape)} {[1] * len(shape)}", _type(wide)
    fill = [
        f"%new_init = tensor.empty() : {type_}",
        f"%new_fill = linalg.fill ins(%pad : f32) outs(%new_init : {type_}) -> {type_}",
    ]
    return [*fill, f"%new = tensor.insert_slice {name} into %new_fill{box} : {_type(shape)} into {type_}"], tuple(wide)


_GROW: tuple[Callable[[Text, str, tuple[int, ...]], Made], ...] = (
    _transpose,
    _broadcast,
    _collapse,
    _expand,
    _slice,
    _pad,
    _concat,
    _insert,
)


class ArrayCoordinates:
    """A coordinate for every element of the last value, as one array of numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def number(self, value: Dim) -> Array:
        return np.full(self.count, value)

    def moved(self, at: Array, stride: Dim, offset: Dim) -> Array:
        assert isinstance(stride, int) and isinstance(offset, int)
        return at * stride + offset

    def linearized(self, at: Sequence[Array], sizes: Sequence[Dim]) -> Array:
        flat = self.number(0)
        for coordinate, size in zip(at, sizes, strict=True):
            flat = flat * size + coordinate  # pyright: ignore[reportOperatorIssue]
        return flat

    def delinearized(self, at: Array, sizes: Sequence[Dim]) -> Sequence[Array]:
        return np.unravel_index(at, tuple(int(size) for size in sizes if isinstance(size, int))) if sizes else []


def gathered(
    value: SSAValue, at: Sequence[Array], known: dict[SSAValue, Array], shapes: ShapeAnalysis, count: int
) -> Array:
    """The elements of `value` at `at`, each through the first source whose guards hold; `BORDER` where there is
    none."""
    if isinstance(value, BlockArgument):
        return known[value][tuple(at)]
    assert isinstance(value, OpResult)
    found = np.full(count, BORDER)
    if type(value.op) not in MOVES:
        return found  # a fill
    open_ = np.ones(count, dtype=bool)
    for source in sources(value.op, at, shapes, ArrayCoordinates(count)) or ():
        inside = open_.copy()
        for guard in source.guards:
            assert isinstance(guard.size, int)
            inside &= (guard.coordinate >= 0) & (guard.coordinate < guard.size)
        chosen = np.flatnonzero(inside)
        found[chosen] = gathered(source.value, [c[chosen] for c in source.at], known, shapes, len(chosen))
        open_ &= ~inside
    return found


def chain(seed: int) -> tuple[func.FuncOp, Any]:
    """A random program and its context."""
    text = Text(np.random.default_rng(seed))
    for _ in range(text.upto(1, 7)):
        text.grow()
    ctx = new_context()
    module = parse_module(text.program(), ctx, "<chain>")
    return next(op for op in module.ops if isinstance(op, func.FuncOp)), ctx


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 30))
def test_chains_of_moves_gather_what_the_interpreter_computes(seed: int):
    function, ctx = chain(seed)
    arguments = [
        np.random.default_rng(seed + i).standard_normal(shape).astype(np.float32) for i, shape in enumerate(SHAPES)
    ]
    (expected,) = evaluate_function(function, arguments, ctx.resources)
    last = function.body.block.last_op
    assert last is not None
    at = [axis.reshape(-1) for axis in np.indices(expected.shape)]
    known: dict[SSAValue, Array] = dict(zip(function.body.block.args, arguments, strict=True))
    found = gathered(last.operands[0], at, known, ShapeAnalysis(), expected.size)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30))
def test_linear_and_affine_coordinates_say_the_same_as_arrays(seed: int):
    """Each op on its own: a linear form at a point is the array's coordinate, and so is a plain
    loop."""
    function, _ = chain(seed)
    shapes = ShapeAnalysis()
    for op in function.body.block.ops:
        if type(op) not in MOVES:
            continue
        extents = [int(size) for size in shapes.dims(op.results[0]) if isinstance(size, int)]
        points = [axis.reshape(-1) for axis in np.indices(extents)]
        count = int(np.prod(extents))
        expected = sources(op, points, shapes, ArrayCoordinates(count)) or []
        linear = sources(op, [Linear({i: 1}) for i in range(len(extents))], shapes, LinearCoordinates(extents))
        for affine, source in zip(affine_sources(op, shapes) or (), expected, strict=True):
            assert affine.value is source.value
            for mine, coordinate in zip(affine.at, source.at, strict=True):
                if isinstance(mine, AffineDimExpr):
                    np.testing.assert_array_equal(coordinate, points[mine.position])
        if linear is None:  # a quotient inside a quotient
            assert isinstance(op, tensor.CollapseShapeOp)
            continue
        for mine, theirs in zip(linear, expected, strict=True):
            for form, coordinate in zip(mine.at, theirs.at, strict=True):
                np.testing.assert_array_equal(_evaluated(form, points, count), coordinate)


def _evaluated(form: Linear, points: Sequence[Array], count: int) -> Array:
    total = np.full(count, form.constant)
    for atom, coefficient in form.terms.items():
        assert isinstance(atom, int | Floor)
        part = points[atom] if isinstance(atom, int) else _evaluated(atom.numerator, points, count) // atom.divisor  # pyright: ignore[reportOperatorIssue]
        total = total + part * coefficient
    return total


def test_an_op_that_computes_has_no_sources():
    function, _ = chain(0)
    last = function.body.block.last_op
    assert (
        last is not None
        and sources(last, [], ShapeAnalysis(), AffineCoordinates()) is None
        and affine_sources(last, ShapeAnalysis()) is None
    )


def test_affine_coordinates_name_what_they_cannot_say():
    kind: Coordinates[Any] = AffineCoordinates()
    loop = AffineDimExpr(0)
    assert kind.linearized([loop, AffineDimExpr(1)], [4, 1]) == loop and not kind.regrouped  # pyright: ignore[reportAttributeAccessIssue]
    assert kind.linearized([], []) == AffineConstantExpr(0)
    assert kind.moved(loop, 2, 0) is None and kind.moved(None, 1, 3) is None
    assert kind.delinearized(loop, [1, 4]) == [AffineConstantExpr(0), loop]
    assert kind.delinearized(loop, [2, 2]) == [None, None] and kind.regrouped  # pyright: ignore[reportAttributeAccessIssue]


def test_what_was_regrouped_once_stays_so():
    kind, loops = AffineCoordinates(), [AffineDimExpr(0), AffineDimExpr(1)]
    assert kind.linearized(loops, [4, 4]) is None and kind.regrouped
    assert kind.linearized(loops, [4, 1]) == loops[0] and kind.regrouped
    assert kind.delinearized(loops[0], [1, 4]) == [AffineConstantExpr(0), loops[0]] and kind.regrouped


@pytest.mark.parametrize(
    ("sizes", "reduced", "kept"),
    [
        ([1, 5, 1, 1], (5, 1), [1, 2]),
        ([1, 1], (), []),
        ([1, 1], (1,), [0]),
        ([3, 4], (3, 4), [0, 1]),
        ([1, 3, 1], (1, 3), [0, 1]),
    ],
)
def test_the_dimensions_that_a_slice_keeps(sizes: list[int], reduced: tuple[int, ...], kept: list[int]):
    assert kept_axes(sizes, reduced) == kept


def test_a_slice_with_steps_into_a_box_is_not_told():
    text = """func.func @main(%a: tensor<2xf32>, %b: tensor<5xf32>) -> tensor<5xf32> {
      %0 = tensor.insert_slice %a into %b[0] [2] [2] : tensor<2xf32> into tensor<5xf32>
      return %0 : tensor<5xf32>
    }"""
    module = parse_module(text, new_context(), "<steps>")
    (op,) = [op for op in module.walk() if isinstance(op, tensor.InsertSliceOp)]
    assert sources(op, [AffineDimExpr(0)], ShapeAnalysis(), AffineCoordinates()) is None
