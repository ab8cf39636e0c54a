"""`make demo`: ResNet-50 from the onnx wheel with seeded weights, compiled, explained, run, and compared with
onnxruntime."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fuseline.cli.console import progress, say
from fuseline.report.quantities import quantity, seconds

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel

TOPOLOGY = "backend/test/data/light/light_resnet50.onnx"


def demo() -> None:
    """The whole tour."""
    with tempfile.TemporaryDirectory(prefix="fuseline-demo-") as folder:
        model = _seeded_model(Path(folder))
        program = _compile(model)
        _explain(program)
        _save_and_load(program, Path(folder))
        _compare(model, program)


def _title(text: str) -> None:
    say(f"\n== {text}")


def _seeded_model(folder: Path) -> Path:
    import onnx

    from fuseline.verify.seeded_weights import with_seeded_weights

    source = Path(onnx.__file__).parent / TOPOLOGY
    path = folder / "resnet50.onnx"
    onnx.save(with_seeded_weights(onnx.load(source)), path)
    say(
        f"model: {source.name} of the onnx wheel, its constant weights replaced by seeded ones "
        f"({quantity(path.stat().st_size)}B)"
    )
    return path


def _compile(model: Path) -> CompiledModel:
    import fuseline

    start = time.perf_counter()
    with progress("compiling") as report:
        program = fuseline.compile(model, progress=report)
    _title(f"compiled in {seconds(time.perf_counter() - start)} for {program.threads} threads")
    return program


def _explain(program: CompiledModel) -> None:
    from fuseline.report.dispatches import dispatches_table
    from fuseline.report.explain import why_not_fused
    from fuseline.report.statistics import statistics_table

    say(dispatches_table(program.record))
    _title("statistics")
    say(statistics_table(program.record))
    _title("why not fused")
    say(why_not_fused(program.record) or ["every candidate was fused"])


def _save_and_load(program: CompiledModel, folder: Path) -> None:
    import fuseline

    path = folder / "resnet50.fuse"
    program.save(path)
    start = time.perf_counter()
    fuseline.load(path)
    _title(f"artifact: {quantity(path.stat().st_size)}B, loads in {seconds(time.perf_counter() - start)}")


def _compare(model: Path, program: CompiledModel) -> None:
    from fuseline.cli.bench import measure_program, result_table
    from fuseline.cli.run import check
    from fuseline.verify.model_feeds import complete_feeds, model_hints

    hints = model_hints(model)
    feeds = complete_feeds(program, {}, hints, 0)
    outputs = program.run(feeds)
    _title("outputs against onnxruntime (two different inputs give different outputs: checked first)")
    for item in check(model, program, (feeds, outputs), complete_feeds(program, {}, hints, 1), "onnxruntime", None):
        say(
            f"{item.output}: largest difference {item.error:.2e} of the largest magnitude {item.magnitude:.4g}; "
            f"allowed 1e-4"
        )
    _title("time of one run, interleaved with onnxruntime; a ratio below 1 means that fuseline is faster")
    say(result_table([measure_program(program, model, ["onnxruntime"], feeds, rounds=15)], ["onnxruntime"]))


def main() -> None:
    """`python -m fuseline.cli.demo`, with the same error blocks and exit codes as every command."""
    from fuseline.cli.main import guarded

    sys.exit(guarded(demo, "demo", as_json=False, debug="--debug" in sys.argv))


if __name__ == "__main__":
    main()
