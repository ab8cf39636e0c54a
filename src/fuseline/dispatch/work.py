"""What a dispatch has to do, by the kinds of `ir/work_costs.py`: what its predicted time is made of.

    product(197x576x192) ── gelu ── store          {"product": .., "functions": .., "points": .., "constant_bytes": ..}

Sizes that only the run tells count as their bound, or as `ASSUMED_SIZE`. An operation that is done again for each block
of a grid counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.cost import TRANSCENDENTAL_OPS, flops, is_function, num_bytes, operations
from fuseline.analysis.filtered_convolutions import filtered_dims
from fuseline.analysis.idioms import idiom_of
from fuseline.analysis.indexing_maps import dims_of, used_dims
from fuseline.analysis.structured import DENSE, Kind, StructuredOp, body_ops, captured_tensors, is_generic, kind
from fuseline.analysis.walks import Scatter, loops_behind
from fuseline.dispatch.chains import chain_of
from fuseline.dispatch.result_boxes import box_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product
from fuseline.ir.element_types import element_bytes
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.work_costs import USUAL_POINTS

CONSTANTS_NEAR = 1 / 2
"""The share of a core's caches that constants count on: what is read and written meanwhile takes the rest (weights of
2.1 MB beside 2 MB of cache came from beyond it)."""

INDEX_OF_ROW = 2.0
"""What an index of a scatter takes beside the elements of its row, in elements that are gathered: it is checked, and
what lies there is loaded, combined and stored before the next one (measured: rows of 1 element 1.5 to 1.7 ns, of 100
.33 ns an element, where one that is gathered takes .5)."""


def work_of(view: DispatchView, target: TargetDescription) -> dict[str, float]:
    """The amount of each kind of work of one launch; what there is none of is left out."""
    count = _Count(view, target)
    for op in view.members:
        count.add(op)
    count.add_traffic()
    return {name: float(round(amount)) for name, amount in count.found.items() if round(amount) > 0}


def as_made(
    work: dict[str, float], filtered: Sequence[Mapping[str, float]], made: Sequence[Mapping[str, float]] = ()
) -> dict[str, float]:
    """The work of a dispatch whose kernels are known; `filtered`: of each that minimal filtering makes, as
    `ir.work_costs.filtered_work` has it; `made`: what each does beside what is counted (`ir.work_costs.MADE`).

    >>> as_made({"filtered": 10.0, "transformed": 2.0, "product": 1.0}, [])
    {'product': 11.0}
    >>> as_made({"filtered": 10.0, "transformed": 2.0}, [{"filtered": 15.0, "transformed": 3.0}])
    {'filtered': 15.0, 'transformed': 3.0}
    >>> as_made({"product": 10.0}, [], [{"product": -2.0, "panels": 4.0}])
    {'product': 8.0, 'panels': 4.0}
    """
    rest = {name: amount for name, amount in work.items() if name not in ("filtered", "transformed")}
    if filtered:
        rest |= {name: sum(one[name] for one in filtered) for name in ("filtered", "transformed")}
    elif "filtered" in work:
        rest["product"] = rest.get("product", 0.0) + work["filtered"]
    for name in dict.fromkeys(name for one in made for name in one):
        rest[name] = max(0.0, rest.get(name, 0.0) + sum(one.get(name, 0.0) for one in made))
    return {name: float(round(amount)) for name, amount in rest.items() if round(amount) > 0}


@dataclass
class _Count:
    """Work by kind so far. `reads`: the most bytes that are read of an argument where that is not all of it; `chains`:
    the operations behind what elementwise members make."""

    view: DispatchView
    target: TargetDescription
    found: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    vectors: float = 0.0
    reads: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    chains: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def add(self, op: Operation) -> None:
        """Count one member."""
        if not is_generic(op):
            self.found["moved"] += sum(self._points(self.view.shapes.dims(value)) for value in op.results)
            return
        op_kind, structured = kind(op), StructuredOp(op)
        if op_kind in DENSE:
            self._add_product(structured)
        elif op_kind is Kind.DEPTHWISE:
            self.found["depthwise"] += 2 * self._points(structured.loops(self.view.shapes))
        elif op_kind is Kind.POOLING:
            self.found["pooled"] += self._points(structured.loops(self.view.shapes))
        elif structured.reduction:
            self.found["reduced"] += assumed_size(flops(op, self.view.shapes))
            self.found["gathered"] += self._updates(structured)
        else:
            self._add_elementwise(structured)

    # members ----------------------------------------------------------------------------------------------------------

    def _add_product(self, op: StructuredOp) -> None:
        extents = op.loops(self.view.shapes)
        amount, name = 2 * self._points(extents), _product_kind(op)
        if name == "product" and self._is_filtered(op, extents):
            self.found["filtered"] += amount
            ends = (*op.inputs[:1], *op.op.results)
            pixels = sum(self._points(self.view.shapes.dims(value)) for value in ends)
            self.found["transformed"] += USUAL_POINTS * pixels
        else:
            self.found[name] += amount * self._padding(op, extents)
        for value, map_ in zip(op.inputs, op.input_maps, strict=True):
            if self._is_constant(value):
                rows = product(extents[loop] for loop in op.parallel if loop not in used_dims(map_))
                self.vectors += assumed_size(num_bytes(value, self.view.shapes)) / max(assumed_size(rows), 1)

    def _is_filtered(self, op: StructuredOp, extents: Sequence[Dim]) -> bool:
        filters = self.target.numerics != "strict" and self.target.costs.filtering_gain > 1
        return filters and filtered_dims(op, extents, self.target.costs) is not None

    def _padding(self, op: StructuredOp, extents: Sequence[Dim]) -> float:
        """Columns in whole vectors over columns. The innermost loop of the result that is not 1 runs along them."""
        written = [loop for expr in op.output_maps[0].results for loop in sorted(dims_of(expr))]
        columns = next((extents[loop] for loop in reversed(written) if extents[loop] != 1), 1)
        size, lanes = assumed_size(columns), self.target.costs.lanes
        return -(-size // lanes) * lanes / size if size > 1 else 1.0

    def _updates(self, op: StructuredOp) -> float:
        """The elements that a scatter combines where an index says, and what each index takes beside those of its row;
        0 for another reduction."""
        extents = op.loops(self.view.shapes)
        form = idiom_of(op, extents)
        if not isinstance(form, Scatter):
            return 0.0
        elements = self._points([extent for loop, extent in enumerate(extents) if loop != form.scattered])
        told = {form.scattered, *op.reduction, *loops_behind(op, form.position)}
        row = self._points([extent for loop, extent in enumerate(extents) if loop not in told])
        return elements * (1 + INDEX_OF_ROW / max(row, 1))

    def _add_elementwise(self, op: StructuredOp) -> None:
        points = self._points(op.loops(self.view.shapes))
        functions = sum(is_function(inner) for inner in body_ops(op.op))
        self.found["points"] += points
        self.found["functions"] += points * functions
        self.found["operations"] += points * (operations(op.op) - TRANSCENDENTAL_OPS * functions)
        followed, behind = chain_of(op.op, self.chains)
        self.found["followed"] += points * followed
        self.chains.update(zip(op.op.results, behind, strict=True))
        if any(isinstance(inner, tensor.ExtractOp) for inner in body_ops(op.op)):
            self.found["gathered"] += points
            for value in captured_tensors(op.op):
                self.reads[value] = self.reads.get(value, 0) + points * element_bytes(value)

    # traffic ----------------------------------------------------------------------------------------------------------

    def add_traffic(self) -> None:
        """Count the bytes of arguments and results, and which of them no cache of a core holds."""
        constant = other = 0
        for value in self.view.tensors:
            size = assumed_size(num_bytes(value, self.view.shapes)) if value.uses else 0
            size = min(size, self.reads.get(value, size))
            constant, other = (constant + size, other) if self._is_constant(value) else (constant, other + size)
        results = (box_of(self.view.shapes, result).value for result in self.view.results)
        other += sum(assumed_size(num_bytes(value, self.view.shapes)) for value in results)
        total = constant + other
        far, constant_far = (
            max(0.0, 1 - share * self.target.costs.cached_bytes / total) if total else 0.0
            for share in (1.0, CONSTANTS_NEAR)
        )
        self.found["constant_bytes"] += constant
        self.found["bytes"] += other
        self.found["constant_far"] += constant * constant_far
        self.found["far"] += other * far
        self.found["vector_bytes"] += self.vectors
        self.found["vector_far"] += self.vectors * far

    def _is_constant(self, value: SSAValue) -> bool:
        return value in self.view.tensors and self.view.is_constant(self.view.tensors[self.view.tensors.index(value)])

    def _points(self, extents: Sequence[Dim]) -> int:
        return assumed_size(product(extents))


def _product_kind(op: StructuredOp) -> str:
    """By the elements that are multiplied, before anything widens them."""
    types = [value.type.get_element_type() for value in op.inputs if isinstance(value.type, TensorType)]
    return "product_int" if all(isinstance(one, IntegerType) for one in types) else "product"
