"""Which loops must be split, and into what, so that a reshape between two generics is none any more.

    add over (4, 6) ── reshape ──> mul over (12, 2)      =>      both over (4, 3, 2)

A split is passed on to all that see the loop: to the other operands of the op, to what makes and reads them, and
through other reshapes. It is granted where it ends at values whose reshape is free, so that no reshape comes to stand
between two ops that had none; or, if it may, at values that others read in these sizes already: the reader goes over to
the reshape that there is. An image whose maker cannot be split is such a value, the moments of its channels are read in
groups by a norm that reads the image in groups, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import func, linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import ops_of
from fuseline.passes.layout.rewriting.common_refinement import Factors, common_refinement
from fuseline.passes.layout.rewriting.free_reshapes import is_free
from fuseline.passes.layout.rewriting.loops import can_expand, expand_loops
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.reshapes import is_reshape, merge_chain, root_of
from fuseline.passes.layout.rewriting.scope import Scope

_SPLITTABLE = (Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST, Kind.REDUCTION)
_PARALLEL_ONLY = (Kind.CONTRACTION, Kind.GATHER)

_CHANNELS = LINE_BYTES // 4
"""Channels that a convolution keeps together: with fewer, or others left over, what is read once per group of them is
picked lane by lane for each pixel (measured 1.05 to 1.2 of the time of two dispatches; of whole vectors .96 to
1.02)."""

# How often one refinement may ask the ops around a value: far more than lie between two roots, few enough that a pass
# stays linear.
_MOST_QUESTIONS = 200

Splits = dict[int, list[Dim]]


class SplitsTogether:
    """The loops to split, op by op, so that `reshaped` (a reshape of what a generic makes) is read as it was made.
    `joining`: readers may go over to a reshape that others have. `before`: ops whose results lie in memory by then, as
    arguments do: each reader has a view of its own there, and other readers are not asked."""

    def __init__(
        self, scope: Scope, reshaped: SSAValue, *, joining: bool = False, before: Collection[Operation] | None = None
    ) -> None:
        self.scope, self._joining, self._before = scope, joining, before
        self.splits: dict[linalg.ops.GenericOp, Splits] = {}
        self._wanted: dict[SSAValue, Factors] = {}
        self._waiting: list[tuple[SSAValue, Factors]] = []
        self.granted = self._across(reshaped) and self._settle() and bool(self.splits)

    def apply(self) -> None:
        """Split the loops, and take out the reshapes that cancel."""
        for op, splits in self.splits.items():
            expand_loops(self.scope, op, splits)
        for op in ops_of(self.scope.block):
            if is_reshape(op):
                merge_chain(self.scope, op)
        self.scope.sweep()

    def _settle(self) -> bool:
        for _ in range(_MOST_QUESTIONS):
            if not self._waiting:
                break
            if not self._pass_on(*self._waiting.pop()):
                return False
        return not self._waiting and all(
            can_expand(self.scope, StructuredOp(op), splits) for op, splits in self.splits.items()
        )

    def _across(self, reshaped: SSAValue) -> bool:
        """Both ends of a chain of reshapes in sizes that fit both."""
        root = root_of(reshaped)
        found = common_refinement(self.scope.dims(root), self.scope.dims(reshaped))
        if found is None:
            return False
        self._want(root, found[0])
        self._want(reshaped, found[1])
        return True

    def _want(self, value: SSAValue, factors: Factors) -> None:
        if self._before is not None and _is_stored(value, self._before):
            return
        if any(len(sizes) > 1 for sizes in factors) and self._wanted.get(value) != factors:
            self._wanted[value] = factors
            self._waiting.append((value, factors))

    def _pass_on(self, value: SSAValue, factors: Factors) -> bool:
        """Ask whoever makes or reads `value` for it in `factors`; whether all can."""
        return self._ask_maker(value, factors) and all(self._ask_user(user, value, factors) for user in users_of(value))

    def _ask_maker(self, value: SSAValue, factors: Factors) -> bool:
        if is_free(value):
            return True
        assert type(value) is OpResult
        op = value.op
        if is_generic(op):
            return self._split(op, StructuredOp(op).output_maps[value.index], factors)
        if not is_reshape(op):
            return False
        self._through(factors, root_of(value), value)
        return True

    def _ask_user(self, user: Operation, value: SSAValue, factors: Factors) -> bool:
        if isinstance(user, func.ReturnOp):
            return True
        if is_reshape(user):
            self._through(factors, user.result, value)
            return True
        if not is_generic(user):
            return False
        view = StructuredOp(user)
        maps = zip((*view.inputs, *view.outputs), view.maps, strict=True)
        return all(self._split(user, map_, factors) for operand, map_ in maps if operand is value)

    def _through(self, factors: Factors, other: SSAValue, value: SSAValue) -> None:
        """A split of `value` beyond a reshape, where the sizes there allow it; else that reshape stays as it is."""
        found = common_refinement(self.scope.dims(other), [size for sizes in factors for size in sizes])
        if found is not None:
            self._want(other, found[0])
            self._want(value, _refined(factors, found[1]))

    def _split(self, op: linalg.ops.GenericOp, map_: AffineMap, factors: Factors) -> bool:
        wanted: Splits = {}
        for expr, sizes in zip(map_.results, factors, strict=True):
            if len(sizes) > 1:
                if type(expr) is not AffineDimExpr:
                    return False
                wanted[expr.position] = sizes
        return self._merge(op, wanted)

    def _merge(self, op: linalg.ops.GenericOp, wanted: Splits) -> bool:
        """Split the loops of `op` as `wanted` on top of what was wanted before."""
        known = self.splits.setdefault(op, {})
        changed = False
        for loop, sizes in wanted.items():
            found = common_refinement(known.get(loop, [*sizes]), sizes)
            if found is None:
                return False
            finer = [size for factor in found[1] for size in factor]
            if not _may_split(op, loop, finer):
                return False
            if finer != known.get(loop):
                known[loop], changed = finer, True
        if changed:
            self._want_operands(op, known)
        return True

    def _want_operands(self, op: linalg.ops.GenericOp, splits: Splits) -> None:
        view = StructuredOp(op)
        for value, map_ in zip((*view.inputs, *op.results), (*view.input_maps, *view.output_maps), strict=True):
            factors = _factors_of(self.scope.dims(value), map_, splits)
            if not (self._joining and self._is_read_as(value, factors)):
                self._want(value, factors)

    def _is_read_as(self, value: SSAValue, factors: Factors) -> bool:
        """Whether `value` is read through a reshape to these sizes."""
        dims = tuple(size for sizes in factors for size in sizes)
        return any(is_reshape(user) and tuple(self.scope.dims(user.result)) == dims for user in users_of(value))


def _is_stored(value: SSAValue, before: Collection[Operation]) -> bool:
    root = root_of(value)
    return is_free(value) or (type(root) is OpResult and root.op in before)


def _may_split(op: linalg.ops.GenericOp, loop: int, sizes: Sequence[Dim]) -> bool:
    what, view = kind(op), StructuredOp(op)
    if what is Kind.CONVOLUTION:
        innermost, exprs = sizes[-1], [expr for map_ in view.maps for expr in map_.results]
        slides = any(loop in dims_of(expr) for expr in exprs if type(expr) is not AffineDimExpr)
        return not slides and isinstance(innermost, int) and innermost % _CHANNELS == 0
    return what in _SPLITTABLE or (what in _PARALLEL_ONLY and view.iterators[loop] == "parallel")


def _factors_of(dims: Sequence[Dim], map_: AffineMap, splits: Splits) -> Factors:
    return [
        splits.get(expr.position, [size]) if type(expr) is AffineDimExpr else [size]
        for size, expr in zip(dims, map_.results, strict=True)
    ]


def _refined(factors: Factors, finer: Factors) -> Factors:
    """`finer` gives the parts of each size in `factors`, one after the other: those of each dimension together."""
    sizes = iter(finer)
    return [[factor for _ in whole for factor in next(sizes)] for whole in factors]
