"""Whether a program shows what is looked for."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fuseline.errors import FuselineError
from fuseline.report.check_results import WRONG
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from fuseline.verify.bisect.isolated import isolated
from fuseline.verify.check.whole import Exactly, check_outputs

SKIP = 125
"""The exit code of a command that cannot say, as `git bisect run` has it."""


class Criterion(Protocol):
    """Tells programs that show the difference from those that do not."""

    def shows(self, artifact: Artifact) -> str:
        """What a program shows, in words; empty where it is right."""
        ...


@dataclass(frozen=True)
class Differs:
    """Outputs on `feeds` differ from `expected`, what `reference` answered, by more than `tolerance` and than noise
    explains; or the run ends with a signal."""

    feeds: Mapping[str, Any]
    reference: str
    expected: Mapping[str, Any]
    tolerance: float
    exactly: Exactly | None = None

    def shows(self, artifact: Artifact) -> str:
        """What the worst output shows."""
        ended = isolated(lambda: Session(artifact).run(dict(self.feeds)))
        if ended.error is not None:
            return str(ended.error)
        return f"the run ended with {ended.signal}" if ended.signal else self.of_outputs(ended.answer)

    def of_outputs(self, outputs: Mapping[str, Any]) -> str:
        """What outputs show that were computed in some other way."""
        rows = check_outputs(outputs, self.expected, self.reference, self.tolerance, self.exactly)
        wrong = [row for row in rows if row.status == WRONG]
        if not wrong:
            return ""
        worst = max(wrong, key=lambda row: row.error)
        return f"{worst.output} is off by {worst.error:.3g} of {worst.magnitude:.4g} against {self.reference}"


@dataclass(frozen=True)
class Command:
    """A command that is given the path of an artifact: exit code 0 means right, 125 that it cannot say."""

    text: str

    def shows(self, artifact: Artifact) -> str:
        """What the command says of the artifact. Raises E0501 for a command that cannot be started."""
        with tempfile.TemporaryDirectory(prefix="fuseline-") as folder:
            path = Path(folder) / "candidate.fuse"
            artifact.save(path)
            code = run_command(self.text, path)
        return "" if code in (0, SKIP) else f"{self.text} ended with exit code {code}"


def run_command(text: str, path: Path) -> int:
    """The exit code of a command that is given a path. Raises E0501 for one that cannot be started."""
    try:
        return subprocess.run([*shlex.split(text), str(path)], check=False, capture_output=True).returncode
    except (OSError, ValueError) as problem:
        hint = "give onnxruntime, interpreter, or a command that takes a path"
        raise FuselineError("E0501", f"--against: {problem}", hint=hint) from problem


@dataclass(frozen=True)
class Anything:
    """No program shows anything: they are made to be timed."""

    def shows(self, artifact: Artifact) -> str:
        """Nothing."""
        del artifact
        return ""


@dataclass(frozen=True)
class Fails:
    """Compiling ends with an error of this code: no program shows it."""

    code: str

    def shows(self, artifact: Artifact) -> str:
        """Nothing: there is a program."""
        del artifact
        return ""


Compile = Callable[[], Artifact]


def judged(make: Compile, criterion: Criterion) -> tuple[str, Artifact | None]:
    """What compiling, and then the program, shows; an error of another code than the one that is looked for is none of
    it."""
    wanted = criterion.code if isinstance(criterion, Fails) else ""
    try:
        artifact = make()
    except FuselineError as error:
        return (f"{error.code}: {error.message}" if error.code == wanted else ""), None
    return criterion.shows(artifact), artifact
