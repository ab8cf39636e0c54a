"""The command that runs an artifact where nothing but the runtime is installed: the options of `fuseline run` that are
about artifacts, with the standard library's parser."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from fuseline.border import coded
from fuseline.buffers import TensorSpec
from fuseline.errors import ERROR_TITLES, FuselineError
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.feed_files import Feeds, flat_outputs, output_files, parse_feeds
from fuseline.runtime.files import write_files
from fuseline.runtime.program import Program
from fuseline.runtime.session import Session, load
from fuseline.runtime.sizes import SizeEvaluator, symbol_of, symbols_of

_USAGE_CODES = frozenset({"E0201", "E0202", "E0203", "E0204", "E0206", "E0501"})
_SIZE_GENERATED = 4
"""Elements along a symbolic extent that nothing else tells, where its bounds allow."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FuselineError("E0501", message, hint=f"see `{self.prog} --help`")


def parser(program: str = "python -m fuseline.runtime") -> argparse.ArgumentParser:
    """What the command takes."""
    made = _Parser(prog=program, description="Run a compiled model (.fuse) once and show or save its outputs.")
    made.add_argument("model", help="the artifact")
    made.add_argument("--input", action="append", default=[], metavar="NAME=@FILE.npy", help="a feed; others are made")
    made.add_argument("--output", type=Path, metavar="DIR", help="folder for one .npy file per output")
    made.add_argument("--threads", type=int, metavar="N", help="threads of the run (default: as it was compiled for)")
    made.add_argument("--trusted", action="append", metavar="KEY", help="public key that must have signed the artifact")
    made.add_argument("--verify", action="store_true", help="check the digest of every constant")
    made.add_argument("--seed", type=int, default=0, help="seed of feeds that are made (default 0)")
    made.add_argument("--json", action="store_true", help="one JSON document")
    return made


def main(arguments: Sequence[str], program: str = "python -m fuseline.runtime") -> int:
    """Run the command; answers the exit code: 0 fine, 1 the work failed, 2 usage. No exception leaves."""
    try:
        _run(parser(program).parse_args(arguments))
    except Exception as problem:  # noqa: BLE001 - the border: no traceback reaches the user
        error = coded(problem, "run")
        show_error(error, as_json="--json" in arguments, command="run")
        return 2 if error.code in _USAGE_CODES else 1
    return 0


def _run(options: argparse.Namespace) -> None:
    session = load(options.model, threads=options.threads, verify=options.verify, trusted=options.trusted)
    given = parse_feeds(options.input, [spec.name for spec in session.inputs])
    outputs = flat_outputs(session.run(complete(session, given, options.seed)))
    if options.output is not None:
        files = output_files(options.output, outputs)
        write_files({path: partial(_save, array) for path, array in files.items()})
    if options.json:
        found = {"model": options.model, "outputs": [summary(*item) for item in outputs.items()], "check": []}
        write_document("run", found)
        return
    sys.stdout.writelines(f"{line(*item)}\n" for item in outputs.items())


def _save(array: np.ndarray, file: Any) -> None:
    np.save(file, array, allow_pickle=False)


def complete(session: Session, given: Feeds, seed: int) -> Feeds:
    """`given`, and random arrays for the other inputs: numbers around 0, and 0 or 1 for integers, which are valid
    indices of most tables. Raises FuselineError (E0202) for a missing input that holds no numbers."""
    sizes = _sizes(session.artifact.program, given)
    random = np.random.default_rng(seed)
    return {**{s.name: _made(s, sizes, random) for s in session.inputs if s.name not in given}, **given}


def _sizes(program: Program, given: Feeds) -> dict[str, int]:
    """A value for every symbol: as the given feeds have it, else a small one within its bounds."""
    known: dict[str, int] = {}
    for spec in program.inputs:
        for size in spec.dims:
            for name in symbols_of(size):
                low, high = program.symbols.get(name, (1, None))
                known.setdefault(name, max(low, _SIZE_GENERATED if high is None else min(high, _SIZE_GENERATED)))
    for spec in program.inputs:
        shape = given[spec.name].shape if spec.name in given else ()
        known |= {name: n for size, n in zip(spec.shape, shape, strict=False) if (name := symbol_of(size)) is not None}
    return known


def _made(spec: TensorSpec, sizes: Mapping[str, int], random: np.random.Generator) -> np.ndarray:
    dtype = dtype_named(spec.dtype)
    if spec.slot is not None:
        raise FuselineError(
            "E0202", "holds no numbers that could be made up", node=spec.name, hint="run it from Python"
        )
    evaluate = SizeEvaluator(sizes)
    if spec.is_index:
        return np.asarray(evaluate(spec.dims[0]), dtype)
    shape = tuple(evaluate(size) for size in spec.shape)
    if dtype.kind in "iub":
        return random.integers(0, 2, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


# what is shown --------------------------------------------------------------------------------------------------------


def line(name: str, array: np.ndarray) -> str:
    """An output in one line: dtype, shape, and its first numbers."""
    first = np.array2string(array.ravel()[:6], precision=5, separator=", ", max_line_width=1 << 16)
    return f"{name}: {array.dtype}[{'x'.join(map(str, array.shape))}] {first}"


def summary(name: str, array: np.ndarray) -> dict[str, Any]:
    """An output as JSON."""
    numbers = array.astype(np.float64).ravel() if array.dtype.kind in "fiub" else np.zeros(0)
    return {
        "name": name,
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "first": numbers[:6].tolist(),
        "mean": float(numbers.mean()) if numbers.size else None,
    }


def write_document(command: str, content: Mapping[str, Any]) -> None:
    """One JSON document in the envelope of all commands."""
    sys.stdout.write(json.dumps({"version": 1, "command": command, **content}, indent=2) + "\n")


def show_error(error: FuselineError, *, as_json: bool, command: str, more: str = "") -> None:
    """One block on standard error, or a JSON document; `more` is one more line of the block."""
    if as_json:
        write_document(command, {"error": error.to_json()})
        return
    rows = ("at", error.node), ("why", error.message), ("try", error.hint), ("else", more)
    lines = [f"error {error.code}: {ERROR_TITLES[error.code]}", *(f"  {key:<5} {text}" for key, text in rows if text)]
    sys.stderr.write("\n".join(lines) + "\n")
