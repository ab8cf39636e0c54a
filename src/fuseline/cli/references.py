"""What a model is checked against, and on what: another runtime, another program, feeds, from the words of a command
line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseline.cli.console import Progress
from fuseline.cli.models import is_artifact, require_onnx
from fuseline.errors import FuselineError
from fuseline.runtime import Session
from fuseline.runtime.feed_files import parse_feeds
from fuseline.verify.model_feeds import complete_feeds, model_hints

if TYPE_CHECKING:
    from fuseline.compile_options import CompileOptions
    from fuseline.verify.bisect.criterion import Criterion
    from fuseline.verify.check.model import Asked, MakeFeeds

RUNTIME = "onnxruntime"


def options_of(path: Path, options: Mapping[str, Any], report: Progress | None) -> CompileOptions:
    """The options of a compile from those of a command. Raises E0101 for a file that is not there, E0501 for a wrong
    option."""
    from fuseline.call_options import compile_options

    if not path.exists():
        raise FuselineError("E0101", "no such file", node=str(path), hint="check the path")
    return compile_options(**{**options, "progress": report, "cache": False})


def require_file(path: Path) -> None:
    """Raises E0101 for a file that is not there."""
    if not path.exists():
        raise FuselineError("E0101", "no such file", node=str(path), hint="check the path")


def feeds_of(path: Path, inputs: tuple[str, ...], seed: int) -> MakeFeeds:
    """Makes feeds for programs of a model: those of `--input`, and generated ones that fit what the model says of
    itself."""
    from fuseline.compiled_model import CompiledModel
    from fuseline.verify.inputs import Hints

    require_file(path)

    def feeds(session: Session, sizes: Mapping[str, int], number: int) -> dict[str, Any]:
        program, hints = CompiledModel(session), model_hints(path)  # a broken model was refused by now
        names = [item.name for item in program.inputs]
        given = {name: feed for name, feed in parse_feeds(inputs, names).items() if number == 0} if inputs else {}
        return complete_feeds(program, given, Hints(hints.ranges, {**hints.sizes, **sizes}), seed + number)

    return feeds


def reference_of(
    path: Path, against: Path | None, threads: int | None
) -> tuple[str, Callable[[dict[str, Any]], Mapping[str, Any]]] | None:
    """The other program by its name: that of `--against`, or the model in onnxruntime where both can be had; else
    None."""
    if against is not None and is_artifact(against):
        from fuseline import load

        return against.name, load(against, threads=threads).run
    model = against or path
    if model.suffix != ".onnx" or find_spec(RUNTIME) is None:
        return None

    def run(feeds: dict[str, Any]) -> Mapping[str, Any]:
        from fuseline.interop.peers import load_peer

        return load_peer(RUNTIME, model, threads or 1).run(feeds)

    return RUNTIME, run


def asked_of(
    path: Path,
    against: Path | None,
    inputs: tuple[str, ...],
    choices: tuple[int, float | None],
    report: Progress,
    threads: int | None,
) -> Asked:
    """What a check of `path` takes; `choices` are the seed and the tolerance."""
    from fuseline.interop import iree_host, onnx_host
    from fuseline.verify.check.model import Asked
    from fuseline.verify.compare import TOLERANCE

    onnx_host.install()  # programs may hold operators that run there
    iree_host.install()
    seed, tolerance = choices
    reference = reference_of(path, against, threads)
    allowed = TOLERANCE if tolerance is None else tolerance
    return Asked(feeds_of(path, inputs, seed), reference, allowed, same_model=against is None, tell=report)


def differs_from(
    path: Path, against: str, inputs: tuple[str, ...], choices: tuple[int, float | None], options: CompileOptions
) -> Criterion:
    """What tells programs of `path` that differ from `against` (onnxruntime, interpreter, or a command); `choices` are
    the seed and the tolerance. Raises E0501 where onnxruntime cannot read the model, E0503 where it is not installed,
    and what reading the model raises."""
    from fuseline.interop import iree_host, onnx_host
    from fuseline.verify.bisect.criterion import Command, Differs
    from fuseline.verify.check.original import Original
    from fuseline.verify.compare import TOLERANCE

    onnx_host.install()
    iree_host.install()
    if against not in (RUNTIME, "interpreter"):
        return Command(against)
    if against == RUNTIME:
        require_onnx(path, "--against onnxruntime")
    original = Original(path, options)
    feeds = feeds_without_code(path, options, inputs, choices[0])
    tolerance = TOLERANCE if choices[1] is None else choices[1]
    exact = original.run(feeds)

    def exactly() -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
        return exact, original.noisy_runs(feeds)

    if against == "interpreter":
        return Differs(feeds, "the interpreter in float64", original.in_own_types(exact, feeds), tolerance, exactly)
    from fuseline.interop.peers import load_peer

    return Differs(feeds, RUNTIME, load_peer(RUNTIME, path, 1).run(feeds), tolerance, exactly)


def feeds_without_code(path: Path, options: CompileOptions, inputs: tuple[str, ...], seed: int) -> dict[str, Any]:
    """Feeds for a model whose compile may be at fault: its border is read with as few passes as there can be."""
    from dataclasses import replace

    from fuseline.compilation import compile_program
    from fuseline.ir.fuel import KINDS, Fuel

    border = replace(options, target="null", fuel=Fuel(dict.fromkeys(KINDS, 0)), fusion="none", plan=None, kernels={})
    program: Any = compile_program(path, border)
    return feeds_of(path, inputs, seed)(program.session(None), {}, 0)
