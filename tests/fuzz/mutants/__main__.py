"""`python -m tests.fuzz.mutants`: mutated files of every kind; exit code 1 when one crashes, hangs, or raises what has no code."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.mutants.campaign import run_mutants
from tests.fuzz.mutants.work import KINDS


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__)
    parser.add_argument("--kind", choices=sorted(KINDS), action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many of each kind")
    parser.add_argument("--seconds", type=float, help="how long for each kind")
    options = parser.parse_args()
    bad = 0
    for kind in options.kind or sorted(KINDS):
        outcomes = run_mutants(kind, options.seed, options.count, _say, options.seconds)
        bad += len(outcomes.bad)
        _say(f"{sum(outcomes.counts.values())} {kind}: {dict(outcomes.counts.most_common())}; {len(outcomes.bad)} kinds of bad ones")
    return 1 if bad else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


sys.exit(main())
