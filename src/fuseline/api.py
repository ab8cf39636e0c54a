"""The Python interface: `compile` a model, `load` an artifact, run either with NumPy arrays or anything that speaks
DLPack.

Importing this module imports the runtime and NumPy only; the compiler loads when something is compiled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from fuseline.arguments import key_list, path_option, thread_count, wrong
from fuseline.border import border, coded
from fuseline.cache.folder import disabled
from fuseline.cache.key import model_name, program_key
from fuseline.cache.programs import Found, find, keep
from fuseline.errors import FuselineError
from fuseline.gc_pause import gc_paused
from fuseline.interop import onnx_host
from fuseline.runtime import Artifact, Session, TensorSpec
from fuseline.runtime import load as load_session
from fuseline.runtime.artifact import ARTIFACT_SUFFIX, artifact_bytes
from fuseline.runtime.background import in_background
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.host_calls import packages
from fuseline.runtime.sizes import symbol_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    import onnx

    from fuseline.compile_options import CompileOptions
    from fuseline.report.records import CompileRecord, Decision

onnx_host.install()  # artifacts may hold operators that run there

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Model: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto"
Progress: TypeAlias = Callable[[str, int, int], None]
Shape: TypeAlias = "str | int | Sequence[int]"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output: a free extent of `shape` is the name of its symbol, or None where it is computed from
    several.

    `type` is empty for a tensor of numbers, else the ONNX type over NumPy's names: `tensor(string)` (object arrays of
    strings), `tensor(float8_e4m3fn)`, `seq(tensor(float32))` (lists), `optional(..)` (or None), `map(int64, ..)`. What
    is no tensor has dtype `object`.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]
    type: str = ""


def tensor_info(spec: TensorSpec) -> TensorInfo:
    """What the runtime knows of a tensor, in NumPy's words."""
    return TensorInfo(
        spec.name,
        dtype_named(spec.dtype),
        tuple(dim if isinstance(dim, int) else symbol_of(dim) for dim in spec.shape),
        spec.type,
    )


class ProgramSession(Protocol):
    """What runs a program: the runtime's session, or that of a target without code (`interpreter`, `null`)."""

    @property
    def threads(self) -> int: ...
    @property
    def inputs(self) -> Sequence[TensorSpec]: ...
    @property
    def outputs(self) -> Sequence[TensorSpec]: ...
    @property
    def records(self) -> bytes: ...
    @property
    def artifact(self) -> Any: ...

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]: ...


class CompiledModel:
    """A compiled program. Calls may come from many threads. `from_cache`: an earlier compile made it, and its records
    tell of that one."""

    def __init__(self, session: ProgramSession, *, from_cache: bool = False) -> None:
        self.session, self.from_cache = session, from_cache
        self.inputs = tuple(tensor_info(spec) for spec in session.inputs)
        self.outputs = tuple(tensor_info(spec) for spec in session.outputs)
        self._record: CompileRecord | None = None

    @property
    def threads(self) -> int:
        """Threads per run."""
        return self.session.threads

    @property
    def layout_seconds(self) -> float:
        """How long it took to lay out the weights when the program was loaded: 0 unless it was compiled with
        `weights="original"`."""
        return getattr(self.session.artifact, "layout_seconds", 0.0)

    @property
    def symbols(self) -> Mapping[str, tuple[int, int | None]]:
        """Inclusive bounds of every symbolic extent, by name."""
        return self.session.artifact.program.symbols

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Outputs by name for feeds by name. Raises FuselineError: E0201 unknown name, E0202 missing, E0203 shape,
        E0204 dtype."""
        try:
            return self.session.run(feeds)
        except Exception as error:  # noqa: BLE001 - the border, in line: this is the hot path
            raise coded(error, "run") from error.__cause__ if isinstance(error, FuselineError) else error

    def run_async(self, feeds: Mapping[str, Any]) -> Future[dict[str, Array]]:
        """`run` in the background: a future of the outputs, or of what `run` raises. Feeds must stay as they are until
        it is done. As many runs go on as there are processors, so a future's callback must not wait for another run."""
        return in_background(self.run, feeds)

    def __call__(self, *arrays: Any, **named: Any) -> Array | tuple[Array, ...]:
        """The outputs for inputs by position or name: one array where the model has one output, else a tuple. Raises as
        `run` does."""
        if len(arrays) > len(self.inputs):
            raise FuselineError("E0201", f"{len(arrays)} feeds given, the model has {len(self.inputs)} inputs")
        feeds = {item.name: array for item, array in zip(self.inputs, arrays, strict=False)}
        twice = sorted(feeds.keys() & named.keys())
        if twice:
            raise FuselineError("E0201", "given by position and by name", node=twice[0])
        outputs = tuple(self.run({**feeds, **named}).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def bind(self, feeds: Mapping[str, Any]) -> Callable[[], object]:
        """A callable that runs the program once on `feeds`, for timing."""
        run, given = self.session.run, dict(feeds)
        return lambda: run(given)

    @property
    @border("records")
    def record(self) -> CompileRecord:
        """Everything that the compile decided and counted; it is stored in the artifact, so a loaded program has it,
        too.

        Which package runs the host ops is what holds here and now."""
        if self._record is None:
            from fuseline.report.host_packages import add_packages
            from fuseline.report.records import CompileRecord, decode

            self._record = decode(self.session.records) if self.session.records else CompileRecord()
            if self._record.host_ops:
                add_packages(self._record, packages(self.session.artifact.program))
        return self._record

    @property
    @border("records")
    def plan(self) -> str:
        """The partition into dispatches as a fusion plan, the text of a file for `compile(plan=...)`."""
        from fuseline.passes.fusion.plan import plan_text

        return plan_text(self.record)

    @property
    @border("records")
    def stats(self) -> dict[str, Any]:
        """The statistics, with the keys of `fuseline stats --json`."""
        from fuseline.report.statistics import statistics_json

        return statistics_json(self.record)

    @property
    def decisions(self) -> list[Decision]:
        """What was decided about every candidate merge, and why."""
        return self.record.decisions

    @border("save")
    def save(self, path: str | os.PathLike[str], *, sign: Any = None) -> None:
        """Writes the program as one file, at once or not at all; `sign`: the path of a private Ed25519 key to sign it
        with.

        Raises FuselineError: E0502, and E0501 or E0503 for the key.
        """
        given = {} if sign is None else {"sign": sign}
        self.session.artifact.save(path_option("path", path), **given)

    @border("save")
    def to_bytes(self, *, sign: Any = None) -> bytes:
        """The program as its file would be. Raises FuselineError (E0502) for a target that makes no code, otherwise as
        `save` does."""
        artifact = self.session.artifact
        if not isinstance(artifact, Artifact):
            raise FuselineError("E0502", "a program without code cannot be stored", hint="compile for cpu")
        return artifact_bytes(artifact, sign=sign)

    def __repr__(self) -> str:
        ends = ", ".join(item.name for item in self.inputs), ", ".join(item.name for item in self.outputs)
        return f"<fuseline.CompiledModel ({ends[0]}) -> ({ends[1]}), {self.threads} threads>"


def source_of(model: Model) -> Path | bytes | onnx.ModelProto:
    """What the pipeline takes: a path, or a model in memory. Raises FuselineError (E0501) for anything else, an
    artifact included."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model)
    if isinstance(model, str | os.PathLike):
        path = path_option("model", model)
        if path.suffix == ARTIFACT_SUFFIX:
            raise FuselineError(
                "E0501", "an artifact is compiled already", node=str(path), hint="fuseline.load(path) loads it"
            )
        return path
    if not hasattr(model, "graph") or not hasattr(model, "SerializeToString"):
        raise wrong("model", model, "a path, the bytes of an ONNX model or an onnx.ModelProto")
    return model


def shape_option(shape: Shape) -> int | tuple[int, ...]:
    """A shape as the pipeline takes it: all extents of an input, one extent of a symbol, or its bounds. Raises
    FuselineError E0501.

    >>> shape_option("1x3x224x224"), shape_option("1..512"), shape_option("128"), shape_option([2, 3])
    ((1, 3, 224, 224), (1, 512), 128, (2, 3))
    """
    if not isinstance(shape, str):
        return _numbers(shape)
    parts = shape.split(".." if ".." in shape else "x")
    if not all(part.isdecimal() for part in parts):
        raise FuselineError("E0501", f"no shape: {shape!r}", hint="write 1x3x224x224, 128 or 1..512")
    return int(shape) if len(parts) == 1 else tuple(int(part) for part in parts)


def _numbers(shape: Any) -> int | tuple[int, ...]:
    try:
        return index(shape) if hasattr(shape, "__index__") else tuple(index(size) for size in shape)
    except TypeError as error:
        raise FuselineError(
            "E0501", f"no shape: {shape!r}", hint="give whole numbers: (1, 3, 224, 224), 128 or '1..512'"
        ) from error


@border("compile")
def emit(model: Model, stage: str, *, progress: Progress | None = None, **choices: Any) -> str:
    """The IR of `model` after a stage as text; `choices` are the other arguments of `compile`. Raises E0501 for an
    unknown stage."""
    from fuseline import pipeline

    return pipeline.emit(source_of(model), _options(emit=stage, progress=progress, **choices))


@border("compile")
def dump_dispatches(
    model: Model, folder: str | os.PathLike[str], *, progress: Progress | None = None, **choices: Any
) -> list[dict[str, Any]]:
    """Every dispatch of `model` as a program of its own: one file of MLIR text each in `folder`, weights included, and
    `index.json`, which is returned: file, executable, source nodes, inputs and outputs of each (docs/ir.md). `choices`
    are the other arguments of `compile`.

    Raises FuselineError as `compile` does, and E0502 for a folder that cannot be written: all files, or none.
    """
    from fuseline.passes.dispatch.dispatch_programs import dispatch_programs, files_of
    from fuseline.pipeline import outlined
    from fuseline.runtime.files import write_files

    module, ctx = outlined(source_of(model), _options(progress=progress, **choices))
    programs = list(dispatch_programs(module, ctx))
    place = path_option("folder", folder)
    write_files({place / name: write for name, write in files_of(programs).items()})
    return [program.about for program in programs]


def _options(**choices: Any) -> CompileOptions:
    """The options behind the arguments of `compile`; raises FuselineError (E0501) for a wrong one."""
    from fuseline.compile_options import CompileOptions

    options = CompileOptions(**choices)
    return replace(options, shapes={name: shape_option(shape) for name, shape in (options.shapes or {}).items()})


@border("compile")
def compile(
    model: Model,
    *,
    target: str = "cpu",
    threads: int | None = None,
    shapes: Mapping[str, Shape] | None = None,
    dedup: str = "constants",
    plan: str | os.PathLike[str] | None = None,
    plan_strict: bool = False,
    rules: Sequence[str | os.PathLike[str]] = (),
    without_rules: Sequence[str] = (),
    passes: str | None = None,
    pass_options: Mapping[str, Mapping[str, Any]] | None = None,
    fusion: str = "default",
    numerics: str = "default",
    weights: str = "packed",
    cache: bool = True,
    progress: Progress | None = None,
    after_pass: Callable[[str, Any, Any], object] | None = None,
) -> CompiledModel:
    """A program for `model`: a path, an `onnx.ModelProto`, or MLIR text in a file.

    Args:
        target: `cpu`, `cpu:<isa>`, `interpreter` (NumPy) or `null` (counts only). threads: threads per run; None: the
        processors this process may use. shapes: extents by input (`"1x3x224x224"`, `(1, 3, 224, 224)`) or by symbol
        (`128`, `"1..512"`). dedup: `none`, `exact`, `constants` or `shapes` (docs/dedup.md). plan: the file of a fusion
        plan to follow; `plan_strict` refuses one with entries that do not match (docs/plans.md). rules: files with
        further fusion rules. without_rules: names of rules that are left out (docs/fusion.md). passes: a pipeline in
        place of the phases up to `fusion`, as `fuseline opt -p` takes it. pass_options: options by the name of a pass,
        wherever it runs: `{"form-dispatch-regions": {"level": "none"}}`. fusion: `none` (one op per dispatch) or
        `default`. numerics: `strict` (no kernel trades accuracy), `default` (only within its stated bound) or `fast`
        (beyond it, where that is faster). weights: a saved program holds them `packed`, as kernels read them, or
        `original`, as the model has them, to be packed by every load (docs/memory.md). cache: take the finished program
        from the user's cache where it is there, else keep it (docs/cache.md). progress: called with a phase, steps
        done, steps in all; not for a program from the cache. after_pass: called with `phase/pass`, the module and its
        context after each pass, and with `input` before the first; such a compile takes nothing from the cache.

    Raises FuselineError naming the ONNX node, option or file at fault.
    """
    options = _options(
        target=target,
        threads=threads,
        shapes=shapes,
        dedup=dedup,
        plan=plan,
        plan_strict=plan_strict,
        rules=rules,
        without_rules=without_rules,
        passes=passes,
        pass_options=pass_options,
        fusion=fusion,
        numerics=numerics,
        weights=weights,
        cache=cache,
        progress=progress,
        after_pass=after_pass,
    )
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
    from fuseline.pipeline import compile_program

    since = time.time()
    program: Any = compile_program(source, options)
    if key is not None and not _installed_rules():
        keep(key, program, model_name(source), folder, program.metadata.get("external_files", ()), since=since)
    return program, False


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
    from importlib.metadata import entry_points

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


def refuse_choices(choices: Mapping[str, Any]) -> None:
    """Raises FuselineError (E0501) for the first option given with an artifact."""
    for name in choices:
        hint = "give it to fuseline.compile, with the model"
        raise FuselineError("E0501", f"{name} is for compiling, and an artifact is compiled already", hint=hint)
