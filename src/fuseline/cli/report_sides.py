"""The sides of a report: what is compiled, measured and read for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseline.cli.console import note
from fuseline.cli.models import compiled, is_model, older_record
from fuseline.cli.native import native_session
from fuseline.cli.references import require_file
from fuseline.cli.run import complete_feeds, model_hints
from fuseline.cli.saved import PLAN_SUFFIXES, any_record
from fuseline.cli.target_peaks import assumed_peaks
from fuseline.compile_options import CHOICES
from fuseline.errors import FuselineError
from fuseline.report.page import Side
from fuseline.report.page.inputs import Peaks

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel
    from fuseline.runtime import Session

_CHANGED = {"without-rule": "without_rules", "rules": "rules", "passes": "passes", "plan": "plan", "target": "target"}
_NUMBERS = ("threads",)


@dataclass
class Wanted:
    """One side that is wanted: a model (or artifact, saved statistics), the options of its compile, and its title."""

    path: Path
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    title: str = ""


@dataclass(frozen=True)
class Extras:
    """What is gathered beside records: the IR behind each node, assembly, measured times."""

    ir: bool = True
    assembly: bool = False
    measure: bool = False


def wanted_sides(
    model: Path, second: Path | None, changes: Sequence[str], options: Mapping[str, Any]
) -> tuple[Wanted, ...]:
    """The sides that the command line asks for. Raises E0501 for a change that is none, and for one with an artifact
    that is compiled already; E0101 and E0701 for a second model or plan that cannot be read."""
    is_plan = second is not None and second.suffix in PLAN_SUFFIXES
    first = Wanted(model, dict(options), model.stem if second is not None and not is_plan else "as given")
    if second is None and not changes:
        return (replace(first, title=model.stem),)
    other = Wanted(model if second is None or is_plan else second, dict(options))
    if is_plan:
        other.options["plan"] = second
    for change in changes:
        name, value = _change(change)
        before = other.options.get(name)
        other.options[name] = (*(before or ()), value) if isinstance(before, tuple | list) else value
    if changes and not is_model(other.path):
        message = "--compare-with changes a compile, and this is compiled already"
        raise FuselineError("E0501", message, node=str(other.path), hint="give the model")
    other.title = ", ".join([*([second.stem] if second else []), *changes])
    _read_early(other)
    return first, other


def _read_early(other: Wanted) -> None:
    """What is wrong with the second side's files is told before the first one is compiled."""
    from fuseline.passes.fusion.plan import read_plan

    if other.options.get("plan") is not None:
        read_plan(Path(other.options["plan"]))
    if other.path.suffix != ".json":
        require_file(other.path)


def _change(text: str) -> tuple[str, Any]:
    """`fusion=none` as an option of a compile and its value."""
    name, sign, value = text.partition("=")
    known = [*CHOICES, *_CHANGED, *_NUMBERS]
    if not sign or name not in known:
        hint = f"write one of {', '.join(known)}, = and a value: fusion=none"
        raise FuselineError("E0501", f"--compare-with does not understand {text!r}", hint=hint)
    if name in _NUMBERS:
        if not value.isdecimal():
            raise FuselineError("E0501", f"--compare-with {name} wants a number", node=value)
        return name, int(value)
    if name in ("rules", "plan"):
        return _CHANGED[name], Path(value)
    return _CHANGED.get(name, name), value


class SideMaker:
    """Makes the sides of one page."""

    def __init__(self, extras: Extras) -> None:
        self.extras = extras
        self._programs: list[tuple[CompiledModel, Mapping[str, Any]]] = []

    def sides(self, wanted: Sequence[Wanted]) -> list[Side]:
        """A side for each, measured in turns where that is asked for."""
        made = [self._side(one) for one in wanted]
        if not self.extras.measure:
            return made
        from fuseline.verify.side_times import run_seconds

        note("timing whole runs")
        totals = run_seconds([program.bind(feeds) for program, feeds in self._programs])
        return [replace(side, total_seconds=total) for side, total in zip(made, totals, strict=True)]

    def _side(self, wanted: Wanted) -> Side:
        from fuseline.interop.source_nodes import source_nodes
        from fuseline.ir.op_texts import OpTexts
        from fuseline.pipeline import PASS_PHASES

        if wanted.path.suffix == ".json":
            if self.extras.measure:
                raise FuselineError("E0501", "saved statistics cannot be measured", node=str(wanted.path))
            return Side(wanted.title, any_record(wanted.path, wanted.options))
        observer = OpTexts(PASS_PHASES)
        observed = {"after_pass": observer} if self.extras.ir and is_model(wanted.path) else {}
        try:
            program = compiled(wanted.path, {**wanted.options, **observed})
        except FuselineError as error:
            if self.extras.measure:
                raise
            return Side(wanted.title, older_record(wanted.path, error))
        side = Side(
            wanted.title,
            program.record,
            source_nodes(wanted.path),
            ir_texts=observer.texts,
            ir=observer.nodes,
            peaks=assumed_peaks(wanted.options if is_model(wanted.path) else {}, program.threads),
        )
        if self.extras.assembly and is_model(wanted.path):
            side = replace(side, assembly=_assembly(wanted))
        return self._measured(side, program, wanted) if self.extras.measure else side

    def _measured(self, side: Side, program: CompiledModel, wanted: Wanted) -> Side:
        from fuseline.verify.side_times import record_seconds

        session = native_session(program, "--measure")
        feeds = complete_feeds(program, {}, model_hints(wanted.path), 0)
        self._programs.append((program, feeds))
        note(f"timing {len(side.record.dispatches)} dispatches")
        taken = record_seconds(session, side.record, feeds)
        return replace(side, seconds=taken, peaks=_measured_peaks(session))


def _assembly(wanted: Wanted) -> dict[str, str]:
    """The assembly of each kernel, by symbol."""
    import re

    import fuseline.api

    text = fuseline.api.emit(wanted.path, "asm", **{k: v for k, v in wanted.options.items() if k != "cache"})
    sections = re.split(r"^(?=[#;/ ]*kernel_[0-9a-f]{16}: )", text, flags=re.MULTILINE)
    named = ((re.search(r"kernel_[0-9a-f]{16}", section), section) for section in sections)
    return {found.group(): section for found, section in named if found is not None}


def _measured_peaks(session: Session) -> Peaks:
    """The peaks of this machine, by small programs."""
    import fuseline
    from fuseline.tuning.machine import Measurement

    note("measuring the machine's peaks")
    measurement = Measurement(fuseline.compile)
    rates = measurement.flops_per_ns(), measurement.stored_bytes_per_ns(), measurement.memory_bytes_per_ns()
    return Peaks(*(rate * session.threads for rate in rates), measured=True)
