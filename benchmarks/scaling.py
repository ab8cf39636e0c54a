"""How long a compile takes, by the size of the model: `python -m benchmarks.scaling [--ops 500,1000,2500,5000] [--kinds
mixed] [--target cpu]`.

Prints, for every size, seconds in all and microseconds per op of each phase; in a compile that grows linearly the
latter stay as they are. Kernels are compiled anew, without the cache, unless `--cache` is given.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import onnx

from benchmarks.generated import BLOCKS, generated_model
from fuseline.compilation import compile_program
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord, decode

LIMIT_SECONDS = 15.0
"""What a model of 5,000 ops may take."""


def measure(model: onnx.ModelProto, target: str, threads: int) -> tuple[float, float, CompileRecord]:
    """Seconds of one compile, processor seconds of this process in it (kernels compile in others where there are many),
    and its record."""
    start, cpu = time.perf_counter(), time.process_time()
    program = compile_program(model, CompileOptions(target=target, threads=threads))
    return time.perf_counter() - start, time.process_time() - cpu, decode(program.records)


def _row(ops: int, seconds: float, cpu: float, record: CompileRecord, phases: list[str]) -> str:
    per_op = [f"{record.phase_seconds.get(phase, 0.0) / ops * 1e6:>9.0f}" for phase in phases]
    return f"{ops:>6} {seconds:>7.2f} {cpu:>7.2f} {seconds / ops * 1e6:>8.0f} {len(record.dispatches):>6} " + "".join(
        per_op
    )


def curve(kind: str, sizes: list[int], target: str, threads: int) -> float:
    """Prints the table of one kind of model; answers the seconds of the largest."""
    seconds = 0.0
    for i, ops in enumerate(sizes):
        model = generated_model(kind, ops)
        seconds, cpu, record = measure(model, target, threads)
        phases = list(record.phase_seconds)
        if i == 0:
            print(f"\n{kind}, target {target}, {threads} threads; microseconds per op of each phase")
            print("   ops seconds     cpu  us / op launch " + "".join(f"{phase:>9}" for phase in phases))
        print(_row(len(model.graph.node), seconds, cpu, record, phases), flush=True)
    return seconds


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="500,1000,2500,5000")
    parser.add_argument("--kinds", default=",".join([*BLOCKS, "mixed"]))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", action="store_true", help="use the kernel cache")
    arguments = parser.parse_args()
    sizes = sorted(int(size) for size in arguments.ops.split(","))
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.cache:
            os.environ["FUSELINE_CACHE_DIR"] = folder
        measure(generated_model("mixed", 40), arguments.target, arguments.threads)  # imports
        for kind in arguments.kinds.split(","):
            seconds = curve(kind, sizes, arguments.target, arguments.threads)
            if sizes[-1] >= 5000 and seconds > LIMIT_SECONDS:
                print(f"{kind}: {seconds:.1f} s for {sizes[-1]} ops, more than {LIMIT_SECONDS:.0f}")


if __name__ == "__main__":
    main()
