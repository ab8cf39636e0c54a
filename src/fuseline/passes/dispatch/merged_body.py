"""One elementwise op in place of two, one of which reads the other at its own points.

%p = generic ins(%x, %y) {bb(a, b): p = addf a, b}
%c = generic ins(%p, %z) {bb(p, d): c = mulf p, d}
                                                         =>  generic ins(%x, %y, %z) {bb(a, b, d): addf; mulf}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.structured import StructuredOp, yielded
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.fast.build import block_with, region_with
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import erase, last_of, move_ops, replace_uses
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.generics import finish, rename_indices, renamed

Generic = linalg.ops.GenericOp
Read: TypeAlias = tuple[SSAValue, AffineMap]


def merged_reads(producer: StructuredOp, consumer: StructuredOp, loops: Sequence[int]) -> list[Read]:
    """What one op in place of both reads, each once: where `consumer` reads `producer`, what that reads. `loops[i]` is
    the loop of `consumer` that loop `i` of `producer` is."""
    behind, found = _renamed_reads(producer, consumer, loops), dict[Read, None]()
    for value, map_ in zip(consumer.inputs, consumer.input_maps, strict=True):
        found.update(dict.fromkeys(behind if value in producer.op.results else [(value, map_)]))
    return list(found)


def merged(producer: Generic, consumer: Generic, loops: Sequence[int]) -> Generic:
    """The op in place of both, where `consumer` stood, with its attributes and the provenance of both; both are erased.

    `producer` is read by inputs of `consumer` alone, at the point that `loops` say (see `merged_reads`), and its body
    does not read its inits.
    """
    first, second = StructuredOp(producer), StructuredOp(consumer)
    reads = merged_reads(first, second, loops)
    rename_indices(producer, lambda loop: loops[loop])
    block = _one_block(first, second, reads, _renamed_reads(first, second, loops))
    maps = [*(map_ for _, map_ in reads), *second.output_maps]
    new = create_generic([value for value, _ in reads], second.outputs, region_with(block), maps, second.iterators)
    new.attributes.update({**producer.attributes, **consumer.attributes})
    Emitter.before(consumer).add(new)
    carry((producer,), (new,))
    finish(consumer, new.results)
    erase(producer)
    return new


def _renamed_reads(producer: StructuredOp, consumer: StructuredOp, loops: Sequence[int]) -> list[Read]:
    """What `producer` reads, by the loops of `consumer`."""
    named = [AffineDimExpr(loop) for loop in loops]
    maps = [renamed(map_, named, consumer.rank) for map_ in producer.input_maps]
    return list(zip(producer.inputs, maps, strict=True))


def _one_block(first: StructuredOp, second: StructuredOp, reads: Sequence[Read], behind: Sequence[Read]) -> Block:
    """The bodies of both in one block, with an argument for each of `reads` and for each output of `second`; `behind`
    is what `first` reads. Their own blocks are left empty."""
    block = block_with(
        [element_of(value) for value, _ in (*reads, *zip(second.outputs, second.output_maps, strict=True))]
    )
    for argument, read in zip(first.body.args, behind, strict=False):
        replace_uses(argument, block.args[reads.index(read)])
    made: dict[SSAValue, SSAValue] = dict(zip(first.op.results, yielded(first.op), strict=True))
    for argument, read in zip(second.body.args, zip(second.inputs, second.input_maps, strict=True), strict=False):
        scalar = made[read[0]] if read[0] in made else block.args[reads.index(read)]
        replace_uses(argument, scalar)
    for argument, output in zip(second.body.args[second.input_count :], block.args[len(reads) :], strict=True):
        replace_uses(argument, output)
    end = last_of(first.body)
    assert end is not None
    erase(end)
    move_ops(first.body, block)
    move_ops(second.body, block)
    return block
