"""Fused edges that take longer together than apart: `python -m benchmarks.fused_edges MODEL... [--threads 1]
[--most 14] [--rounds 25] [--below 0.93] [--json]`.

Each edge that a rule fused is forbidden by a plan of its own, one of each kind (rule, kinds of ops, bytes saved), and
the program without it timed in turns with the one that `default` makes. What is below `--below` is timed again, longer.
The price model is right where nothing is printed: no count of dispatches shows what a fusion costs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fuseline
from fuseline.report.records import Decision
from fuseline.verify.inputs import generate

LEAST_SECONDS = 5e-4
"""Of runs between two looks at the clock."""

Programs = Mapping[str, fuseline.CompiledModel]


def apart(model: Path, together: fuseline.CompiledModel, threads: int, most: int) -> dict[str, fuseline.CompiledModel]:
    """The programs without one fused edge each, by its text; those that take no other number of dispatches are left
    out."""
    found: dict[str, fuseline.CompiledModel] = {}
    for edge in _one_of_a_kind(together.decisions)[:most]:
        program = _without(model, edge, threads)
        if program is not None and program.stats["dispatches"] != together.stats["dispatches"]:
            found[f"{edge.rule}: {edge.producer} -> {edge.consumer}"] = program
    return found


def _one_of_a_kind(decisions: list[Decision]) -> list[Decision]:
    kinds: dict[tuple[str, str, str, float], Decision] = {}
    for one in decisions:
        if one.verdict == "fused":
            ends = (end.split(".")[0] for end in (one.producer, one.consumer))
            kinds.setdefault((one.rule, *ends, round(one.numbers.get("bytes_saved", 0.0), -3)), one)  # pyright: ignore[reportArgumentType]
    return list(kinds.values())


def _without(model: Path, edge: Decision, threads: int) -> fuseline.CompiledModel | None:
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "apart.plan"
        plan.write_text(f'version = 1\nforbid = [["{edge.producer}", "{edge.consumer}"]]\n')
        try:
            return fuseline.compile(model, threads=threads, plan=plan)
        except fuseline.FuselineError:
            return None  # an edge that something else than a rule made


def ratios(programs: Programs, rounds: int) -> dict[str, float]:
    """The median over rounds of each program's time, of that of the first in the same round."""
    first = next(iter(programs.values()))
    feeds = generate(first.inputs)
    calls = {name: program.bind(feeds) for name, program in programs.items()}
    start = time.perf_counter()
    for call in calls.values():
        call()
    count = max(1, int(LEAST_SECONDS * len(calls) / (time.perf_counter() - start)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(count):
                call()
            times[name].append(time.perf_counter() - start)
    base = np.array(next(iter(times.values())))
    return {name: float(np.median(np.array(taken) / base)) for name, taken in times.items()}


def slower(model: Path, threads: int, most: int, rounds: int, below: float) -> dict[str, Any]:
    """The edges of one model that are slower together: by edge, the time apart of that together."""
    together = fuseline.compile(model, threads=threads)
    programs = {"together": together, **apart(model, together, threads, most)}
    low = [name for name, ratio in ratios(programs, rounds).items() if ratio < below]
    again = ratios({"together": together, **{name: programs[name] for name in low}}, 2 * rounds) if low else {}
    found = {name: round(ratio, 3) for name, ratio in again.items() if ratio < below}
    return {"model": model.stem, "threads": threads, "edges": len(programs) - 1, "slower": found}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--below", type=float, default=0.93)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for model in options.models:
        row = slower(model, options.threads, options.most, options.rounds, options.below)
        if options.json:
            print(json.dumps(row), flush=True)
            continue
        print(f"{row['model']}: {row['edges']} edges, {len(row['slower'])} slower together", flush=True)
        for edge, ratio in row["slower"].items():
            print(f"    {ratio:.2f} apart  {edge}", flush=True)


if __name__ == "__main__":
    main()
