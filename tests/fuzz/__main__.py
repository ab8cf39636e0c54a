"""`python -m tests.fuzz`: random graphs until a time or a count is reached; exit code 1 when one of them shows an
unexplained difference."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from tests.fuzz.campaign import Campaign, State
from tests.fuzz.cases import PAIRS
from tests.fuzz.heap_checks import restart
from tests.fuzz.pairs import pair_count
from tests.fuzz.themed import theme_seed
from tests.fuzz.themes import THEMES


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run a campaign. Findings and progress go to standard output, with `--json` to standard
    error."""
    os.environ.setdefault("FUSELINE_NO_CACHE", "programs")  # no graph comes twice
    options = parser().parse_args(arguments)
    start = time.monotonic()
    say = partial(_write, sys.stderr if options.json else sys.stdout)
    campaign = Campaign(
        options.folder / options.theme if options.theme else options.folder,
        say,
        fully=not options.drawn,
        shrinks=not options.no_shrink,
        seconds=options.limit,
    )
    first, count = options.seed, options.count
    if options.pairs:
        first = PAIRS + (first or 0)
        count = pair_count() if count is None and options.seconds is None else count
    elif options.theme:
        first = _first_of(options.theme, first, campaign.state)
    state = campaign.run(first, count, options.seconds)
    _report(state, time.monotonic() - start, options.json)
    return 1 if state.severe else 0


def _first_of(theme: str, number: int | None, state: State) -> int | None:
    """The seed of a theme's number; None where the folder says where to go on."""
    return None if number is None and state.next_seed else theme_seed(theme, number or 0)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    made.add_argument("--seed", type=int, help="first seed (default: where the last run in the folder stopped, else 0)")
    made.add_argument("--count", type=int, help="how many graphs")
    made.add_argument("--seconds", type=float, help="how long")
    made.add_argument("--folder", type=Path, default=Path(".fuzz"), help="where state and findings are kept")
    made.add_argument(
        "--drawn",
        action="store_true",
        help="compile each graph for one drawn combination of fusion and numerics, not for all nine",
    )
    made.add_argument(
        "--pairs",
        action="store_true",
        help="every operator behind every other, once each; --seed and --count are then numbers of pairs",
    )
    made.add_argument(
        "--theme",
        choices=sorted(THEMES),
        help="graphs of one theme at realistic sizes, in a folder of their own; --seed is then the number of one",
    )
    made.add_argument("--limit", type=float, default=60.0, help="seconds for one graph")
    made.add_argument("--no-shrink", action="store_true", help="keep findings as they are")
    made.add_argument("--json", action="store_true", help="print one JSON document at the end")
    return made


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def _report(state: State, seconds: float, as_json: bool) -> None:
    if as_json:
        _write(sys.stdout, json.dumps({**state.to_json(), "severe": state.severe, "seconds": round(seconds, 1)}))
        return
    _write(sys.stdout, f"{state.summary()}; {seconds:.0f} s")
    _write(
        sys.stdout,
        "compiled for " + ", ".join(f"{name} {count} times" for name, count in sorted(state.combinations.items())),
    )


if __name__ == "__main__":
    restart()
    sys.exit(main())
