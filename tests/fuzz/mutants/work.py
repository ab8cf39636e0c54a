"""One mutated file: made from a seed, read, compiled or loaded, run, and judged."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import fuseline
from fuseline.api import emit
from fuseline.errors import FuselineError
from tests.fuzz.case import Case
from tests.fuzz.compare import close, same_bits
from tests.fuzz.generate import make_case
from tests.fuzz.mutants.artifacts import changed_artifact
from tests.fuzz.mutants.bytes import changed_bytes, changed_text
from tests.fuzz.mutants.models import changed_model
from tests.fuzz.tensors import random_array

BASES = 24
LARGEST = 1 << 20
"""Elements of a feed, and a share of the bytes of what a run holds: a mutant may well ask for more than a machine
has."""

FREE_SIZE = 3

Arrays = Mapping[str, Any]
Stage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Base:
    """What is changed: a case that compiles, its outputs, and its files."""

    case: Case
    outputs: Arrays
    artifact: bytes
    plan: str
    texts: Sequence[str]


@lru_cache(maxsize=1)
def bases() -> tuple[Base, ...]:
    """The first cases of the generator that compile with one thread and are not wild; made before children are."""
    found: list[Base] = []
    seed = 0
    while len(found) < BASES:
        case, seed = make_case(seed, most_nodes=8), seed + 1
        try:
            if not case.wild and not case.choices.sizes:
                found.append(_base(case))
        except FuselineError:
            continue
    return tuple(found)


def _base(case: Case) -> Base:
    program = fuseline.compile(case.model, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.fuse"
        program.save(path)
        artifact = path.read_bytes()
    texts = [emit(case.model, stage, threads=1) for stage in ("input", "fusion")]
    return Base(case, program.run(case.feeds[0]), artifact, program.plan, texts)


def work_mutant(item: tuple[str, int], stage: Stage) -> str:
    """What became of the mutant of a kind and seed: `E0102` and such, `right`, `ran` where nothing tells what is right,
    or `BAD: ...`."""
    kind, seed = item
    rng = random.Random(f"{kind} {seed}")
    base = rng.choice(bases())
    stage(f"{kind} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return KINDS[kind](base, rng, Path(folder))
        except FuselineError as error:
            return f"BAD: {error}" if error.code == "E0901" else error.code
        except MemoryError:
            return "BAD: MemoryError"


def _model(base: Base, rng: random.Random, folder: Path) -> str:
    path = folder / "model.onnx"
    if rng.random() < 0.4:
        path.write_bytes(changed_bytes(base.case.model.SerializeToString(), rng))
    else:
        path.write_bytes(changed_model(base.case.model, rng).SerializeToString())
    return _ran(fuseline.compile(path, threads=1), rng)


def _held(program: fuseline.CompiledModel) -> float:
    """Bytes of transients and outputs whose sizes are known."""
    sizes = [np.prod([size for size in item.shape if isinstance(size, int)], dtype=float) for item in program.outputs]
    return 8 * sum(sizes) + float(program.stats["transient_bytes"] or 0)


def _ran(program: fuseline.CompiledModel, rng: random.Random) -> str:
    """Run on random feeds of the declared sizes, where those are not too large and of numbers."""
    if _held(program) > 64 * LARGEST:
        return "compiled"
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    feeds: dict[str, Any] = {}
    for item in program.inputs:
        shape = tuple(size if isinstance(size, int) else FREE_SIZE for size in item.shape)
        if item.type or np.prod(shape, dtype=float) > LARGEST:
            return "compiled"
        feeds[item.name] = random_array(numbers, item.dtype, shape)
    program.run(feeds)
    return "ran"


def _artifact(base: Base, rng: random.Random, folder: Path) -> str:
    """Constants are verified only on request; a header that is signed again may say something else that holds
    together."""
    data, signed = changed_artifact(base.artifact, rng)
    path, verify = folder / "program.fuse", signed or rng.random() < 0.5
    path.write_bytes(data)
    outputs = fuseline.load(path, threads=1, verify=verify).run(base.case.feeds[0])
    equal = len(outputs) == len(base.outputs) and all(map(same_bits, outputs.values(), base.outputs.values()))
    if equal:
        return "right"
    return "another program" if signed else "BAD: another result, and verified" if verify else "unverified"


def _plan(base: Base, rng: random.Random, folder: Path) -> str:
    path = folder / "plan.toml"
    path.write_bytes(
        changed_bytes(base.plan.encode(), rng) if rng.random() < 0.3 else changed_text(base.plan, rng).encode()
    )
    program = fuseline.compile(base.case.model, threads=1, plan=path, plan_strict=rng.random() < 0.3)
    outputs = program.run(base.case.feeds[0])
    wrong = [
        name
        for name, value in base.outputs.items()
        if isinstance(value, np.ndarray) and not _alike(outputs[name], value)
    ]
    return f"BAD: {wrong} differ" if wrong else "right"


def _alike(ours: Any, theirs: Any) -> bool:
    return ours.shape == theirs.shape and close(ours, theirs, theirs.dtype, 100.0)


def _text(base: Base, rng: random.Random, folder: Path) -> str:
    text = rng.choice(list(base.texts))
    for _ in range(rng.choice((1, 1, 2))):
        text = changed_text(text, rng)
    path = folder / "program.mlir"
    path.write_text(text)
    return _ran(fuseline.compile(path, threads=1), rng)


KINDS: dict[str, Callable[[Base, random.Random, Path], str]] = {
    "onnx": _model,
    "fuse": _artifact,
    "plan": _plan,
    "mlir": _text,
}
"""How each kind of file is changed and tried."""
