"""A loaded model that can be run from any thread."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from fuseline.buffers import TensorSpec
from fuseline.errors import FuselineError, OutOfMemoryError, UnequalSizesError
from fuseline.runtime.abi import MAX_THREADS
from fuseline.runtime.artifact import Artifact, read_artifact
from fuseline.runtime.background import in_background
from fuseline.runtime.bounds import numbers_that_fit
from fuseline.runtime.callers import fair_threads, running
from fuseline.runtime.command_table import threads_of
from fuseline.runtime.cpu import check_machine
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.execution import Array, Execution, LoadedCode, Runnable, Shapes, Workspace, native_run
from fuseline.runtime.feeds import admit, bind_sizes, shapes_of
from fuseline.runtime.memory import CodePages
from fuseline.runtime.processors import allowed_processors
from fuseline.runtime.program import Program
from fuseline.runtime.staged import StagedExecution, split_stages
from fuseline.runtime.teams import chosen_team
from fuseline.runtime.workspaces import WorkspacePool

if TYPE_CHECKING:
    from concurrent.futures import Future

EXECUTIONS_KEPT = 16
"""Executions a workspace remembers, one per combination of input shapes and threads; the least recently used goes
first."""


class Session:
    """An artifact, ready to run; its code is mapped by the first run, so that one for another machine can be inspected
    and saved.

    `run` may be called from many threads: runs go side by side on memory of their own, as many as there are processors,
    and share these out: a run that begins while others are under way takes its part of them only.

    Args:
        artifact: what to run.
        threads: threads of a run that is alone; None: what the artifact was compiled for.
        pin: pin the team's workers to processors of this process's affinity mask.

    Raises FuselineError: E0501 for a thread count outside 1..256.
    """

    def __init__(self, artifact: Artifact, *, threads: int | None = None, pin: bool = True) -> None:
        self.threads = artifact.program.threads if threads is None else threads
        if not 1 <= self.threads <= MAX_THREADS:
            raise FuselineError("E0501", f"threads is {self.threads}, must be in 1..{MAX_THREADS}")
        self._artifact, self._program, self._pin, self._whole = artifact, artifact.program, pin, True
        self._wanted = [
            (spec.name, None if spec.slot is not None else dtype_named(spec.dtype)) for spec in self._program.inputs
        ]
        self._has_indices = any(spec.is_index for spec in self._program.inputs)
        self._stages = split_stages(self._program)
        self._output_names = [spec.name for spec in self._program.outputs]
        self._reset()
        _sessions.add(self)

    def open(self) -> Session:
        """Map the code now; answers itself. Raises FuselineError: E0401 damaged code, E0403 another machine's, E0405
        without memory."""
        with self._opening:
            _ = self._code
        return self

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, dtypes and sizes of the feeds."""
        return self._program.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, dtypes and sizes of the results."""
        return self._program.outputs

    @property
    def records(self) -> bytes:
        """The compiler's records, as it wrote them."""
        return self._artifact.records

    @property
    def artifact(self) -> Artifact:
        """The artifact behind this session."""
        return self._artifact

    def part(self, program: Program) -> Session:
        """A session for some of the program's commands on memory as the last run left it: parts timed alone then read
        what they usually read.

        `program` is this artifact's with other steps. A run of either session changes what the other one finds; they
        must not run at once.
        """
        other = Session(self._artifact._replace(program=program, fallback=None), threads=self.threads, pin=self._pin)
        other._whole = False
        if self._pool.idle:
            other._pool.add(self._pool.idle[-1].sharing_memory())
        return other

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name for `feeds` by name: arrays, numbers for inputs without dimensions, or anything that speaks
        DLPack.

        Outputs are fresh C-contiguous arrays, 64-byte aligned. Feeds are read in place where they are C-contiguous and
        as aligned as the artifact asks (NumPy's own memory is), else copied. Values that the program holds are taken
        and given as they are: object arrays of strings, arrays of the small dtypes of ml_dtypes, lists for sequences,
        None for an empty optional. Raises FuselineError: E0201 unknown name, E0202 missing, E0203 shape, E0204 dtype,
        E0403 another machine's code, E0405 memory, E0503 missing host executor.
        """
        arrays: list[Array] = []
        try:
            feed = feeds.get
        except AttributeError:  # no mapping, which is refused in words
            feed = dict[str, Any]().get
        for name, dtype in self._wanted:
            array = feed(name)
            if type(array) is not np.ndarray or array.dtype is not dtype:
                break
            arrays.append(array)
        if not len(arrays) == len(self._wanted) == len(feeds):  # anything but feeds that are plainly right
            arrays = admit(self._program.inputs, feeds)
        return dict(zip(self._output_names, self.run_arrays(arrays)))  # noqa: B905 (`strict` doubles the time; the lengths are ours)

    def run_arrays(self, arrays: Sequence[Array]) -> list[Any]:
        """Outputs in order for inputs in order, as `admit` gives them (see `run` for what else may be raised)."""
        shapes = (
            shapes_of(self._program.inputs, arrays) if self._has_indices else tuple([array.shape for array in arrays])
        )
        caller = get_ident()
        is_outermost = caller not in running
        try:
            running.add(caller)
            return self._run_in_workspace(arrays, shapes)
        except UnequalSizesError:
            other = self._fallback
            if other is None:
                raise
        except MemoryError as error:
            raise OutOfMemoryError(
                "E0405", f"no memory for outputs of a run on {shapes}", hint="run with smaller sizes"
            ) from error
        finally:
            if is_outermost:
                running.discard(caller)
        return other.run_arrays(arrays)

    def run_async(self, feeds: Mapping[str, Any]) -> Future[dict[str, Any]]:
        """`run` in the background: a future of its outputs, or of what it raises. Feeds must stay as they are until
        then. A run that has not begun can be cancelled.

        As many runs go on as there are processors, others wait their turn; so a future's callback must not wait for
        another run.
        """
        return in_background(self.run, feeds)

    def release_memory(self) -> None:
        """Give back the memory that no run is using; the next one takes fresh memory."""
        self._pool.release()
        other = self.__dict__.get("_fallback")
        if other is not None:
            other.release_memory()

    def _run_in_workspace(self, arrays: Sequence[Array], shapes: Shapes) -> list[Any]:
        threads = 1 if self.threads == 1 else fair_threads(self.threads, self._processors)
        workspace = self._pool.take()
        try:
            execution = workspace.executions.get((shapes, threads))
            if execution is None:
                execution = self._instantiate(workspace, shapes, threads)
            elif len(workspace.executions) > 1:
                workspace.executions.move_to_end((shapes, threads))
            return execution.run(self._launch_alone if execution.threads == 1 else self._launch_team, arrays)
        finally:
            self._pool.give(workspace)

    @property
    def _execution(self) -> Callable[..., Execution]:
        """What binds the program, or a stage of it, to memory."""
        return Execution

    @cached_property
    def _code(self) -> LoadedCode:
        check_machine(self._artifact.machine, self._artifact.cpu_features)
        pages = CodePages(self._artifact.code, self._artifact.fixups)
        return LoadedCode(
            pages,
            tuple(self._artifact.constants),
            native_run(pages, self._artifact.entries["run"]),
            self._artifact.kernels,
        )

    @cached_property
    def _launch_alone(self) -> Callable[[int], None]:
        return partial(self._code.run, 0)

    @cached_property
    def _fallback(self) -> Session | None:
        """What runs sizes that this program does not take."""
        other = self._artifact.fallback
        return None if other is None else self._beside(other)

    def _beside(self, artifact: Artifact) -> Session:
        """A session for another artifact, made like this one."""
        return Session(artifact, threads=self.threads, pin=self._pin)

    def _launch_team(self, context: int) -> None:
        team = chosen_team(self._code.pages, self._artifact.entries["worker"], pin=self._pin)
        with team.lock:
            team.ensure(threads_of(context))
            self._code.run(team.address, context)

    def _instantiate(self, workspace: Workspace, shapes: Shapes, threads: int) -> Runnable:
        values = bind_sizes(self._program, shapes)
        code = self.open()._code
        make = self._execution
        with numbers_that_fit():
            if len(self._stages) == 1 and not self._program.slots:
                execution: Runnable = make(self._program, code, workspace, values, threads, whole=self._whole)
            else:
                execution = StagedExecution(self._program, self._stages, code, workspace, values, threads, make)
        while len(workspace.executions) >= EXECUTIONS_KEPT:
            workspace.executions.popitem(last=False)
        workspace.executions[shapes, threads] = execution
        return execution

    def _reset(self) -> None:
        self._opening = threading.Lock()
        self._processors = len(allowed_processors())
        self._pool = WorkspacePool(self._processors)

    def _after_fork(self) -> None:
        """Runs that other threads of the parent were in do not exist here: start with fresh memory."""
        self._reset()


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in list(_sessions):
        session._after_fork()  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(after_in_child=_after_fork_in_child)


def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    pin: bool = True,
    verify: bool = False,
    trusted: Sequence[Any] | None = None,
) -> Session:
    """The artifact at `path`, ready to run; `verify` also checks the digest of every constant, `trusted` asks for a
    signature by one of the keys.

    Raises FuselineError: E0401 damaged, E0402 other format version, E0403 other machine or missing CPU features,
    E0406 not signed by a trusted key.
    """
    return Session(read_artifact(path, verify=verify, trusted=trusted), threads=threads, pin=pin).open()
