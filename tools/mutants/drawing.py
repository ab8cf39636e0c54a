"""Which mutants a run is about: counted in every file, drawn or named, and written out."""

from __future__ import annotations

import fnmatch
import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from .changes import Mutant, count, module_name, mutants
from .forks import Job, outcomes
from .reach import digest


def draw(counts: dict[str, int], modules: Sequence[str], size: int, seed: int) -> dict[str, list[int]]:
    """`size` of the mutants (0: all) of the files whose module fits one of the glob patterns, the same for the same
    seed: numbers by file."""
    wanted = [
        file for file in sorted(counts) if any(fnmatch.fnmatch(module_name(file), pattern) for pattern in modules)
    ]
    every = [(file, number) for file in wanted for number in range(counts[file])]
    drawn = random.Random(seed).sample(every, min(size, len(every))) if size else every
    return {
        file: sorted(number for other, number in drawn if other == file)
        for file in wanted
        if any(other == file for other, _ in drawn)
    }


def named(names: Sequence[str], files: Sequence[str]) -> dict[str, list[int]]:
    """The mutants with these names: numbers by file. Raises KeyError for a name that no file has."""
    places = {module_name(file): file for file in files}
    found: dict[str, list[int]] = {}
    for name in names:
        place, _, number = name.rpartition(":")
        module = max((module for module in places if place.startswith(f"{module}.")), key=len, default=place)
        found.setdefault(places[module], []).append(int(number))
    return found


def counted(
    root: Path, files: Sequence[str], place: Path, workers: int, progress: Callable[[str], None]
) -> dict[str, int]:
    """How many mutants each file has; kept at `place` while the file does not change."""
    kept = json.loads(place.read_text()) if place.exists() else {}
    keys = {file: f"{file} {digest(root / file)}" for file in files}
    jobs = [Job(file, partial(count, root, file), 600) for file in files if keys[file] not in kept]
    for done, outcome in enumerate(outcomes(jobs, workers), 1):
        progress(f"counting mutants: {done} of {len(jobs)} files")
        kept[keys[outcome.key]] = int(outcome.value)
    place.write_text(json.dumps({key: kept[key] for key in keys.values()}))
    return {file: kept[keys[file]] for file in files}


def made(
    root: Path, drawn: dict[str, list[int]], place: Path, workers: int, progress: Callable[[str], None]
) -> list[Mutant]:
    """Write the drawn mutants out; those that `place` has from the last run are taken from there."""
    kept: dict[str, list[str]] = json.loads(place.read_text()) if place.exists() else {}
    keys = {
        (file, number): f"{file} {digest(root / file)} {number}"
        for file, numbers in drawn.items()
        for number in numbers
    }
    missing = {
        file: wanted for file, numbers in drawn.items() if (wanted := [n for n in numbers if keys[file, n] not in kept])
    }
    jobs = [Job(file, partial(_written, root, file, numbers), 600) for file, numbers in missing.items()]
    for done, outcome in enumerate(outcomes(jobs, workers), 1):
        progress(f"making mutants: {done} of {len(jobs)} files")
        kept |= {
            keys[outcome.key, number]: written
            for number, written in zip(missing[outcome.key], outcome.value, strict=True)
        }
    place.write_text(json.dumps({key: kept[key] for key in keys.values()}))
    before = {file: (root / file).read_text(encoding="utf-8") for file in drawn}
    return [
        Mutant(file, number, kept[key][0], before[file], kept[key][1]) for (file, number), key in sorted(keys.items())
    ]


def _written(root: Path, file: str, numbers: list[int]) -> list[tuple[str, str]]:
    return [(mutant.function, mutant.after) for mutant in mutants(root, file, numbers)]
