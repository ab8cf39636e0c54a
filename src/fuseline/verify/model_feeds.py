"""Feeds for a compiled program of a model: generated, of the sizes that the model, given feeds or custom ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fuseline.runtime.artifact import ARTIFACT_SUFFIX
from fuseline.runtime.feed_files import Feeds

if TYPE_CHECKING:
    from fuseline.verify.inputs import Hints, Input


class FedProgram(Protocol):
    """What is asked of a compiled program."""

    @property
    def inputs(self) -> Sequence[Input]:
        """Its inputs, in order."""
        ...

    @property
    def symbols(self) -> Mapping[str, tuple[int, int | None]]:
        """Inclusive bounds of every symbolic extent, by name."""
        ...


def model_hints(model: Path) -> Hints:
    """What an ONNX file says of its inputs; nothing for an artifact or MLIR text."""
    from fuseline.verify.inputs import Hints

    if model.suffix in (ARTIFACT_SUFFIX, ".mlir"):
        return Hints()
    import onnx

    from fuseline.verify.inputs import hints_of

    return hints_of(onnx.load(model, load_external_data=False))


def complete_feeds(
    program: FedProgram, given: Feeds, hints: Hints, seed: int, like: Mapping[str, Any] | None = None
) -> Feeds:
    """`given`, and generated arrays for the other inputs; extents that `given` or `like` fixes by name are kept."""
    from fuseline.verify.inputs import Hints, generate

    known = {**default_sizes(program), **hints.sizes}
    for item in program.inputs:
        array = given.get(item.name, (like or {}).get(item.name))
        if array is not None:
            known |= {
                extent: size for extent, size in zip(item.shape, array.shape, strict=False) if isinstance(extent, str)
            }
    missing = [item for item in program.inputs if item.name not in given]
    return {**generate(missing, seed=seed, hints=Hints(hints.ranges, known)), **given}


def default_sizes(program: FedProgram) -> dict[str, int]:
    """A value for every symbol: one for what stands first (batches do), sixteen for lengths, kept within its bounds."""
    leading = {item.shape[0] for item in program.inputs if item.shape}
    wanted = {name: 1 if name in leading else 16 for name in program.symbols}
    return {
        name: max(low, wanted[name] if high is None else min(wanted[name], high))
        for name, (low, high) in program.symbols.items()
    }
