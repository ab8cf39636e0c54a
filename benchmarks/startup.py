"""How soon a program is there and runs: `python -m benchmarks.startup --models FOLDER [--before CHECKOUT]`.

Compiles with nothing cached and with the kernels cached, finished programs found again, and what a process spends
before its first result, each in processes of their own. Prints the least processor time (user and system, forks
included) and the least wall time of all rounds beside what is wanted; exit code 1 where a figure is above it. With
another checkout the rounds of both alternate, and there is a ratio of processor times. Byte code is written before
anything is timed, as it is where packages are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_TIMED = """
import json, resource, sys, time
def processor():
    of = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in of)
model, artifact, feeds = sys.argv[1:]
{before}
start, cpu = time.perf_counter(), processor()
{timed}
ended, used = time.perf_counter(), processor()
print(json.dumps([used - cpu, ended - start]))
"""

_COMMAND = """
import subprocess
def command(*words):
    subprocess.run([sys.executable, "-m", "fuseline", *words], check=True, stdout=subprocess.DEVNULL)
"""


@dataclass(frozen=True)
class Figure:
    """What is timed in a new process, and the seconds that are wanted at most.

    Args:
        timed: Python that knows the paths `model`, `artifact` and `feeds` (of a run).
        keeps: what the cache may answer from: nothing, "objects" (kernels) or "programs" (both).
        before: Python ahead of the clock.
        is_wall: the limit is one of wall time, not of processor time.
    """

    name: str
    model: str
    limit: float
    timed: str
    keeps: str = "programs"
    before: str = "import fuseline"
    is_wall: bool = False


_COMPILE = 'command("compile", model, "-o", artifact + ".out")'
_ONCE = "import fuseline\nfuseline.compile(model)"
_IMPORTED = "from fuseline import compile\nimport fuseline"
_LOAD_AND_RUN = "fuseline.load(artifact).run(feeds)"
_FEEDS = "import fuseline, numpy\nwith numpy.load(feeds) as stored:\n    feeds = dict(stored)"

FIGURES = (
    Figure("fuseline compile, cold", "resnet50", 3.0, _COMPILE, "", _COMMAND),
    Figure("fuseline compile, cold", "mnist_cnn", 1.2, _COMPILE, "", _COMMAND),
    Figure("fuseline.compile again, kernels cached", "bert_base", 0.8, "fuseline.compile(model)", "objects", _ONCE),
    Figure("fuseline.compile again, kernels cached", "minilm", 0.8, "fuseline.compile(model)", "objects", _ONCE),
    Figure("fuseline run, program cached", "mnist_cnn", 0.35, 'command("run", model)', before=_COMMAND, is_wall=True),
    Figure(
        "fuseline.compile, program cached", "resnet50", 0.060, "fuseline.compile(model)", before=_IMPORTED, is_wall=True
    ),
    Figure("fuseline.load and first run", "resnet50", 0.080, _LOAD_AND_RUN, before=_FEEDS, is_wall=True),
    Figure("import fuseline", "mnist_cnn", 0.030, "import fuseline", before="", is_wall=True),
)

_ARTIFACT_AND_FEEDS = """
import sys, numpy, fuseline
from fuseline.verify.inputs import generate
model, artifact, feeds = sys.argv[1:]
program = fuseline.compile(model)
program.save(artifact)
numpy.savez(feeds, **generate(program.inputs))
"""


def _environment(checkout: Path, cache: Path, keeps: str = "programs") -> dict[str, str]:
    """Of a process that runs a checkout with its own cache of programs and kernels."""
    ours = {"PYTHONPATH": str(checkout / "src"), "FUSELINE_CACHE_DIR": str(cache)}
    without = {"": "1", "objects": "programs", "programs": ""}[keeps]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, **ours, "FUSELINE_NO_CACHE": without}


def _python(script: str, files: Sequence[str], environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-c", script, *files]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


class _Checkout:
    """One checkout, what it has cached and the artifacts it made."""

    def __init__(self, root: Path, models: Path, folder: Path) -> None:
        self.root, self.models, self.folder = root, models, folder
        self.cache = folder / "cache"
        self.least: dict[Figure, tuple[float, float]] = {}

    def files(self, model: str) -> list[str]:
        """The model, its artifact and its feeds."""
        places = (self.models / f"{model}.onnx", self.folder / f"{model}.fuse", self.folder / f"{model}.npz")
        return [str(place) for place in places]

    def prepare(self) -> None:
        """Byte code, cached kernels and programs, artifacts, feeds."""
        for figure in FIGURES:
            _python(_ARTIFACT_AND_FEEDS, self.files(figure.model), _environment(self.root, self.cache))
            self.measure(figure)
        self.least.clear()

    def measure(self, figure: Figure) -> None:
        """One round of a figure: processor seconds and wall seconds."""
        script = _TIMED.format(before=figure.before, timed=figure.timed)
        environment = _environment(self.root, self.cache, figure.keeps)
        took = json.loads(_python(script, self.files(figure.model), environment).splitlines()[-1])
        known = self.least.get(figure, (float("inf"), float("inf")))
        self.least[figure] = (min(known[0], took[0]), min(known[1], took[1]))


def _row(figure: Figure, now: tuple[float, float], before: tuple[float, float] | None) -> bool:
    """Prints a figure in milliseconds; whether it is as wanted."""
    good = now[figure.is_wall] <= figure.limit
    limit = f"{figure.limit * 1e3:6.0f} {'wall' if figure.is_wall else 'cpu'}"
    ratio = "" if before is None else f" {before[0] * 1e3:8.0f} {now[0] / before[0]:7.3f}"
    name = f"{figure.name} ({figure.model})"
    print(f"{name:46} {now[0] * 1e3:8.0f} {now[1] * 1e3:8.0f} {limit:>11} {'' if good else 'above':5}{ratio}")
    return good


def measured(roots: Sequence[Path], models: Path, rounds: int) -> bool:
    """Prints the table of the first checkout, with ratios to the second if there is one; whether all is as wanted."""
    with tempfile.TemporaryDirectory() as name:
        checkouts = [_Checkout(root, models, Path(name) / str(i)) for i, root in enumerate(roots)]
        for checkout in checkouts:
            checkout.folder.mkdir()
            checkout.prepare()
        for _ in range(rounds):
            for figure in FIGURES:
                for checkout in checkouts:
                    checkout.measure(figure)
    header = f"{'least of ' + str(rounds) + ', ms':46} {'cpu':>8} {'wall':>8} {'wanted':>11}"
    print(header + ("" if len(roots) == 1 else f" {'':5}{'before':>8} {'ratio':>7}"))
    least = [checkout.least for checkout in checkouts]
    return all([_row(one, least[0][one], least[1][one] if len(least) > 1 else None) for one in FIGURES])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--models", type=Path, required=True, help="folder with the public models, their weights filled"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path, help="another checkout")
    given = parser.parse_args()
    roots = [ROOT] if given.before is None else [ROOT, given.before.resolve()]
    return 0 if measured(roots, given.models.resolve(), given.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
