"""What became of choices that were asked of kernels from outside: on record, nothing of it silent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fuseline.ir.kernel_choice import KernelChoices, class_id
from fuseline.report.records import CompileRecord, DispatchRecord, OpRemark
from fuseline.targets.compiled_kernel import CompiledKernel

RULE = "tuned"
"""What remarks on such choices are filed under."""


def record_choices(
    record: CompileRecord, kernels: Mapping[str, CompiledKernel], asked: KernelChoices, named: Collection[str]
) -> None:
    """Write down which dispatches follow a choice, a remark for each that does not, and counts. `named`: classes that
    the user names, of which a warning says where none is in the program."""
    if not asked:
        return
    if asked.unread:
        record.warnings.append(f"no tuning records are used: {asked.unread}")
    met: dict[str, Mapping[str, str]] = {}
    for dispatch in record.dispatches:
        kernel = kernels.get(dispatch.executable)
        for said in _said(kernel):
            met[class_id(said["class"])] = said
            if not said["code"]:
                dispatch.choices[said["class"]] = said["choice"]
            else:
                record.remarks.append(_remark(dispatch, said))
    for name in named:
        if class_id(name) not in met and asked.of(class_id(name)) is not None:
            record.warnings.append(f"kernels: no kernel of the program is of the class {name}; skipped")
    record.statistics["kernel_choices"] = _counts(asked, met.values(), kernels.values())


def _said(kernel: CompiledKernel | None) -> Iterator[Mapping[str, str]]:
    for body in kernel.bodies if kernel is not None else ():
        yield from body.notes.get("asked", ())


def _remark(dispatch: DispatchRecord, said: Mapping[str, str]) -> OpRemark:
    member = next((one for one in dispatch.members if one.role == "root"), None)
    member = member or next(iter(dispatch.members), None)
    return OpRemark(
        rule=RULE,
        code=said["code"],
        op=member.id if member is not None else "",
        detail=said["detail"],
        nodes=member.nodes if member is not None else (),
        dispatch=dispatch.name,
    )


def _counts(
    asked: KernelChoices, met: Collection[Mapping[str, str]], kernels: Collection[CompiledKernel]
) -> dict[str, Any]:
    """Classes of kernels that follow a choice, whose choice is `stale`, that refuse one; and that only machines of
    other kinds have records of."""
    stale = [one for one in met if one["code"] == "choice-stale"]
    followed = [one for one in met if not one["code"]]
    classes = {class_id(name) for kernel in kernels for body in kernel.bodies for name in body.notes.get("classes", ())}
    return {
        "followed": len(followed),
        "stale": len(stale),
        "refused": len(met) - len(followed) - len(stale),
        "other_machines": len(classes & asked.elsewhere),
    }
