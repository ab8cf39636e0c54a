"""Contractions and convolutions grow to the tiles of the target, and the elementwise ops behind them grow along.

    conv 257 -> bias -> relu      =>      pad -> conv 260 -> bias 260 -> relu 260 -> slice 257
            (multiples of 4 along the width)

A target whose matrix unit takes whole tiles says so (`TargetDescription.tile_multiples`); for any other this pass does
nothing. Operands grow by zeros (constants at compile time), the result is cut at the end. Elementwise readers work on
the grown result, so that they stay in its dispatch; what they read besides grows too. What lies in the grown part is
never looked at: summed loops grow by zeros only, and a reader that looks elsewhere (a reduction, a reshape, a gather, a
division of integers) reads the slice. So does a reader whose other operand is computed from that slice without growing:
it stays with that one. Sizes that only the run knows stay as they are, which a remark says (`unknown-tile`).

Source: nod-ai/iree-amd-aie#515 (OW, OC and IC grow to the intrinsic, OH to the cores; the elementwise ops were left
behind).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.shapes import Dims
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.errors import FuselineError
from fuseline.evaluation.program import Program, run_op
from fuseline.evaluation.program import Scope as Values
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.fast.create import create_fill, create_pad
from fuseline.ir.functions import functions
from fuseline.ir.provenance import provenance
from fuseline.ir.scalar_ops import INTEGER_DIVISIONS
from fuseline.ir.target_description import LARGEST_TILE, TILE_ROLES
from fuseline.passes.layout.rewriting.generics import finish, rebuilt
from fuseline.passes.layout.rewriting.scope import Ledger, Scope
from fuseline.passes.padding.tile_loops import ClassMultiples, tile_extents, unknown_loops
from fuseline.report.records import OpRemark

_CARRIERS = (Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST)


@dataclass(frozen=True)
class PadToTilePass(ModulePass):
    """Multiples by role, see `TILE_ROLES`; 0: what the target asks for."""

    name = "pad-to-tile"
    oh: int = 0
    ow: int = 0
    oc: int = 0
    ic: int = 0
    m: int = 0
    n: int = 0
    k: int = 0

    def apply(self, ctx: CompilerContext, op: ModuleOp) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Grow the ops of every function whose target has multiples; the options win over those of the target. Raises
        FuselineError: E0304 for a multiple that is none."""
        chosen = list(zip(TILE_ROLES, (self.oh, self.ow, self.oc, self.ic, self.m, self.n, self.k), strict=True))
        for role, multiple in chosen:
            if not 0 <= multiple <= LARGEST_TILE:
                hint = f"a multiple is a number up to {LARGEST_TILE}; 0 takes that of the target"
                raise FuselineError("E0304", f"{role.lower()} is {multiple}", node=self.name, hint=hint)
        multiples = {**dict(ctx.target.tile_multiples), **{role: multiple for role, multiple in chosen if multiple}}
        if all(multiple <= 1 for multiple in multiples.values()) and not ctx.target.has_tiles:
            return
        of_class = {name: dict(own) for name, own in ctx.target.class_multiples}
        ledger = Ledger(op)
        for function in functions(op):
            scope = Scope(function, ctx)
            scope.lift_sizes()
            _Grower(scope, multiples, of_class).run()
            scope.sweep()
        ledger.close(ctx, self.name)


class _Grower:
    """Grows the ops of one function in order. `grown[value]` is the longer tensor that `value` is cut from."""

    def __init__(self, scope: Scope, multiples: Mapping[str, int], of_class: ClassMultiples) -> None:
        self.scope, self.multiples, self.of_class = scope, multiples, of_class
        self.grown: dict[SSAValue, SSAValue] = {}

    def run(self) -> None:
        for op in list(self.scope.block.ops):
            if is_generic(op):
                view = StructuredOp(op)
                extents = self._root_extents(view) or self._carried_extents(view)
                if extents:
                    self._grow(view, extents)

    def _root_extents(self, view: StructuredOp) -> Mapping[int, Dim]:
        if "reduction" not in view.iterators or not self._knows_sizes(view):
            return {}
        loops = view.loops(self.scope.shapes)
        self._remark(view, unknown_loops(view, loops, self.multiples, self.of_class))
        extents = tile_extents(view, loops, self.multiples, self.of_class)
        return extents if self._grows_by_numbers(view, loops, extents) else {}

    def _knows_sizes(self, view: StructuredOp) -> bool:
        return all(self.scope.knows_all(self.scope.dims(value)) for value in view.operands)

    def _remark(self, view: StructuredOp, unknown: Mapping[str, int]) -> None:
        """Say which loops are no whole tiles because their size is not known."""
        if unknown:
            loops = ", ".join(f"{role} to a multiple of {multiple}" for role, multiple in unknown.items())
            detail, nodes = f"only the run knows the size of loops that should grow: {loops}", provenance(view.op)
            remark = OpRemark(
                rule=PadToTilePass.name, code="unknown-tile", op=kind(view.op).value, detail=detail, nodes=nodes
            )
            self.scope.ctx.records.remarks.append(remark)

    def _grows_by_numbers(self, view: StructuredOp, loops: Dims, extents: Mapping[int, Dim]) -> bool:
        """Whether every operand grows by so many elements whatever the run."""
        return all(
            isinstance(d.sub(_length(expr, size, loops, extents), size), int)
            for value, map_ in zip(view.operands, view.maps, strict=True)
            for expr, size in zip(map_.results, self.scope.dims(value), strict=True)
        )

    def _stays_behind(self, view: StructuredOp) -> bool:
        """Whether an operand that is not grown is computed from one that is."""
        grown = {value for value in view.inputs if value in self.grown}
        return any(_depends_on(value, grown) for value in view.inputs if value not in grown)

    def _carried_extents(self, view: StructuredOp) -> dict[int, Dim]:
        """How long the loops of an elementwise reader of grown tensors become; empty where it cannot follow them."""
        # What lies in the grown part may be a zero divisor.
        if kind(view.op) not in _CARRIERS or any(isinstance(inner, INTEGER_DIVISIONS) for inner in view.body.ops):
            return {}
        wanted: dict[int, Dim] = {}
        for value, map_ in zip(view.inputs, view.input_maps, strict=True):
            for expr, _, longer in self._differences(value, map_.results):
                if not isinstance(expr, AffineDimExpr) or wanted.setdefault(expr.position, longer) != longer:
                    return {}
        if not wanted or not self._knows_sizes(view) or self._stays_behind(view):
            return {}
        plain = all(
            isinstance(expr, AffineDimExpr) or not dims_of(expr) & wanted.keys()
            for map_ in view.maps
            for expr in map_.results
        )
        return wanted if plain else {}

    def _differences(self, value: SSAValue, exprs: Sequence[AffineExpr]) -> list[tuple[AffineExpr, Dim, Dim]]:
        """Coordinates along which the tensor behind `value` is longer, with both sizes."""
        longer = self.grown.get(value)
        if longer is None:
            return []
        sizes = zip(exprs, self.scope.dims(value), self.scope.dims(longer), strict=True)
        return [found for found in sizes if found[1] != found[2]]

    def _grow(self, view: StructuredOp, extents: Mapping[int, Dim]) -> None:
        """Replace the op by a longer one and slices of its results."""
        op, at = view.op, Emitter.before(view.op)
        loops = view.loops(self.scope.shapes)
        values: list[SSAValue] = []
        for value, map_ in zip(view.operands, view.maps, strict=True):
            before = self.scope.dims(value)
            shape = tuple(_length(expr, size, loops, extents) for expr, size in zip(map_.results, before, strict=True))
            sizes = zip(map_.results, before, shape, strict=True)
            grown = [expr for expr, size, to in sizes if size != to]
            values.append(self._longer(at, value, shape, self._is_read_as_it_is(view, grown)))
        shapes = [self.scope.dims(result) for result in op.results]
        new = rebuilt(op, values[: view.input_count], values[view.input_count :], view.maps, view.iterators)
        after = Emitter(InsertPoint.after(new), location=new.location)
        slices = [self._cut(after, value, shape) for value, shape in zip(new.results, shapes, strict=True)]
        self.grown.update({cut: value for cut, value in zip(slices, new.results, strict=True) if cut is not value})
        finish(op, slices)

    def _is_read_as_it_is(self, view: StructuredOp, exprs: Sequence[AffineExpr]) -> bool:
        """Whether the op may read anything in the grown part of an operand, whose coordinates are `exprs`: no summed
        loop traverses it."""
        return all(view.iterators[loop] == "parallel" for expr in exprs for loop in dims_of(expr))

    def _longer(self, at: Emitter, value: SSAValue, shape: Dims, anything: bool) -> SSAValue:
        """`value` with the sizes `shape`: filled up with zeros, or with `anything` that is there already."""
        before = self.scope.dims(value)
        if shape == before:
            return value
        behind = self.grown.get(value)
        if anything and behind is not None and self.scope.dims(behind) == shape:
            return behind
        op = producer_of(value)
        if isinstance(op, tensor.EmptyOp):
            return self.scope.empty(at, element_of(value), shape)
        if isinstance(op, linalg.ops.FillOp):
            return at.add(create_fill(op.operands[0], self.scope.empty(at, element_of(value), shape))).results[0]
        if isinstance(op, arith.ConstantOp):
            return self._longer_constant(at, op, shape)
        zero = at.scalar(0, element_of(value))
        high = [_growth(size, to) for size, to in zip(before, shape, strict=True)]
        return at.add(create_pad(value, [0] * len(high), high, zero, self.scope.typed(value, shape))).results[0]

    def _longer_constant(self, at: Emitter, op: arith.ConstantOp, shape: Dims) -> SSAValue:
        values = Values(Program(self.scope.ctx.resources))
        run_op(op, values)
        array = np.asarray(values[op.result])
        padded = np.pad(array, [(0, _growth(size, to)) for size, to in zip(array.shape, shape, strict=True)])
        return Emitter(at.point, location=op.location).constant(padded, self.scope.ctx, "padded")

    def _cut(self, at: Emitter, value: OpResult, shape: Dims) -> SSAValue:
        """The first elements of `value` along every dimension."""
        if self.scope.dims(value) == shape:
            return value
        sizes = [size if isinstance(size, int) else self.scope.size_value(size) for size in shape]
        zeros, ones = [0] * len(sizes), [1] * len(sizes)
        return at.add(tensor.ExtractSliceOp(value, zeros, sizes, ones, self.scope.typed(value, shape))).result


def _growth(size: Dim, to: Dim) -> int:
    """By how much a dimension grows: by a number, whatever its size."""
    by = d.sub(to, size)
    assert isinstance(by, int)
    return by


def _depends_on(value: SSAValue, sources: Collection[SSAValue]) -> bool:
    """Whether `value` is computed from one of `sources`."""
    seen, waiting = set[Operation](), [value]
    while waiting:
        op = producer_of(waiting.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if any(operand in sources for operand in op.operands):
            return True
        waiting.extend(op.operands)
    return False


def _length(expr: AffineExpr, size: Dim, loops: Dims, extents: Mapping[int, Dim]) -> Dim:
    """The size of a dimension that `expr` addresses when loops grow to `extents`: a window's image grows by what the
    last windows reach."""
    if isinstance(expr, AffineDimExpr):
        return extents.get(expr.position, size)
    linear = linear_terms(expr)
    if linear is None or not linear[0].keys() & extents.keys():
        return size
    last: Dim = linear[1]
    for loop, factor in linear[0].items():
        last = d.add(last, d.mul(factor, d.sub(extents.get(loop, loops[loop]), 1)))
    return d.maximum(size, d.add(last, 1))


EXPORT = PadToTilePass
