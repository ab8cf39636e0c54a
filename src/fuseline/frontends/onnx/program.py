"""The function under construction: sizes as index values, tensors as SSA values, all emitted at most once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AnyFloat, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.broadcasting import Broadcasting
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.meant_sizes import one_alone
from fuseline.frontends.onnx.reshaping import reshape_value
from fuseline.frontends.onnx.scalars import convert
from fuseline.frontends.onnx.tensors import Tensor, static_size
from fuseline.ir.build import PARALLEL, Emitter, dims_map, identity_map, tensor_type
from fuseline.ir.constant_budget import words_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, Expr, Symbol, evaluate, lower_bound, symbol, symbols, upper_bound
from fuseline.ir.fast.create import create_empty
from fuseline.ir.fast.direct import result_of
from fuseline.size_requirement import SizeRequirement

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")


class Mark(NamedTuple):
    """A state to go back to: the last op, and how much there was to undo."""

    last: Operation | None
    undo: int


class Program:
    """Owns the block that nodes append to. What it emits once (sizes, constants) can be taken back with `rollback`.

    `assumed` are the symbols whose bounds nobody gave: they may be 0, unless an operator makes no sense of it.
    """

    def __init__(self, ctx: CompilerContext) -> None:
        self.ctx = ctx
        self.block = Block()
        self.assumed: frozenset[str] = frozenset()
        self.broadcasting = Broadcasting(literal=ctx.literal_broadcasts)
        self._sizes: dict[Dim, SSAValue] = {}
        self._symbols: dict[str, tuple[SSAValue, int | None]] = {}
        self._squeezed: dict[tuple[int, tuple[int, ...]], Tensor] = {}
        self._names: dict[str, int] = {}
        self._undo: list[Callable[[], object]] = []

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def bind_symbols(self, value: SSAValue, dims: Sequence[Dim]) -> None:
        """Let symbols that appear alone in `dims` be read off `value`; the first place counts."""
        for axis, dim in enumerate(dims):
            if isinstance(dim, Expr) and len(dim.terms) == 1 and len(dim.terms[0][0]) == 1 and dim.terms[0][1] == 1:
                atom = dim.terms[0][0][0]
                if isinstance(atom, Symbol) and atom.name not in self._symbols:
                    self._symbols[atom.name] = (value, axis)
                    self.on_rollback(lambda name=atom.name: self._symbols.pop(name, None))

    def bind_size(self, symbol: Symbol, value: SSAValue) -> None:
        """Let `symbol` be the index value `value`, an argument."""
        self._symbols[symbol.name] = (value, None)
        self.on_rollback(lambda: self._symbols.pop(symbol.name, None))

    def is_bound(self, dim: Dim) -> bool:
        """Whether every symbol in `dim` can be read off a value that is there."""
        return all(item.name in self._symbols for item in symbols(dim))

    def fresh_symbol(self, stem: str, *, lo: int = 1, hi: int | None = None) -> Dim:
        """A new size of which only bounds are known (`hi` None: any size from `lo` on)."""
        name = self.unique(stem)
        self.ctx.symbols[name] = out = symbol(name, lo, hi)
        return out

    def limit(self, dim: Dim, most: int) -> bool:
        """Whether `dim` never exceeds `most`; the size of an input is bounded to make it so, and larger inputs are
        refused at run time."""
        high = upper_bound(dim)
        if high is not None and high <= most:
            return True
        variable = [(monomial, factor) for monomial, factor in dim.terms if monomial] if isinstance(dim, Expr) else []
        if len(variable) != 1 or len(variable[0][0]) != 1 or variable[0][1] < 1:
            return False
        atom, factor = variable[0][0][0], variable[0][1]
        if not isinstance(atom, Symbol) or not isinstance(self._symbols.get(atom.name, (None, 0))[0], BlockArgument):
            return False
        bound = (most - evaluate(dim, {atom.name: 0})) // factor
        if bound < atom.lo:
            return False
        known = upper_bound(self.ctx.symbols.get(atom.name, bound))
        self.ctx.symbols[atom.name] = symbol(atom.name, atom.lo, bound if known is None else min(bound, known))
        return True

    def is_fed(self, dim: Dim) -> bool:
        """Whether the sizes of inputs alone tell `dim`, and nothing that is computed."""
        return all(isinstance(self._symbols.get(symbol.name, (None, 0))[0], BlockArgument) for symbol in symbols(dim))

    def require_at_least(self, dim: Dim, least: int, node: str) -> None:
        """Let the program refuse sizes that make `dim` smaller than `least`; `node` is named then."""
        low = lower_bound(dim)
        if low is None or low < least:
            self.require(SizeRequirement(dim, least, node, relation="at_least"))

    def require_other(self, dim: Dim, size: int, node: str) -> None:
        """Let the program refuse sizes that make `dim` equal to `size`; `node` is named then."""
        low, high = lower_bound(dim), upper_bound(dim)
        if not ((low is not None and low > size) or (high is not None and high < size)):
            self.require(SizeRequirement(dim, size, node, relation="differ"))

    def require_equal(self, left: Dim, right: Dim, node: str) -> None:
        """Let the program refuse sizes that make two differ that `node` takes to be equal; raises FuselineError (E0107)
        for different numbers."""
        if isinstance(left, int) and isinstance(right, int) and left != right:
            raise FuselineError("E0107", f"sizes {left} and {right} must be equal", node=node)
        if left != right:
            self.require(SizeRequirement(left, right, node))

    def require(self, requirement: SizeRequirement) -> None:
        """Let the program check `requirement`, until it is rolled back."""
        key = (requirement.left, requirement.right, requirement.relation)
        if key not in self.ctx.requirements:
            self.ctx.require(requirement)
            self.on_rollback(lambda: self.ctx.requirements.pop(key, None))

    def take_equal(self, size: Dim, out: Dim, node: str) -> None:
        """Note that `node` takes a size to be the one it broadcasts to, where it may as well be 1, until that is rolled
        back."""
        if size != out and (size, out) not in self.ctx.taken_equal and one_alone(size, out):
            self.ctx.taken_equal[size, out] = node
            self.on_rollback(lambda: self.ctx.taken_equal.pop((size, out), None))

    def unique(self, stem: str) -> str:
        """`stem` made safe for a symbol name, with a number where it is taken."""
        stem = _UNSAFE.sub("_", stem) or "value"
        count = self._names[stem] = self._names.get(stem, -1) + 1
        return f"{stem}_{count}" if count else stem

    def index(self, dim: Dim, emit: Emitter) -> SSAValue:
        """`dim` as an index value."""
        found = self._sizes.get(dim)
        if found is None:
            found = self._sizes[dim] = emit.size(dim, lambda atom: self._symbol_value(atom, emit))
            self._undo.append(lambda: self._sizes.pop(dim, None))
        return found

    def _symbol_value(self, atom: Symbol, emit: Emitter) -> SSAValue:
        value, axis = self._symbols[atom.name]
        return value if axis is None else emit.add(tensor.DimOp(value, self.index(axis, emit))).result

    def integer(self, dim: Dim, type_: Attribute, emit: Emitter) -> SSAValue:
        """`dim` as a scalar of `type_`, an integer or a float."""
        if isinstance(dim, int):
            return emit.scalar(dim, type_)
        if isinstance(type_, AnyFloat):
            return emit.add(arith.SIToFPOp(self.integer(dim, i64, emit), type_)).result
        return emit.add(arith.IndexCastOp(self.index(dim, emit), type_)).result

    def empty(self, dims: Sequence[Dim], dtype: np.dtype[Any], emit: Emitter) -> SSAValue:
        """An uninitialised tensor."""
        dynamic = [self.index(dim, emit) for dim in dims if not isinstance(dim, int)]
        return result_of(emit.add(create_empty(tensor_type(mlir_element(dtype), dims), dynamic)))

    # -- tensors -------------------------------------------------------------------------------------------------------

    def may_make(self, elements: int, dtype: np.dtype[Any]) -> bool:
        """Whether a constant of so many elements may be made while reading; what may is charged to the budget of all
        constants, until it is rolled back. Its name is a `folded_name`, so that it never counts as the model's own."""
        words = words_of(elements, dtype)
        if words > self.ctx.to_make:
            return False
        self.ctx.to_make -= words
        self.on_rollback(lambda: setattr(self.ctx, "to_make", self.ctx.to_make + words))
        return True

    def ssa(self, t: Tensor, emit: Emitter) -> SSAValue:
        """`t` as an SSA value, emitted here if nothing emitted it before."""
        if t.value is None:
            t.value = self._materialise(t, emit)
            self._undo.append(lambda: setattr(t, "value", None))
        return t.value

    def _materialise(self, t: Tensor, emit: Emitter) -> SSAValue:
        if t.array is not None:
            return self._symbolic(t, emit) if t.array.dtype == object else self._constant(t.array, t.name, emit)
        assert t.base is not None
        if _only_adds_units(t):
            return reshape_value(emit, self.ssa(t.base, emit), t.base.dims, t.dims, lambda dim: self.index(dim, emit))
        value, map_ = self.read(t, range(t.rank), t.rank, emit)
        return self._copy(value, map_, t, emit)

    def _copy(self, value: SSAValue, map_: AffineMap, t: Tensor, emit: Emitter) -> SSAValue:
        out = self.empty(t.dims, t.dtype, emit)
        op = emit.generic([value], [out], [map_, identity_map(t.rank)], [PARALLEL] * t.rank, lambda b: [b.args[0]])
        return op.results[0]

    def _constant(self, array: NDArray[Any], name: str, emit: Emitter) -> SSAValue:
        count = len(self.ctx.resources)
        value = emit.constant(array, self.ctx, self.unique(name or "const"))
        if len(self.ctx.resources) > count:
            stored = next(reversed(self.ctx.resources))
            self.on_rollback(lambda: self.ctx.resources.pop(stored))
        return value

    def _symbolic(self, t: Tensor, emit: Emitter) -> SSAValue:
        """The known sizes in `t` as a tensor; those that a model counts in another type than i64 are converted where
        they run."""
        assert t.array is not None
        if t.dtype != INDEX_DTYPE:
            whole = self._symbolic(Tensor(INDEX_DTYPE, t.dims, array=t.array), emit)
            maps, loops = [identity_map(t.rank)] * 2, [PARALLEL] * t.rank
            out = self.empty(t.dims, t.dtype, emit)
            return emit.generic(
                [whole], [out], maps, loops, lambda b: [convert(b, b.args[0], INDEX_DTYPE, t.dtype)]
            ).results[0]
        elements = [self.integer(dim, i64, emit) for dim in t.sizes()]
        return emit.add(tensor.FromElementsOp(*elements, result_type=tensor_type(i64, t.dims))).result

    def read(self, t: Tensor, loops: Sequence[int | None], rank: int, emit: Emitter) -> tuple[SSAValue, AffineMap]:
        """The tensor behind `t` and the map from `rank` loops to its coordinates, when axis k of `t` follows `loops[k]`
        (None: stays at 0).

        Views are looked through, and constants lose the unit dimensions that stay at 0.
        """
        loops = list(loops)
        while t.value is None and t.base is not None:
            loops = [None if axis is None else loops[axis] for axis in t.axes]
            t = t.base
        if t.is_constant and t.value is None:
            t, loops = self._without_units(t, loops)
        return self.ssa(t, emit), dims_map(rank, loops)

    def _without_units(self, t: Tensor, loops: list[int | None]) -> tuple[Tensor, list[int | None]]:
        keep = tuple(axis for axis, size in enumerate(t.dims) if size != 1)
        if len(keep) == t.rank:
            return t, loops
        key = (id(t), keep)
        small = self._squeezed.get(key)
        if small is None:
            assert t.array is not None
            dims = tuple(t.dims[axis] for axis in keep)
            small = self._squeezed[key] = Tensor(
                t.dtype, dims, array=t.array.reshape([static_size(d) for d in dims]), name=t.name
            )
            self._squeezed[(id(small), ())] = t  # keeps `t` alive, so that its id stays its own
        return small, [loops[axis] for axis in keep]

    # -- taking back ---------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """The present state, for `rollback`."""
        return Mark(self.block.last_op, len(self._undo))

    def since(self, mark: Mark) -> Iterator[Operation]:
        """What was emitted after `mark`."""
        op = self.block.first_op if mark.last is None else mark.last.next_op
        while op is not None:
            yield op
            op = op.next_op

    def on_rollback(self, undo: Callable[[], object]) -> None:
        """Call `undo` when what is emitted now is taken back."""
        self._undo.append(undo)

    def rollback(self, mark: Mark) -> None:
        """Erase everything emitted since `mark`."""
        last, undo = mark
        while len(self._undo) > undo:
            self._undo.pop()()
        while self.block.last_op is not None and self.block.last_op is not last:
            self.block.erase_op(self.block.last_op)


def _only_adds_units(t: Tensor) -> bool:
    """Whether a view is its base with unit dimensions put in or taken out, in order."""
    assert t.base is not None
    followed = [axis for axis in t.axes if axis is not None]
    repeats = any(t.dims[axis] != 1 for axis in range(t.rank) if axis not in followed)
    return not repeats and followed == sorted(followed)
