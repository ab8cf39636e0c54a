"""Whether a target keeps the contract of docs/targets.md: small graphs are compiled for it, and every question is asked
twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx

from fuseline.errors import FuselineError
from fuseline.testing.graphs import GRAPHS, QUANTIZATION_STEP, feeds, graph
from fuseline.testing.watched_target import WatchedTarget

SLOWEST_LEGAL = 5e-3
"""Seconds that `legal` may take, mostly: it is asked about thousands of merges of a large model."""

_TOLERANCE = 1e-4
_UNROUNDED = 0.95


def check_target(
    target: str | Callable[[], Any], *, graphs: Sequence[str] = GRAPHS, seed: int = 0, threads: int | None = None
) -> list[str]:
    """What is wrong with a target, a line each: none for one that keeps the contract.

    Args:
        target: as for `--target` (a name or path, `npu:4x4`), or what makes a `Target`. graphs: which of `GRAPHS` are
        compiled for it. seed: of their weights. threads: what `create` is told.

    Looked at: what it says of itself, that its answers have the forms of the contract and depend on nothing but the
    question, that it changes nothing it is asked about, that `legal` is quick (`SLOWEST_LEGAL`), that the same model
    becomes the same program, and, where programs run, that the outputs are the interpreter's.
    """
    try:
        _made(target, threads)
    except FuselineError as problem:
        return [str(problem)]
    found, refused = list[str](), 0
    for name in graphs:
        problems = list(_problems(name, target, seed, threads))
        refused += _NOT_TAKEN in problems
        found += [f"{name}: {problem}" for problem in problems if problem != _NOT_TAKEN]
    if refused == len(graphs):
        found.append("it takes none of the graphs")
    return found


_NOT_TAKEN = "not taken"


def _made(target: str | Callable[[], Any], threads: int | None) -> WatchedTarget:
    """A fresh one. Raises FuselineError for what is none."""
    from fuseline.targets import TARGETS, create_target
    from fuseline.targets.outside.checked_target import CheckedTarget
    from fuseline.targets.outside.loading import Maker
    from fuseline.targets.outside.named import create_outside
    from fuseline.targets.outside.origin import Origin

    if not isinstance(target, str):
        origin = Origin(getattr(target, "__name__", "target"), "", _file_of(target))
        return WatchedTarget(Maker(origin, lambda *_: target(), "").make(None, threads, "default"))
    if target.partition(":")[0] in TARGETS:
        return WatchedTarget(CheckedTarget(create_target(target, threads), Origin(target, "")))
    return WatchedTarget(create_outside(target, threads, "default", TARGETS))


def _file_of(target: Callable[[], Any]) -> Path | None:
    """Where it is written, for the lines of its faults."""
    try:
        return Path(inspect.getfile(target))
    except TypeError:  # what is no class or function
        return None


def _problems(name: str, target: str | Callable[[], Any], seed: int, threads: int | None) -> Iterator[str]:
    """What is wrong where one graph is compiled."""
    model = graph(name, seed)
    try:
        watched = [_made(target, threads) for _ in range(2)]
        programs = [_compiled(model, one) for one in watched]
    except FuselineError as problem:
        yield _NOT_TAKEN if problem.code == "E0307" else str(problem)
        return
    first = watched[0]
    yield from first.wrong
    typical = median(first.seconds) if first.seconds else 0.0
    if typical > SLOWEST_LEGAL:
        yield f"legal() takes {typical * 1e3:.1f} ms, and is asked about every merge"
    yield from _differences(*programs)
    if first.runs_programs:
        yield from _wrong_outputs(name, model, programs[0], seed)


def _compiled(model: onnx.ModelProto, target: WatchedTarget) -> Any:
    """The program that the target assembles. Raises FuselineError."""
    from fuseline.border import border
    from fuseline.compilation import lower
    from fuseline.compile_options import CompileOptions
    from fuseline.phase_runner import run_phases
    from fuseline.source_program import prepare

    options = CompileOptions(cache=False)
    with border("check"):
        module, ctx = prepare(model, options, target)
        run_phases(module, ctx, options)
        return lower(module, ctx, options, target)


def _differences(first: Any, again: Any) -> Iterator[str]:
    """How the programs of two targets that were made alike differ."""
    from fuseline.report.records import decode

    one, other = decode(first.records), decode(again.records)
    if one.groups != other.groups:
        yield "a second target, made alike, forms other dispatches"
    elif [d.kernels for d in one.dispatches] != [d.kernels for d in other.dispatches]:
        yield "a second target, made alike, makes other kernels"
    elif getattr(first, "content", None) != getattr(again, "content", None):
        yield "a second target, made alike, assembles another file"


def _wrong_outputs(name: str, model: onnx.ModelProto, program: Any, seed: int) -> Iterator[str]:
    """Outputs that are not the interpreter's."""
    import fuseline

    given = feeds(model, seed)
    wanted = fuseline.compile(model, target="interpreter", cache=False).run(given)
    try:
        found = _session(program).run(given)
    except Exception as problem:  # noqa: BLE001 - of the target's own runtime
        yield f"a run raised {type(problem).__name__}: {problem}"
        return
    for output, right in wanted.items():
        if not _agrees(np.asarray(found.get(output, np.nan)), right, stepped=name == "integers"):
            yield f"output {output} differs from the interpreter's"


def _agrees(found: Any, right: Any, *, stepped: bool) -> bool:
    """Whether an output is what it should be; `stepped`: a few values may be rounded to the next step, since they lie
    between two."""
    if found.shape != right.shape:
        return False
    difference = np.abs(found.astype(np.float64) - right)
    near = difference <= _TOLERANCE * max(float(np.abs(right).max(initial=0)), 1.0)
    if not stepped:
        return bool(near.all())
    return bool(near.mean() >= _UNROUNDED and difference.max() <= QUANTIZATION_STEP * (1 + _TOLERANCE))


def _session(program: Any) -> Any:
    from fuseline.runtime import Artifact, Session

    return Session(program) if isinstance(program, Artifact) else program.session(None)
