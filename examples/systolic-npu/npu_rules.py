"""Fusion for a systolic array: a product or convolution takes the bias and the ReLU behind it along, and a window the
zeros around its image. Everything else stays apart, and the record says why.

    pad ──> convolution ──> + bias ──> relu      one dispatch
    convolution ──> + residual                   two: the output stage reads one row of biases, no second image
    relu ──> convolution                         two: the array reads memory, it computes nothing on the way
"""

from __future__ import annotations

from fuseline.analysis.structured import Kind, StructuredOp, is_generic
from fuseline.passes.fusion.decision import Answer, Forbid, Legal, NotApplicable
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape

ON_THE_ARRAY = (Kind.CONTRACTION, Kind.CONVOLUTION)

OUTPUT_STAGE = {"arith.addf", "arith.maximumf", "arith.constant", "linalg.yield"}
"""What the output stage computes: a sum with a bias, the larger of that and a constant."""


class NpuEpilogue(FusionRule):
    """A product or convolution, and the bias and ReLU behind it."""

    name = "npu-epilogue"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`Legal` for the output stage, `Forbid` with a code of this target for what it cannot do."""
        if merge.joint:
            return _apart(merge, "npu-one-array", "there is one array, and so no two parts side by side")
        if any(group.moves for group in (merge.producer, merge.consumer)):
            return NotApplicable()  # pads and slices: the other rules
        if not any(node.kind in ON_THE_ARRAY for node in merge.producer.members):
            return _apart(merge, "npu-off-array", f"{_said(merge.producer.root)} does not run on the array")
        if merge.consumer.reduces:
            return _apart(merge, "npu-two-passes", "the array starts anew for each sum")
        refusal = next((why for node in merge.consumer.members if (why := _beyond_stage(node)) is not None), None)
        return Legal() if refusal is None else _apart(merge, *refusal)


class NpuWindow(FusionRule):
    """Zeros around an image, read by the window of a convolution."""

    name = "npu-window"
    after = ("npu-epilogue",)
    shape = Shape.INLINE_PRODUCER

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`Legal` for a pad in front of the array."""
        if merge.joint or not merge.producer.moves:
            return NotApplicable()
        if [node.kind for node in merge.producer.members] != [Kind.PAD]:
            return _apart(merge, "npu-layout", f"{_said(merge.producer.root)} moves more than the zeros of a border")
        if not any(node.kind in ON_THE_ARRAY for node in merge.consumer.members):
            return _apart(merge, "npu-off-array", f"{_said(merge.consumer.root)} does not run on the array")
        return Legal()


def _beyond_stage(node: Node) -> tuple[str, str] | None:
    """Why the output stage does not compute an elementwise op: a code and words."""
    if not is_generic(node.op):
        return "npu-off-array", f"{_said(node)} does not run on the array"
    view = StructuredOp(node.op)
    beyond = sorted({inner.name for inner in view.body.ops} - OUTPUT_STAGE)
    if beyond:
        return "npu-activation", f"the output stage adds and clips, it has no {', '.join(beyond)}"
    images = sum(map_.num_dims > 1 and len(map_.results) > 1 for map_ in view.input_maps)
    return ("npu-residual", "the output stage reads one row of biases, no second image") if images > 1 else None


def _said(node: Node) -> str:
    return f"{node.kind.value} ({', '.join(node.nodes) or node.name})"


def _apart(merge: Merge, code: str, detail: str) -> Forbid:
    return Forbid(code, detail, merge.consumer.root.name)


EXPORT = [NpuEpilogue, NpuWindow]
