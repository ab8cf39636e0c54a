"""`python -m tests.fuzz.mutants`: mutated files of every kind; exit code 1 when one crashes, hangs, or raises what has
no code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TextIO

from tests.fuzz.mutants.campaign import Outcomes, run_mutants
from tests.fuzz.mutants.work import KINDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run. Findings and progress go to standard output, with `--json` to standard error."""
    os.environ.setdefault("FUSELINE_NO_CACHE", "programs")  # no graph comes twice
    options = parser().parse_args(arguments)
    say = partial(_write, sys.stderr if options.json else sys.stdout)
    found: dict[str, Outcomes] = {}
    for kind in options.kind or sorted(KINDS):
        found[kind] = run_mutants(kind, options.seed, options.count, say, options.seconds)
        say(f"{kind}: {found[kind].summary()}")
    if options.json:
        _write(sys.stdout, json.dumps({kind: outcomes.to_json() for kind, outcomes in found.items()}))
    return 1 if any(outcomes.bad for outcomes in found.values()) else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__)
    made.add_argument("--kind", choices=sorted(KINDS), action="append", help="default: all")
    made.add_argument("--seed", type=int, default=0, help="first seed")
    made.add_argument("--count", type=int, default=1000, help="how many of each kind")
    made.add_argument("--seconds", type=float, help="how long for each kind")
    made.add_argument("--json", action="store_true", help="print one JSON document at the end")
    return made


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
