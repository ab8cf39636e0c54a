"""What onnxruntime without optimisations and the interpreter in float64 say of a case, and whether a program agrees
with both."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fuseline.call_options import shape_option
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.source_program import read_program
from fuseline.targets.interpreter import Interpreter
from tests.fuzz.case import Case, Feeds
from tests.fuzz.compare import SAMPLES, close, explained, form_problem, worst
from tests.fuzz.evaluate import Rejected, ort_failures, ort_session, plain
from tests.fuzz.finding import Finding
from tests.fuzz.stepping import Stepper
from tests.fuzz.tensors import F32, STRING, is_float


def bounds(case: Case) -> dict[str, str]:
    """The bounds of a case's symbols by name; none where they are the usual ones."""
    symbols = {
        dim.dim_param for value in case.model.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param
    }
    return {name: case.choices.sizes for name in symbols if case.choices.sizes}


class References:
    """What onnxruntime and the interpreter in float64 say, and what noise says where those are not enough.

    Raises Rejected where neither onnxruntime nor ONNX's reference runs the model.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.stepper = case, Stepper(case.model)
        self.names = [output.name for output in case.model.graph.output]
        self.ort = self._ort_outputs()
        self._samples: dict[tuple[int, bool], Sequence[Mapping[str, Any]]] = {}
        self._interpreters: dict[bool, Interpreter] = {}
        self._taken_equal = False
        self._doubles: dict[int, Mapping[str, Any] | Finding] = {}
        self._judged: dict[tuple[int, str], Finding | None] = {}

    def _ort_outputs(self) -> list[Mapping[str, Any]]:
        """The whole model in onnxruntime; node by node where it has no kernel for one."""
        try:
            session = ort_session(self.case.model)
            return [
                dict(zip(self.names, map(plain, session.run(self.names, feeds)), strict=True))
                for feeds in self.case.feeds
            ]
        except ort_failures():
            values = [self.stepper.run(feeds) for feeds in self.case.feeds]
            return [{name: found[name] for name in self.names} for found in values]

    def judge(self, runs: Sequence[Mapping[str, Any]], loose: float = 1.0, *, filtered: bool = False) -> Finding | None:
        """The first output that neither agrees with both references nor is explained by rounding, of which there may be
        `loose` times as much; `filtered`: as minimal filters round, where a program may choose them."""
        for index, ours in enumerate(runs):
            for name in self.names:
                found = self._judge_output(index, name, ours.get(name), loose, filtered)
                if found is not None:
                    return found
        return None

    def _judge_output(self, index: int, name: str, ours: Any, loose: float, filtered: bool) -> Finding | None:
        theirs = self.ort[index][name]
        problem = form_problem(ours, theirs)
        if isinstance(theirs, list) or theirs is None:
            return Finding("wrong", f"{name}: {problem}", name) if problem else None
        if not problem and close(ours, theirs, theirs.dtype, loose):
            return self._judge_interpreter(index, name)
        if problem and (ours is None or ours.dtype != theirs.dtype):
            return self._wrong(index, name, problem, ours)
        if explained(ours, [sample[name] for sample in self._noisy_runs(index, filtered)], theirs.dtype, 3.0 * loose):
            return None
        return self._wrong(index, name, problem or worst(ours, theirs), ours)

    def _judge_interpreter(self, index: int, name: str) -> Finding | None:
        """Whether the interpreter agrees with onnxruntime: the same for every program, so it is asked once."""
        if (index, name) not in self._judged:
            self._judged[index, name] = self._compare_interpreter(index, name)
        return self._judged[index, name]

    def _compare_interpreter(self, index: int, name: str) -> Finding | None:
        double, theirs = self._double(index), self.ort[index][name]
        if isinstance(double, Finding):
            return double
        value, dtype = np.asarray(double[name]), theirs.dtype
        if (
            self.case.wild and is_float(dtype) and value.shape == theirs.shape
        ):  # what overflows in fewer bits does not in 64
            value = np.where(np.isfinite(theirs.astype(np.float64)), value, theirs)
        if value.shape == theirs.shape and close(value, theirs, dtype, 2.0):
            return None
        if explained(value, [sample[name] for sample in self._noisy_runs(index)], dtype):
            return None
        return Finding(
            "interpreter",
            f"run {index}, {name}: the interpreter in float64 {worst(value, theirs)}, which is onnxruntime's and ours",
            name,
        )

    def _double(self, index: int) -> Mapping[str, Any] | Finding:
        """The interpreter's outputs with every float in 64 bits, or what became of it."""
        if index not in self._doubles:
            self._doubles[index] = self._interpreted(self.case.feeds[index])
        return self._doubles[index]

    def _interpreted(self, feeds: Feeds) -> Mapping[str, Any] | Finding:
        """By the program of sizes that are taken to be equal, and where they are not, by that of sizes as they are: so
        a compiled program does."""
        for literal in (False, True):
            try:
                if literal not in self._interpreters:
                    self._interpreters[literal] = self._read(literal)
                with np.errstate(all="ignore"):
                    return self._interpreters[literal].run(feeds)
            except FuselineError as error:
                found = Finding("interpreter", f"the interpreter refuses: {error}")
                if not self._taken_equal:
                    return found
            except Exception:  # noqa: BLE001
                return Finding("interpreter", traceback.format_exc(limit=-4))
        return found

    def _read(self, literal: bool) -> Interpreter:
        ctx = new_context()
        ctx.literal_broadcasts = literal
        shapes = {name: shape_option(text) for name, text in bounds(self.case).items()}
        module = read_program(self.case.model, ctx, shapes)
        self._taken_equal |= bool(ctx.taken_equal)
        return Interpreter(module, ctx.resources, double=True)

    def _noisy_runs(self, index: int, filtered: bool = False) -> Sequence[Mapping[str, Any]]:
        """Results of noisy runs, and of one without noise."""
        if (index, filtered) not in self._samples:
            rng, feeds = np.random.default_rng(self.case.seed + index), self.case.feeds[index]
            found = [self.stepper.run(feeds)]
            for k in range(SAMPLES):
                try:
                    found.append(self.stepper.run(feeds, rng, scale=(1.0, 2.0)[k % 2], filtered=filtered))
                except Rejected:
                    continue
            self._samples[index, filtered] = found
        return self._samples[index, filtered]

    def _wrong(self, index: int, name: str, detail: str, ours: Any) -> Finding:
        """A wrong result, with what the others say about it."""
        return Finding(
            "wrong", f"run {index}, {name}: {detail}; agree with us: {self._votes(index, name, ours) or 'none'}", name
        )

    def _votes(self, index: int, name: str, ours: Any) -> str:
        votes = {"float64 interpreter": self._vote_double, "onnx.reference": self._vote_reference}
        return ", ".join(who for who, vote in votes.items() if vote(index, name, ours))

    def _vote_double(self, index: int, name: str, ours: Any) -> bool:
        double = self._double(index)
        return not isinstance(double, Finding) and _sides(np.asarray(double[name]), ours, self.ort[index][name])

    def _vote_reference(self, index: int, name: str, ours: Any) -> bool:
        from onnx.reference import ReferenceEvaluator

        try:
            with np.errstate(all="ignore"):
                found: Any = ReferenceEvaluator(self.case.model).run([name], dict(self.case.feeds[index]))
        except Exception:  # noqa: BLE001
            return False
        return _sides(np.asarray(found[0]), ours, self.ort[index][name])


def _sides(other: Any, ours: Any, theirs: Any) -> bool:
    """Whether a third opinion agrees with us, and is nearer to us than to onnxruntime."""
    if ours is None or ours.shape != other.shape:
        return False
    dtype = ours.dtype if is_float(ours.dtype) else (F32 if is_float(other.dtype) else ours.dtype)
    return close(ours, other, dtype, 100.0) and _distance(ours, other) <= _distance(theirs, other)


def _distance(one: Any, other: Any) -> float:
    """The largest difference of two arrays; infinite where one is no number or they have other shapes."""
    if one.shape != other.shape or STRING in (one.dtype, other.dtype):
        return np.inf
    with np.errstate(all="ignore"):
        gap = np.abs(one.astype(np.float64) - other.astype(np.float64))
    same = (one == other) | ((one != one) & (other != other))
    return float(np.max(np.where(same, 0.0, np.nan_to_num(gap, nan=np.inf)), initial=0.0))
