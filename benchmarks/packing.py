"""How far the arenas of models are from the smallest there can be: python -m benchmarks.packing [--threads N] MODEL ...

For each model the most that is live at once (no arena is smaller), the arena, and, where that is larger, the smallest
that a solver finds within a minute (needs the extra `ortools`), bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from unittest import mock

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.passes.schedule import plan_transients
from fuseline.passes.schedule.best_fit import Sized, best_fit, most_live
from fuseline.program.schedule import ARENA_ALIGNMENT


def optimum(sized: Sized, seconds: float = 60.0) -> int:
    """The least that lives of these sizes can be packed in, or the least that is known when time is up."""
    from ortools.sat.python import cp_model  # pyright: ignore[reportMissingImports]

    model, limit = cp_model.CpModel(), best_fit(sized)[1]
    total = model.new_int_var(most_live(sized), limit, "total")
    spans, places = [], []
    for number, (size, life) in enumerate(sized):
        if size == 0:
            continue
        first = model.new_int_var(0, limit - size, f"first_{number}")
        model.add(first + size <= total)
        places.append(model.new_fixed_size_interval_var(first, size, f"place_{number}"))
        spans.append(model.new_fixed_size_interval_var(life.first, life.last - life.first + 1, f"span_{number}"))
    model.add_no_overlap_2d(spans, places)
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    return int(solver.value(total)) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else limit


def packings(path: str, threads: int) -> list[Sized]:
    """What is packed when a model is compiled, in units of the alignment: regions of symbolic sizes each for itself."""
    found: list[Sized] = []

    def noted(sized: Sized) -> tuple[list[int], int]:
        found.append(sized)
        return best_fit(sized)

    with mock.patch.object(plan_transients, "best_fit", noted):
        compile_program(path, CompileOptions(threads=threads))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args(arguments)
    print(f"{'model':40}{'live':>14}{'arena':>14}{'optimum':>14}")
    for path in chosen.models:
        regions = packings(path, chosen.threads)
        live, arena = (sum(map(measure, regions)) for measure in (most_live, lambda sized: best_fit(sized)[1]))
        least = arena if live == arena else sum(map(optimum, regions))
        print(f"{path:40}" + "".join(f"{ARENA_ALIGNMENT * units:14,}" for units in (live, arena, least)))


if __name__ == "__main__":
    main()
