"""outline-executables: each dispatch region becomes an executable with one entry function, and a `flow.dispatch` of it.

What the region captures becomes arguments: tensors first, then one index argument for every symbol that sizes depend on. Symbols are renamed
`s0, s1, ..` in order of first use, so that equal code is equal text whatever the model calls its dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, FunctionType, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.dispatch_view import BOUNDS_ATTRIBUTE, ROOT_ATTRIBUTE
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import captured, is_constant, kind
from fuseline.errors import FuselineError
from fuseline.ir import attributes, flow
from fuseline.ir.build import Emitter
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, Symbol, substitute, symbol, symbols, to_name
from fuseline.ir.direct import append, ops_of
from fuseline.ir.nesting import replace_inside
from fuseline.passes.dispatch.sizes import SizeBuilder


@dataclass(frozen=True)
class OutlineExecutablesPass(ModulePass):
    """Has no options."""

    name = "outline-executables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assert isinstance(ctx, CompilerContext)
        for function in list(op.ops):
            if isinstance(function, FuncOp) and function.body.blocks:
                _outline_all(op, function, ShapeAnalysis(ctx.symbols))


def _outline_all(module: ModuleOp, function: FuncOp, shapes: ShapeAnalysis) -> None:
    sizes = SizeBuilder(function, shapes)
    regions = [op for op in function.body.block.ops if isinstance(op, flow.DispatchRegionOp)]
    names = _Names(module, function.sym_name.data)
    for region in regions:
        _outline(module, region, shapes, sizes, names.next(region))


class _Names:
    """Fresh executable names: `<function>_dispatch_<n>_<kind of root>`."""

    def __init__(self, module: ModuleOp, function: str) -> None:
        self.function = function
        self.taken = {op.sym_name.data for op in module.ops if isinstance(op, flow.ExecutableOp)}
        self.count = 0

    def next(self, region: flow.DispatchRegionOp) -> str:
        root = next((op for op in region.body.block.ops if ROOT_ATTRIBUTE in op.attributes), region.body.block.first_op)
        label = kind(root).value if root is not None else "empty"
        while True:
            name = f"{self.function}_dispatch_{self.count}_{label}"
            self.count += 1
            if name not in self.taken:
                return name


def _outline(module: ModuleOp, region: flow.DispatchRegionOp, shapes: ShapeAnalysis, sizes: SizeBuilder, name: str) -> None:
    outside = captured(region)
    tensors = [value for value in outside if isinstance(value.type, TensorType)]
    indices = [value for value in outside if isinstance(value.type, IndexType)]
    scalars = [value for value in outside if value not in tensors and value not in indices]
    if scalars:
        raise FuselineError("E0901", f"a dispatch captures a scalar that is no constant: {scalars[0]}", node=name)
    needed = _symbols_of([shapes.dims(value) for value in (*tensors, *region.res)], [shapes.index(value) for value in indices])
    local: dict[str, Dim] = {old.name: symbol(f"s{i}", old.lo, old.hi) for i, old in enumerate(needed)}
    entry = _entry(region, name, tensors, needed, local, shapes)
    _bind_indices(entry, indices, shapes, local, len(tensors))
    inner = ModuleOp.create(regions=[Region(Block([entry]))])
    executable = flow.ExecutableOp(name, [flow.ExecutableExportOp(name), inner])
    executable.location = region.location
    module.body.block.add_op(executable)
    _call(region, name, tensors, needed, sizes)


def _symbols_of(shaped: Sequence[tuple[Dim, ...]], single: Sequence[Dim]) -> list[Symbol]:
    found: dict[str, Symbol] = {}
    for dims in (*shaped, tuple(single)):
        for dim in dims:
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
    block = Block(arg_types=inputs)
    replace_inside(region, dict(zip(tensors, block.args, strict=False)))
    for op in ops_of(body):
        op.detach()
        append(_as_return(op) if type(op) is flow.ReturnOp else op, block)
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(name),
        "function_type": FunctionType.from_lists(inputs, region.res.types),
        "arg_attrs": _argument_attributes(tensors, needed, local, shapes),
    }
    return FuncOp.create(properties=properties, regions=[Region(block)], location=region.location)


def _as_return(op: flow.ReturnOp) -> ReturnOp:
    out = ReturnOp.create(operands=list(op.operands), location=op.location)
    op.erase()  # or its operands would keep it as a user
    return out


def _argument_attributes(
    tensors: Sequence[SSAValue], needed: Sequence[Symbol], local: dict[str, Dim], shapes: ShapeAnalysis
) -> ArrayAttr[DictionaryAttr]:
    entries: list[DictionaryAttr] = []
    for value in tensors:
        assert isinstance(value.type, TensorType)
        known: dict[str, Attribute] = {"fuseline.constant": attributes.UNIT} if is_constant(value) else {}
        if DYNAMIC_INDEX in value.type.get_shape():
            known["fuseline.dims"] = ArrayAttr([StringAttr(to_name(substitute(dim, local))) for dim in shapes.dims(value)])
        entries.append(DictionaryAttr(known))
    for i, item in enumerate(needed):
        bounds = f"{item.lo}..{item.hi if item.hi is not None else ''}"
        entries.append(DictionaryAttr({"fuseline.name": StringAttr(f"s{i}"), BOUNDS_ATTRIBUTE: StringAttr(bounds)}))
    return ArrayAttr(entries)


def _bind_indices(entry: FuncOp, indices: Sequence[SSAValue], shapes: ShapeAnalysis, local: dict[str, Dim], first: int) -> None:
    """Recompute captured index values inside the function from its index arguments."""
    if not indices:
        return
    block = entry.body.block
    assert block.first_op is not None
    emitter = Emitter.before(block.first_op)
    sizes = {value: substitute(shapes.index(value), local) for value in indices}
    replace_inside(entry, {value: emitter.size(size, lambda item: block.args[first + int(item.name[1:])]) for value, size in sizes.items()})


def _call(region: flow.DispatchRegionOp, name: str, tensors: Sequence[SSAValue], needed: Sequence[Symbol], sizes: SizeBuilder) -> None:
    argument_dims = [size for value in tensors for size in _dynamic(sizes, value, region)]
    arguments = [*tensors, *(sizes.symbol(item) for item in needed)]
    call = flow.DispatchOp(name, name, arguments, list(region.res.types), argument_dims=argument_dims, result_dims=list(region.result_dims))
    call.location = region.location
    call.attributes |= region.attributes
    block = region.parent
    assert block is not None
    block.insert_op_before(call, region)
    for old, new in zip(region.res, call.res, strict=True):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    region.detach()
    region.erase()


def _dynamic(sizes: SizeBuilder, value: SSAValue, before: Operation) -> list[SSAValue]:
    assert isinstance(value.type, TensorType)
    emitter = Emitter.before(before)
    dims = zip(value.type.get_shape(), sizes.shapes.dims(value), strict=True)
    return [emitter.size(dim, sizes.symbol) for static, dim in dims if static == DYNAMIC_INDEX]


def entry_of(executable: flow.ExecutableOp) -> FuncOp:
    """The entry function of an executable."""
    for op in executable.walk():
        if type(op) is FuncOp:
            return op
    raise FuselineError("E0302", "an executable has no function", node=executable.sym_name.data)


EXPORT = OutlineExecutablesPass
