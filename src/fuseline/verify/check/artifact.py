"""What can be asked of an artifact without its model: that its runs are one run, and that its outputs are another
program's."""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.report.check_results import WRONG, Finding, ModelCheck
from fuseline.runtime import Session
from fuseline.verify.check.model import Asked
from fuseline.verify.check.not_finite import not_finite
from fuseline.verify.check.whole import check_outputs, same_values

MODEL_NEEDED = "the dispatches and their kernels' accesses were not checked: that takes the model"


def check_artifact(name: str, session: Session, asked: Asked) -> ModelCheck:
    """An artifact whose digests were checked as it was loaded. Raises what feeding it raises."""
    check = ModelCheck(model=name, notes=[MODEL_NEEDED, "digests of the code and of every constant are right"])
    feeds = asked.feeds(session, {}, 0)
    outputs = session.run(feeds)
    single = Session(session.artifact, threads=1)
    for what, again in (("a second run", session.run(feeds)), ("a run on one thread", single.run(feeds))):
        differing = [output for output, value in outputs.items() if not same_values(value, again.get(output))]
        if differing:
            message = f"two runs give different bits: the first and {what}"
            check.findings.append(Finding(code="E0613", message=message, node=", ".join(differing)))
    odd = {output: not_finite(value) for output, value in outputs.items() if hasattr(value, "dtype")}
    check.notes += [f"{count} elements of {output} are NaN or infinite" for output, count in odd.items() if count]
    _against(check, outputs, feeds, asked)
    return check


def _against(check: ModelCheck, outputs: dict[str, object], feeds: dict[str, object], asked: Asked) -> None:
    if asked.reference is None:
        check.notes.append("its outputs were compared with nothing: give --against a model or another artifact")
        return
    reference, run = asked.reference
    try:
        check.outputs += check_outputs(outputs, run(feeds), reference, asked.tolerance)
    except FuselineError as error:
        check.notes.append(f"{reference} does not run these feeds: {error.message}")
    check.findings += [
        Finding(code="E0601", message=f"off by {row.error:.3g} against {reference}; {row.detail}", node=row.output)
        for row in check.outputs
        if row.status == WRONG
    ]
