"""outline-executables: each dispatch region becomes an executable with one entry function, and a `flow.dispatch` of it.

What the region captures becomes arguments: tensors first, then one index argument for every symbol that sizes depend
on. Symbols are renamed `s0, s1, ..` in order of first use, so that equal code is equal text whatever the model calls
its dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import captured, is_constant
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, require_match
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.naming import what_it_does
from fuseline.dispatch.view import BOUNDS_ATTRIBUTE, ROOT_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir import flow
from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, Symbol, substitute, symbol, symbols
from fuseline.ir.dim_json import to_name
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import block_with, create_op, region_with
from fuseline.ir.fast.create_flow import create_dispatch, create_executable
from fuseline.ir.fast.direct import (
    append,
    body_of,
    erase,
    insert_before,
    last_of,
    move_ops,
    operands_of,
    ops_of,
    replace_uses,
)
from fuseline.ir.fast.identity import by_identities
from fuseline.ir.fast.nesting import replace_inside
from fuseline.ir.functions import functions
from fuseline.passes.dispatch.clone_cheap_producers import CloneCheapProducersPass
from fuseline.passes.dispatch.sizes import SizeBuilder


@dataclass(frozen=True)
class OutlineExecutablesPass(ModulePass):
    """Has no options."""

    name = "outline-executables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline function by function; executables come before them. What costs nothing to repeat goes inside first,
        where no earlier pass put it there. Raises FuselineError: E0901 for a region that reads a scalar from outside
        that is none of this."""
        assert isinstance(ctx, CompilerContext)
        CloneCheapProducersPass().apply(ctx, op)
        for function in functions(op):
            _outline_all(op, function, ShapeAnalysis(ctx.symbols))


def _outline_all(module: ModuleOp, function: FuncOp, shapes: ShapeAnalysis) -> None:
    sizes = SizeBuilder(function, shapes)
    regions = [op for op in ops_of(function.body.block) if type(op) is flow.DispatchRegionOp]
    names = _Names(module, function.sym_name.data)
    for region in regions:
        _outline(module, region, shapes, sizes, names.next(region))


class _Names:
    """Fresh executable names: `<function>_dispatch_<n>_<what it does>`."""

    def __init__(self, module: ModuleOp, function: str) -> None:
        self.function = function
        self.taken = {op.sym_name.data for op in module.ops if isinstance(op, flow.ExecutableOp)}
        self.count = 0

    def next(self, region: flow.DispatchRegionOp) -> str:
        ops = ops_of(body_of(region))
        root = next((op for op in ops if ROOT_ATTRIBUTE in op.attributes), ops[0] if ops else None)
        label = what_it_does(ops, root)
        while True:
            name = f"{self.function}_dispatch_{self.count}_{label}"
            self.count += 1
            if name not in self.taken:
                return name


def _outline(
    module: ModuleOp, region: flow.DispatchRegionOp, shapes: ShapeAnalysis, sizes: SizeBuilder, name: str
) -> None:
    outside = captured(region)
    tensors = [value for value in outside if isinstance(value.type, TensorType)]
    indices = [value for value in outside if isinstance(value.type, IndexType)]
    scalars = [value for value in outside if not isinstance(value.type, TensorType | IndexType)]
    if scalars:
        raise FuselineError("E0901", f"a dispatch captures a scalar that is no constant: {scalars[0]}", node=name)
    loops = _loops(region, shapes, name)
    needed = _symbols_of(
        [shapes.dims(value) for value in (*tensors, *region.results)], [shapes.index(value) for value in indices]
    )
    local: dict[str, Dim] = {old.name: symbol(f"s{i}", old.lo, old.hi) for i, old in enumerate(needed)}
    entry = _entry(region, name, tensors, needed, local, shapes)
    _bind_indices(entry, indices, shapes, local, len(tensors))
    if loops is not None:
        entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops.renamed(local))
    append(create_executable(name, entry, region.location), body_of(module))
    _call(region, name, tensors, needed, sizes)


def _loops(region: flow.DispatchRegionOp, shapes: ShapeAnalysis, name: str) -> FusedLoops | None:
    """The loops that the members share, where the region says them: they go to the entry function, in its own names of
    sizes, not to the call.

    Raises FuselineError: E0302 where they are not those of the body.
    """
    attribute = region.attributes.pop(LOOPS_ATTRIBUTE, None)
    if attribute is None:
        return None
    loops = from_attribute(attribute, shapes.symbols, name)
    require_match(loops, region.body.block, shapes, name)
    return loops


def _symbols_of(shaped: Sequence[tuple[Dim, ...]], single: Sequence[Dim]) -> list[Symbol]:
    found: dict[str, Symbol] = {}
    for dims in (*shaped, tuple(single)):
        for dim in (dim for dim in dims if type(dim) is not int):
            for item in sorted(symbols(dim), key=lambda s: s.name):
                found.setdefault(item.name, item)
    return list(found.values())


def _entry(
    region: flow.DispatchRegionOp,
    name: str,
    tensors: Sequence[SSAValue],
    needed: Sequence[Symbol],
    local: dict[str, Dim],
    shapes: ShapeAnalysis,
) -> FuncOp:
    """The entry function: the region's body with its captured tensors as arguments."""
    body = region.body.block
    inputs: list[Attribute] = [*(value.type for value in tensors), *(attributes.INDEX for _ in needed)]
    block = block_with(inputs)
    replace_inside(region, dict(zip(tensors, block.args, strict=False)))
    end = last_of(body)
    assert type(end) is flow.ReturnOp
    out = create_op(ReturnOp, operands_of(end), (), {}, (), end.location)
    erase(end)  # or its operands would keep it as a user
    move_ops(body, block)
    append(out, block)
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(name),
        "function_type": _function_type((*inputs, None, *(result.type for result in region.results))),
        "arg_attrs": _entries(tuple(_argument_attributes(tensors, needed, local, shapes))),
    }
    return create_op(FuncOp, (), (), properties, [region_with(block)], region.location)


@by_identities
def _function_type(types: tuple[Attribute | None, ...]) -> FunctionType:
    """The type of a function by those of its arguments, None, and those of its results (most dispatches of a model have
    one of a few)."""
    border = types.index(None)
    return FunctionType.from_lists(
        [type_ for type_ in types[:border] if type_ is not None],
        [type_ for type_ in types[border:] if type_ is not None],
    )


@by_identities
def _entries(entries: tuple[DictionaryAttr, ...]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(entries)


_PLAIN = DictionaryAttr({})
_CONSTANT = DictionaryAttr({"fuseline.constant": attributes.UNIT})


def _argument_attributes(
    tensors: Sequence[SSAValue], needed: Sequence[Symbol], local: dict[str, Dim], shapes: ShapeAnalysis
) -> list[DictionaryAttr]:
    entries: list[DictionaryAttr] = []
    for value in tensors:
        known = _CONSTANT if is_constant(value) else _PLAIN
        if DYNAMIC_INDEX in shape_of(value):
            dims = ArrayAttr([StringAttr(to_name(substitute(dim, local))) for dim in shapes.dims(value)])
            known = DictionaryAttr({**known.data, "fuseline.dims": dims})
        entries.append(known)
    for i, item in enumerate(needed):
        bounds = f"{item.lo}..{item.hi if item.hi is not None else ''}"
        entries.append(DictionaryAttr({"fuseline.name": StringAttr(f"s{i}"), BOUNDS_ATTRIBUTE: StringAttr(bounds)}))
    return entries


def _bind_indices(
    entry: FuncOp, indices: Sequence[SSAValue], shapes: ShapeAnalysis, local: dict[str, Dim], first: int
) -> None:
    """Recompute captured index values inside the function from its index arguments."""
    if not indices:
        return
    block = entry.body.block
    assert block.first_op is not None
    emitter = Emitter.before(block.first_op)
    sizes = {value: substitute(shapes.index(value), local) for value in indices}
    replace_inside(
        entry,
        {
            value: emitter.size(size, lambda item: block.args[first + int(item.name[1:])])
            for value, size in sizes.items()
        },
    )


def _call(
    region: flow.DispatchRegionOp, name: str, tensors: Sequence[SSAValue], needed: Sequence[Symbol], sizes: SizeBuilder
) -> None:
    argument_dims = [size for value in tensors for size in _dynamic(sizes, value, region)]
    arguments = [*tensors, *(sizes.symbol(item) for item in needed)]
    types = [result.type for result in region.results]
    call = create_dispatch(
        name, name, arguments, types, argument_dims, list(region.result_dims) if operands_of(region) else []
    )
    call.location = region.location
    call.attributes |= region.attributes
    insert_before(call, region)
    for old, new in zip(region.results, call.results, strict=True):
        replace_uses(old, new)
    erase(region)


def _dynamic(sizes: SizeBuilder, value: SSAValue, before: Operation) -> list[SSAValue]:
    shape = shape_of(value)
    if DYNAMIC_INDEX not in shape:
        return []
    emitter = Emitter.before(before)
    dims = zip(shape, sizes.shapes.dims(value), strict=True)
    return [emitter.size(dim, sizes.symbol) for static, dim in dims if static == DYNAMIC_INDEX]


EXPORT = OutlineExecutablesPass
