"""Mutants: small changes to the compiler's code that some test must notice.

    python -m tools.mutants [--modules 'fuseline.passes.*' ...] [--names NAME ...] [--sample 300] [--seed 0] [--allowed
    10] [--json]

Which files are changed, and which tests run, stands in `[tool.mutants]` of pyproject.toml. mutmut makes the changes.
The first run measures which test runs which line (minutes) and keeps that in `mutants/`; later ones measure new and
changed test files only. A mutant then meets only tests that run its line, in a forked child that has everything
imported. One that no test runs counts as survived; one listed in `equivalent.toml`, with the reason why no test can
notice it, counts for nothing. Exit code 1 where more than `--allowed` percent survive.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .changes import Mutant
from .drawing import counted, draw, made, named
from .reach import Reach
from .verdicts import EQUIVALENT, Equivalents, Summary, Verdict, as_json, table

if TYPE_CHECKING:
    from .session import Session

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "mutants"


def _progress(stream: int) -> Callable[[str], None]:
    """Writes a line to a stream of its own (pytest has the usual ones): over the last one on a terminal, each ten
    seconds elsewhere."""
    last = [0.0]

    def show(text: str) -> None:
        if os.isatty(stream):
            os.write(stream, f"\r\x1b[K{text}".encode())
        elif time.monotonic() - last[0] > 10:
            last[0] = time.monotonic()
            os.write(stream, f"{text}\n".encode())

    return show


def run(
    chosen: Sequence[Mutant], settings: dict[str, Any], options: argparse.Namespace, progress: Callable[[str], None]
) -> Summary:
    """Judge the mutants: measure what is not measured yet, then run them."""
    from .session import bring_up_to_date, import_sources, start

    reach = Reach() if options.fresh else Reach.read(KEPT / "reach.json")
    verdicts: dict[str, Verdict] = {}

    def work(session: Session) -> None:
        import_sources(settings["files"])
        bring_up_to_date(session, reach, settings["files"], options.workers, progress)
        reach.write(KEPT / "reach.json")
        _judge(session, reach, chosen, verdicts, options, progress)

    start(ROOT, settings["tests"], work)
    return Summary(verdicts, {mutant.name: mutant for mutant in chosen})


def _judge(
    session: Session,
    reach: Reach,
    chosen: Sequence[Mutant],
    verdicts: dict[str, Verdict],
    options: argparse.Namespace,
    progress: Callable[[str], None],
) -> None:
    """Fill `verdicts`; what a test noticed that fails on unchanged code as well is judged again without that test."""
    from .session import confirm, judge

    todo = list(chosen)
    while todo:
        for mutant, verdict in judge(session, reach, todo, options.budget, options.workers):
            verdicts[mutant.name] = verdict
            if verdict.left:
                _note(mutant)
            left = sum(verdict.left for verdict in verdicts.values())
            progress(f"mutants: {len(verdicts)} of {len(chosen)}, {left} left")
        killers = sorted({verdicts[mutant.name].by for mutant in todo} - {""})
        broken = confirm(session, reach, killers, options.workers)
        todo = [mutant for mutant in todo if verdicts[mutant.name].by in broken]


def _note(mutant: Mutant) -> None:
    """What nothing noticed, to be read while the others run."""
    with (KEPT / "left.txt").open("a", encoding="utf-8") as stream:
        stream.write(f"{mutant.diff}\n")


def _settings() -> dict[str, Any]:
    """`[tool.mutants]`, and the `files` that its patterns name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]
    files = sorted(str(path.relative_to(ROOT)) for pattern in settings["sources"] for path in ROOT.glob(pattern))
    return {**settings, "files": files}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modules", nargs="+", default=["*"], help="glob patterns of module names")
    parser.add_argument("--names", nargs="+", default=[], help="run these mutants, no sample")
    parser.add_argument("--sample", type=int, default=300, help="how many to draw; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--allowed", type=float, default=10.0, help="percent of the sample that may survive")
    parser.add_argument(
        "--budget", type=float, default=8.0, help="processor seconds of tests that a mutant meets at most"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="measure every test again")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _chosen(settings: dict[str, Any], options: argparse.Namespace, progress: Callable[[str], None]) -> list[Mutant]:
    if options.names:
        drawn = named(options.names, settings["files"])
    else:
        counts = counted(ROOT, settings["files"], KEPT / "counts.json", options.workers, progress)
        drawn = draw(counts, options.modules, options.sample, options.seed)
    return made(ROOT, drawn, KEPT / "made.json", options.workers, progress)


def main() -> int:
    """Run a sample; see the module's text."""
    options, settings = _options(), _settings()
    sys.path.insert(0, str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    os.chdir(ROOT)
    KEPT.mkdir(exist_ok=True)
    (KEPT / "left.txt").unlink(missing_ok=True)
    progress = _progress(os.dup(sys.stderr.fileno()))
    chosen = _chosen(settings, options, progress)
    if not chosen:
        print("no mutants", file=sys.stderr)
        return 2
    known = Equivalents.read(Path(__file__).with_name("equivalent.toml"))
    summary = run([mutant for mutant in chosen if mutant not in known], settings, options, progress)
    same = {mutant.name: mutant for mutant in chosen if mutant in known}
    summary = Summary({**summary.verdicts, **dict.fromkeys(same, Verdict(EQUIVALENT))}, {**summary.mutants, **same})
    print(json.dumps(as_json(summary, options.seed, options.allowed)) if options.json else "\n".join(table(summary)))
    return int(summary.share > options.allowed or len(summary.verdicts) < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
