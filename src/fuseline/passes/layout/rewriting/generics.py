"""A `linalg.generic` with other operands, maps, loops or result layouts; the body moves along."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.build import Emitter
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import take_body
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import erase, replace_uses, set_operand
from fuseline.ir.fast.identity import by_first_identity
from fuseline.ir.fast.nesting import ops_inside

Iterators = Sequence[str]


def rebuilt(
    op: linalg.ops.GenericOp,
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    iterators: Iterators,
) -> linalg.ops.GenericOp:
    """A generic that takes over the body, attributes and provenance of `op`, inserted before it; `op` keeps an empty
    body until erased."""
    new = create_generic(inputs, outputs, take_body(op), maps, iterators, doc=op.doc, library_call=op.library_call)
    new.attributes.update(op.attributes)
    for old_result, new_result in zip(op.results, new.results, strict=True):
        if old_result.name_hint is not None:
            new_result.name_hint = old_result.name_hint
    return Emitter.before(op).add(new)


def finish(old: linalg.ops.GenericOp, results: Sequence[SSAValue]) -> None:
    """Put `results` in place of those of `old` and erase it."""
    for result, value in zip(old.results, results, strict=True):
        replace_uses(result, value)
    erase(old)


def set_input(op: linalg.ops.GenericOp, index: int, value: SSAValue, map_: AffineMap) -> None:
    """Read `value` through `map_` as input `index`, in place."""
    set_operand(op, index, value)
    maps = [attr.data for attr in op.indexing_maps]
    maps[index] = map_
    op.properties["indexing_maps"] = attributes.affine_maps(tuple(maps))


def permuted_results(map_: AffineMap, permutation: Sequence[int]) -> AffineMap:
    """`map_` with its results in another order."""
    return _permuted(map_, tuple(permutation))


@by_first_identity
def _permuted(map_: AffineMap, permutation: tuple[int, ...]) -> AffineMap:
    return AffineMap(map_.num_dims, map_.num_symbols, tuple([map_.results[axis] for axis in permutation]))


def renamed(map_: AffineMap, loops: Sequence[AffineExpr], rank: int) -> AffineMap:
    """`map_` with every loop `i` replaced by `loops[i]`, an expression over `rank` loops."""
    return AffineMap(rank, 0, tuple(expr.replace_dims_and_symbols(loops, []) for expr in map_.results))


def order_loops(op: linalg.ops.GenericOp, order: Sequence[int]) -> None:
    """Reorder the loops of `op` in place: new loop `i` is old loop `order[i]`."""
    position = {loop: i for i, loop in enumerate(order)}
    positions, view = tuple([position[loop] for loop in range(len(order))]), StructuredOp(op)
    op.properties["indexing_maps"] = attributes.affine_maps(
        tuple([_moved_loops(map_, positions) for map_ in view.maps])
    )
    op.properties["iterator_types"] = attributes.iterators(tuple([view.iterators[loop] for loop in order]))
    rename_indices(op, lambda loop: position[loop])


@by_first_identity
def _moved_loops(map_: AffineMap, positions: tuple[int, ...]) -> AffineMap:
    return renamed(map_, [AffineDimExpr(loop) for loop in positions], len(positions))


def rename_indices(op: linalg.ops.GenericOp, name: Callable[[int], int]) -> None:
    """Point every `linalg.index` of the body at the loop `name(old loop)`."""
    for index in index_ops(op):
        index.properties["dim"] = attributes.integer64(name(index.dim.value.data))


def index_ops(op: linalg.ops.GenericOp) -> list[linalg.ops.IndexOp]:
    """The `linalg.index` ops of the body."""
    return [inner for inner in ops_inside(op) if type(inner) is linalg.ops.IndexOp]


def extracts_of(op: linalg.ops.GenericOp, value: SSAValue) -> list[tensor.ExtractOp]:
    """The reads of the captured tensor `value` in the body."""
    return [
        use.operation for use in value.uses if type(use.operation) is tensor.ExtractOp and op.is_ancestor(use.operation)
    ]


def plain_loops(map_: AffineMap) -> list[int] | None:
    """The loops that the results of `map_` are, in order; None unless every result is a different loop."""
    loops = [expr.position for expr in map_.results if type(expr) is AffineDimExpr]
    return loops if len(loops) == len(map_.results) == len(set(loops)) else None


def is_full(view: StructuredOp, map_: AffineMap) -> bool:
    """Whether `map_` names every loop of `view` once and nothing else."""
    loops = plain_loops(map_)
    return loops is not None and len(loops) == view.rank
