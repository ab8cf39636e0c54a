"""Whatever sizes, scalars and host operators come between two ops, no merge makes a partition in which two groups wait
for each other."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, StringAttr, TensorType, f32
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import Emitter, dims_map, identity_map
from fuseline.ir.fast.create import create_concat, create_pad
from fuseline.passes.dispatch.region_order import ordered_regions
from fuseline.passes.fusion.driver import partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.rule import builtin_rules
from tests.unit.passes.fusion.programs import TARGET, Program


class RandomGraph:
    """A function over 8 x 8 tensors whose ops, picked by `rng`, wait for each other in every way there is: through
    data, through a scalar taken out of a tensor, through a size that a host operator tells."""

    def __init__(self, seed: int, length: int = 18) -> None:
        self.rng = random.Random(seed)
        self.program = Program((8, 8), (8, 8))
        self.values: list[SSAValue] = list(self.program.x)
        kinds: list[Callable[[Emitter], SSAValue]] = [
            self.add,
            self.add,
            self.transposed,
            self.scaled,
            self.padded,
            self.host,
            self.parts,
        ]
        for _ in range(length):
            self.values.append(self.rng.choice(kinds)(self.program.emit))
        unread = [value for value in self.values[2:] if value.first_use is None]
        self.program.done(*unread)

    def pick(self) -> SSAValue:
        return self.rng.choice(self.values[-4:])

    def elementwise(
        self, e: Emitter, *inputs: SSAValue, scale: SSAValue | None = None, order: tuple[int, int] = (0, 1)
    ) -> SSAValue:
        maps = [dims_map(2, order), *[identity_map(2)] * (len(inputs) - 1)]
        second = scale if scale is not None else None
        return e.elementwise(
            inputs,
            e.empty(f32, (8, 8)),
            lambda b: b.op(arith.AddfOp, b.args[0], second if second is not None else b.args[len(inputs) - 1]),
            maps,
        )

    def add(self, e: Emitter) -> SSAValue:
        return self.elementwise(e, self.pick(), self.pick())

    def transposed(self, e: Emitter) -> SSAValue:
        return self.elementwise(e, self.pick(), order=(1, 0))

    def scaled(self, e: Emitter) -> SSAValue:
        """An op that needs a number taken out of a tensor, through a view of it or not."""
        source, at = self.pick(), [e.index(self.rng.randrange(8)), e.index(0)]
        if self.rng.random() < 0.5:
            source = e.add(tensor.ExtractSliceOp.from_static_parameters(source, [0, 0], [4, 8], [1, 1])).result
            at = [e.index(self.rng.randrange(4)), e.index(0)]
        number = e.add(tensor.ExtractOp(source, at, f32)).result
        return self.elementwise(e, self.pick(), scale=number)

    def padded(self, e: Emitter) -> SSAValue:
        """A pad and the part behind it."""
        pad = e.add(create_pad(self.pick(), [1, 0], [0, 0], e.scalar(0.0, f32), TensorType(f32, [9, 8]))).result
        return e.add(tensor.ExtractSliceOp.from_static_parameters(pad, [0, 0], [8, 8], [1, 1])).result

    def parts(self, e: Emitter) -> SSAValue:
        whole = e.add(create_concat([self.pick(), self.pick()], 0, TensorType(f32, [16, 8]))).result
        return e.add(tensor.ExtractSliceOp.from_static_parameters(whole, [4, 0], [8, 8], [1, 1])).result

    def host(self, e: Emitter) -> SSAValue:
        """A host operator that tells a size, which a later op is as large as."""
        name = f"host.{self.program.count}"
        unknown = TensorType(f32, [DYNAMIC_INDEX, 8])
        declared = func.FuncOp.external(name, [self.values[0].type], [unknown])
        declared.attributes["fuseline.host_op"] = StringAttr("Test")
        self.program.module.body.block.add_op(declared)
        called = e.add(func.CallOp(name, [self.pick()], [unknown])).results[0]
        tall = e.add(tensor.EmptyOp([e.dim(called, 0)], unknown)).tensor
        grown = e.elementwise([called], tall, lambda b: b.op(arith.MulfOp, b.args[0], b.args[0]))
        return e.add(tensor.CastOp(grown, TensorType(f32, [8, 8]))).dest


@pytest.mark.parametrize("level", ["default", "aggressive"])
def test_groups_of_random_graphs_can_be_ordered(level: str):
    merged = 0
    for seed in range(60):
        program = RandomGraph(seed).program
        block, shapes = program.function.body.block, ShapeAnalysis()
        graph = FusionGraph(block, shapes)
        found = partition(graph, builtin_rules(), TARGET, level)
        merged += len(graph.nodes) - len(found.groups)
        ordered_regions(block, found, shapes)  # raises for a cycle
    assert merged > 100


def test_no_two_groups_merge_that_a_scalar_or_a_size_keeps_apart():
    """A group that takes a scalar from another is refused as its partner, whatever a rule says of the data between
    them."""
    kept_apart = 0
    for seed in range(30):
        graph = FusionGraph(RandomGraph(seed).program.function.body.block, ShapeAnalysis())
        found = partition(graph, (), TARGET)
        order = GroupOrder(found.groups, found.group_of)
        for node in graph.nodes:
            for source in node.sized_by:
                assert order.between((found.group_of[node], found.group_of[source])) is not None
                kept_apart += 1
    assert kept_apart > 50
