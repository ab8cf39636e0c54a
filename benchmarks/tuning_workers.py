"""Trials per minute on two one-core workers against one, compile and measuring included.

    python benchmarks/tuning_workers.py MODEL.onnx --trials 12 --repeats 2

Each run has an empty cache and the same trials; runs of one worker and of two take turns, so that a machine that is
busy is so for both. Says the load beside the figures: others' work takes the core that a second worker needs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from distributed import Client

from fuseline.cluster.connect import local_cluster
from fuseline.cluster.evaluator import ClusterEvaluator
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.space import search_space
from fuseline.tuning.trial import Trial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring per trial, at most")
    asked = parser.parse_args()
    print(f"{asked.model.name}: {asked.trials} trials, {len(os.sched_getaffinity(0))} processors")
    rates: dict[int, list[float]] = {1: [], 2: []}
    for repeat in range(asked.repeats):
        for workers in (1, 2) if repeat % 2 == 0 else (2, 1):
            rates[workers].append(_rate(asked, workers))
            print(
                f"{workers} workers: {rates[workers][-1]:.2f} trials per minute, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    ratio = statistics.median(rates[2]) / statistics.median(rates[1])
    print(f"two against one: {ratio:.2f} times the trials per minute")


def _trials(setting: SearchSetting, count: int, budget: float) -> list[Trial]:
    """Different configurations: single choices first, then pairs of them."""
    single = [{knob.name: choice} for knob in setting.knobs for choice in knob.choices[1:]]
    pairs = [
        one | other for number, one in enumerate(single) for other in single[:number] if one.keys() != other.keys()
    ]
    return [
        Trial(number=number, configuration=configuration, incumbent={}, budget_seconds=budget)
        for number, configuration in enumerate([*single, *pairs][:count])
    ]


def _rate(asked: argparse.Namespace, workers: int) -> float:
    """Trials per minute from the first submission to the last outcome, with workers that are there. As in any search,
    the default was compiled before, for the space."""
    with TemporaryDirectory() as cache:
        os.environ["FUSELINE_CACHE_DIR"] = cache
        setting = search_space(asked.model, {"threads": 1}, ("plan", "passes", "dedup", "kernels")).setting
        trials = _trials(setting, asked.trials, asked.budget)
        with (
            local_cluster(workers) as cluster,
            Client(cluster, set_as_default=False) as client,
            ClusterEvaluator(setting, client) as evaluator,
        ):
            start = time.perf_counter()
            for trial in trials:
                evaluator.submit(trial)
            while evaluator.outcome() is not None:
                pass
            return 60 * len(trials) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
