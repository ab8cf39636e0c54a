"""Arguments of halves that are widened: a reshape of what is widened is one of the argument, which costs nothing.

    expand(widen(x))      =>      widen(expand(x))

The widening stays as it is for its other readers: it is done where elements are loaded, in each of them.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.structured import Kind, StructuredOp, body_ops, is_generic, kind, producer_of
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.fast.direct import replace_uses
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp, can_reshape, reshape, root_of
from fuseline.passes.layout.rewriting.scope import Scope


def widened_argument(value: SSAValue) -> SSAValue | None:
    """What `value` is made of, element by element, by nothing but a wider float type: an argument, or a reshape of one;
    None for any other."""
    op = producer_of(value)
    if op is None or not is_generic(op) or kind(op) is not Kind.ELEMENTWISE:
        return None
    view = StructuredOp(op)
    plain = (
        len(view.inputs) == 1
        and all(map(is_identity, view.maps))
        and [type(inner) for inner in body_ops(op)] == [arith.ExtFOp]
    )
    return view.inputs[0] if plain and type(root_of(view.inputs[0])) is BlockArgument else None


def widen_below(scope: Scope, op: ReshapeOp) -> None:
    """Reshape the argument, where it is one that `op` reads widened."""
    source, dims = widened_argument(op.src), scope.dims(op.result)
    if source is None or not can_reshape(scope, dims):
        return
    emit, element = Emitter.before(op), element_of(op.result)
    inner = reshape(scope, emit, source, dims)
    wide = emit.elementwise([inner], emit.empty_like(inner, element), lambda b: b.op(arith.ExtFOp, b.args[0], element))
    carry((cast("OpResult", op.src).op,), (cast("OpResult", wide).op,))
    replace_uses(op.result, wide)
