"""What may be asked of the kernels of models against what their families choose: `python -m benchmarks.kernel_choices
MODEL... [--rounds 30] [--numerics default] [--all]`.

One line per class of kernels: its share of the time of all of them, the default, and the best choice, timed once more
beside the default, with the median of paired ratios and its interval; at the end how often each kind of choice was
faster. One thread, each kernel alone, all choices of a class in turns; the clock is that of the thread, so that others
on the machine count less. `--all`: tiles and filterings that are not offered as well.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp

from benchmarks.kernels.timing import aligned, load
from fuseline.call_options import compile_options
from fuseline.compilation import target_of
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import element_of
from fuseline.ir.costs import ASSUMED_SIZE
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.kernel_choice import given_choices
from fuseline.phase_runner import run_phases
from fuseline.source_program import prepare
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.winograd.choice import OUTPUTS
from fuseline.targets.cpu.shared_kernels import Built
from fuseline.targets.cpu.target import CpuTarget
from fuseline.weight_layouts import PackedLayout, transformed

BATCH_SECONDS = 0.002
"""Of calls between two looks at the clock."""


@dataclass
class Line:
    """A class of a model: nanoseconds of a run, the default's notes, and the ratios of each choice by round."""

    model: str
    name: str
    shape: str
    launches: int
    seconds: float
    notes: str
    predicted: dict[str, float]
    ratios: dict[str, NDArray[Any]]
    best: str


class Buffers:
    """Random arguments of a dispatch, laid out as kernels ask: what several kernels read or write alike is one buffer,
    so that times differ by code, not by addresses that meet in a cache set."""

    def __init__(self, view: DispatchView) -> None:
        self.arrays, self.view = _arrays(view), view
        self.results = [aligned(np.zeros(_shape(view, r), numpy_dtype(element_of(r)))) for r in view.results]
        self._scratch = aligned(np.zeros(4 << 20, np.uint8))
        self._laid: dict[tuple[int, PackedLayout | None], NDArray[Any]] = {}

    def scratch(self, size: int) -> NDArray[Any]:
        """The scratch that kernels share, of `size` bytes or more."""
        if size > self._scratch.nbytes:
            self._scratch = aligned(np.zeros(size + 64, np.uint8))
        return self._scratch

    def operand(self, number: int, layout: PackedLayout | None) -> NDArray[Any]:
        """An argument in a layout."""
        if (number, layout) not in self._laid:
            array = self.arrays[number]
            self._laid[number, layout] = aligned(array if layout is None else _packed(array, layout))
        return self._laid[number, layout]


class Kernel:
    """A kernel on buffers; `call()` runs its whole grid on this thread."""

    def __init__(self, built: Built, target: CpuTarget, buffers: Buffers) -> None:
        plan, view = built.plan, buffers.view
        operands = [buffers.operand(i, plan.constant_layouts.get(i)) for i in range(len(view.tensors))]
        extras = [aligned(np.frombuffer(block, np.uint8)) for block in plan.extra_constants]
        self.arrays = [*operands, *buffers.results, *extras]
        self.pointers = (ctypes.c_void_p * len(self.arrays))(*(array.ctypes.data for array in self.arrays))
        sizes = [_assumed(view, name) for name in view.size_names]
        self.sizes = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
        self.workgroups = d.evaluate(plan.workgroups, dict(zip(view.size_names, sizes, strict=True)))
        self.scratch = buffers.scratch(built.kernel.scratch_bytes)
        self.function = load(built.kernel, target.machine)

    def call(self) -> None:
        """Run it."""
        self.function(self.pointers, self.sizes, 0, self.workgroups, self.scratch.ctypes.data)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--numerics", default="default")
    parser.add_argument("--all", action="store_true", dest="everything")
    parser.add_argument("--json", type=Path, help="write every ratio there")
    options = parser.parse_args()
    lines: list[Line] = []
    for model in options.models:
        found = list(_lines(model, options.numerics, options.rounds, options.everything))
        whole = sum(line.seconds for line in found)
        for line in sorted(found, key=lambda line: -line.seconds):
            print(_text(line, whole), flush=True)
        lines += found
        if options.json is not None:
            options.json.write_text(json.dumps([_document(line) for line in lines]))
    _summary(lines)


def _lines(model: Path, numerics: str, rounds: int, everything: bool) -> Iterator[Line]:
    chosen = compile_options(threads=1, numerics=numerics)
    target = target_of(chosen)
    assert isinstance(target, CpuTarget)
    module, ctx = prepare(model, chosen, target)
    run_phases(module, ctx, chosen, until="dedup")
    entries = [entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)]
    homes: dict[str, FuncOp] = {}
    for arm in (arm.entry for entry in entries for arm in split_arms(entry)):
        for part in target.build(arm).plan.kernel_plans:
            homes.setdefault(part.view.kernel_class, arm)
    for one in target.kernel_classes(entries):
        predicted = {other.text: other.time for other in one.alternatives}
        if everything:
            predicted |= dict.fromkeys(_everything(target, homes[one.name], one.name), 0.0)
        if not predicted:
            continue
        built = _built(target, homes[one.name], one.name, ["default", *predicted])
        buffers = Buffers(DispatchView(homes[one.name]))
        kernels = {text: Kernel(b, target, buffers) for text, b in built.items()}
        times = _times([kernel.call for kernel in kernels.values()], rounds)
        ratios = {text: times[i] / times[0] for i, text in enumerate(kernels) if i}
        if not ratios:
            continue
        # the best of several is lucky: it is timed again
        best = min(ratios, key=lambda text: float(np.median(ratios[text])))
        again = _times([kernels["default"].call, kernels[best].call], 2 * rounds)
        ratios[best] = again[1] / again[0]
        notes = " ".join(f"{value}" for name, value in one.notes if name in ("filtering", "tile", "block"))
        seconds = float(np.median(times[0])) * one.launches
        yield Line(model.stem, one.name, one.shape, one.launches, seconds, notes, predicted, ratios, best)


def _everything(target: CpuTarget, arm: FuncOp, name: str) -> Iterator[str]:
    """Every tile of two rows or more less than the tallest, and every filtering."""
    part = next(p for p in target.build(arm).plan.kernel_plans if p.view.kernel_class == name)
    if any(
        one.text.startswith("tile")
        for family in families(Policy())
        for one in family.alternatives(part, target.machine)
    ):
        lanes = target.machine.lanes("f32")
        yield from (f"tile={rows}x{wide * lanes}" for wide in range(1, 7) for rows in range(2, 31))
    yield from (f"winograd={outputs}" for outputs in OUTPUTS)


def _built(target: CpuTarget, arm: FuncOp, name: str, texts: Sequence[str]) -> dict[str, Built]:
    """The default's kernel, and those that follow choices."""
    found: dict[str, Built] = {}
    for text in texts:
        policy = Policy(target.policy.numerics, 1, choices=given_choices({name: text}))
        built = target.build(arm, policy)
        followed = text == "default" or any(part.choice == text for part in built.plan.kernel_plans)
        if followed:
            found[text] = built
    return found


def _times(calls: Sequence[Callable[[], None]], rounds: int) -> NDArray[Any]:
    """Seconds of a call, by call and round; in turns, each round from another one on."""
    counts: list[int] = []
    for call in calls:
        call()
        start = time.thread_time()
        call()
        counts.append(max(1, int(BATCH_SECONDS / max(time.thread_time() - start, 1e-6))))
    times = np.zeros((len(calls), rounds))
    for number in range(rounds):
        order = [(number + i) % len(calls) for i in range(len(calls))]
        for i in order if number % 2 else order[::-1]:
            start = time.thread_time()
            for _ in range(counts[i]):
                calls[i]()
            times[i, number] = (time.thread_time() - start) / counts[i]
    return times


def _interval(ratios: NDArray[Any]) -> tuple[float, float, float]:
    """The median, and the order statistics that hold it with 95 %."""
    ordered, count = np.sort(ratios), len(ratios)
    low = max(0, int(count / 2 - 0.98 * np.sqrt(count)))
    return float(np.median(ratios)), float(ordered[low]), float(ordered[count - 1 - low])


def _text(line: Line, whole: float) -> str:
    value, low, high = _interval(line.ratios[line.best])
    others = "  ".join(
        f"{text}:{float(np.median(r)):.3f}"
        for text, r in sorted(line.ratios.items(), key=lambda item: float(np.median(item[1])))[1:5]
    )
    return (
        f"{line.model:14} {line.name:26} {line.shape:18} {line.launches:3} {line.seconds / whole:6.1%}  "
        f"{line.notes:26} {line.best:22} {value:.3f} [{low:.3f}, {high:.3f}]  {others}"
    )


def _document(line: Line) -> dict[str, Any]:
    ratios = {text: [line.predicted.get(text, 0.0), *_interval(r)] for text, r in line.ratios.items()}
    return {
        "model": line.model, "class": line.name, "shape": line.shape, "launches": line.launches,
        "seconds": line.seconds, "default": line.notes, "ratios": ratios,
    }  # fmt: skip


def _summary(lines: Sequence[Line]) -> None:
    kinds: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        by_kind: dict[str, float] = {}
        for text, ratios in line.ratios.items():
            kind = text.partition("=")[0]
            by_kind[kind] = min(by_kind.get(kind, 9.0), _interval(ratios)[2])
        for kind, high in by_kind.items():
            kinds[kind].append(high)
    print(f"\n{'choice':10} {'classes':>8} {'faster by 3 % or more (upper bound)':>36}")
    for kind, highs in kinds.items():
        print(f"{kind:10} {len(highs):8} {sum(high <= 0.97 for high in highs):36}")


def _arrays(view: DispatchView) -> list[NDArray[Any]]:
    random = np.random.default_rng(0)
    found: list[NDArray[Any]] = []
    for argument in view.tensors:
        shape, dtype = _shape(view, argument), numpy_dtype(element_of(argument))
        array = random.standard_normal(shape) if np.issubdtype(dtype, np.inexact) else random.integers(0, 5, shape)
        found.append(array.astype(dtype))
    return found


def _shape(view: DispatchView, value: Any) -> list[int]:
    sizes = {name: _assumed(view, name) for name in view.size_names}
    return [d.evaluate(size, sizes) for size in view.shapes.dims(value)]


def _assumed(view: DispatchView, name: str) -> int:
    symbol = view.shapes.symbols[name]
    bound = d.upper_bound(symbol)
    return ASSUMED_SIZE if bound is None else bound


def _packed(array: NDArray[Any], layout: PackedLayout) -> NDArray[Any]:
    """`array` laid out as a kernel wants a constant."""
    plain = transformed(array, layout)
    padded = np.pad(plain, [(0, to - size) for to, size in zip(layout.pad_to, plain.shape, strict=True)])
    found = np.ascontiguousarray(padded.reshape(layout.reshape).transpose(layout.permutation))
    return found if layout.then is None else np.concatenate([found.ravel(), _packed(array, layout.then).ravel()])


if __name__ == "__main__":
    main()
