"""What a forest says of each row: every tree walked to its leaf, and what the leaves weigh combined per target.

    score[n, k]  sum over t of weight[leaf of row n in tree t, k]

All levels of a walk are one body, and trees lie side by side in it; those of much different depth are walks of their
own. Where each tree is about one target (as in gradient boosting) a target sums over its own trees only, else one walk
sums up all targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce as fold
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import elementwise, filled, mapped, reduce, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.computed_positions import REDUCTIONS
from fuseline.frontends.onnx.ops.forests import Forest, Nodes, forest_of, of_equal_depth, with_a_leaf
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, view
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map, element_of, tensor_type
from fuseline.ir.fast.create import create_concat

Array = NDArray[Any]
DEEPEST = 256
"""Levels that one body holds; deeper forests run on the host."""

PADDED_SHARE = 1.5
"""How many trees, of which some say nothing, may stand for one where targets have different numbers of them."""

AGGREGATES = {"SUM": "add", "AVERAGE": "add", "MIN": "min", "MAX": "max"}
MOST_RESULTS = 16
"""Targets that one walk sums up."""

_UFUNCS: dict[str, np.ufunc] = {"add": np.add, "min": np.minimum, "max": np.maximum}


@dataclass(frozen=True)
class Weights:
    """What leaves say: entry i gives `weight[i]` to `target[i]`, one of `targets`, at node `position[i]` of the model's
    list."""

    targets: int
    position: Array
    target: Array
    weight: Array

    def counted(self) -> Weights:
        """1 for everything that is said."""
        return replace(self, weight=np.ones_like(self.weight))

    def table(self, combine: str, nodes: int, neutral: float | int) -> Array:
        """One row per node and one column per target; `neutral` where a leaf says nothing."""
        out = np.full((nodes, self.targets), neutral, self.weight.dtype)
        out[self.position, self.target] = 0 if combine == "add" else neutral
        _UFUNCS[combine].at(out, (self.position, self.target), self.weight)
        return out


def forest_scores(node: OnnxNode, x: Tensor, nodes: Nodes, weights: Weights, aggregate: str) -> Tensor:
    """`[rows, targets]` in the dtype of `x`: what the leaves say, combined by `aggregate`; 0 where none says
    anything."""
    combine = AGGREGATES[aggregate]
    neutral = REDUCTIONS[combine][0](x.dtype)
    targets = target_of_trees(nodes, weights)
    if targets is not None and weights.targets > MOST_RESULTS and _fills_up(targets, weights.targets):
        scores = _by_target(node, x, nodes, weights, targets, combine)
    else:
        table = weights.table(combine, len(nodes.mode), neutral)
        scores = _side_by_side(node, _columns(node, x, nodes, table, targets, combine))
    return _finished(node, scores, aggregate, len(nodes.roots))


def _finished(node: OnnxNode, scores: Tensor, aggregate: str, trees: int) -> Tensor:
    dtype, element = scores.dtype, mlir_element(scores.dtype)
    if aggregate == "AVERAGE":
        return elementwise(node, [scores], dtype, lambda b, e: s.div(b, dtype, e, b.constant(float(trees), element)))
    if aggregate == "SUM":
        return scores
    nothing = float(REDUCTIONS[AGGREGATES[aggregate]][0](dtype))
    return elementwise(
        node,
        [scores],
        dtype,
        lambda b, e: s.select(
            b, s.compare(b, dtype, "eq", e, b.constant(nothing, element)), b.constant(0.0, element), e
        ),
    )


# -- walking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ForestReader:
    """The tables of a forest and the rows, as values that bodies read."""

    forest: Forest
    x: SSAValue
    nodes: SSAValue
    low: SSAValue | None
    high: SSAValue | None
    number: IntegerType

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of node numbers."""
        return np.dtype(f"int{self.number.width.data}")

    def leaf(self, b: Body, row: SSAValue, root: SSAValue) -> SSAValue:
        """The number of the node (a `number`) at which a row ends in a tree."""
        at = root
        for _ in range(self.forest.depth):
            at = self._step(b, row, s.as_index(b, at))
        return at

    def _step(self, b: Body, row: SSAValue, at: SSAValue) -> SSAValue:
        word, high = self._read(b, at)
        bits = self.forest.feature_bits
        feature = b.op(
            arith.AndIOp,
            b.op(arith.ShRUIOp, word, b.constant(1, self.number)),
            b.constant((1 << bits) - 1, self.number),
        )
        value = b.op(tensor.ExtractOp, self.x, [row, s.as_index(b, feature)], element_of(self.x))
        passes = b.op(arith.ExtUIOp, self._passes(b, word, value, high, at), self.number)
        return b.op(arith.AddiOp, b.op(arith.ShRUIOp, word, b.constant(bits + 1, self.number)), passes)

    def _read(self, b: Body, at: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """The word of a node and its upper bound."""
        word = b.op(tensor.ExtractOp, self.nodes, [at], element_of(self.nodes))
        if word.type == self.number:
            return word, None if self.high is None else b.op(tensor.ExtractOp, self.high, [at], element_of(self.high))
        above = b.op(arith.TruncIOp, b.op(arith.ShRUIOp, word, b.constant(32, word.type)), self.number)
        return b.op(arith.TruncIOp, word, self.number), b.op(arith.BitcastOp, above, element_of(self.x))

    def _passes(self, b: Body, word: SSAValue, value: SSAValue, high: SSAValue | None, at: SSAValue) -> SSAValue:
        tests = [] if high is None else [b.op(arith.CmpfOp, value, high, "ole")]
        if self.low is not None:
            tests.append(b.op(arith.CmpfOp, value, b.op(tensor.ExtractOp, self.low, [at], element_of(self.low)), "oge"))
        inside = tests[0] if len(tests) == 1 else b.op(arith.AndIOp, *tests)
        if self.forest.missing_passes is None:
            return inside
        missing = b.op(arith.AndIOp, b.op(arith.CmpfOp, value, value, "uno"), b.op(arith.TruncIOp, word, i1))
        return b.op(arith.OrIOp, inside, missing)


def _reader(node: OnnxNode, x: Tensor, forest: Forest) -> _ForestReader:
    if forest.depth > DEEPEST and not node.program.ctx.evaluated:
        raise NoNativeLowering("tree-depth", f"a tree of {forest.depth} levels")
    node.program.require_at_least(x.dims[1], int(forest.feature.max(initial=0)) + 1, node.label)
    words, records = forest.words(), forest.records()
    apart = (forest.low, forest.high if records is None else None)
    low, high = (None if bound is None else node.ssa(known(bound, name=f"{node.label}_bound")) for bound in apart)
    nodes = node.ssa(known(words if records is None else records, name=f"{node.label}_nodes"))
    return _ForestReader(forest, node.ssa(x), nodes, low, high, IntegerType(8 * words.itemsize))


# -- a column at a time ------------------------------------------------------------------------------------------------


def _columns(
    node: OnnxNode, x: Tensor, nodes: Nodes, table: Array, targets: Array | None, combine: str
) -> list[Tensor]:
    """`[rows]` for each target: of its own trees, or several of one walk over all."""
    if targets is not None:
        own = (replace(nodes, roots=nodes.roots[targets == k]) for k in range(table.shape[1]))
        return [_summed(node, x, trees, table[:, [k]], combine)[0] for k, trees in enumerate(own)]
    firsts = range(0, table.shape[1], MOST_RESULTS)
    return [
        column
        for first in firsts
        for column in _summed(node, x, nodes, table[:, first : first + MOST_RESULTS], combine)
    ]


def _summed(node: OnnxNode, x: Tensor, nodes: Nodes, table: Array, combine: str) -> list[Tensor]:
    """`[rows]` for each column of `table`: the sums of walks over trees of about one depth."""
    start, scalar = REDUCTIONS[combine]
    if not len(nodes.roots):
        return [result(filled(node, start(x.dtype), x.dims[:1], x.dtype), x.dims[:1], x.dtype) for _ in table.T]
    readers = [_reader(node, x, forest_of(group)) for group in of_equal_depth(nodes)]
    sums = [_sums(node, x, reader, table[reader.forest.source], combine) for reader in readers]
    return [
        total
        if not others
        else elementwise(node, [total, *others], x.dtype, lambda b, *e: fold(lambda p, q: scalar(b, x.dtype, p, q), e))
        for total, *others in zip(*sums, strict=True)
    ]


def _side_by_side(node: OnnxNode, columns: Sequence[Tensor]) -> Tensor:
    rows, dtype = columns[0].dims[0], columns[0].dtype
    parts = [view(column, (rows, 1), [0]) for column in columns]
    if len(parts) == 1:
        return parts[0]
    op = create_concat([node.ssa(part) for part in parts], 1, tensor_type(mlir_element(dtype), (rows, len(parts))))
    return result(node.emit.add(op).result, (rows, len(parts)), dtype)


def _sums(node: OnnxNode, x: Tensor, reader: _ForestReader, table: Array, combine: str) -> list[Tensor]:
    """`[rows]` for each column of `table`. Loops: row | tree."""
    start, scalar = REDUCTIONS[combine]
    rows = x.dims[:1]
    weights = [node.ssa(known(np.ascontiguousarray(column), name=f"{node.label}_weights")) for column in table.T]
    roots = node.ssa(known(np.arange(reader.forest.trees, dtype=reader.dtype), name=f"{node.label}_roots"))

    def body(b: Body) -> list[SSAValue]:
        root, *totals = b.args
        leaf = s.as_index(b, reader.leaf(b, s.loop_index(b, 0), root))
        said = [b.op(tensor.ExtractOp, column, [leaf], element_of(column)) for column in weights]
        return [scalar(b, x.dtype, one, total) for one, total in zip(said, totals, strict=True)]

    starts = [filled(node, start(x.dtype), rows, x.dtype) for _ in weights]
    maps = [dims_map(2, [1]), *(dims_map(2, [0]) for _ in weights)]
    op = node.emit.generic([roots], starts, maps, [PARALLEL, REDUCTION], body)
    return [result(value, rows, x.dtype) for value in op.results]


# -- all targets at once -----------------------------------------------------------------------------------------------


def target_of_trees(nodes: Nodes, weights: Weights) -> Array | None:
    """The one target of each tree; None where one has several, or a leaf says not one thing."""
    said = np.bincount(weights.position, minlength=len(nodes.mode))
    target = np.zeros(len(nodes.mode), np.int64)
    target[weights.position] = weights.target
    forest = forest_of(nodes)
    tree, leaf = forest.trees_of_positions(), forest.child == np.arange(len(forest.child))
    if (said[forest.source[leaf]] != 1).any():
        return None
    of_leaf, of_tree = target[forest.source[leaf]], np.zeros(forest.trees, np.int64)
    of_tree[tree[leaf]] = of_leaf
    return of_tree if (of_tree[tree[leaf]] == of_leaf).all() else None


def _fills_up(targets: Array, count: int) -> bool:
    """Whether few trees are missing for each target to have as many as any other."""
    return np.bincount(targets, minlength=count).max() * count <= PADDED_SHARE * len(targets) + count


def _by_target(node: OnnxNode, x: Tensor, nodes: Nodes, weights: Weights, targets: Array, combine: str) -> Tensor:
    """Equally many trees about each target, one target after the other, filled up with trees that say nothing. Loops:
    row, target | tree."""
    start, scalar = REDUCTIONS[combine]
    most, nothing = int(np.bincount(targets).max()), len(nodes.mode)
    groups = [
        np.append(own := nodes.roots[targets == k], np.full(most - len(own), nothing)) for k in range(weights.targets)
    ]
    reader = _reader(node, x, forest_of(replace(with_a_leaf(nodes), roots=np.concatenate(groups).astype(np.int64))))
    column = np.full(nothing + 1, start(x.dtype), weights.weight.dtype)
    column[weights.position] = weights.weight
    said = node.ssa(known(column[reader.forest.source], name=f"{node.label}_weights"))
    roots = known(
        np.arange(reader.forest.trees, dtype=reader.dtype).reshape(weights.targets, most), name=f"{node.label}_roots"
    )

    def body(b: Body, root: SSAValue) -> SSAValue:
        return b.op(tensor.ExtractOp, said, [s.as_index(b, reader.leaf(b, s.loop_index(b, 0), root))], element_of(said))

    terms = mapped(node, [(roots, [1, 2])], (x.dims[0], weights.targets, most), x.dtype, body)
    return reduce(node, [terms], [2], start(x.dtype), lambda b, e, acc: scalar(b, x.dtype, e, acc), dtype=x.dtype)


def columns_of(weights: Weights) -> Sequence[int]:
    """The targets that some leaf says something of."""
    return np.unique(weights.target).tolist()
