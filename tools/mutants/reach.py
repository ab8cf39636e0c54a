"""Which test runs which lines, and how long each takes: measured once by `coverage` and kept, so that a mutant meets
only tests that could notice."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage


def digest(path: Path) -> str:
    """A name for what a file holds."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@dataclass
class Measured:
    """One test: processor seconds, whether it passes on unchanged code, and the lines it runs of each file, as a mask
    of bits."""

    seconds: float
    passes: bool
    masks: dict[str, int]


@dataclass
class Reach:
    """What is known of every test, by node id, and what the files held when that was measured."""

    tests: dict[str, Measured] = field(default_factory=dict[str, Measured])
    files: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def read(cls, place: Path) -> Reach:
        """The kept measurements; none where there is no file."""
        if not place.exists():
            return cls()
        kept = json.loads(place.read_text())
        found = cls(files=kept["files"])
        found.add(kept["tests"])
        return found

    def write(self, place: Path) -> None:
        """Keep the measurements."""
        tests = {
            name: [test.seconds, test.passes, {file: f"{mask:x}" for file, mask in test.masks.items()}]
            for name, test in self.tests.items()
        }
        place.write_text(json.dumps({"tests": tests, "files": self.files}))

    def add(self, found: dict[str, Any]) -> None:
        """Take over what `measure` found."""
        for name, (seconds, passes, masks) in found.items():
            self.tests[name] = Measured(seconds, passes, {file: int(mask, 16) for file, mask in masks.items()})

    def within(self, names: Sequence[str], budget: float) -> tuple[list[str], float]:
        """As many of the tests, from the first, as take `budget` seconds together (one at least), and what they
        take."""
        total, kept = 0.0, list[str]()
        for name in names:
            if kept and total + self.tests[name].seconds > budget:
                continue
            total += self.tests[name].seconds
            kept.append(name)
        return kept, total

    def unmeasured(self, root: Path, tests: Iterable[tuple[str, str]]) -> list[str]:
        """Of (node id, test file) pairs, the node ids that are new, or whose file has changed."""
        pairs = list(tests)
        changed = {file for file in {file for _, file in pairs} if self.files.get(file) != digest(root / file)}
        return [name for name, file in pairs if file in changed or name not in self.tests]

    def tests_of(self, file: str, lines: Collection[int], known: Collection[str], *, exact: bool) -> list[str]:
        """The passing tests among `known` that run one of the lines; of a file that changed since (not `exact`), behind
        them those that run any.

        Tests named after the file come first, then the quick ones.
        """
        wanted, stem = sum(1 << line for line in lines), Path(file).stem
        masks = {
            name: test.masks.get(file, 0)
            for name in known
            if (test := self.tests.get(name)) is not None and test.passes
        }
        found = [name for name, mask in masks.items() if mask & (wanted if exact else -1)]
        return sorted(
            found, key=lambda name: (stem not in name, not masks[name] & wanted, self.tests[name].seconds, name)
        )


def measure(names: Sequence[str], run: Callable[[str], bool], root: Path, sources: Sequence[str]) -> dict[str, Any]:
    """Run tests by name under coverage: name -> [seconds, passes, {file: mask in hexadecimal}], for `sources` under
    `root`."""
    watch = coverage.Coverage(
        data_file=None, include=[str(root / file) for file in sources], config_file=False, messages=False
    )
    found: dict[str, Any] = {}
    watch.start()
    for name in names:
        watch.switch_context(name)
        before = time.process_time()
        passes = run(name)
        found[name] = [time.process_time() - before, passes, {}]
    watch.stop()
    for name, file, line in _lines(watch.get_data()):
        if name in found:
            masks, short = found[name][2], str(Path(file).relative_to(root))
            masks[short] = masks.get(short, 0) | 1 << line
    return {
        name: [seconds, passes, {file: f"{mask:x}" for file, mask in masks.items()}]
        for name, (seconds, passes, masks) in found.items()
    }


def _lines(data: coverage.CoverageData) -> Iterator[tuple[str, str, int]]:
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            yield from ((name, file, line) for name in contexts)
