"""Mutants: small changes to the compiler's code that some test must notice. mutmut makes and runs them; this draws a sample and sums up.

    python tools/mutants.py [--modules 'fuseline.passes.*' ...] [--sample 300] [--seed 0] [--allowed 10] [--json]

Which files are changed, and by which tests, stands in `[tool.mutmut]` of pyproject.toml. The first run collects which test reaches what (minutes)
and keeps it in `mutants/`. A mutant that no test reaches counts as survived. Exit code 1 where more than `--allowed` percent survive; what a survivor
changes is shown by `mutmut show NAME`.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SURVIVED, NO_TESTS, SKIPPED = 0, 33, 34
"""mutmut's exit codes of mutants that nothing noticed, that no test reaches, and that are left out on purpose; anything else is a kill."""


def results(folder: Path) -> dict[str, int | None]:
    """Every mutant under a `mutants` folder with its exit code; None where it has not run."""
    found: dict[str, int | None] = {}
    for meta in sorted(folder.rglob("*.py.meta")):
        found |= json.loads(meta.read_text())["exit_code_by_key"]
    return found


def sample(names: Sequence[str], modules: Sequence[str], count: int, seed: int) -> list[str]:
    """`count` of the mutants of `modules` (glob patterns), the same for the same seed."""
    wanted = sorted(name for name in names if any(fnmatch.fnmatch(name, f"{module}*") for module in modules))
    return random.Random(seed).sample(wanted, min(count, len(wanted)))


def survivors(codes: Mapping[str, int | None]) -> list[str]:
    """The mutants that ran unnoticed or are reached by no test."""
    return [name for name, code in codes.items() if code in (SURVIVED, NO_TESTS)]


def module_of(name: str) -> str:
    """The module that a mutant's name begins with.

    >>> module_of("fuseline.analysis.walks.x_walk__mutmut_3")
    'fuseline.analysis.walks'
    """
    return name.rpartition(".")[0]


def _run(names: Sequence[str]) -> None:
    """Run mutants by name; what mutmut prints (a spinner) goes to a log."""
    with (ROOT / "mutants.log").open("w") as log:
        subprocess.run([sys.executable, "-m", "mutmut", "run", *names], cwd=ROOT, stdout=log, stderr=log, check=False)


def _print(codes: Mapping[str, int | None], left: Sequence[str], share: float) -> None:
    total = Counter(module_of(name) for name in codes)
    missed = Counter(module_of(name) for name in left)
    for module, count in missed.most_common():
        print(f"{count:4} of {total[module]:4}  {module}")
    for name in left:
        print(f"  {name}")
    print(f"{len(left)} of {len(codes)} mutants survived: {share:.1f} %")


def main() -> int:
    """Run a sample; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="+", default=["*"], help="glob patterns of module names")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--allowed", type=float, default=10.0, help="percent of the sample that may survive")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = ROOT / "mutants"
    if not folder.exists():
        _run(["no mutant has this name"])  # makes them all and collects which test reaches what
    names = sample(list(results(folder)), options.modules, options.sample, options.seed)
    if not names:
        print("no mutants: see mutants.log", file=sys.stderr)
        return 2
    _run(names)
    codes = {name: code for name, code in results(folder).items() if name in set(names) and code not in (None, SKIPPED)}
    left = survivors(codes)
    share = 100.0 * len(left) / max(len(codes), 1)
    if options.json:
        print(json.dumps({"schema": 1, "ran": len(codes), "drawn": len(names), "survived": left, "percent": share}))
    else:
        _print(codes, left, share)
    return int(share > options.allowed or len(codes) < len(names) // 2)


if __name__ == "__main__":
    sys.exit(main())
