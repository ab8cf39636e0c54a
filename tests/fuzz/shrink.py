"""A smaller case with the same finding: one output, fewer nodes, values in place of what made them, default choices,
one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.case import Case, Choices, Feeds
from tests.fuzz.evaluate import Rejected, tensor_of
from tests.fuzz.stepping import Stepper, reads
from tests.fuzz.tensors import onnx_type

Test = Callable[[Case], bool]
"""Whether a case still shows the finding."""

SECONDS = 60.0


def shrink(case: Case, still: Test, seconds: float = SECONDS) -> Case:
    """The smallest case found: each simplification that keeps the finding is kept, until none does or the time is
    spent."""
    end, changed = time.monotonic() + seconds, True
    while changed:
        changed = False
        for simplify in SIMPLIFICATIONS:
            for smaller in simplify(case):
                if time.monotonic() > end:
                    return case
                if still(smaller):
                    case, changed = smaller, True
                    break
    return case


def _fewer_outputs(case: Case) -> Iterator[Case]:
    outputs = case.model.graph.output
    if len(outputs) > 1:
        for output in outputs:
            yield _with_outputs(case, [output])


def _with_outputs(case: Case, outputs: Sequence[onnx.ValueInfoProto]) -> Case:
    return pruned(case, case.model.graph.node, list(outputs), case.model.graph.input, case.feeds)


def pruned(
    case: Case, nodes: Sequence[onnx.NodeProto], outputs: Sequence[Any], inputs: Sequence[Any], feeds: Sequence[Feeds]
) -> Case:
    """The case with these nodes, inputs and outputs, less what no output needs."""
    needed, kept = {output.name for output in outputs}, []
    for node in reversed(nodes):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(reads(node))
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    weights = [weight for weight in case.model.graph.initializer if weight.name in needed]
    given = [value for value in inputs if value.name in needed]
    model.graph.CopyFrom(helper.make_graph(kept[::-1], "shrunk", given, outputs, weights))
    names = {value.name for value in given}
    return case.replace(
        model=model, feeds=[{name: array for name, array in feed.items() if name in names} for feed in feeds]
    )


def _fewer_runs(case: Case) -> Iterator[Case]:
    if len(case.feeds) > 1:
        for feeds in case.feeds:
            yield case.replace(feeds=[feeds])


def _values(case: Case) -> list[dict[str, Any]] | None:
    stepper = Stepper(case.model)
    try:
        return [stepper.run(feeds) for feeds in case.feeds]
    except Rejected:
        return None


def _cuts(case: Case) -> Iterator[Case]:
    """One node's results become inputs (late nodes first), or the node gives way to an operand of the same shape and
    type."""
    values = _values(case)
    if values is None:
        return
    nodes = list(case.model.graph.node)
    outputs = {output.name for output in case.model.graph.output}
    for index in reversed(range(len(nodes))):
        made = [name for name in nodes[index].output if name]
        if not outputs & set(made) and all(_is_tensor(run[name]) for run in values for name in made):
            yield _fed(case, index, made, values)
        yield from _bypassed(case, index, values)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _suffixes(case: Case) -> Iterator[Case]:
    """The last few nodes alone: all that they read from before is fed."""
    values, nodes = _values(case), list(case.model.graph.node)
    if values is None:
        return
    for count in (1, 2, 3, 4, 6, 8):
        if count < len(nodes):
            before = [name for node in nodes[:-count] for name in node.output if name]
            fed = [name for name in before if all(_is_tensor(run[name]) for run in values)]
            yield _with_fed(case, nodes[-count:], fed, values)


def _fed(case: Case, index: int, made: Sequence[str], values: Sequence[dict[str, Any]]) -> Case:
    return _with_fed(case, [node for i, node in enumerate(case.model.graph.node) if i != index], made, values)


def _with_fed(
    case: Case, nodes: Sequence[onnx.NodeProto], made: Sequence[str], values: Sequence[dict[str, Any]]
) -> Case:
    inputs = [*case.model.graph.input, *(_declared(name, [run[name] for run in values]) for name in made)]
    feeds = [{**feed, **{name: run[name] for name in made}} for feed, run in zip(case.feeds, values, strict=True)]
    return pruned(case, nodes, case.model.graph.output, inputs, feeds)


def _declared(name: str, arrays: Sequence[Any]) -> onnx.ValueInfoProto:
    """Sizes that differ between runs are symbols of their own."""
    dims = [
        sizes[0] if len(set(sizes)) == 1 else f"{name}_{axis}"
        for axis, sizes in enumerate(zip(*(array.shape for array in arrays), strict=True))
    ]
    return helper.make_tensor_value_info(name, onnx_type(arrays[0].dtype), dims)


def _bypassed(case: Case, index: int, values: Sequence[dict[str, Any]]) -> Iterator[Case]:
    node = case.model.graph.node[index]
    for name in dict.fromkeys(node.input):
        if len(node.output) == 1 and name and all(_alike(run.get(name), run[node.output[0]]) for run in values):
            copy = helper.make_node("Identity", [name], list(node.output), name=node.name)
            nodes = [copy if i == index else other for i, other in enumerate(case.model.graph.node)]
            if node.op_type != "Identity":
                yield pruned(case, nodes, case.model.graph.output, case.model.graph.input, case.feeds)


def _alike(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype


def _default_choices(case: Case) -> Iterator[Case]:
    default = Choices()
    if case.choices != replace(default, sizes=case.choices.sizes):
        yield case.replace(choices=replace(default, sizes=case.choices.sizes))
    for field in ("saved", "target", "threads", "fusion", "numerics", "sizes"):
        value = getattr(default, field)
        if getattr(case.choices, field) != value:
            yield case.replace(choices=replace(case.choices, **{field: value}))


def _fixed_sizes(case: Case) -> Iterator[Case]:
    """Symbols give way to the sizes of the only run."""
    if len(case.feeds) != 1 or not any(
        dim.dim_param for value in case.model.graph.input for dim in value.type.tensor_type.shape.dim
    ):
        return
    inputs = [
        helper.make_tensor_value_info(v.name, v.type.tensor_type.elem_type, case.feeds[0][v.name].shape)
        for v in case.model.graph.input
    ]
    yield pruned(case, case.model.graph.node, case.model.graph.output, inputs, case.feeds)


def _frozen_inputs(case: Case) -> Iterator[Case]:
    """A fed input becomes a weight where there is another."""
    if len(case.feeds) != 1 or len(case.model.graph.input) < 2:
        return
    for value in case.model.graph.input:
        others = [other for other in case.model.graph.input if other.name != value.name]
        smaller = pruned(case, case.model.graph.node, case.model.graph.output, others, case.feeds)
        smaller.model.graph.initializer.append(tensor_of(case.feeds[0][value.name], value.name))
        yield smaller


SIMPLIFICATIONS: tuple[Callable[[Case], Iterator[Case]], ...] = (
    _fewer_outputs,
    _suffixes,
    _fewer_runs,
    _cuts,
    _default_choices,
    _fixed_sizes,
    _frozen_inputs,
)
"""The boldest first."""
