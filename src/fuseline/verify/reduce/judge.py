"""Whether a candidate still shows what the model showed: the same kind of thing, in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.report.check_results import WRONG
from fuseline.runtime import Session
from fuseline.verify.bisect.criterion import SKIP, run_command
from fuseline.verify.bisect.isolated import isolated
from fuseline.verify.check.original import Original
from fuseline.verify.check.whole import check_outputs
from fuseline.verify.reduce.candidate import Candidate
from fuseline.verify.reduce.warm import warmed

SECONDS = 120
"""The longest time for one candidate."""

Reference = Callable[[onnx.ModelProto, Mapping[str, Any]], Mapping[str, Any]]
"""The outputs of a model in another runtime."""


@dataclass(frozen=True)
class Judge:
    """`against`: `interpreter`, `onnxruntime` (which `reference` runs), or a command that is given the path of a model.

    `code`: compiling is to end with this error instead.
    """

    options: CompileOptions
    against: str
    tolerance: float
    reference: Reference | None = None
    code: str = ""

    def shows(self, candidate: Candidate) -> tuple[str, str]:
        """The kind of what a candidate shows, and the words; both empty where it shows nothing or is no valid model.

        Raises E0501 for a command that cannot be started.
        """
        warmed()
        ended = isolated(lambda: self._shown(candidate), seconds=SECONDS)
        if ended.error is not None and ended.error.code == "E0501":
            raise ended.error
        if ended.error is not None or ended.signal == "SIGALRM":
            return "", ""
        return ended.answer or (ended.signal, f"the process ended with {ended.signal}")

    def _shown(self, candidate: Candidate) -> tuple[str, str]:
        onnx.checker.check_model(candidate.model)
        if self.reference is None and self.against != "interpreter" and not self.code:
            return self._by_command(candidate.model)
        options = replace(self.options, progress=None, cache=False)
        expected = None if self.code else self._expected(candidate, options)
        try:
            artifact = compile_program(candidate.model, options)
        except FuselineError as error:
            return (error.code, str(error)) if error.code == self.code else ("", "")
        if expected is None:
            return "", ""
        ours = Session(artifact).run(dict(candidate.feeds))
        return self._difference(candidate, ours, expected, options)

    def _expected(self, candidate: Candidate, options: CompileOptions) -> Mapping[str, Any]:
        """What the reference answers: a candidate that it cannot run is none."""
        if self.reference is not None:
            return self.reference(candidate.model, candidate.feeds)
        original = Original(candidate.model, options)
        return original.in_own_types(original.run(candidate.feeds), candidate.feeds)

    def _difference(
        self, candidate: Candidate, ours: Mapping[str, Any], expected: Mapping[str, Any], options: CompileOptions
    ) -> tuple[str, str]:
        def exactly() -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
            original = Original(candidate.model, options)
            return original.run(candidate.feeds), list(original.noisy_runs(candidate.feeds))

        rows = check_outputs(ours, expected, self.against, self.tolerance, exactly)
        wrong = [row for row in rows if row.status == WRONG]
        if not wrong:
            return "", ""
        worst = max(wrong, key=lambda row: row.error)
        return "differs", f"{worst.output} is off by {worst.error:.3g} of {worst.magnitude:.4g} against {self.against}"

    def _by_command(self, model: onnx.ModelProto) -> tuple[str, str]:
        with tempfile.TemporaryDirectory(prefix="fuseline-") as folder:
            path = Path(folder) / "candidate.onnx"
            onnx.save(model, path)
            code = run_command(self.against, path)
        return ("", "") if code in (0, SKIP) else ("command", f"{self.against} ended with exit code {code}")
