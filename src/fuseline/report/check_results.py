"""What `fuseline check` found of one model: a row per dispatch, a row per output, and what of that is a finding."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.table import Table

from fuseline.report.quantities import short_name, shortened

_WIDTH = 36

RIGHT, ROUNDING, WRONG = "ok", "rounding", "wrong"
"""Close; further off than sums round, and inside of what noise spreads over; neither."""


class DispatchCheck(msgspec.Struct, kw_only=True):
    """One dispatch (or copy, fill, ..) of a program against the interpreter: the worst of its results and launches.

    `program` is `main`, `fallback` or `branch`. `error` is a part of `magnitude`, the largest of the reference, of
    integers the part of the elements that differ; `ulps` counts units of the last place of `magnitude`. `launches` were
    looked at, of `trips` that a loop makes. `proved`: every access of its kernel was shown to stay inside of its
    buffer; `unproved` are those that were not, `left` whether they did leave it, between guarded pages.
    """

    program: str
    number: int
    dispatch: str
    kind: str = "dispatch"
    executable: str = ""
    family: str = ""
    nodes: list[str] = msgspec.field(default_factory=list[str])
    dtype: str = ""
    error: float = 0.0
    ulps: float = 0.0
    magnitude: float = 0.0
    allowed: float = 0.0
    status: str = RIGHT
    detail: str = ""
    launches: int = 0
    trips: int = 1
    proved: bool = False
    unproved: list[str] = msgspec.field(default_factory=list[str])
    left: bool = False


class OutputCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One output against `reference`; `detail` says what is wrong, or why the difference is none of ours."""

    output: str
    reference: str
    error: float
    magnitude: float
    status: str
    detail: str = ""


class NotFinite(msgspec.Struct, frozen=True, kw_only=True):
    """Where the first NaN or infinity appears: `op` is the first op of the dispatch that makes one (empty: it is
    native code alone that does), `nodes` the source nodes it came from."""

    program: str
    dispatch: str
    op: str
    nodes: str
    count: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong, under an error code."""

    code: str
    message: str
    node: str = ""


class ModelCheck(msgspec.Struct, kw_only=True):
    """All of one model. `error` is set (as `FuselineError.to_json`) where it could not be checked."""

    model: str
    dispatches: list[DispatchCheck] = msgspec.field(default_factory=list[DispatchCheck])
    outputs: list[OutputCheck] = msgspec.field(default_factory=list[OutputCheck])
    not_finite: list[NotFinite] = msgspec.field(default_factory=list[NotFinite])
    findings: list[Finding] = msgspec.field(default_factory=list[Finding])
    notes: list[str] = msgspec.field(default_factory=list[str])
    error: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.findings) or self.error is not None

    @property
    def worst(self) -> DispatchCheck | None:
        """The dispatch that is furthest off, against what it is allowed."""
        return self.worst_first[0] if self.dispatches else None

    @property
    def worst_first(self) -> list[DispatchCheck]:
        """The dispatches, wrong ones first, then by how much of what is allowed they are off."""
        return sorted(self.dispatches, key=_rank)


def _rank(row: DispatchCheck) -> tuple[bool, bool, float, int]:
    ratio = row.error / row.allowed if row.allowed else row.error
    return row.status != WRONG, not row.left, -ratio, row.number


def dispatch_table(check: ModelCheck, limit: int | None = None) -> Table:
    """The dispatches, worst first."""
    table = Table(
        "dispatch", "nodes", "kernel", "error", "ulp", "allowed", "", box=None, header_style="bold", pad_edge=False
    )
    for column in table.columns[3:6]:
        column.justify = "right"
    for row in check.worst_first[:limit]:
        name = row.dispatch if row.program == "main" else f"{row.program}: {row.dispatch}"
        kernel = row.family or row.kind
        seen = [f"{row.launches} of {row.trips} iterations"] if row.launches < row.trips else []
        told = f"{row.status}: {row.detail}" if row.detail else row.status
        words = "; ".join([told, *seen, *row.unproved[: row.left]])
        table.add_row(
            name, _told_nodes(row.nodes), kernel, f"{row.error:.2e}", f"{row.ulps:.1f}", f"{row.allowed:.0e}", words
        )
    return table


def _told_nodes(nodes: list[str]) -> str:
    """The first few, by the ends of their names: what a name begins with is often the same for all."""
    return shortened([short_name(name, _WIDTH) for name in nodes], 2)


def output_lines(check: ModelCheck) -> list[str]:
    """A line for each output, for where NaN or infinities begin, and for what was not asked."""
    lines = [
        f"output {short_name(row.output)}: error {row.error:.2e} of the largest magnitude {row.magnitude:.4g} against "
        f"{row.reference}: {row.status}{f' ({row.detail})' if row.detail else ''}"
        for row in check.outputs
    ]
    lines += [
        f"first NaN or infinity: {row.count} elements of {row.dispatch}"
        + (f", from {row.op} [{row.nodes}]" if row.op else ", in native code alone")
        for row in check.not_finite
    ]
    return [*lines, *(f"note: {note}" for note in check.notes)]


def model_table(checks: list[ModelCheck]) -> Table:
    """A row for each model."""
    names = ("model", "dispatches", "worst", "error", "allowed", "outputs", "kernels proved", "")
    table = Table(*names, box=None, header_style="bold", pad_edge=False)
    for check in checks:
        table.add_row(*_cells(check))
    return table


def _cells(check: ModelCheck) -> list[str]:
    if check.error is not None:
        return [check.model, "", "", "", "", "", "", f"error {check.error.get('code')}"]
    worst = check.worst
    off = max((row.error for row in check.outputs), default=0.0)
    proved = sum(row.proved for row in check.dispatches)
    asked = sum(row.kind == "dispatch" for row in check.dispatches)
    told = "; ".join(dict.fromkeys(finding.code for finding in check.findings)) or RIGHT
    figures = [worst.dispatch, f"{worst.error:.2e}", f"{worst.allowed:.0e}"] if worst is not None else ["", "", ""]
    return [check.model, str(len(check.dispatches)), *figures, f"{off:.2e}", f"{proved} of {asked}", told]
