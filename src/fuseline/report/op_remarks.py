"""What is to be known of single ops: what passes remarked on, and roots that no kernel family took."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from fuseline.report.records import CompileRecord, DispatchRecord, OpRemark

CODEGEN, LOOP_NEST = "codegen", "loop-nest"
"""What remarks say of a root that runs as a plain loop nest."""


def op_remarks(record: CompileRecord, ids: Collection[str] | None = None) -> tuple[OpRemark, ...]:
    """The remarks on the ops with these structural ids (None: on all), each with the dispatch that the op runs in."""
    homes = {member.id: dispatch.name for dispatch in record.dispatches for member in dispatch.members}
    told = [msgspec.structs.replace(remark, dispatch=homes.get(remark.op, "")) for remark in record.remarks]
    told += [remark for dispatch in record.dispatches for remark in _fallbacks(dispatch)]
    return tuple(remark for remark in told if ids is None or remark.op in ids)


def _fallbacks(dispatch: DispatchRecord) -> Iterator[OpRemark]:
    """One remark per family that refused the dispatch."""
    root = next((member for member in dispatch.members if member.role == "root"), None)
    if root is not None:
        for family, reason in dispatch.fallback.items():
            detail = f"{family} refused: {reason}"
            yield OpRemark(
                rule=CODEGEN, code=LOOP_NEST, op=root.id, detail=detail, nodes=root.nodes, dispatch=dispatch.name
            )


def op_remark_line(remark: OpRemark) -> str:
    """One remark as one line."""
    return f"{remark.code} {', '.join(remark.nodes) or remark.op}  [{remark.rule}] {remark.detail}"
