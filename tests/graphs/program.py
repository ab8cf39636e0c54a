"""Programs of linalg on tensors for tests, written op by op: as a module with `@main`, or as a view of one dispatch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects import math as mlir_math
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, dims_map, element_of, identity_map
from fuseline.passes.cleanup.folds import dims
from fuseline.passes.cleanup.folds.worklist import Worklist

Size = int | str | None
Shape = Sequence[Size]
Element = Callable[[Body], SSAValue]


class Program:
    """`x` are the arguments. A size that is a name is only known at run time; one that is None is called `n` and its
    axis, and None in the shape of a result is not known by name.

    Args:
        constants: positions of arguments that every call site passes as constants.
        element: of all that is made, and of the arguments that `arguments` does not give another type.
    """

    def __init__(
        self,
        *shapes: Shape,
        constants: Sequence[int] = (),
        element: Attribute = f32,
        arguments: Sequence[Attribute] = (),
    ) -> None:
        self.element = element
        named = [[f"n{axis}" if size is None else size for axis, size in enumerate(shape)] for shape in shapes]
        types = [_type(e, shape) for e, shape in zip(arguments or [element] * len(shapes), named, strict=True)]
        self.block = Block(arg_types=types)
        self.x: tuple[SSAValue, ...] = tuple(self.block.args)
        self.names = sorted({size for shape in named for size in shape if isinstance(size, str)})
        self._attributes = [_attributes(shape, i in constants) for i, shape in enumerate(named)]
        self.function = func.FuncOp("main", (types, []), Region(self.block), arg_attrs=ArrayAttr(self._attributes))
        self.module = ModuleOp([self.function])
        self._shapes: dict[SSAValue, tuple[Size, ...]] = {x: tuple(s) for x, s in zip(self.x, named, strict=True)}
        self._sizes: dict[str, SSAValue] = {}
        self.count = 0

    # parts ------------------------------------------------------------------------------------------------------------

    @property
    def emit(self) -> Emitter:
        """Appends ops that come from a node of their own: `n1`, `n2`, .."""
        self.count += 1
        return Emitter.at_end(self.block, [f"n{self.count}"])

    def shape(self, value: SSAValue) -> tuple[Size, ...]:
        """The sizes of a tensor; None for one without a name."""
        assert isinstance(value.type, TensorType)
        known = tuple(None if size == DYNAMIC_INDEX else size for size in value.type.get_shape())
        return self._shapes.setdefault(value, known)

    def size(self, name: str) -> SSAValue:
        """A size of the arguments, as an index."""
        if name not in self._sizes:
            value, axis = next((x, s.index(name)) for x, s in self._shapes.items() if x in self.x and name in s)
            self._sizes[name] = Emitter.at_end(self.block).dim(value, axis)
        return self._sizes[name]

    def empty(self, *shape: Size, element: Attribute | None = None, emit: Emitter | None = None) -> SSAValue:
        """An uninitialised tensor."""
        assert None not in shape, "a size without a name"
        dynamic = [self.size(size) for size in shape if isinstance(size, str)]
        type_ = _type(element or self.element, shape)
        return self._made((emit or self.emit).add(tensor.EmptyOp(dynamic, type_)).tensor, shape)

    def zeros(
        self, *shape: Size, value: float = 0.0, element: Attribute | None = None, emit: Emitter | None = None
    ) -> SSAValue:
        """A tensor filled with one number."""
        emit = emit or self.emit
        return self._made(emit.fill(value, self.empty(*shape, element=element, emit=emit)), shape)

    def _made(self, value: SSAValue, shape: Shape) -> SSAValue:
        self._shapes[value] = tuple(shape)
        return value

    # structured ops ---------------------------------------------------------------------------------------------------

    def generic(
        self, inputs: Sequence[SSAValue], inits: Sequence[SSAValue], maps: Sequence[AffineMap], iterators: str,
        body: Callable[[Body], Sequence[SSAValue]], emit: Emitter | None = None,
    ) -> tuple[SSAValue, ...]:  # fmt: skip
        """The results of a `linalg.generic`; iterators as letters, `p` and `r`."""
        kinds = [PARALLEL if letter == "p" else REDUCTION for letter in iterators]
        results = (emit or self.emit).generic(inputs, inits, maps, kinds, body).results
        return tuple(self._made(result, self.shape(init)) for result, init in zip(results, inits, strict=True))

    def elementwise(
        self, inputs: Sequence[SSAValue], out: SSAValue, body: Element, maps: Sequence[AffineMap] = (),
        emit: Emitter | None = None,
    ) -> SSAValue:  # fmt: skip
        """An all-parallel op; `maps` of the inputs, then of the result (none: all as they lie)."""
        rank = len(self.shape(out))
        chosen = maps or [identity_map(rank)] * (len(inputs) + 1)
        return self.generic(inputs, [out], chosen, "p" * chosen[-1].num_dims, lambda b: [body(b)], emit)[0]

    def over(self, x: SSAValue, *more: tuple[SSAValue, AffineMap], body: Element, emit: Emitter | None = None):
        """An elementwise op over the space of `x`; the others are read through maps."""
        emit, rank = emit or self.emit, len(self.shape(x))
        maps = [identity_map(rank), *(map_ for _, map_ in more), identity_map(rank)]
        out = self.empty(*self.shape(x), emit=emit)
        return self.elementwise([x, *(value for value, _ in more)], out, body, maps, emit)

    def unary(
        self, x: SSAValue, kind: Callable[..., Any] = mlir_math.ExpOp, permutation: Sequence[int] | None = None
    ) -> SSAValue:
        """An elementwise op; with `permutation`, dimension i of the result is dimension permutation[i] of the
        operand."""
        emit, rank = self.emit, len(self.shape(x))
        order = list(permutation or range(rank))
        out = self.empty(*(self.shape(x)[axis] for axis in order), emit=emit)
        maps = [dims_map(rank, [order.index(axis) for axis in range(rank)]), identity_map(rank)]
        return self.elementwise([x], out, lambda b: b.op(kind, b.args[0]), maps, emit)

    def binary(
        self, a: SSAValue, b: SSAValue, map_b: AffineMap | None = None, kind: Callable[..., Any] = arith.AddfOp
    ) -> SSAValue:
        """`a + b`, or another op, over the space of `a`; `map_b` says how b is read."""
        read = map_b if map_b is not None else identity_map(len(self.shape(a)))
        return self.over(a, (b, read), body=lambda body: body.op(kind, body.args[0], body.args[1]))

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The sum."""
        return self.binary(x, y)

    def bias(self, x: SSAValue, bias: SSAValue, axis: int) -> SSAValue:
        """`x` plus a vector along `axis`."""
        return self.binary(x, bias, dims_map(len(self.shape(x)), [axis]))

    def relu(self, x: SSAValue) -> SSAValue:
        """`max(x, 0)`."""
        return self.over(x, body=lambda b: b.op(arith.MaximumfOp, b.args[0], b.constant(0.0, self.element)))

    def moved(self, x: SSAValue, loops: Sequence[int], *shape: Size) -> SSAValue:
        """A copy of shape `shape` whose dimension `loops[i]` is dimension `i` of `x`: a transpose, a broadcast."""
        rank = len(shape)
        maps = [dims_map(rank, list(loops)), identity_map(rank)]
        return self.elementwise([x], self.empty(*shape), lambda b: b.args[0], maps)

    def by_row(self, x: SSAValue, row: SSAValue, body: Element) -> SSAValue:
        """An elementwise op of `x` and a value per row."""
        rank = len(self.shape(x))
        return self.over(x, (row, dims_map(rank, list(range(rank - 1)))), body=body)

    # reductions -------------------------------------------------------------------------------------------------------

    def reduce(self, x: SSAValue, axis: int = -1, combine: type[Any] = arith.AddfOp) -> SSAValue:
        """`x` summed over one dimension, or its maximum there."""
        emit, shape = self.emit, self.shape(x)
        kept = [i for i in range(len(shape)) if i != axis % len(shape)]
        start = 0.0 if combine is arith.AddfOp else -math.inf
        init = self.zeros(*(shape[i] for i in kept), value=start, emit=emit)
        maps = [identity_map(len(shape)), dims_map(len(shape), kept)]
        iterators = "".join("p" if i in kept else "r" for i in range(len(shape)))
        return self.generic([x], [init], maps, iterators, lambda b: [b.op(combine, b.args[1], b.args[0])], emit)[0]

    def softmax(self, x: SSAValue) -> SSAValue:
        """Over the last dimension."""
        top = self.reduce(x, combine=arith.MaximumfOp)
        powers = self.by_row(x, top, lambda b: b.op(mlir_math.ExpOp, b.op(arith.SubfOp, *b.args[:2])))
        return self.by_row(powers, self.reduce(powers), lambda b: b.op(arith.DivfOp, *b.args[:2]))

    def multiply_add(
        self, a: SSAValue, b: SSAValue, init: SSAValue, maps: Sequence[AffineMap], iterators: str,
        emit: Emitter | None = None,
    ) -> SSAValue:  # fmt: skip
        """`init + sum(a * b)`; narrow integers are extended with their sign first."""
        return self.generic([a, b], [init], maps, iterators, _multiply_add, emit)[0]

    def matmul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a[m, k] @ b[k, n]`."""
        maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        emit = self.emit
        init = self.zeros(self.shape(a)[0], self.shape(b)[1], emit=emit)
        return self.multiply_add(a, b, init, maps, "ppr", emit)

    def depthwise(self, image: SSAValue, window: SSAValue) -> SSAValue:
        """A 1-D depthwise convolution: `out[w, c] = sum_k image[w + k, c] * window[k, c]`."""
        maps = [AffineMap.from_callable(lambda w, c, k: (w + k, c)), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        emit, (taps, channels) = self.emit, self.shape(window)
        init = self.zeros(_window(self.shape(image)[0], taps), channels, emit=emit)
        return self.multiply_add(image, window, init, maps, "ppr", emit)

    def convolution(self, image: SSAValue, filter_: SSAValue) -> SSAValue:
        """A 1-D convolution of unit stride: `out[w, f] = sum_kc image[w + k, c] * filter[k, c, f]`."""
        image_map = AffineMap.from_callable(lambda w, f, k, c: (w + k, c))
        maps = [image_map, dims_map(4, [2, 3, 1]), dims_map(4, [0, 1])]
        emit, (taps, _, filters) = self.emit, self.shape(filter_)
        init = self.zeros(_window(self.shape(image)[0], taps), filters, emit=emit)
        return self.multiply_add(image, filter_, init, maps, "pprr", emit)

    # ops that move data -----------------------------------------------------------------------------------------------

    def pad(self, x: SSAValue, low: Sequence[int], high: Sequence[int], value: float = 0.0) -> SSAValue:
        """`x` with borders of `value`."""
        emit, element = self.emit, element_of(x)
        shape = [n + a + b if isinstance(n, int) else None for n, a, b in zip(self.shape(x), low, high, strict=True)]
        block = Block(arg_types=[IndexType()] * len(shape))
        block.add_op(tensor.YieldOp(Body(block, emit.location).constant(value, element)))
        return emit.add(tensor.PadOp(x, [], [], Region(block), low, high, _type(element, shape))).result

    def concat(self, *parts: SSAValue, axis: int = -1) -> SSAValue:
        """`parts` one after the other along `axis`."""
        shape = list(self.shape(parts[0]))
        axis %= len(shape)
        sizes = [self.shape(part)[axis] for part in parts]
        shape[axis] = sum(size for size in sizes if isinstance(size, int)) if _known(sizes) else None
        types, properties = [_type(element_of(parts[0]), shape)], {"dim": IntegerAttr(axis, i64)}
        op = self.emit.add(tensor.ConcatOp.create(operands=parts, result_types=types, properties=properties))
        return self._made(op.results[0], shape)

    def slice(
        self, x: SSAValue, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None = None
    ) -> SSAValue:
        """A part of `x`."""
        steps = list(strides or [1] * len(offsets))
        return self.emit.add(tensor.ExtractSliceOp.from_static_parameters(x, list(offsets), list(sizes), steps)).result

    def columns(self, x: SSAValue, first: int, count: int) -> SSAValue:
        """Columns `first` to `first + count` of a matrix."""
        rows = self.shape(x)[0]
        assert isinstance(rows, int)
        return self.slice(x, [0, first], [rows, count])

    def collapse(self, x: SSAValue, groups: Sequence[Sequence[int]] | None = None) -> SSAValue:
        """`x` with neighbouring dimensions joined; without `groups` all of them."""
        sizes = self.shape(x)
        chosen = groups if groups is not None else [range(len(sizes))]
        shape = [_product([sizes[axis] for axis in group]) for group in chosen]
        op = tensor.CollapseShapeOp.create(
            operands=[x],
            result_types=[_type(element_of(x), shape)],
            properties={"reassociation": _reassociation(chosen)},
        )
        return self.emit.add(op).result

    def expand(self, x: SSAValue, *shape: int, groups: Sequence[Sequence[int]] | None = None) -> SSAValue:
        """`x` with dimensions split; without `groups` a vector."""
        reassociation = _reassociation(groups if groups is not None else [range(len(shape))])
        return self.emit.add(
            tensor.ExpandShapeOp(x, [], reassociation, list(shape), _type(element_of(x), shape))
        ).result

    def repeated(self, x: SSAValue, factors: Sequence[int]) -> SSAValue:
        """Every element `factors[i]` times along dimension `i`: upsampling by whole factors, as the frontend writes
        it."""
        shape = [size for size in self.shape(x) if isinstance(size, int)]
        groups = [[2 * i, 2 * i + 1] for i in range(len(shape))]
        opened = self.expand(x, *(n for size in shape for n in (size, 1)), groups=groups)
        wide = [n for size, factor in zip(shape, factors, strict=True) for n in (size, factor)]
        read = dims_map(len(wide), [None if i % 2 else i for i in range(len(wide))])
        copied = self.elementwise([opened], self.empty(*wide), lambda b: b.args[0], [read, identity_map(len(wide))])
        return self.collapse(copied, groups)

    def gathered(self, table: SSAValue, numbers: SSAValue, rows: int, columns: int) -> SSAValue:
        """Rows of `table` picked by the first column of `numbers` (whole numbers, as the elements are)."""

        def body(b: Body) -> SSAValue:
            row = b.op(arith.IndexCastOp, b.op(arith.FPToSIOp, b.args[0], i64), IndexType())
            return b.add(tensor.ExtractOp(table, [row, b.add(linalg.ops.IndexOp(1)).result], self.element)).result

        first = AffineMap(2, 0, (AffineExpr.dimension(0), AffineExpr.constant(0)))
        return self.elementwise([numbers], self.empty(rows, columns), body, [first, identity_map(2)])

    # the end ----------------------------------------------------------------------------------------------------------

    def done(self, *results: SSAValue) -> Self:
        """Return `results` from `main`; what nothing needs is dropped, as in canonical IR."""
        self.emit.add(func.ReturnOp(*results))
        self.function.update_function_type()
        Worklist({tensor.DimOp: dims.FOLDS}).run(self.module)
        self.module.verify()
        return self

    def dispatch(self, *results: SSAValue) -> DispatchView:
        """A dispatch that makes `results`: sizes that only the run knows are arguments, by name."""
        for name in self.names:
            self._as_argument(name)
        names = [DictionaryAttr({"fuseline.name": StringAttr(name)}) for name in self.names]
        self.block.add_op(func.ReturnOp(*results))
        self.function.detach()
        self.function.sym_name = StringAttr("entry")
        self.function.arg_attrs = ArrayAttr([*self._attributes, *names])
        self.function.update_function_type()
        self.function.verify()
        return DispatchView(self.function)

    def _as_argument(self, name: str) -> None:
        argument = self.block.insert_arg(IndexType(), len(self.block.args))
        if name in self._sizes:
            asked = self._sizes[name].owner
            assert isinstance(asked, tensor.DimOp)
            axis = asked.index.owner
            asked.result.replace_all_uses_with(argument)
            for op in (asked, axis):
                assert not isinstance(op, Block)
                op.detach()
                op.erase()


def _multiply_add(b: Body) -> list[SSAValue]:
    kind = b.args[2].type
    if isinstance(kind, IntegerType):
        wide = [b.op(arith.ExtSIOp, side, kind) for side in b.args[:2]]
        return [b.op(arith.AddiOp, b.args[2], b.op(arith.MuliOp, *wide))]
    return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.args[0], b.args[1]))]


def _type(element: Attribute, shape: Shape) -> TensorType[Any]:
    return TensorType(element, [size if isinstance(size, int) else DYNAMIC_INDEX for size in shape])


def _attributes(shape: Shape, constant: bool) -> DictionaryAttr:
    out: dict[str, Attribute] = {}
    if any(isinstance(size, str) for size in shape):
        out["fuseline.dims"] = ArrayAttr([StringAttr(str(size)) for size in shape])
    if constant:
        out["fuseline.constant"] = UnitAttr()
    return DictionaryAttr(out)


def _known(sizes: Sequence[Size]) -> bool:
    return all(isinstance(size, int) for size in sizes)


def _product(sizes: Sequence[Size]) -> Size:
    if len(sizes) == 1:
        return sizes[0]
    return math.prod(size for size in sizes if isinstance(size, int)) if _known(sizes) else None


def _window(size: Size, taps: Size) -> int:
    assert isinstance(size, int) and isinstance(taps, int)
    return size - taps + 1


def _reassociation(groups: Sequence[Sequence[int]]) -> ArrayAttr[Any]:
    return ArrayAttr([ArrayAttr([IntegerAttr(axis, i64) for axis in group]) for group in groups])
