"""The typed, versioned records that a compile leaves behind; every report, table and diff reads these and nothing else.

Imports nothing of fuseline: passes write records, reports read them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

Verdict = Literal["fused", "missed", "superseded", "side-by-side"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about one candidate merge, reported by the edge between its groups.

    `producer` and `consumer` are structural node ids of the fusion graph; `*_nodes` the source nodes behind them.
    `numbers` holds what the decision weighed: `bytes_saved` and `scratch_bytes` in bytes, `recompute` as a factor,
    `gain` in bytes-equivalents. `arms`: no edge lies between the two; they are independent and were put side by side in
    one dispatch. Verdict `side-by-side`: they are arms of one dispatch, and `code` says why they are not one arm.
    `round`: which run of the region former decided it, the first is 1; 0 where the region came with the program.
    """

    rule: str
    verdict: Verdict
    producer: str
    consumer: str
    producer_op: str
    consumer_op: str
    producer_nodes: tuple[str, ...] = ()
    consumer_nodes: tuple[str, ...] = ()
    code: str = "fused"
    detail: str = ""
    at: str = ""
    numbers: dict[str, float] = {}
    dispatch: str = ""
    arms: bool = False
    round: int = 1


class SharingDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about the code of two dispatches that look alike: the same ops on the same kinds of operands.

    `detail` says what differs first, `code` why they stay `apart` (`shared` where they do not), `ns` what a launch of
    `second` would lose by sharing, where that is the reason.
    """

    verdict: Literal["shared", "apart"]
    first: str
    second: str
    code: str
    detail: str = ""
    ns: float = 0.0


class LayoutDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a constant that dispatches read in two layouts: `reader` reads it as `owner` asked
    (`shared`), or it is `repeated`, `bytes` of it in the form of its own, and `code` says why.

    `ns` is what the reader loses, predicted, `share` that as a part of the time that the owner takes.
    """

    verdict: Literal["shared", "repeated"]
    reader: str
    owner: str
    bytes: int
    code: str
    detail: str = ""
    ns: float = 0.0
    share: float = 0.0


class FusionNodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the fusion graph: what it does, over which loops, and the source nodes behind it. `idiom`: what a
    reduction is made as, where that is not as it is written (a name of `analysis.idioms`)."""

    kind: str
    loops: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    idiom: str = ""


class OpRemark(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known of one op: by which part of the compiler (`rule`), the reason `code`, and in words.

    `op` is its structural id, `nodes` are the source nodes behind it, `dispatch` is where it runs.
    """

    rule: str
    code: str
    op: str
    detail: str
    nodes: tuple[str, ...] = ()
    dispatch: str = ""


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One op of a dispatch: its structural id, its kind (as in `analysis.structured`), its role and the source nodes it
    came from."""

    id: str
    kind: str
    role: Literal["root", "prologue", "epilogue", "member"]
    nodes: tuple[str, ...] = ()


class ArmRecord(msgspec.Struct, kw_only=True):
    """One of the independent parts of a dispatch: its root's kind (`copy` or `fill` where it has no op of its own) and
    its members' ids."""

    root: str
    members: tuple[str, ...] = ()
    family: str = ""
    scratch_bytes: int = 0
    workgroups: str = ""


class DispatchRecord(msgspec.Struct, kw_only=True):
    """One launch: `executable` names the shared code, `name` what it does, `shape` sizes and type of its first result
    (`1x56x56x64_f32`; `D` is a size that only the run tells). `flops` and `bytes_*` are per launch at the upper bound
    of symbolic sizes.

    `arms` are its parts where it has several; `root` then counts their kinds (`contraction x3`, `convolution x2 +
    copy`). `work` is what a launch has to do, by the kinds of
    `ir.work_costs`, `share` the part of it that the busiest thread does, `predicted_ns` how long that is expected to
    take. `form` says how its code was kept
    within the target's budget: `full`, `compact` (each body once, in loops) or `over-budget` (one op whose own body is
    that long); empty for a target without one. `kernels` are the names of its code, one for each arm: dispatches with a
    kernel in common share it; `code_bytes` is how long they are together, `unshared` why the target kept them apart
    from others like them, `sharing_loss` the share of its time that a launch is predicted to lose by code that it has
    in common with others of other extents. `fallback`: a root that is worth a kernel of its own (a contraction, a
    window) is emitted as a plain loop nest, since each family refused it: why, by family. `choices`: what kernels of it
    follow that was asked from outside, by class (docs/tuning.md).
    """

    name: str
    executable: str
    root: str
    members: list[MemberRecord]
    loops: tuple[str, ...] = ()
    family: str = ""
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    scratch_bytes: int = 0
    workgroups: str = ""
    arms: list[ArmRecord] = msgspec.field(default_factory=list[ArmRecord])
    work: dict[str, float] = {}
    share: float = 1.0
    predicted_ns: float = 0.0
    form: str = ""
    kernels: tuple[str, ...] = ()
    code_bytes: int = 0
    unshared: tuple[str, ...] = ()
    sharing_loss: float = 0.0
    shape: str = ""
    fallback: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    choices: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def label(self) -> str:
        """The name with sizes, as lists of dispatches have it: `003_contraction_1x56x56x64_f32`."""
        return f"{self.name}_{self.shape}" if self.shape else self.name

    def is_called(self, word: str, number: int) -> bool:
        """Whether a user means this dispatch, the launch of that number, by a name, a label or a number."""
        return word in (self.name, self.label) or (word.isdecimal() and int(word) == number)


class HostOpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that has no native lowering and runs on the host, and why. `executor` is the package that runs it,
    where that is asked."""

    node: str
    op_type: str
    reason: str
    executor: str = ""


class QuantizationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Quantize or dequantize `nodes` that stayed, and why; `readers` are the nodes that run in float because of it, or
    that did not take them into their dispatch."""

    nodes: tuple[str, ...]
    code: str
    detail: str
    readers: tuple[str, ...] = ()


class TunedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a search chose otherwise than a compile does by default: a knob, its choice, in words, and the source nodes
    concerned. `gain`: the share of a run that it saves by itself, 0 where that was not told apart; `seconds`: the same
    in seconds of a run."""

    knob: str
    choice: str
    detail: str = ""
    gain: float = 0.0
    seconds: float = 0.0
    nodes: tuple[str, ...] = ()


class TransientRecord(msgspec.Struct, kw_only=True):
    """A tensor in the arena: `bytes` of it from `offset` on, from the wave that writes it to the last that reads it.

    `dispatch` is the name of what writes it. `scratch`: memory of all threads that one wave uses.
    """

    offset: int
    bytes: int
    first: int
    last: int
    dispatch: str = ""
    scratch: bool = False


class CompileRecord(msgspec.Struct, kw_only=True):
    """Everything one compile decided and counted. `statistics` holds the keys of `stats --json`.

    `groups` is the partition: the members of every group by structural id; `fusion_rounds`: how many runs of the region
    former made it. `pipeline` identifies the passes that ran.
    `dedup` is how much dispatches may share, `sharing` what was decided about those that look alike,
    `layouts` about constants that are read in several layouts. `quantize_nodes` are the source nodes that quantise or
    dequantise, `quantization` those of them that stayed, and why. `tuned`: what the plan that was followed says a
    search changed. `transients`: what lies in the arena, and when.
    """

    version: int = SCHEMA_VERSION
    model: str = ""
    target: str = ""
    threads: int = 1
    fusion: str = ""
    pipeline: str = ""
    dispatches: list[DispatchRecord] = msgspec.field(default_factory=list[DispatchRecord])
    fingerprint: str = ""
    fusion_nodes: dict[str, FusionNodeRecord] = msgspec.field(default_factory=dict[str, FusionNodeRecord])
    groups: list[tuple[str, ...]] = msgspec.field(default_factory=list[tuple[str, ...]])
    decisions: list[Decision] = msgspec.field(default_factory=list[Decision])
    dedup: str = ""
    sharing: list[SharingDecision] = msgspec.field(default_factory=list[SharingDecision])
    layouts: list[LayoutDecision] = msgspec.field(default_factory=list[LayoutDecision])
    remarks: list[OpRemark] = msgspec.field(default_factory=list[OpRemark])
    host_ops: list[HostOpRecord] = msgspec.field(default_factory=list[HostOpRecord])
    quantization: list[QuantizationRecord] = msgspec.field(default_factory=list[QuantizationRecord])
    quantize_nodes: list[str] = msgspec.field(default_factory=list[str])
    transients: list[TransientRecord] = msgspec.field(default_factory=list[TransientRecord])
    source_nodes: list[str] = msgspec.field(default_factory=list[str])
    fusion_rounds: int = 0
    generic_ops_before: int = 0
    generic_ops_after: int = 0
    eliminated: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    statistics: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    phase_seconds: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    tuned: list[TunedChange] = msgspec.field(default_factory=list[TunedChange])
    warnings: list[str] = msgspec.field(default_factory=list[str])
    notes: list[str] = msgspec.field(default_factory=list[str])


def predicted_seconds(record: CompileRecord) -> float:
    """What the cost model expects of a run: the sum over all launches, one behind the other."""
    return sum(dispatch.predicted_ns for dispatch in record.dispatches) * 1e-9


def encode(record: CompileRecord) -> bytes:
    """The record as JSON bytes."""
    return msgspec.json.encode(record)


def decode(data: bytes) -> CompileRecord:
    """The record from JSON bytes; raises msgspec.ValidationError for another schema."""
    return msgspec.json.decode(data, type=CompileRecord)
