"""Operators that `onnx.reference` has wrong or in part only, as the ONNX standard defines them; they replace its own.

Loop      any rank of what it collects, no trip at all, a condition left out
Scan      axes, directions, no trip at all, operator set 8 (with a batch)
Optional  the value itself and not a list of it; empty ones
If        branches that give an empty optional
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

SCAN_WITHOUT_BATCH = 9
"""Since this operator set Scan has no batch of its own."""


class Node(OpRun):
    """A node with the attributes that its operator has in the operator set in force (onnx.reference takes the newest
    ones for operators that it is given), whose results may be None: an empty optional."""

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None) -> None:
        super().__init__(onnx_node, run_params, _schema_in_force(onnx_node, run_params) if schema is None else schema)

    @property
    def version(self) -> int:
        """The operator set in force."""
        return int(self.run_params["opsets"].get(self.onnx_node.domain, 1))

    def wants(self, output: int) -> bool:
        """Whether the node names the output."""
        return output < len(self.onnx_node.output) and bool(self.onnx_node.output[output])

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(np.asarray(value) if isinstance(value, np.generic) else value for value in res)


class Amended(Node):
    """A node of onnx.reference that is right but for some inputs, or some attributes that are left out."""

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None) -> None:
        node = onnx.NodeProto()
        node.CopyFrom(onnx_node)
        given = {attribute.name for attribute in node.attribute}
        missing = self.missing(node, int(run_params["opsets"].get(node.domain, 1)))
        node.attribute.extend(
            helper.make_attribute(name, value) for name, value in missing.items() if name not in given
        )
        super().__init__(node, run_params, schema)

    def missing(self, node: onnx.NodeProto, version: int) -> dict[str, Any]:
        """Attributes to complete a node with that does not give them."""
        return {}

    def original(self, *inputs: Any) -> tuple[Any, ...]:
        """What onnx.reference answers."""
        return tuple(load_op("", self.onnx_node.op_type, self.version)(self.onnx_node, self.run_params).run(*inputs))


def _schema_in_force(node: onnx.NodeProto, run_params: dict[str, Any]) -> Any:
    version = run_params["opsets"].get(node.domain, 1)
    return (
        onnx.defs.get_schema(node.op_type, version, node.domain)
        if onnx.defs.has(node.op_type, version, node.domain)
        else None
    )


class _WithBody(Node):
    """A node that runs a body again and again, in sight of the values around it."""

    body: Any
    _run_body: Any  # both made by OpRun

    def need_context(self) -> bool:
        return True

    def trip(self, feeds: Sequence[Any], context: Any, attributes: Any) -> list[Any]:
        """The body's outputs for `feeds`."""
        values = {**(context or {}), **dict(zip(self.body.input_names, feeds, strict=False))}
        return list(self._run_body(values, attributes=attributes))

    def stacked(self, rows: Sequence[Any], output: int, axis: int = 0) -> Any:
        """What was collected of a body's output along a new axis."""
        return np.stack(rows, axis) if len(rows) else _no_rows(self.body.output_types[output])


def _no_rows(type_: TypeProto | None) -> Any:
    """No rows of a declared type; sizes that are not declared are 0."""
    if type_ is None or not type_.tensor_type.elem_type:
        return np.zeros((0,), np.float32)
    sizes = [dim.dim_value for dim in type_.tensor_type.shape.dim]
    return np.zeros((0, *sizes), helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type))


class Loop(_WithBody):
    """`Loop` of every operator set."""

    def _run(
        self,
        trips: Any = None,
        condition: Any = None,
        *states: Any,
        context: Any = None,
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        values, go, trip = list(states), condition is None or bool(np.all(condition)), 0
        rows: list[list[Any]] = [[] for _ in self.body.output_names[1 + len(values) :]]
        while go and (trips is None or trip < int(np.asarray(trips).reshape(-1)[0])):
            outputs = self.trip([np.asarray(trip, np.int64), np.asarray(go), *values], context, attributes)
            go, values = bool(np.all(outputs[0])), outputs[1 : 1 + len(values)]
            for column, item in zip(rows, outputs[1 + len(values) :], strict=True):
                column.append(item)
            trip += 1
        return (*values, *(self.stacked(column, 1 + len(values) + i) for i, column in enumerate(rows)))


class Scan(_WithBody):
    """`Scan` of every operator set."""

    def _run(self, *inputs: Any, context: Any = None, attributes: Any = None, **options: Any) -> tuple[Any, ...]:
        if self.run_params["opsets"][""] >= SCAN_WITHOUT_BATCH:
            return self._scan(list(inputs), context, attributes, options)
        lengths, *batched = inputs
        counts = [None] * len(batched[0]) if lengths is None else [int(n) for n in lengths]
        results = [
            self._scan([x[b] for x in batched], context, attributes, options, count) for b, count in enumerate(counts)
        ]
        return tuple(np.stack(_padded(column)) for column in zip(*results, strict=True))

    def _scan(
        self, inputs: list[Any], context: Any, attributes: Any, options: dict[str, Any], count: int | None = None
    ) -> tuple[Any, ...]:
        scanned = int(options["num_scan_inputs"])
        states, sequences = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
        collected = len(self.body.output_names) - len(states)
        axes, back = _numbers(options, "scan_input_axes", scanned), _numbers(options, "scan_input_directions", scanned)
        rows_of = [_rows(x, axis, bool(turned)) for x, axis, turned in zip(sequences, axes, back, strict=True)]
        rows: list[list[Any]] = [[] for _ in range(collected)]
        for trip in range(len(rows_of[0]) if count is None else count):
            outputs = self.trip([*states, *(x[trip] for x in rows_of)], context, attributes)
            states = outputs[: len(states)]
            for column, item in zip(rows, outputs[len(states) :], strict=True):
                column.append(item)
        return (*states, *self._collected(rows, len(states), options))

    def _collected(self, rows: Sequence[list[Any]], first: int, options: dict[str, Any]) -> list[Any]:
        axes, back = (
            _numbers(options, "scan_output_axes", len(rows)),
            _numbers(options, "scan_output_directions", len(rows)),
        )
        turned = [column[::-1] if flag else column for column, flag in zip(rows, back, strict=True)]
        return [
            self.stacked(column, first + i, axis) for i, (column, axis) in enumerate(zip(turned, axes, strict=True))
        ]


def _numbers(options: dict[str, Any], name: str, count: int) -> list[int]:
    """An option with one number per input or output, 0 where it is left out; operator set 8 calls the directions
    otherwise."""
    given = options.get(name)
    if given is None and name == "scan_input_directions":
        given = options.get("directions")
    return [int(item) for item in given] if given is not None and len(given) else [0] * count


def _rows(x: Any, axis: int, back: bool) -> Any:
    rows = np.moveaxis(x, axis, 0)
    return rows[::-1] if back else rows


def _padded(column: Sequence[Any]) -> list[Any]:
    """Results of a batch whose sequences differ in length: shorter ones end in zeros."""
    longest = max(len(x) if np.ndim(x) else 0 for x in column)
    return [
        np.pad(x, [(0, longest - len(x)), *[(0, 0)] * (x.ndim - 1)]) if np.ndim(x) and len(x) < longest else x
        for x in column
    ]


class Optional(Node):
    """`Optional`: an optional is its value, or None."""

    def _run(self, x: Any = None, **_: Any) -> tuple[Any, ...]:
        return (x,)


class If(Node):
    """`If`, with branches that may give None."""

    _run_then_branch: Any
    _run_else_branch: Any  # both made by OpRun

    def need_context(self) -> bool:
        """True: the branches read values of the graph around them."""
        return True

    def _run(self, cond: Any, context: Any = None, attributes: Any = None, **_: Any) -> tuple[Any, ...]:
        branch = self._run_then_branch if bool(np.all(cond)) else self._run_else_branch
        return tuple(branch(context, attributes=attributes))


class Identity(Node):
    """`Identity` of anything."""

    def _run(self, x: Any = None) -> tuple[Any, ...]:
        return (x,)


CORRECTIONS: tuple[type[OpRun], ...] = (Loop, Scan, Optional, If, Identity)
"""What to give `ReferenceEvaluator` as `new_ops`."""
