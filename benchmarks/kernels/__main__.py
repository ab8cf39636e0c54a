"""Times the kernels of single layers against onnxruntime and the machine's peak: `python -m benchmarks.kernels [group
...] [--seconds 0.3]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from fuseline.targets.cpu.isa import machine

from .cases import GROUPS, Case
from .timing import Compiled, best, peak_gflops


def main() -> None:
    """Print one line per layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--seconds", type=float, default=0.3, help="time per layer and contender")
    parser.add_argument("--only", default="", help="layers whose name contains this")
    parser.add_argument("--no-peer", action="store_true", help="leave onnxruntime out")
    options = parser.parse_args()
    isa = machine()
    print(f"{isa.name}: {peak_gflops(isa):.1f} GFLOP/s per core; one thread")
    print(
        f"{'layer':32} {'us':>8} {'GFLOP/s':>8} {'% peak':>7} {'ort us':>8} {'ratio':>6} {'emit ms':>8} "
        f"{'llvm ms':>8} {'kB':>5}  plan"
    )
    for group in options.groups:
        for make in GROUPS[group]:
            case = make()
            if options.only in case.name:
                _line(case, options.seconds, peer=not options.no_peer)


def _line(case: Case, seconds: float, *, peer: bool) -> None:
    isa = machine()
    compiled = Compiled(case, isa)
    compiled.call()
    contenders: list[Callable[[], object]] = [compiled.call]
    if peer:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = np.asarray(session.run(None, case.feeds)[0])
        found = case.to_onnx(compiled.result)
        error = float(np.abs(found - expected).max() / np.abs(expected).max())
        assert error < 1e-4, f"{case.name}: off by {error}"
        contenders.append(lambda: session.run(None, case.feeds))
    times = best(contenders, seconds)
    rate = case.flops / times[0] / 1e9
    other = f"{times[1] * 1e6:8.1f} {times[0] / times[1]:6.2f}" if peer else f"{'':15}"
    share = 100 * rate / peak_gflops(isa)
    cost = f"{compiled.emit_seconds * 1e3:8.1f} {compiled.compile_seconds * 1e3:8.1f} {compiled.text_bytes / 1e3:5.0f}"
    plan = " ".join(f"{k}={v}" for k, v in compiled.plan.notes.items())
    print(
        f"{case.name:32} {times[0] * 1e6:8.1f} {rate:8.1f} {share:7.1f} {other} {cost}  {plan} "
        f"grid={compiled.workgroups}"
    )


if __name__ == "__main__":
    main()
