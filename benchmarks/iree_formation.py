"""IREE's formation of dispatches against ours, both through IREE's code generation, from the same ops.

    python -m benchmarks.iree_formation [--rounds 9] [--threads 2] [--counts] [--json FILE] MODEL.onnx CASE.mlir ...

IREE is handed what our frontend read (`--emit input`), weights as parameters, as it is by default and at `O3`; ours is
`--target iree`. Dispatches, executables and transient bytes are those of the program's functions after IREE's `stream`
phase: what runs once, when a program is loaded, is not counted. Times are of calls of the compiled modules, interleaved
in one process; the ratio is ours / the faster of IREE's that compiles. Each model has a process of its own. Prints
Markdown; `-` in place of figures: IREE's compiler fails, and the line under the table says how. Outputs are compared:
a row whose outputs differ says so. `--counts`: nothing is compiled to code or run, only counted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp

import fuseline
from fuseline.compile_options import CompileOptions
from fuseline.interop.iree_runtime import Module
from fuseline.ir.context import CompilerContext
from fuseline.phase_runner import run_phases
from fuseline.source_program import prepare
from fuseline.targets import create_target
from fuseline.targets.iree.backends import backend_named
from fuseline.targets.iree.compiler import compile_text, tool
from fuseline.targets.iree.flow import flow_program
from fuseline.targets.iree.flow.archive import archive_in_memory
from fuseline.targets.iree.launched import launched
from fuseline.targets.iree.limits import is_loose
from fuseline.targets.iree.target import IreeTarget
from fuseline.verify.inputs import generate, hints_of
from fuseline.verify.measure import interleaved, paired_ratio

LEVELS = {"IREE": (), "IREE O3": ("--iree-opt-level=O3",)}
OURS = "fuseline"
_FUNCTION = re.compile(r"^  util\.func .*?^  }$", re.MULTILINE | re.DOTALL)
_LAUNCH = re.compile(r"stream\.cmd\.dispatch @(\w+)::")
_ROOM = re.compile(r"stream\.resource\.alloca .*!stream\.resource<transient>\{%c(\d+)")


@dataclass
class Side:
    """One formation: what it takes per run, or how IREE's compiler fails on it."""

    dispatches: int = 0
    executables: int = 0
    transient_bytes: int = 0
    failure: str = ""
    milliseconds: float = 0.0


@dataclass
class Row:
    """One model: the sides by name; time of ours / the fastest of IREE's (0: none of those compiles), with its interval
    of 95 %; the largest difference between outputs, relative to the largest output."""

    model: str
    sides: dict[str, Side] = field(default_factory=dict[str, Side])
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    difference: float = 0.0


class _Recorded(IreeTarget):
    """The target, which keeps what it handed to IREE."""

    def __init__(self, threads: int) -> None:
        super().__init__(backend_named(None), threads)
        self.text, self.code, self.parameters = "", b"", dict[str, Any]()

    def take_program(self, module: ModuleOp, ctx: CompilerContext, *, splits: bool) -> ModuleOp | None:
        """The same; the text, the code and its parameters are kept."""
        taken = super().take_program(module, ctx, splits=splits)
        if taken is not None:
            assert self.built is not None
            self.text, self.code = self.built.program.text, self.built.compiled.code
            self.parameters = dict(self.built.program.parameters)
        return taken


def counted(text: str, arguments: Sequence[str]) -> Side:
    """What the functions of a program launch and allocate after IREE's `stream` phase."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "m.mlir"
        source.write_text(text)
        command = [str(tool()), str(source), "--compile-to=stream", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    functions = "\n".join(_FUNCTION.findall(done.stdout))
    launched = _LAUNCH.findall(functions)
    return Side(len(launched), len({*launched}), sum(int(size) for size in _ROOM.findall(functions)))


def measure(model: Path, threads: int, rounds: int, round_seconds: float) -> Row:
    """All sides on the same random inputs."""
    row, modules = Row(model.stem), dict[str, Module]()
    ours = backend_named(None).arguments("default")
    plain = [argument for argument in ours if not argument.startswith("--iree-opt-level")]
    device = backend_named(None).device(threads)
    target = _Recorded(threads)
    program = _compiled(model, target)
    row.sides[OURS] = counted(target.text, ours)
    modules[OURS] = Module(np.frombuffer(target.code, np.int8), archive_in_memory(target.parameters), device)
    options = CompileOptions(target="null", threads=threads)
    read = flow_program(*prepare(model, options, create_target("null", threads)))
    archive = archive_in_memory(read.parameters)
    for name, more in LEVELS.items():
        compiled = compile_text(read.text, [*plain, *more])
        row.sides[name] = counted(read.text, [*plain, *more])
        if compiled.code:
            modules[name] = Module(np.frombuffer(compiled.code, np.int8), archive, device)
        else:
            row.sides[name].failure = compiled.failures[0].message
    hints = hints_of(onnx.load(str(model), load_external_data=False)) if model.suffix == ".onnx" else None
    feeds = generate(program.inputs, hints=hints)
    given = {name: feeds if name != OURS else {key: feeds[key] for key in _fed(target.text)} for name in modules}
    _timed(row, modules, given, rounds, round_seconds)
    return row


def count(model: Path, threads: int) -> Row:
    """What the sides launch and allocate; where IREE's code generation fails is not told."""
    ours = backend_named(None).arguments("default")
    plain = [argument for argument in ours if not argument.startswith("--iree-opt-level")]
    target, options = IreeTarget(backend_named(None), threads), CompileOptions(target="iree", threads=threads)
    module, ctx = prepare(model, options, target)
    run_phases(module, ctx, options)
    loose = [name for name, one in launched(module).items() if is_loose(one.ops)]
    row = Row(model.stem, {OURS: counted(flow_program(module, ctx, loose, lanes=True).text, ours)})
    options = CompileOptions(target="null", threads=threads)
    read = flow_program(*prepare(model, options, create_target("null", threads)))
    row.sides |= {name: counted(read.text, [*plain, *more]) for name, more in LEVELS.items()}
    return row


def _compiled(model: Path, target: _Recorded) -> fuseline.CompiledModel:
    from fuseline.compilation import _compile  # pyright: ignore[reportPrivateUsage]
    from fuseline.runtime import Session

    options = CompileOptions(target="iree", threads=target.description.threads)
    return fuseline.CompiledModel(Session(_compile(model, options, target)))


def _fed(text: str) -> list[str]:
    """The inputs that the only function of a text takes: those that something reads."""
    return re.findall(r'fuseline\.name = "([^"]*)"', text.splitlines()[1].partition(" -> ")[0])


def _timed(
    row: Row, modules: Mapping[str, Module], feeds: Mapping[str, Mapping[str, Any]], rounds: int, round_seconds: float
) -> None:
    calls = {name: partial(module.call, "main", [*feeds[name].values()]) for name, module in modules.items()}
    results = {name: call() for name, call in calls.items()}
    row.difference = max((_difference(results[OURS], other) for other in results.values()), default=0.0)
    times = interleaved(calls, rounds=rounds, round_seconds=round_seconds)
    for name, found in times.items():
        row.sides[name].milliseconds = 1e3 * float(np.median(found))
    others = sorted((name for name in modules if name != OURS), key=lambda name: row.sides[name].milliseconds)
    if others:
        ratio = paired_ratio(times[OURS], times[others[0]])
        row.ratio, row.low, row.high = ratio.value, ratio.low, ratio.high


def _difference(ours: Sequence[Any], others: Sequence[Any]) -> float:
    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(ours, others, strict=True)]
    return max((float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9)) for a, b in pairs if b.size), default=0.0)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    names = [*LEVELS, OURS]
    lines = [f"| model | {' | '.join(names)} | {OURS} / IREE | differs by |", "|" + "---|" * (len(names) + 3)]
    for row in rows:
        cells = [_cell(row.sides[name]) for name in names]
        ratio = f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})" if row.ratio else "-"
        differs = f"{row.difference:.0e}" if row.ratio else "-"
        lines.append(f"| {row.model} | {' | '.join(cells)} | {ratio} | {differs} |")
    failures = [
        f"{row.model}, {name}: `{side.failure}`" for row in rows for name, side in row.sides.items() if side.failure
    ]
    return "\n".join([*lines, "", *(f"- {failure}" for failure in failures)])


def _cell(side: Side) -> str:
    counts = f"{side.dispatches} / {side.executables} / {side.transient_bytes:,}"
    return f"({counts}) -" if side.failure else counts


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--round-seconds", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the rows there; rows that are there are kept")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        row = (
            count(options.models[0], options.threads)
            if options.counts
            else measure(options.models[0], options.threads, options.rounds, options.round_seconds)
        )
        print(json.dumps(asdict(row)))
        return 0
    print(table(_rows(options)))
    return 0


def _rows(options: argparse.Namespace) -> list[Row]:
    found: dict[str, Any] = {}
    if options.json is not None and options.json.exists():
        found = {row["model"]: row for row in json.loads(options.json.read_text())}
    for model in options.models:
        if model.stem in found:
            continue
        given = [str(model), "--one", "--rounds", str(options.rounds), "--threads", str(options.threads)]
        given += ["--round-seconds", str(options.round_seconds), *(["--counts"] if options.counts else [])]
        command = [sys.executable, "-m", "benchmarks.iree_formation", *given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{model}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            continue
        found[model.stem] = json.loads(done.stdout.splitlines()[-1])
        if options.json is not None:
            options.json.write_text(json.dumps([*found.values()], indent=1))
    return [_row(row) for row in found.values()]


def _row(said: dict[str, Any]) -> Row:
    """A row as JSON has it."""
    sides = {name: Side(**side) for name, side in said.pop("sides").items()}
    return Row(sides=sides, **said)


if __name__ == "__main__":
    sys.exit(main())
