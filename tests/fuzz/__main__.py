"""`python -m tests.fuzz`: random graphs until a time or a count is reached; exit code 1 when one of them shows an unexplained difference."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TextIO

from tests.fuzz.campaign import Campaign, State


def main() -> int:
    """Read the command line and run a campaign."""
    options = _parser().parse_args()
    start = time.monotonic()
    stream = sys.stderr if options.json else sys.stdout
    say = partial(_write, stream)
    campaign = Campaign(options.folder, say, fully=not options.drawn, shrinks=not options.no_shrink, seconds=options.limit)
    state = campaign.run(options.seed, options.count, options.seconds)
    _report(state, time.monotonic() - start, options.json)
    return 1 if state.severe else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="first seed (default: where the last run in the folder stopped, else 0)")
    parser.add_argument("--count", type=int, help="how many graphs")
    parser.add_argument("--seconds", type=float, help="how long")
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"), help="where state and findings are kept")
    parser.add_argument("--drawn", action="store_true", help="compile each graph for one drawn combination of fusion and numerics, not for all nine")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one graph")
    parser.add_argument("--no-shrink", action="store_true", help="keep findings as they are")
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end")
    return parser


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def _report(state: State, seconds: float, as_json: bool) -> None:
    if as_json:
        _write(sys.stdout, json.dumps({**state.to_json(), "severe": state.severe, "seconds": round(seconds, 1)}))
        return
    _write(sys.stdout, f"{state.summary()}; {seconds:.0f} s")
    _write(sys.stdout, "compiled for " + ", ".join(f"{name} {count} times" for name, count in sorted(state.combinations.items())))


sys.exit(main())
