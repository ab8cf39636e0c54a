"""Small dispatches written by hand, and their kernels run natively between guard pages."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import Body, Emitter, dims_map, identity_map, numpy_dtype
from fuseline.passes.schedule.pack_constants import transformed
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.evaluate import evaluate
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link.compile import emit_object
from fuseline.targets.target import PackedLayout

Array = NDArray[Any]
Shape = Sequence[int | str]


class Dispatch:
    """An entry function under construction: `x` are its tensor arguments; a size that is a name is only known at run
    time.

    `constants` are positions of arguments that every call site passes as constants; `arguments` their element types,
    where not all are `element`.
    """

    def __init__(
        self,
        *shapes: Shape,
        constants: Sequence[int] = (),
        element: Attribute = f32,
        arguments: Sequence[Attribute] = (),
    ) -> None:
        self.element = element
        self.names = sorted({size for shape in shapes for size in shape if isinstance(size, str)})
        elements = arguments or [element] * len(shapes)
        types: list[Attribute] = [
            TensorType(e, [_static(size) for size in shape]) for e, shape in zip(elements, shapes, strict=True)
        ]
        self.block = Block(arg_types=[*types, *(IndexType() for _ in self.names)])
        self.x: tuple[SSAValue, ...] = tuple(self.block.args[: len(shapes)])
        self.sizes = dict(zip(self.names, self.block.args[len(shapes) :], strict=True))
        self.attributes = [_attributes(shape, i in constants) for i, shape in enumerate(shapes)]
        self.attributes += [DictionaryAttr({"fuseline.name": StringAttr(name)}) for name in self.names]
        self.emit = Emitter.at_end(self.block, ["test"])

    def empty(self, *shape: int | str) -> SSAValue:
        """An uninitialised tensor."""
        dynamic = [self.sizes[size] for size in shape if isinstance(size, str)]
        return self.emit.add(
            tensor.EmptyOp(dynamic, TensorType(self.element, [_static(size) for size in shape]))
        ).tensor

    def zeros(self, *shape: int | str, value: float = 0.0) -> SSAValue:
        """A tensor filled with one number."""
        return self.emit.fill(value, self.empty(*shape))

    def multiply_add(
        self, a: SSAValue, b: SSAValue, init: SSAValue, maps: Sequence[AffineMap], iterators: str
    ) -> SSAValue:
        """`init + sum(a * b)`; iterators as letters, `p` and `r`."""

        def body(b_: Body) -> list[SSAValue]:
            return [b_.op(arith.AddfOp, b_.args[2], b_.op(arith.MulfOp, b_.args[0], b_.args[1]))]

        kinds = ["parallel" if letter == "p" else "reduction" for letter in iterators]
        return self.emit.generic([a, b], [init], maps, kinds, body).results[0]

    def matmul(self, a: SSAValue, b: SSAValue, m: int | str, n: int | str) -> SSAValue:
        """`a[m, k] @ b[k, n]`."""
        maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        return self.multiply_add(a, b, self.zeros(m, n), maps, "ppr")

    def elementwise(
        self, inputs: Sequence[SSAValue], out: SSAValue, body: Callable[[Body], SSAValue], maps: Sequence[AffineMap]
    ) -> SSAValue:
        """An all-parallel op; `maps` of the inputs, then of the result."""
        rank = maps[-1].num_dims
        return self.emit.generic(inputs, [out], maps, ["parallel"] * rank, lambda b: [body(b)]).results[0]

    def relu(self, x: SSAValue, *shape: int | str) -> SSAValue:
        """`max(x, 0)`."""
        rank = len(shape)
        maps = [identity_map(rank)] * 2
        return self.elementwise(
            [x], self.empty(*shape), lambda b: b.op(arith.MaximumfOp, b.args[0], b.constant(0.0, self.element)), maps
        )

    def bias(self, x: SSAValue, bias: SSAValue, axis: int, *shape: int | str) -> SSAValue:
        """`x` plus a vector along `axis`."""
        rank = len(shape)
        maps = [identity_map(rank), dims_map(rank, [axis]), identity_map(rank)]
        return self.elementwise([x, bias], self.empty(*shape), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), maps)

    def add(self, x: SSAValue, y: SSAValue, *shape: int | str) -> SSAValue:
        """The sum."""
        maps = [identity_map(len(shape))] * 3
        return self.elementwise([x, y], self.empty(*shape), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), maps)

    def pad(self, x: SSAValue, low: Sequence[int], high: Sequence[int], value: float = 0.0) -> SSAValue:
        """`x` with borders of `value`."""
        assert isinstance(x.type, TensorType)
        shape = [
            size if size == DYNAMIC_INDEX else size + a + b
            for size, a, b in zip(x.type.get_shape(), low, high, strict=True)
        ]
        number = self.emit.scalar(value, self.element)
        block = Block(arg_types=[IndexType()] * len(shape))
        block.add_op(tensor.YieldOp(number))
        return self.emit.add(tensor.PadOp(x, [], [], Region(block), low, high, TensorType(self.element, shape))).result

    def concat(self, axis: int, *parts: SSAValue) -> SSAValue:
        """`parts` one after the other along `axis`."""
        shape = list(_shape(parts[0]))
        sizes = [_shape(part)[axis] for part in parts]
        shape[axis] = DYNAMIC_INDEX if DYNAMIC_INDEX in sizes else sum(sizes)
        return self.emit.add(
            tensor.ConcatOp.create(
                operands=parts,
                result_types=[TensorType(self.element, shape)],
                properties={"dim": IntegerAttr(axis, i64)},
            )
        ).results[0]

    def slice(
        self, x: SSAValue, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None = None
    ) -> SSAValue:
        """A part of `x`."""
        steps = list(strides or [1] * len(offsets))
        op = tensor.ExtractSliceOp.from_static_parameters(x, list(offsets), list(sizes), steps)
        return self.emit.add(op).result

    def moved(self, x: SSAValue, loops: Sequence[int], *shape: int | str) -> SSAValue:
        """A copy of shape `shape` whose dimension `loops[i]` is dimension `i` of `x`: a transpose, a broadcast."""
        rank = len(shape)
        return self.elementwise(
            [x], self.empty(*shape), lambda b: b.args[0], [dims_map(rank, list(loops)), identity_map(rank)]
        )

    def repeated(self, x: SSAValue, factors: Sequence[int]) -> SSAValue:
        """Every element `factors[i]` times along dimension `i`: upsampling by whole factors, as the frontend writes
        it."""
        shape = _shape(x)
        groups = [[2 * i, 2 * i + 1] for i in range(len(shape))]
        opened = self.expand(x, groups, *(n for size in shape for n in (size, 1)))
        wide = [n for size, factor in zip(shape, factors, strict=True) for n in (size, factor)]
        rank = len(wide)
        read = AffineMap(
            rank, 0, tuple(AffineExpr.dimension(i) if i % 2 == 0 else AffineExpr.constant(0) for i in range(rank))
        )
        copied = self.elementwise([opened], self.empty(*wide), lambda b: b.args[0], [read, identity_map(rank)])
        return self.collapse(copied, groups, *(size * factor for size, factor in zip(shape, factors, strict=True)))

    def gathered(self, table: SSAValue, numbers: SSAValue, rows: int, columns: int) -> SSAValue:
        """Rows of `table` picked by the first column of `numbers` (whole numbers, as the elements are)."""

        def body(b: Body) -> SSAValue:
            row = b.op(arith.IndexCastOp, b.op(arith.FPToSIOp, b.args[0], i64), IndexType())
            return b.add(tensor.ExtractOp(table, [row, b.add(linalg.ops.IndexOp(1)).result], self.element)).result

        first = AffineMap(2, 0, (AffineExpr.dimension(0), AffineExpr.constant(0)))
        return self.elementwise([numbers], self.empty(rows, columns), body, [first, identity_map(2)])

    def collapse(self, x: SSAValue, groups: Sequence[Sequence[int]], *shape: int) -> SSAValue:
        """`x` with neighbouring dimensions joined."""
        type_ = TensorType(self.element, list(shape))
        op = tensor.CollapseShapeOp.create(
            operands=[x], result_types=[type_], properties={"reassociation": _groups(groups)}
        )
        return self.emit.add(op).result

    def expand(self, x: SSAValue, groups: Sequence[Sequence[int]], *shape: int) -> SSAValue:
        """`x` with dimensions split."""
        return self.emit.add(
            tensor.ExpandShapeOp(x, [], _groups(groups), list(shape), TensorType(self.element, list(shape)))
        ).result

    def done(self, *results: SSAValue) -> DispatchView:
        """The finished dispatch."""
        self.block.add_op(func.ReturnOp(*results))
        types = ([a.type for a in self.block.args], [r.type for r in results])
        entry = func.FuncOp("entry", types, Region(self.block), arg_attrs=ArrayAttr(self.attributes))
        entry.verify()
        return DispatchView(entry)


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return tuple(value.type.get_shape())


def _groups(groups: Sequence[Sequence[int]]) -> ArrayAttr[Any]:
    return ArrayAttr([ArrayAttr([IntegerAttr(axis, i64) for axis in group]) for group in groups])


def _static(size: int | str) -> int:
    return size if isinstance(size, int) else DYNAMIC_INDEX


def _attributes(shape: Shape, constant: bool) -> DictionaryAttr:
    out: dict[str, Attribute] = {}
    if any(isinstance(size, str) for size in shape):
        out["fuseline.dims"] = ArrayAttr([StringAttr(str(size)) for size in shape])
    if constant:
        out["fuseline.constant"] = UnitAttr()
    return DictionaryAttr(out)


# running --------------------------------------------------------------------------------------------------------------


def plan_of(family: Family, view: DispatchView, isa: Machine) -> Plan:
    """The family's plan; fails on a refusal."""
    plan = family.accepts(view, isa)
    assert not isinstance(plan, Refusal), plan
    return plan


def kernel_of(family: Family, plan: Plan, isa: Machine, symbol: str = "kernel") -> Kernel:
    """The kernel of a plan."""
    builder = KernelBuilder(symbol, isa)
    family.emit(plan, builder)
    return builder.finish()


def packed(array: Array, layout: PackedLayout) -> Array:
    """`array` laid out as a kernel wants a constant."""
    plain = transformed(array, layout)
    padded = np.pad(plain, [(0, to - size) for to, size in zip(layout.pad_to, plain.shape, strict=True)])
    found = np.ascontiguousarray(padded.reshape(layout.reshape).transpose(layout.permutation))
    return found if layout.then is None else np.concatenate([found.ravel(), packed(array, layout.then).ravel()])


PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """An array with an unreadable page right behind it, or right before it."""

    def __init__(self, shape: Sequence[int], dtype: Any, *, at_end: bool) -> None:
        count = int(np.prod(shape, dtype=np.int64))
        size = count * np.dtype(dtype).itemsize
        pages = -(-max(size, 1) // PAGE)
        self.memory = mmap.mmap(-1, (pages + 2) * PAGE)
        view = np.frombuffer(self.memory, np.uint8)
        start = view.ctypes.data
        for page in (start, start + (pages + 1) * PAGE):
            assert _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0) == 0
        offset = PAGE * (pages + 1) - size if at_end else PAGE
        self.array: Array = view[offset : offset + size].view(dtype).reshape(shape)


@cache
def _loader(isa: Machine) -> Any:
    target = llvm.Target.from_triple(isa.triple)
    return lambda: target.create_target_machine(cpu=isa.cpu, features=",".join(isa.features), opt=2)


_ENGINES: list[Any] = []
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def native(kernel: Kernel, isa: Machine) -> Callable[..., None]:
    """The kernel as a function of bindings, sizes, begin, end, scratch."""
    code = emit_object(print_llvm([kernel], isa), isa)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _loader(isa)())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return _SIGNATURE(engine.get_function_address(kernel.symbol))


def _not_loaded(*_: object) -> None:
    raise AssertionError("a kernel for another machine")


class Runner:
    """A dispatch compiled for this machine (or an ISA it can run), to be called with arrays."""

    def __init__(self, family: Family, view: DispatchView, isa: Machine | None = None, *, load: bool = True) -> None:
        self.view, self.isa = view, isa or machine()
        self.plan = plan_of(family, view, self.isa)
        self.kernel = kernel_of(family, self.plan, self.isa)
        self.function = native(self.kernel, self.isa) if load else _not_loaded

    def __call__(
        self, *arrays: Array, sizes: Mapping[str, int] | None = None, parts: int = 3, at_end: bool = True
    ) -> list[Array]:
        """The results; the grid is run in `parts` ranges, each with scratch full of NaN."""
        sizes = dict(sizes or {})
        guards = [self._guarded(i, array, at_end) for i, array in enumerate(arrays)]
        results = [
            Guarded([d.evaluate(n, sizes) for n in self.view.shapes.dims(r)], _numpy_type(r), at_end=at_end)
            for r in self.view.results
        ]
        for result in results:
            result.array.view(np.uint8)[...] = 0xFF
        pointers = (ctypes.c_void_p * (len(guards) + len(results)))(*(g.array.ctypes.data for g in (*guards, *results)))
        numbers = (ctypes.c_int64 * max(1, len(sizes)))(*(sizes[name] for name in self.view.size_names))
        total = d.evaluate(self.plan.workgroups, sizes)
        ends = [total * i // parts for i in range(parts + 1)]
        for begin, end in pairwise(ends):
            scratch = Guarded([-(-self.kernel.scratch_bytes // 64) * 64 // 4], np.float32, at_end=True)
            scratch.array[...] = np.nan
            self.function(pointers, numbers, begin, end, scratch.array.ctypes.data)
        return [np.array(result.array) for result in results]

    def interpreted(self, *arrays: Array, sizes: Mapping[str, int] | None = None) -> list[Array]:
        """The results by the kernel IR's NumPy evaluator, which checks every access against its buffer."""
        sizes = dict(sizes or {})
        layouts = self.plan.constant_layouts
        operands = [packed(a, layouts[i]) if i in layouts else a.copy() for i, a in enumerate(arrays)]
        results = [
            np.empty([d.evaluate(n, sizes) for n in self.view.shapes.dims(r)], _numpy_type(r))
            for r in self.view.results
        ]
        for result in results:
            result.view(np.uint8)[...] = 0xFF
        numbers = [sizes[name] for name in self.view.size_names]
        evaluate(self.kernel, [*operands, *results], numbers, 0, d.evaluate(self.plan.workgroups, sizes))
        return results

    def _guarded(self, position: int, array: Array, at_end: bool) -> Guarded:
        layout = self.plan.constant_layouts.get(position)
        array = packed(array, layout) if layout is not None else array
        guard = Guarded(array.shape, array.dtype, at_end=at_end)
        guard.array[...] = array
        return guard


def _numpy_type(value: SSAValue) -> Any:
    assert isinstance(value.type, TensorType)
    return numpy_dtype(value.type.get_element_type())


def random(shape: Sequence[int], seed: int, dtype: Any = np.float32) -> Array:
    """Standard normal numbers, the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def assert_close(found: Array, expected: Array, *, bits: int = 18, least: float = 1e-30) -> None:
    """Equal up to `2**-bits` of the largest finite magnitude, or of `least` (what cancels may be small); infinite only
    where that is expected."""
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2.0**-bits * max(float(scale), least))


__all__ = ["Array", "Dispatch", "Runner", "assert_close", "kernel_of", "linalg", "packed", "plan_of", "random"]
