"""A program that runs: its inputs, outputs, records and file, whatever target it was compiled for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from fuseline.arguments import path_option
from fuseline.border import border, coded
from fuseline.errors import FuselineError
from fuseline.runtime import Artifact, TensorSpec
from fuseline.runtime.artifact import ARTIFACT_SUFFIX, artifact_bytes
from fuseline.runtime.background import in_background
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.host_calls import packages
from fuseline.runtime.sizes import symbol_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fuseline.report.records import CompileRecord, Decision

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


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
    def threads(self) -> int:
        """Threads that a run may use."""
        ...

    @property
    def inputs(self) -> Sequence[TensorSpec]:
        """The inputs in the order of the model."""
        ...

    @property
    def outputs(self) -> Sequence[TensorSpec]:
        """The outputs in the order of the model."""
        ...

    @property
    def records(self) -> bytes:
        """The records of the compile as JSON, empty where there are none."""
        ...

    @property
    def artifact(self) -> Any:
        """The program as a file has it (`runtime.artifact.Artifact`)."""
        ...

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs by name; `feeds` has an array for each input. Raises FuselineError for feeds that are missing, or
        of another shape or dtype."""
        ...


def _refuse_feeds_by_name(inputs: Sequence[TensorSpec], arrays: Sequence[Any]) -> None:
    """Raises FuselineError (E0501) for a mapping in the place of an array: it is what `run` takes."""
    for spec, array in zip(inputs, arrays, strict=False):
        if isinstance(array, Mapping) and spec.slot is None:
            raise FuselineError(
                "E0501",
                f"a {type(array).__name__} is given by position, where an array is wanted",
                node=spec.name,
                hint="call it with **feeds, or call run(feeds)",
            )


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
    def suffix(self) -> str:
        """How files that `save` writes are called: `.fuse`, or as a target from outside calls its own."""
        return getattr(self.session.artifact, "suffix", ARTIFACT_SUFFIX)

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
        `run` does, and E0501 for feeds by name that are given as one argument."""
        if len(arrays) > len(self.inputs):
            raise FuselineError("E0201", f"{len(arrays)} feeds given, the model has {len(self.inputs)} inputs")
        _refuse_feeds_by_name(self.session.inputs, arrays)
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

    @border("records")
    def decisions_frame(self) -> Any:
        """The decisions as a pandas data frame, a row each (E0503 without pandas)."""
        from fuseline.report.frames import decisions_frame

        return decisions_frame(self.record)

    @border("records")
    def dispatches_frame(self) -> Any:
        """The dispatches as a pandas data frame, a row each (E0503 without pandas)."""
        from fuseline.report.frames import dispatches_frame

        return dispatches_frame(self.record)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from fuseline.report.notebook import notebook_html

        return notebook_html(self.record)

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
        content = getattr(artifact, "content", None)
        if isinstance(content, bytes):  # of a target from outside
            artifact.refuse_key(sign)
            return content
        if not isinstance(artifact, Artifact):
            raise FuselineError("E0502", "a program without code cannot be stored", hint="compile for cpu")
        return artifact_bytes(artifact, sign=sign)

    def __repr__(self) -> str:
        ends = ", ".join(item.name for item in self.inputs), ", ".join(item.name for item in self.outputs)
        return f"<fuseline.CompiledModel ({ends[0]}) -> ({ends[1]}), {self.threads} threads>"
