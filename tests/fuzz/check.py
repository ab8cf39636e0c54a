"""One case: compiled, run several times on one session, compared with two references. The answer is a finding or None."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import fuseline
from fuseline.api import shape_option
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.pipeline import read_program
from fuseline.targets.interpreter import Interpreter
from tests.fuzz.case import Case, Feeds
from tests.fuzz.compare import SAMPLES, close, explained, form_problem, same_bits, worst
from tests.fuzz.evaluate import Rejected, ort_failures, ort_session
from tests.fuzz.known import known_reason
from tests.fuzz.stepping import Stepper
from tests.fuzz.tensors import F32, is_float

Stage = Callable[[str], None]


@dataclass(slots=True)
class Finding:
    """What is wrong: `kind` is wrong, interpreter, unstable, changed-feeds, refused, internal, traceback, crash or hang."""

    kind: str
    detail: str
    output: str = ""
    known: str = ""
    extra: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def severe(self) -> bool:
        """Whether a run fails for it: what is refused with a code, or explained in tests/fuzz/known.py, only counts."""
        return not self.known and self.kind != "refused"


def check(case: Case, stage: Stage = lambda _: None) -> Finding | None:
    """Compile, run and compare a case."""
    stage("references")
    references = References(case)
    stage("compile")
    try:
        program = _compile(case)
        stage("run")
        runs, problem = _run(case, program)
    except FuselineError as error:
        return _refusal(case, error)
    except Exception:  # noqa: BLE001
        return Finding("traceback", traceback.format_exc(limit=-4))
    stage("compare")
    return problem or references.judge(runs)


def _refusal(case: Case, error: FuselineError) -> Finding | None:
    kind = "internal" if error.code == "E0901" else "refused"
    return Finding(kind, str(error), known=known_reason(case, kind, str(error)))


def _compile(case: Case) -> fuseline.CompiledModel:
    choices = case.choices
    program = fuseline.compile(
        case.model, target=choices.target, threads=choices.threads, shapes=_bounds(case), fusion=choices.fusion, numerics=choices.numerics
    )
    if not choices.saved:
        return program
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.fuse"
        program.save(path)
        return fuseline.load(path, threads=choices.threads, verify=True)


def _bounds(case: Case) -> dict[str, str]:
    symbols = {dim.dim_param for value in case.model.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    return {name: case.choices.sizes for name in symbols if case.choices.sizes}


def _run(case: Case, program: fuseline.CompiledModel) -> tuple[Sequence[Mapping[str, Any]], Finding | None]:
    """Every feed in turn, then all again: results must stay what they were, feeds unchanged, and both rounds equal."""
    given = [{name: array.copy() for name, array in feeds.items()} for feeds in case.feeds]
    first = [program.run(feeds) for feeds in given]
    kept = [{name: _copy(value) for name, value in outputs.items()} for outputs in first]
    second = [program.run(feeds) for feeds in given]
    for feeds, original in zip(given, case.feeds, strict=True):
        for name in feeds:
            if not same_bits(feeds[name], original[name]):
                return kept, Finding("changed-feeds", f"input {name} was written to", name)
    for before, later, again in zip(kept, first, second, strict=True):
        for name, value in before.items():
            if not same_bits(value, later[name]):
                return kept, Finding("unstable", f"the first run's {name} changed with the second", name)
            if not same_bits(value, again[name]):
                return kept, Finding("unstable", f"two runs give two results for {name}: {_difference(again[name], value)}", name)
    return kept, None


def _difference(ours: Any, theirs: Any) -> str:
    return worst(ours, theirs) if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray) else ""


def _copy(value: Any) -> Any:
    return [_copy(item) for item in value] if isinstance(value, list) else None if value is None else value.copy()


class References:
    """What onnxruntime and the interpreter in float64 say, and what noise says where those are not enough."""

    def __init__(self, case: Case) -> None:
        self.case, self.stepper = case, Stepper(case.model)
        self.names = [output.name for output in case.model.graph.output]
        self.ort = self._ort_outputs()
        self._samples: dict[int, Sequence[Mapping[str, Any]]] = {}
        self._double: Interpreter | None = None

    def _ort_outputs(self) -> list[Mapping[str, Any]]:
        """The whole model in onnxruntime; node by node where it has no kernel for one."""
        try:
            session = ort_session(self.case.model)
            return [dict(zip(self.names, map(_plain, session.run(self.names, feeds)), strict=True)) for feeds in self.case.feeds]
        except ort_failures():
            values = [self.stepper.run(feeds) for feeds in self.case.feeds]
            return [{name: found[name] for name in self.names} for found in values]

    def double(self, feeds: Feeds) -> Mapping[str, Any]:
        """The interpreter's outputs with every float in 64 bits."""
        if self._double is None:
            ctx = new_context()
            bounds = {name: shape_option(text) for name, text in _bounds(self.case).items()}
            self._double = Interpreter(read_program(self.case.model, ctx, bounds), ctx.resources, double=True)
        with np.errstate(all="ignore"):
            return self._double.run(feeds)

    def samples(self, index: int) -> Sequence[Mapping[str, Any]]:
        """Results of noisy runs, and of one without noise."""
        if index not in self._samples:
            rng, feeds = np.random.default_rng(self.case.seed + index), self.case.feeds[index]
            found = [self.stepper.run(feeds)]
            for k in range(SAMPLES):
                try:
                    found.append(self.stepper.run(feeds, rng, scale=(1.0, 2.0)[k % 2]))
                except Rejected:
                    continue
            self._samples[index] = found
        return self._samples[index]

    def judge(self, runs: Sequence[Mapping[str, Any]]) -> Finding | None:
        """The first output that neither agrees with both references nor is explained by rounding."""
        for index, ours in enumerate(runs):
            for name in self.names:
                found = self._judge_output(index, name, ours.get(name))
                if found is not None:
                    return found
        return None

    def _judge_output(self, index: int, name: str, ours: Any) -> Finding | None:
        theirs = self.ort[index][name]
        problem = form_problem(ours, theirs)
        if isinstance(theirs, list) or theirs is None:
            return Finding("wrong", f"{name}: {problem}", name) if problem else None
        loose = 16.0 if self.case.choices.numerics == "fast" else 1.0
        if not problem and close(ours, theirs, theirs.dtype, loose):
            return self._judge_interpreter(index, name, theirs)
        if problem and (ours is None or ours.dtype != theirs.dtype):
            return self._wrong(index, name, problem, ours)
        if explained(ours, [sample[name] for sample in self.samples(index)], theirs.dtype, 3.0 * loose):
            return None
        return self._wrong(index, name, problem or worst(ours, theirs), ours)

    def _judge_interpreter(self, index: int, name: str, theirs: Any) -> Finding | None:
        double = self._double_or_problem(index)
        if isinstance(double, Finding):
            return double
        value, dtype = np.asarray(double[name]), theirs.dtype
        if self.case.wild and is_float(dtype) and value.shape == theirs.shape:  # what overflows in fewer bits does not in 64
            value = np.where(np.isfinite(theirs.astype(np.float64)), value, theirs)
        if value.shape == theirs.shape and close(value, theirs, dtype, 2.0):
            return None
        if explained(value, [sample[name] for sample in self.samples(index)], dtype):
            return None
        detail = f"run {index}, {name}: the interpreter in float64 {worst(value, theirs)}, which is onnxruntime's and ours"
        return Finding("interpreter", detail, name, known=known_reason(self.case, "interpreter", detail))

    def _double_or_problem(self, index: int) -> Mapping[str, Any] | Finding:
        try:
            return self.double(self.case.feeds[index])
        except FuselineError as error:
            return Finding("interpreter", f"the interpreter refuses: {error}", known=known_reason(self.case, "interpreter", str(error)))
        except Exception:  # noqa: BLE001
            return Finding("interpreter", traceback.format_exc(limit=-4))

    def _wrong(self, index: int, name: str, detail: str, ours: Any) -> Finding:
        """A wrong result, with what the others say about it."""
        return Finding(
            "wrong",
            f"run {index}, {name}: {detail}; agree with us: {self._votes(index, name, ours) or 'none'}",
            name,
            known=known_reason(self.case, "wrong", detail),
        )

    def _votes(self, index: int, name: str, ours: Any) -> str:
        votes = {"float64 interpreter": self._vote_double, "onnx.reference": self._vote_reference}
        return ", ".join(who for who, vote in votes.items() if vote(index, name, ours))

    def _vote_double(self, index: int, name: str, ours: Any) -> bool:
        double = self._double_or_problem(index)
        return not isinstance(double, Finding) and _agrees(ours, np.asarray(double[name]))

    def _vote_reference(self, index: int, name: str, ours: Any) -> bool:
        from onnx.reference import ReferenceEvaluator

        try:
            with np.errstate(all="ignore"):
                found: Any = ReferenceEvaluator(self.case.model).run([name], dict(self.case.feeds[index]))
        except Exception:  # noqa: BLE001
            return False
        return _agrees(ours, np.asarray(found[0]))


def _agrees(ours: Any, other: Any) -> bool:
    if ours is None or ours.shape != other.shape:
        return False
    return close(ours, other, ours.dtype if is_float(ours.dtype) else (F32 if is_float(other.dtype) else ours.dtype), 100.0)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "USTO" else array


def check_model(model: onnx.ModelProto, feeds: Sequence[Feeds]) -> Finding | None:
    """`check` with default choices."""
    return check(Case(model, feeds))
