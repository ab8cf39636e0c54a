"""Records of programs that were never run: times that known costs make, some of them disturbed."""

from __future__ import annotations

import numpy as np

from fuseline.ir.work_costs import WorkCosts, predicted_ns
from fuseline.tuning.fit.records import DispatchSample, ProgramSamples
from tests.draws import RNG

TRUE = WorkCosts(launch=300.0, barrier=900.0, product=0.004, filtered=0.0011, operations=0.05, bytes=0.02)
USED = ("product", "filtered", "operations", "bytes")


def program(
    name: str, dispatches: int = 20, *, costs: WorkCosts = TRUE, threads: int = 1, outliers: int = 0, **more: object
) -> ProgramSamples:
    """A record of random work; the first `outliers` take 40 times as long as `costs` say."""
    found: list[DispatchSample] = []
    for number in range(dispatches):
        work = {kind: float(round(10 ** RNG.uniform(3, 7))) for kind in RNG.permutation(USED)[: RNG.integers(1, 4)]}
        share = 1.0 if threads == 1 or number % 3 == 0 else 1 / threads
        seconds = predicted_ns(work, costs, share) * 1e-9 * float(np.exp(RNG.normal(0, 0.01)))
        one = DispatchSample(
            name=f"{number:03d}", executable=f"{name}_{number}", work=work, share=share,
            seconds=seconds * (40 if number < outliers else 1),
        )  # fmt: skip
        found.append(one)
    fields = {"machine": "here", "target": "cpu:avx2", "fusion": "default", "digest": name, **more}
    return ProgramSamples(model=f"{name}.onnx", threads=threads, dispatches=tuple(found), **fields)  # pyright: ignore[reportArgumentType]
