"""A target from outside, held to the contract: it answers in the forms that exist, and what goes wrong in it is told by
its name (E0802), never as an error of ours."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind
from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.ir.kernel_choice import KernelChoices
from fuseline.ir.provenance import node_names
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.outside.claims import (
    description_complaint,
    kernel_complaint,
    kernels_complaint,
    price_complaint,
    refusal_complaint,
    suffix_complaint,
)
from fuseline.targets.outside.origin import CONTRACT_PAGE, Origin
from fuseline.targets.outside.program import outside_program, program_complaint
from fuseline.targets.target import CONTRACT, Refusal, SharingPrice, Target
from fuseline.weight_layouts import SharedLayout

T = TypeVar("T")


def checked_target(made: object, origin: Origin) -> CheckedTarget:
    """What `create` made. Raises E0801 for no target or one of another contract, E0802 for one that says of itself what
    cannot be."""
    if not isinstance(made, Target):
        message = f"create() answered {reprlib.repr(made)}, which is no fuseline.targets.target.Target"
        raise FuselineError("E0801", message, node=origin.said, hint=CONTRACT_PAGE)
    if made.contract != CONTRACT:
        raise FuselineError("E0801", _other_contract(made.contract), node=origin.said, hint=_way_out(made.contract))
    return CheckedTarget(made, origin)


def _other_contract(stated: object) -> str:
    if stated == 0:
        return f"it does not say for which contract it was written; this fuseline has contract {CONTRACT}"
    return f"it was written for contract {stated!r}, this fuseline has contract {CONTRACT}"


def _way_out(stated: object) -> str:
    newer = isinstance(stated, int) and stated > CONTRACT
    return "it needs a newer fuseline" if newer else f"set contract = {CONTRACT} in its class; {CONTRACT_PAGE}"


class CheckedTarget(Target):
    """`target`, its answers checked. Its methods raise E0802 beside what they raise in the contract."""

    contract = CONTRACT

    def __init__(self, target: Target, origin: Origin) -> None:
        self.target, self.origin = target, origin
        description: Any = self._asked("description", lambda: getattr(target, "description", None))
        self._require(lambda: description_complaint(description), "its description")
        self.description = description
        self.makes_artifacts, self.runs_programs = self._flag("makes_artifacts"), self._flag("runs_programs")
        self.suffix = self._suffix()

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """As the target answers."""
        try:
            answer = self.target.legal(candidate)
            if answer is None:
                return None
        except MemoryError:
            raise
        except (Exception, SystemExit) as problem:
            raise self.origin.raised(f"legal() of a dispatch of {_said(candidate)}", problem) from problem
        self._require(lambda: refusal_complaint(answer), lambda: f"legal() of a dispatch of {_said(candidate)}")
        return answer

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """As the target answers."""
        what = lambda: f"takes_op() of {_said_op(op, kind)}"  # noqa: E731
        answer = self._asked(what, lambda: self.target.takes_op(op, kind))
        self._require(lambda: refusal_complaint(answer), what)
        return answer

    def sharing_price(self, entry: FuncOp, constant: BodyConstant) -> SharingPrice | None:
        """As the target answers."""
        what = f"sharing_price() of @{entry.sym_name.data}"
        answer = self._asked(what, lambda: self.target.sharing_price(entry, constant))
        self._require(lambda: price_complaint(answer), what)
        return answer

    def layout_price(self, entry: FuncOp, layouts: Mapping[int, SharedLayout]) -> SharingPrice | Refusal:
        """As the target answers."""
        what = f"layout_price() of @{entry.sym_name.data}"
        answer: Any = self._asked(what, lambda: self.target.layout_price(entry, layouts))
        self._require(lambda: _layout_complaint(answer), what)
        return answer

    def compile_reader(
        self, entry: FuncOp, kernel: CompiledKernel, layouts: Mapping[int, SharedLayout]
    ) -> CompiledKernel | Refusal:
        """As the target answers."""
        what = f"compile_reader() of @{entry.sym_name.data}"
        answer: Any = self._asked(what, lambda: self.target.compile_reader(entry, kernel, layouts))
        refused = isinstance(answer, Refusal)
        self._require(lambda: refusal_complaint(answer) if refused else kernel_complaint(answer, entry), what)
        return answer

    def follow(self, choices: KernelChoices) -> None:
        """As the target does."""
        self._asked("follow()", lambda: self.target.follow(choices))

    def keep_code(self) -> None:
        """As the target does."""
        self._asked("keep_code()", self.target.keep_code)

    def code_text(self, headings: Mapping[str, Sequence[str]], form: str) -> str:
        """As the target answers. Raises E0501 for a form that it has not."""
        try:
            text: Any = self._asked("code_text()", lambda: self.target.code_text(headings, form))
        except FuselineError as problem:
            if not isinstance(problem.__cause__, NotImplementedError):
                raise
            message = f"the target {self.origin.name} has no code as {form}"
            raise FuselineError("E0501", message, hint="print another stage, or compile for cpu") from problem
        complaint = None if isinstance(text, str) else f"answered {text!r}, which is no text"
        self._require(lambda: complaint, "code_text()")
        return text

    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """As the target answers."""
        what, target = "compile_executables()", self.target
        kernels: Any = self._asked(
            what, lambda: target.compile_executables(entries, resources, splits=splits, merges=merges)
        )
        self._require(lambda: kernels_complaint(kernels, entries, splits=splits), what)
        return list(kernels)

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> Any:
        """As the target answers; bytes and text become a program that is written to files and not run."""
        made: Any = self._asked(
            "assemble()",
            lambda: self.target.assemble(schedule, kernels, constants, records=records, metadata=metadata),
        )
        if isinstance(made, str | bytes | bytearray) and not self.runs_programs and not self.makes_artifacts:
            return outside_program(made, schedule, records, metadata, self.origin.name, self.suffix)
        artifacts, runs = self.makes_artifacts, self.runs_programs
        self._require(lambda: program_complaint(made, makes_artifacts=artifacts, runs_programs=runs), "assemble()")
        return made

    # -- asking --------------------------------------------------------------------------------------------------------

    def _asked(self, what: str | Callable[[], str], ask: Callable[[], T]) -> T:
        """What `ask` answers. Raises E0802 for what leaves it without a code."""
        try:
            return ask()
        except MemoryError:
            raise
        except (Exception, SystemExit) as problem:
            raise self.origin.raised(what if isinstance(what, str) else what(), problem) from problem

    def _require(self, look: Callable[[], str | None], what: str | Callable[[], str]) -> None:
        """Raises E0802 with what `look` finds wrong, or where the answer cannot even be looked at."""
        complaint = self._asked(what, look)
        if complaint is not None:
            raise self.origin.wrong(f"{what if isinstance(what, str) else what()} {complaint}")

    def _flag(self, name: str) -> bool:
        value: object = getattr(self.target, name)
        complaint = None if isinstance(value, bool) else f"is {value!r}, which is neither True nor False"
        self._require(lambda: complaint, name)
        return bool(value)

    def _suffix(self) -> str:
        value: Any = self.target.suffix
        self._require(lambda: suffix_complaint(value), "suffix")
        return value


def _layout_complaint(answer: object) -> str | None:
    if answer is None:
        return "answered None, which is neither a SharingPrice nor a Refusal"
    return refusal_complaint(answer) if isinstance(answer, Refusal) else price_complaint(answer)


def _said(candidate: DispatchCandidate) -> str:
    return ", ".join(_said_op(member.op, member.kind) for member in candidate.members[:3]) or "nothing"


def _said_op(op: Operation, kind: Kind) -> str:
    nodes = node_names(op)
    return f"{kind.value} ({nodes})" if nodes else kind.value
