"""Integers that are computed from few other numbers, as code of a host step: from an element of a tensor back to what
lies in memory, through everything that scalars can say.

    %t = tensor.extract_slice %p[1] [1] [1]                            0  element 0 1
    %r = linalg.generic ins(%t) { minsi %in, 9 }          =>           1  constant 9
    tensor.concat(%r, dense<3>)                                        2  minsi 0 1
                                                                       3  constant 3       elements: 2, 3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import MOVES, Source, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_constant, is_generic, tensor_operands
from fuseline.analysis.views import base_of, is_fed
from fuseline.ir.build import element_of, shape_of
from fuseline.ir.dim import Dim
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.fast.direct import operands_of
from fuseline.passes.dispatch.scalar_numbers import bits_of, constant_bits, element_bits, is_few_numbers, is_float, leaf
from fuseline.passes.dispatch.size_coordinates import SizeCoordinates
from fuseline.scalar_code import (
    ARITY,
    COMPARISONS,
    ELEMENTS,
    FLOAT_COMPARISONS,
    FROM_FLOATS,
    LEAVES,
    Computed,
    ScalarOp,
)

_FREE = (arith.ConstantOp, tensor.EmptyOp, linalg.ops.FillOp)
"""Of no dispatch, and cloned for each reader."""

_OPERATIONS = ARITY.keys() - LEAVES.keys() - {*COMPARISONS, *FLOAT_COMPARISONS}
"""Those that scalar code calls as `arith` and `math` do; comparisons have the names of their predicates."""

MOST_DEPTH = 100
"""Ops in a row that are followed, tensor ops and those in their bodies: more than code may have, and Python can."""


@dataclass(frozen=True)
class _Point:
    """One iteration of a structured op without reductions, and what is known of the scalars in it."""

    view: StructuredOp
    loops: tuple[int, ...]
    known: dict[SSAValue, int | None] = field(default_factory=dict[SSAValue, int | None])


@dataclass(frozen=True)
class MadeOf:
    """What an operand that is computed is made of: the `ops` that code stands for, and results that something is
    launched for."""

    ops: list[Operation]
    launched: list[SSAValue]


@dataclass(eq=False)
class ScalarChains:
    """Code for what one host step gets. `tensors` and `sizes` are what its operations read, by number.

    Args:
        shapes: the sizes of the function. resources: the constants that the program has beside its text.
    """

    shapes: ShapeAnalysis
    resources: Mapping[str, Any]
    ops: list[ScalarOp] = field(default_factory=list[ScalarOp])
    tensors: list[SSAValue] = field(default_factory=list[SSAValue])
    sizes: list[SSAValue] = field(default_factory=list[SSAValue])
    _depth: int = 0
    _outside: dict[SSAValue, int | None] = field(default_factory=dict[SSAValue, int | None])
    _numbers: dict[ScalarOp, int] = field(default_factory=dict[ScalarOp, int])
    _known: dict[tuple[SSAValue, tuple[Dim, ...]], int | None] = field(
        default_factory=dict[tuple[SSAValue, tuple[Dim, ...]], int | None]
    )

    def computed(self, value: SSAValue, dtype: str | None = None) -> Computed | None:
        """`value` as an operand that is computed, its elements of NumPy type `dtype` (default: that of the IR); None
        for what lies in memory already, and for what is no tensor of few integers that others make."""
        if not is_few_numbers(value) or is_float(element_of(value)) or _needs_no_step(value):
            return None
        shape = shape_of(value)
        elements = [self.element(value, at) for at in product(*map(range, shape))]
        if any(number is None or self._reads(number, value) for number in elements):
            return None
        known = tuple([number for number in elements if number is not None])
        return Computed(dtype or numpy_dtype(element_of(value)).name, shape, known)

    def _reads(self, number: int, value: SSAValue) -> bool:
        """Whether an operation is a read of `value`."""
        name, _, operands = self.ops[number]
        return name in ELEMENTS and self.tensors[operands[0]] is value

    def made_of(self, value: SSAValue) -> MadeOf:
        """What makes the computed operand `value`."""
        found, seen, pending = MadeOf([], []), set[SSAValue](), [value]
        while pending:
            one = pending.pop()
            op = one.owner
            if one in seen or not isinstance(op, Operation) or type(op) in _FREE:
                continue
            seen.add(one)
            if one not in self.tensors:
                found.ops.append(op)
                pending += tensor_operands(op)
            elif not _needs_no_step(one):
                found.launched.append(one)
        return found

    # elements ---------------------------------------------------------------------------------------------------------

    def element(self, value: SSAValue, at: tuple[Dim, ...]) -> int | None:
        """The number of the operation that makes element `at` of a tensor; None where there is no way to say it."""
        key = value, at
        if key not in self._known:
            inside = self._deeper(lambda: self._inside(value, at))
            self._known[key] = self._read(value, at) if inside is None else inside
        return self._known[key]

    def _deeper(self, look: Callable[[], int | None]) -> int | None:
        """What `look` finds one step further back, None where that is too far."""
        if self._depth >= MOST_DEPTH:
            return None
        self._depth += 1
        found = look()
        self._depth -= 1
        return found

    def _inside(self, value: SSAValue, at: tuple[Dim, ...]) -> int | None:
        """The element as what makes it computes it."""
        position, bits = [coordinate for coordinate in at if isinstance(coordinate, int)], bits_of(element_of(value))
        if bits is None or type(value) is not OpResult or len(position) < len(at):
            return None
        op = value.op
        if type(op) is arith.ConstantOp:
            found = element_bits(op.value, _flat(position, shape_of(value)), self.resources)
            return None if found is None else self._add(leaf("constant", element_of(value)), bits, found)
        if type(op) is linalg.ops.FillOp:
            return self.scalar(op.inputs[0], None)
        if not is_few_numbers(value):
            return None
        if type(op) is tensor.FromElementsOp:
            return self.scalar(operands_of(op)[_flat(position, shape_of(value))], None)
        return self._moved(op, position) if type(op) in MOVES else self._generic(value, position)

    def _moved(self, op: Operation, position: Sequence[int]) -> int | None:
        """The element where an op that moves data takes it from; None beside everything (the border of a pad)."""
        for source in sources(op, position, self.shapes, SizeCoordinates()) or ():
            inside = _holds(source)
            if inside is None:
                return None
            if inside:
                return self.element(source.value, source.at)
        return None

    def _generic(self, value: OpResult, position: Sequence[int]) -> int | None:
        op = value.op
        if not is_generic(op):
            return None
        view = StructuredOp(op)
        loops = _loops_at(view, value.index, position)
        end = view.body.last_op
        return None if loops is None or end is None else self.scalar(operands_of(end)[value.index], _Point(view, loops))

    def _read(self, value: SSAValue, at: tuple[Dim, ...]) -> int | None:
        """The element as one of a tensor in memory: an argument, a part of one, or what is computed as it is."""
        moved = type(value) is OpResult and type(value.op) in (*MOVES, tensor.EmptyOp)
        position = [coordinate for coordinate in at if isinstance(coordinate, int)]
        bits = bits_of(element_of(value))
        if bits is None or not is_few_numbers(value) or len(position) < len(at):
            return None
        if moved and not is_fed(base_of(value)):
            return None  # the computed tensor would lie in memory as a whole, for the sake of an element
        shape = shape_of(value)
        if not all(0 <= coordinate < size for coordinate, size in zip(position, shape, strict=True)):
            return None
        name = leaf("element", element_of(value))
        return self._add(name, bits, _numbered(self.tensors, value), _flat(position, shape))

    # scalars ----------------------------------------------------------------------------------------------------------

    def scalar(self, value: SSAValue, point: _Point | None) -> int | None:
        """The number of the operation that makes a scalar, in the body of an op at `point` or outside of all."""
        bits = bits_of(value.type)
        if bits is None:
            return None
        inside = point if point is not None and _block_of(value) is point.view.body else None
        if isinstance(value, BlockArgument) and inside is not None:
            view = inside.view
            map_ = [*view.input_maps, *view.output_maps][value.index]
            return self.element(view.operands[value.index], tuple(map_.eval(inside.loops, ())))
        op = value.owner
        if isinstance(op, arith.ConstantOp):
            number = constant_bits(op.value)
            return None if number is None else self._add(leaf("constant", value.type), bits, number)
        if inside is None and isinstance(value.type, IndexType):
            return self._add("size", bits, _numbered(self.sizes, value))
        known = self._outside if inside is None else inside.known
        if value not in known:
            known[value] = self._deeper(lambda: self._computed(op, point, bits)) if isinstance(op, Operation) else None
        return known[value]

    def _computed(self, op: Operation, point: _Point | None, bits: int) -> int | None:
        if isinstance(op, linalg.ops.IndexOp) and point is not None:
            return self._add("constant", bits, point.loops[op.dim.value.data])
        operands = [
            self.scalar(operand, point) for operand in operands_of(op) if not isinstance(operand.type, TensorType)
        ]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        if isinstance(op, tensor.ExtractOp):
            at = [self.ops[number] for number in known]
            return self.element(op.tensor, tuple([one.operands[0] for one in at])) if _are_numbers(at) else None
        if isinstance(op, arith.CmpiOp):
            return self._add(COMPARISONS[op.predicate.value.data], bits, *known)
        if isinstance(op, arith.CmpfOp):
            return self._add(FLOAT_COMPARISONS[op.predicate.value.data], bits, *known)
        dialect, _, name = op.name.partition(".")
        has_form = dialect in ("arith", "math") and name in _OPERATIONS and not _reads_bits(name, op, bits)
        return self._add(name, bits, *known) if has_form else None

    def _add(self, name: str, bits: int, *operands: int) -> int:
        op = ScalarOp(name, bits, operands)
        if op not in self._numbers:
            self._numbers[op] = len(self.ops)
            self.ops.append(op)
        return self._numbers[op]


def _reads_bits(name: str, op: Operation, bits: int) -> bool:
    """Whether an operation takes the bits of a float, or makes truth of one by a conversion."""
    of_floats = any(is_float(value.type) for value in (*operands_of(op), *op.results))
    return of_floats and (name == "bitcast" or (name in FROM_FLOATS and bits == 1))


def _numbered(values: list[SSAValue], value: SSAValue) -> int:
    """The number of `value` among `values`, to which it belongs from now on."""
    if value not in values:
        values.append(value)
    return values.index(value)


def _needs_no_step(value: SSAValue) -> bool:
    """Whether `value` lies in memory without anything being launched for it: what is fed, parts of it, constants, what
    host operators and loops answer."""
    op = value.owner
    return not isinstance(op, Operation) or isinstance(op, CallOp) or is_constant(value) or is_fed(base_of(value))


def _holds(source: Source[Dim]) -> bool | None:
    """Whether the element is one of this source; None where only the run knows."""
    for guard in source.guards:
        if not isinstance(guard.coordinate, int) or not isinstance(guard.size, int):
            return None
        if not 0 <= guard.coordinate < guard.size:
            return False
    return True


def _loops_at(view: StructuredOp, result: int, position: Sequence[int]) -> tuple[int, ...] | None:
    """The iteration that makes element `position` of a result; None where it is not the only one."""
    loops: dict[int, int] = {}
    for expr, coordinate in zip(view.output_maps[result].results, position, strict=True):
        if isinstance(expr, AffineDimExpr):
            loops[expr.position] = coordinate
    return tuple([loops[i] for i in range(view.rank)]) if len(loops) == view.rank and not view.reduction else None


def _block_of(value: SSAValue) -> Block | None:
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner


def _are_numbers(ops: Sequence[ScalarOp]) -> bool:
    return all(op.name == "constant" for op in ops)


def _flat(position: Sequence[int], shape: Sequence[int]) -> int:
    """The row-major number of an element."""
    flat = 0
    for coordinate, size in zip(position, shape, strict=True):
        flat = flat * size + coordinate
    return flat
