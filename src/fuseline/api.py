"""The Python interface: `compile` a model, `load` an artifact, run either with NumPy arrays or anything that speaks
DLPack.

Importing this module imports the runtime and NumPy only; the compiler loads when something is compiled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fuseline.arguments import key_list, path_option, thread_count
from fuseline.border import border
from fuseline.cache.folder import disabled
from fuseline.cache.in_flight import in_flight
from fuseline.cache.key import model_name, program_key
from fuseline.cache.programs import Found, find, keep
from fuseline.call_options import Model, Shape, compile_options, refuse_choices, source_of
from fuseline.compiled_model import CompiledModel
from fuseline.gc_pause import gc_paused
from fuseline.interop import iree_host, onnx_host, repeated_texts
from fuseline.runtime import Artifact, Session
from fuseline.runtime import load as load_session

if TYPE_CHECKING:
    import onnx

    from fuseline.compile_options import CompileOptions
    from fuseline.exports.onnx.result import FusedModel
    from fuseline.exports.optimized.result import OptimizedModel

onnx_host.install()  # artifacts may hold operators that run there
iree_host.install()
repeated_texts.install()

Progress: TypeAlias = Callable[[str, int, int], None]


@border("compile")
def emit(
    model: Model,
    stage: str,
    *,
    dispatch: str | int | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    notice: Callable[[int, int], object] | None = None,
    **choices: Any,
) -> str:
    """The IR of `model` after a stage as text, or its code as `kernel` IR, `llvm` or `asm`: all of it, or that of one
    `dispatch` (name or number).

    Args:
        output: a file that the text is written to. IR is complete there: weights lie beside it, in `NAME.safetensors`,
        and `compile` makes the same program of it as of the model (docs/ir.md). Without, weights of more than 256 bytes
        are names, and `notice` is called with how many there are and their bytes. choices: the other arguments of
        `compile`.

    Raises E0501 for an unknown stage or dispatch, and for the code of a target that has none; E0502 for an output that
    cannot be written.
    """
    from fuseline import compilation

    if stage == "flow" and output is not None:
        text, *_ = emit_flow(model, output, progress=progress, **choices)
        return Path(text).read_text(encoding="utf-8")
    named = None if dispatch is None else str(dispatch)
    destination = None if output is None else path_option("output", output)
    options = compile_options(emit=stage, emit_dispatch=named, progress=progress, **choices)
    return compilation.emit(source_of(model), options, destination, notice)


@border("compile")
def emit_flow(
    model: Model, path: str | os.PathLike[str], *, progress: Progress | None = None, **choices: Any
) -> list[str]:
    """The dispatches of `model` as regions of IREE's `flow` dialect, in the text file `path`, and beside it, with the
    suffix `.safetensors`, the weights that are too large for the text; answers the names of both (docs/iree.md).
    `choices` are the other arguments of `compile`.

    Raises FuselineError as `compile` does, E0306 for what IREE has no word for, and E0502 for a place that cannot be
    written: both files, or none.
    """
    from fuseline import compilation
    from fuseline.runtime.files import write_files
    from fuseline.targets.iree.flow.archive import SUFFIX, write_archive

    destination = path_option("path", path)
    program = compilation.emit_flow(source_of(model), compile_options(progress=progress, **choices))
    writers: dict[str | os.PathLike[str], Callable[[Any], object]] = {
        destination: lambda file: file.write(program.text.encode())
    }
    if program.parameters:
        writers[destination.with_suffix(SUFFIX)] = lambda file: write_archive(file, program.parameters)
    write_files(writers)
    return [str(written) for written in writers]


@border("compile")
def dump_dispatches(
    model: Model, folder: str | os.PathLike[str], *, progress: Progress | None = None, **choices: Any
) -> list[dict[str, Any]]:
    """Every dispatch of `model` as a program of its own: one file of MLIR text each in `folder`, weights included, and
    `index.json`, which is returned: file, executable, source nodes, inputs and outputs of each (docs/ir.md). `choices`
    are the other arguments of `compile`. What an earlier call left in `folder` is removed.

    Raises FuselineError as `compile` does, and E0502 for a folder that cannot be written: all files, or none.
    """
    from fuseline.compilation import outlined
    from fuseline.passes.dispatch.dispatch_programs import dispatch_programs, files_of
    from fuseline.passes.dispatch.earlier_dump import earlier_files, remove_earlier
    from fuseline.runtime.files import write_files

    module, ctx = outlined(source_of(model), compile_options(progress=progress, **choices))
    programs = list(dispatch_programs(module, ctx))
    destination = path_option("folder", folder)
    files, earlier = files_of(programs), earlier_files(destination)
    write_files({destination / name: write for name, write in files.items()})
    remove_earlier(earlier, files.keys())
    return [program.about for program in programs]


@border("fuse")
def fuse(model: Model, *, progress: Progress | None = None, **choices: Any) -> FusedModel:
    """`model` again with each dispatch as an ONNX function (docs/onnx-export.md): `save(path)` writes it, `to_proto()`
    answers it as an `onnx.ModelProto`, `summary` counts what was exported. `choices` are the other arguments of
    `compile`; those that say nothing of dispatches change nothing.

    Raises FuselineError: E0501 for what is no ONNX model, and as `compile` does.
    """
    from fuseline.exports.onnx.export import fuse as fuse_model

    return fuse_model(source_of(model), compile_options(progress=progress, **choices))


@border("optimize")
def optimize(model: Model) -> OptimizedModel:
    """`model` again as plain ONNX with less to do: constants folded, transposes and reshapes gone
    (docs/onnx-export.md). `save(path)` writes it, `to_proto()` answers it as an `onnx.ModelProto`, `summary` says what
    was done and what not.

    Raises FuselineError: E0501 for what is no ONNX model, E0101 to E0105 for one that cannot be read.
    """
    from fuseline.exports.optimized.export import optimize as optimize_model

    return optimize_model(source_of(model))


@border("compile")
def compile(
    model: Model,
    *,
    target: str = "cpu",
    threads: int | None = None,
    shapes: Mapping[str, Shape] | None = None,
    dedup: str | None = None,
    plan: str | os.PathLike[str] | None = None,
    plan_strict: bool = False,
    rules: Sequence[str | os.PathLike[str]] = (),
    without_rules: Sequence[str] = (),
    passes: str | None = None,
    pass_options: Mapping[str, Mapping[str, Any]] | None = None,
    fusion: str | None = None,
    numerics: str = "default",
    weights: str = "packed",
    kernels: Mapping[str, str] | None = None,
    tuned: bool | str | os.PathLike[str] = False,
    cache: bool = True,
    fuel: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    after_pass: Callable[[str, Any, Any], object] | None = None,
) -> CompiledModel:
    """A program for `model`: a path, an `onnx.ModelProto`, or MLIR text in a file.

    Args:
        target: `cpu`, `cpu:<isa>`, `interpreter` (NumPy), `null` (counts only), that of an installed package, or the
        path of one (docs/targets.md). threads: threads per run; None: the processors this process may use. shapes:
        extents by input (`"1x3x224x224"`, `(1, 3, 224, 224)`) or by symbol (`128`, `"1..512"`). dedup: `none`, `exact`,
        `constants` (None) or `shapes` (docs/dedup.md). plan: the file of a fusion plan to follow; what a tuned one says
        of other arguments holds where they are not given; `plan_strict` refuses one with entries that do not match
        (docs/plans.md). rules: files with further fusion rules. without_rules: names of rules that are left out
        (docs/fusion.md). passes: a pipeline in place of the phases up to `fusion`, as `fuseline opt -p` takes it.
        pass_options: options by the name of a pass, wherever it runs: `{"form-dispatch-regions": {"level": "none"}}`.
        fusion: `none` (one op per dispatch), `default` (None) or `aggressive`. numerics: `strict` (no kernel trades
        accuracy), `default` (only within its stated bound) or `fast` (beyond it, where that is faster). weights: a
        saved program holds them `packed`, as kernels read them, or `original`, as the model has them, to be packed by
        every load (docs/memory.md). kernels: choices for kernels by the name of their class, such as
        `{"contraction.8f37c55e9cf8": "tile=9x48"}`; tuned: use those that tuning records of machines like this have,
        the user's own or those in a file (docs/tuning.md). cache: take the finished program from the user's cache where
        it is there, else keep it (docs/cache.md). fuel: how many decisions of a kind may be made, for finding one that
        does harm (docs/checking.md). progress: called with a phase, steps done, steps in all; not for a program from
        the cache. after_pass: called with `phase/pass`, the module and its context after each pass, and with `input`
        before the first; such a compile takes nothing from the cache.

    Raises FuselineError naming the ONNX node, option or file at fault.
    """
    return _compiled_model(model, compile_options(
        target=target, threads=threads, shapes=shapes, dedup=dedup, plan=plan, plan_strict=plan_strict, rules=rules,
        without_rules=without_rules, passes=passes, pass_options=pass_options, fusion=fusion, numerics=numerics,
        weights=weights, kernels=kernels, tuned=tuned, cache=cache, fuel=fuel, progress=progress, after_pass=after_pass,
    ))  # fmt: skip


def _compiled_model(model: Model, options: CompileOptions) -> CompiledModel:
    with gc_paused():
        program, from_cache = _program(source_of(model), options)
    session = (
        Session(program, threads=options.threads) if isinstance(program, Artifact) else program.session(options.threads)
    )
    return CompiledModel(session, from_cache=from_cache)


def _program(source: Path | bytes | onnx.ModelProto, options: CompileOptions) -> tuple[Any, bool]:
    """The program of `source`, and whether it was in the cache."""
    key = program_key(source, options) if options.cache and not disabled("programs") else None
    folder = source.parent if isinstance(source, Path) else None
    found = None if key is None else find(key, folder)
    if found is not None:
        return _called(found, model_name(source)), True
    if key is None:
        return _compiled(source, options, None, folder), False
    with in_flight(key) as by_another:
        if not by_another:
            return _compiled(source, options, key, folder), False
    found = find(key, folder)
    if found is not None:
        return _called(found, model_name(source)), True
    return _compiled(source, options, key, folder), False  # what cannot be kept is not waited for twice


def _compiled(
    source: Path | bytes | onnx.ModelProto, options: CompileOptions, key: str | None, folder: Path | None
) -> Any:
    """The program of `source`, kept under `key`."""
    from fuseline.compilation import compile_program

    since = time.time()
    program: Any = compile_program(source, options)
    if key is not None and not _installed_rules():
        keep(key, program, model_name(source), folder, program.metadata.get("external_files", ()), since=since)
    return program


def _called(found: Found, model: str) -> Artifact:
    """The program with records that call the model as this compile would have."""
    if found.model == model:
        return found.artifact
    from fuseline.report.records import decode, encode

    record = decode(found.artifact.records)
    record.model = model
    return found.artifact._replace(records=encode(record))


def _installed_rules() -> bool:
    """Whether packages add fusion rules: code that no key speaks of."""
    from fuseline.installed_entries import entry_points

    return bool(entry_points(group="fuseline.rules"))


@border("load")
def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    verify: bool = False,
    trusted: Sequence[Any] | None = None,
    **choices: Any,
) -> CompiledModel:
    """The artifact at `path`. An artifact is code: load what you trust.

    Args:
        threads: threads per run; None: as many as it was compiled for. verify: check the digest of every constant, too.
        trusted: public keys (paths of key files, or 32 bytes each); the artifact must be signed with the private key of
        one (docs/runtime.md).

    Raises FuselineError: E0401, E0402, E0403 for the file; E0406 for its signature;
    E0501 for an argument of `compile`, which has no say in what is compiled already.
    """
    refuse_choices(choices)
    return CompiledModel(
        load_session(path_option("path", path), threads=thread_count(threads), verify=verify, trusted=key_list(trusted))
    )
